"""Evaluator `compression.recipe`: a real model, compressed by recipes in the study file."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import ClassVar

import numpy as np

from dse.core.batch import Batch
from dse.core.metric import Kind, Metric, Metrics
from dse.core.separable import Separable
from dse.core.values import Floats, Value
from dse.errors import SpecError
from dse.protocols import DeployedModel, DeployedTensor, Evaluator
from dse_evaluators.compression.layer_recipes import KEEP
from dse_evaluators.compression.layer_sums import layer_columns, parameters_of_layers
from dse_evaluators.compression.model_recipes import ModelRecipes
from dse_evaluators.compression.operators.recipe import needs_calibration
from dse_evaluators.compression.signal_formats import SignalFormats, count_attention
from dse_evaluators.one_by_one import Found, one_by_one
from dse_evaluators.workloads.editions import edition_of
from dse_evaluators.workloads.models import model_of
from dse_evaluators.workloads.on_test_split import OnTestSplit
from dse_evaluators.workloads.own.named_model import model_ref
from dse_evaluators.workloads.own.own_data import data_source
from dse_evaluators.workloads.own.own_model import (
    CALIBRATIONS,
    OwnModel,
    calibrate_in_order,
    rotate_model,
    run_on,
)
from dse_evaluators.workloads.resampling import RESAMPLES
from dse_evaluators.workloads.trained_models import trained_weights
from dse_evaluators.workloads.workload import Split, check_split

SIZES: Mapping[str, Metric] = {
    "size": Metric(name="size", unit="B", goal="minimize"),
    "bits_per_weight": Metric(name="bits_per_weight", goal="minimize"),
    "deviation": Metric(name="deviation", goal="minimize"),
}
"""Metrics of every model, in addition to the quality metrics of its workload."""


@dataclass(kw_only=True)
class ByRecipe:
    """Compression of a trained model's layers by recipes, measured on held-out examples.

    Names in braces are design parameters; a list parameter has one element per layer of the
    recipe, in the order of the model. ``size`` is the size of the entire model in bytes,
    ``bits_per_weight`` counts codes, scales and positions of the compressible layers, and
    ``deviation`` is the mean squared error of the outputs over their mean square.

    Args:
        model: name of the model, or a model of yours: a path, ``{python: net.py:make}`` or, in
            Python, a ``torch.nn.Module``; see ``docs/how-to/own-model.md``.
        recipe: operators for each layer, such as ``format {bits}`` or ``prune 0.5 > huffman
            kmeans:4``; ``keep`` leaves a layer in single precision. First operators set weights to
            zero: ``prune 0.1``, ``n-of-m 2/4`` (or with a method: ``prune 0.5/sparsegpt``),
            ``blocks 0.5/4x4``, ``low-rank-mask 16/0.1``. The last one stores the weights:
            ``format``, ``gptq``, ``gptq-act-order``, ``huffman``, ``bloomier 4/8``, ``xor 24/240``;
            after pruning, ``masked``; without pruning, ``awq``, ``svd 16/fp16``, ``whitened
            16/fp16``, ``corrected 8/int2``, ``smooth 0.5/int8:channel`` (rescales rounded inputs,
            too), ``tucker-2 8x8/fp16``, ``cp 8/fp16``, and, trained in 200 steps, ``lsq
            200/int4:channel`` and ``straight-through 200/ternary``.
        layers: recipes of other layers, by name pattern; the first match applies.
        activations: number format of each layer's inputs.
        kv_cache: number format of the keys and values of attention.
        keys: number format of the keys, in place of ``kv_cache``; a list parameter has an element
            for each block with attention.
        values: number format of the values, in place of ``kv_cache``; a list parameter has an
            element for each block with attention.
        split: examples for the metrics: ``search``, or ``test`` for the final evaluation.
        data: examples of a model of yours: a path, ``{python: data.py:make}`` or, in Python,
            arrays ``(inputs, targets)``.
        quality: quality metrics of a model of yours: ``accuracy``, ``top-5``, ``auc``, ``f1``,
            ``mse``, ``perplexity``, ``bits_per_character``, ``loss``, ``cosine`` (to the
            uncompressed model; the default), a function, or a list of them; ``{metrics: [loss],
            outputs: probabilities}`` if the model ends in a softmax or a sigmoid.
        device: ``cpu``, ``cuda``, or ``auto`` (``cuda`` where there is one), for a model of yours
            that PyTorch runs; layers are compressed on the CPU.
        rotation: ``none``, ``hadamard``, or ``hadamard:7`` with a seed: random rotation of a
            decoder of yours (Llama, Mistral, Qwen, Phi-3), folded into its weights before they are
            compressed; ``learned 100/int4:channel`` learns one in 100 steps for a format.
        calibration: ``independent``, or ``sequential``: the layers of a block of a model of yours
            are calibrated by the inputs that the compressed blocks before it give.

    Limits:
        0.02 to 0.6 s a design once its layers are cached. More: ``evaluators/README.md``.

    Error:
        The model is written to bytes and read back to the same outputs (16 recipes). Quality is
        exact on the examples of the split.

    Example:
        options: {model: digits-cnn, recipe: "format {bits}", activations: "{signal}"}
        parameters: {bits: ["int8:channel", "int4:channel", fp8_e4m3], signal: [keep, int8]}

    Raises:
        PluginError: the model or the split is unknown.
        SpecError: a recipe or a format is invalid, or a pattern matches no layer.
    """

    user_options: ClassVar[Sequence[str]] = ("model", "data", "quality")

    model: object
    recipe: str = KEEP
    layers: Mapping[str, str] = field(default_factory=dict)
    activations: str = KEEP
    kv_cache: str = KEEP
    keys: str = ""
    values: str = ""
    split: Split = "search"
    data: object = None
    quality: object = None
    device: str = "cpu"
    rotation: str = "none"
    calibration: str = CALIBRATIONS[0]

    reads: frozenset[str] = field(init=False)
    optional: frozenset[str] = field(default=frozenset(), init=False)
    units: Mapping[str, str] = field(default_factory=dict, init=False)
    provides: Mapping[str, Metric] = field(init=False)
    kind: Kind = field(default="measured", init=False)
    version: str = field(init=False)
    starts: tuple[str, ...] = field(init=False)
    notes: tuple[str, ...] = field(init=False)
    missing: str = field(init=False)
    parts: Mapping[str, Separable] = field(init=False, repr=False, compare=False)
    """Quality metrics and ``deviation``: about sums over layers of sensitivity times noise."""

    def __post_init__(self) -> None:
        check_split(self.split)
        named = model_ref(self.model, self.data, self.quality, runs=True)
        turned = rotate_model(named, self.rotation)
        self._model = run_on(calibrate_in_order(turned, self.calibration), self.device)
        own = None if isinstance(self._model, str) else self._model
        self.starts = () if own is None else own.starts
        self.notes = () if own is None else own.notes
        self.missing = "" if own is None else own.missing
        self._recipes = ModelRecipes.of(self._model, self.recipe, self.layers)
        self.provides = {**model_of(self._model).metrics, **SIZES}
        self.version = f"1-{edition_of(self._model)}"
        self._signals = SignalFormats.of(self.activations, self.kv_cache, self.keys, self.values)
        self._check_calibration()
        self.reads = self._recipes.reads | self._signals.names
        self._signals.check({}, count_attention(self._model))
        self._check_runtime()
        self.parts = self._noise_parts() if self._recipes.is_known else {}

    def _noise_parts(self) -> dict[str, Separable]:
        """Return, for each quality metric, the declaration that it is a sum over the layers.

        The feature of a layer is the relative squared error (noise) of its weights.
        """
        noises = Separable(
            groups=parameters_of_layers(self._recipes.parts),
            features=partial(_layer_noises, self._recipes),
        )
        qualities = self.provides.keys() - {"size", "bits_per_weight"}
        return dict.fromkeys(sorted(qualities), noises)

    def check_values(self, values: Mapping[str, Sequence[Value]]) -> None:
        self._recipes.check(values)
        self._signals.check(values, count_attention(self._model))

    def evaluate(self, batch: Batch) -> Metrics:
        """Return the metrics of n designs, (n,) by name; each design is measured separately."""
        for part in self._recipes.parts:
            part.check_lengths(tuple(batch.names))
        return one_by_one(batch, self.provides, self._measure_design)

    def recipes(self, design: Mapping[str, Value]) -> dict[str, str]:
        """Return the compression recipe of each layer for a design, by layer name."""
        return {
            name: part.template.fill(design, place)
            for part in self._recipes.parts
            for place, name in enumerate(part.layers)
        }

    @property
    def example_shapes(self) -> dict[str, list[int]]:
        """Shape of one example by the name of an input; ``""`` is the only input.

        It is empty for built-in models, and for examples that a function makes.
        """
        own = None if isinstance(self._model, str) else self._model
        data = own.data if isinstance(own, OwnModel) else None
        if data is None or data.is_deferred:
            return {}
        examples = data.load()
        named = examples.named or {"": examples.inputs}
        return {name: list(np.shape(one)[1:]) for name, one in named.items()}

    def deployed_model(self, design: Mapping[str, Value]) -> DeployedModel:
        """Return the compressed model of a design, as numbers and scales of each layer."""
        from dse_evaluators.compression.deployed_layers import deploy_layers

        return deploy_layers(self._model, self.recipes(design), self._signals.signals(design))

    @staticmethod
    def compress_folder(
        folder: Path,
        recipe: str,
        *,
        others: str = KEEP,
        data: Path | None = None,
        rotation: str = "none",
        sequential: bool = False,
    ) -> Iterator[tuple[str, DeployedTensor]]:
        """Yield the tensors of a folder, compressed layer by layer with bounded memory."""
        from dse_evaluators.compression.streamed_layers import compress_folder

        tokens = None if data is None else np.asarray(data_source(data).load().inputs)
        return compress_folder(
            folder, recipe, tokens, others=others, rotation=rotation, sequential=sequential
        )

    def trained_weights(self) -> Mapping[str, str]:
        """Return the hash of the model's weights, if this machine trains them."""
        return trained_weights(self._model)

    def test_evaluator(self) -> Evaluator | None:
        """Return an evaluator of the same metrics on the test split, with bootstrap resamples."""
        if self.split == "test":
            return None
        held_out = replace(self, split="test")
        return OnTestSplit(
            evaluator=held_out,
            measure=held_out._measure_resampled,  # noqa: SLF001 - of this class
            resampled=sorted(self.provides.keys() - SIZES.keys()),
            count=RESAMPLES,
        )

    def _measure_resampled(self, design: Mapping[str, Value]) -> tuple[Found, Mapping[str, Floats]]:
        from dse_evaluators.compression import recipe_runner

        recipes, signals = self.recipes(design), self._signals.signals(design)
        found, resamples = recipe_runner.measure_with_resamples(
            self._model, recipes, self.split, signals
        )
        return Found(values=found), resamples

    def _measure_design(self, design: Mapping[str, Value]) -> dict[str, float]:
        # Imported here: it takes seconds, and checking a study does not need it.
        from dse_evaluators.compression import recipe_runner

        signals = self._signals.signals(design)
        return recipe_runner.measure_recipes(self._model, self.recipes(design), self.split, signals)

    def _check_runtime(self) -> None:
        """Raise SpecError if a model has no signals that can be rounded to the given formats."""
        own = self._model
        if isinstance(own, str) and self._signals.rounds_cache and not count_attention(own):
            raise SpecError(
                f"{own} has no attention, whose keys and values could be rounded",
                hint="leave out kv_cache, keys and values",
            )
        if isinstance(own, str) or not own.label.endswith(".onnx"):
            return
        option = self._signals.rounded_cache
        if option:
            raise SpecError(
                f"{option} of {own.label} cannot be rounded: onnxruntime computes them",
                hint=f"leave out {option}, or name the model as {{python: net.py:make}}",
                part=[option],
            )

    def _check_calibration(self) -> None:
        """Raise SpecError if layers are to be calibrated in order, but no recipe calibrates any."""
        texts = (self.recipe, *self.layers.values())
        if self.calibration == CALIBRATIONS[0] or any("{" in one for one in texts):
            return
        if not any(map(needs_calibration, texts)):
            raise SpecError(
                "no recipe uses calibration inputs, which could be sequential",
                hint="leave out calibration, or use gptq",
                part=["calibration"],
            )


def _layer_noises(recipes: ModelRecipes, batch: Batch) -> Floats:
    """Return the relative squared error of each layer's weights, (n, layers)."""
    from dse_evaluators.compression.model_layers import noise

    return layer_columns(
        recipes.parts, batch, lambda layer, text: (noise(recipes.model, layer, text), 1.0)
    )
