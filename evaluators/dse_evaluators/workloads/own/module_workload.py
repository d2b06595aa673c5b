"""Workload of a PyTorch module of the user, evaluated on the user's data."""

from __future__ import annotations

import copy
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from dse.core.metric import Metric
from dse.core.values import Ints
from dse.errors import DseError, EvaluationError, SpecError
from dse_evaluators.formats.arrays import Single
from dse_evaluators.workloads.own.families.decoder_rotation import DecoderRotation
from dse_evaluators.workloads.own.families.learned_rotation import load_or_learn
from dse_evaluators.workloads.own.families.rotation_text import RotationLearning
from dse_evaluators.workloads.own.module_export import export_module
from dse_evaluators.workloads.own.module_layers import (
    ModuleLayers,
    calibration_rows,
    round_inputs,
    rounding_cache,
)
from dse_evaluators.workloads.own.own_batches import batches_of
from dse_evaluators.workloads.own.own_data import OwnData
from dse_evaluators.workloads.own.own_outputs import (
    OwnTask,
    check_finite,
    select_outputs,
    table_of,
)
from dse_evaluators.workloads.own.own_quality import Quality
from dse_evaluators.workloads.torch_scope import deterministic, find_device, on_device
from dse_evaluators.workloads.workload import Parameters, Signals, Split

_TOKENS = 2
"""Axes of token ids: examples and places."""

MOST_CALIBRATING = 512
"""Maximal number of examples that calibrate a layer."""

_LEAST = 1e-6
"""Least probability in training, so that gradients of its logarithm are finite."""


class ModuleWorkload:
    """PyTorch module with data of the user, run on one thread in evaluation mode.

    The module is copied; its half-precision weights are widened to single precision. Activations
    are rounded for layers whose inputs a hook can see.

    Args:
        name: name of the model for messages.
        module: the module; its first argument is a batch of inputs, or its keyword arguments are
            batches of inputs by name.
        data: the examples; without them, only the weights can be used.
        qualities: the quality metrics.

    Raises:
        SpecError: a weight is in double precision, is complex or is not finite.
    """

    def __init__(
        self, *, name: str, module: nn.Module, data: OwnData | None, qualities: Sequence[Quality]
    ) -> None:
        self.name = name
        self._module = single_precision(module)
        self._layers = ModuleLayers.of(self._module)
        self.parameters: Parameters = parameters_of(self._module)
        self.compressible = tuple(self._layers.used_by)
        self._task = OwnTask(label=name, source=data, qualities=tuple(qualities))
        self.metrics: Mapping[str, Metric] = self._task.metrics
        self._device = "cpu"

    def move_to(self, device: str) -> None:
        """Run the module on a device from now on; parameters and outputs stay in main memory.

        Args:
            device: ``cpu``, ``cuda``, or ``auto``: ``cuda`` where there is one.

        Raises:
            PluginError: there is no CUDA device here, and ``cuda`` is named.
        """
        self._device = find_device(device)
        self._module.to(self._device)

    def onnx_model(self) -> bytes:
        """Return the model as an ONNX file, with an initializer for each parameter, by its name.

        Raises:
            PluginError: onnx or onnxruntime is not installed.
            EvaluationError: PyTorch cannot export the module, or there are no data to trace it.
        """
        feeds = self._task.data.feeds_of("search")
        module = copy.deepcopy(self._module).to("cpu")
        with deterministic(), plain_attention():
            return export_module(module, self.parameters, feeds, self.name)

    def rotate(self, seed: int) -> None:
        """Replace the parameters by those of the decoder after a random Hadamard rotation.

        Raises:
            SpecError: the structure of the model does not allow one.
        """
        self._fold(DecoderRotation.of(self._module, seed))

    def learn_rotation(self, learning: RotationLearning) -> None:
        """Replace the parameters by those of the decoder after a rotation that is learnt for them.

        The same weights, data and settings give the same rotation; it is kept in the cache.

        Raises:
            SpecError: the structure of the model does not allow one.
        """
        start = DecoderRotation.of(self._module, learning.seed)
        self._fold(load_or_learn(self, start, learning, self._task.data.feeds_of("calibration")))

    def _fold(self, rotation: DecoderRotation) -> None:
        stored = self.parameters
        rotated = {name: rotation.rotate(name, stored.__getitem__) for name in stored}
        for array in rotated.values():
            array.flags.writeable = False
        self.parameters = rotated

    def calibration(self) -> Mapping[str, Single]:
        return self.calibrate(self.parameters, self.compressible)

    def calibrate(self, parameters: Parameters, layers: Collection[str]) -> Mapping[str, Single]:
        """Return the inputs of some layers, (rows, inputs), of the model with other parameters.

        Args:
            parameters: the parameters, some of them compressed.
            layers: names of the layers' weights.
        """
        feeds = self._task.data.feeds_of("calibration")
        seen: dict[str, list[Single]] = {}
        batches = list(batches_of({n: one[:MOST_CALIBRATING] for n, one in feeds.items()}))

        def watch(name: str, layer: nn.Module, signal: Tensor) -> Tensor:
            if name in layers:
                rows = calibration_rows(layer, signal, most=rows_of_batch(len(batches)))
                seen.setdefault(name, []).append(rows)
            return signal

        with self._layers.hooked(watch):
            self._run(parameters, batches)
        found = {name: np.concatenate(rows) for name, rows in seen.items()}
        return {name: rows for name, rows in found.items() if len(rows)}

    def outputs(
        self, parameters: Parameters, split: Split, signals: Signals
    ) -> np.ndarray[tuple[int, int], np.dtype[np.float32]]:
        seen: set[str] = set()

        def rounded(name: str, layer: nn.Module, signal: Tensor) -> Tensor:
            seen.add(name)
            return round_inputs(layer, name, signal, signals)

        batches = list(batches_of(self._task.data.feeds_of(split)))
        hooks = self._layers.hooked(rounded) if signals.activations is not None else _nothing()
        with hooks, rounding_cache(self._module, signals):
            found = self._run(parameters, batches)
        if signals.activations is not None:
            self._check_rounded(seen)
        return self._task.outputs(np.concatenate(found), split)

    def count_examples(self, split: Split) -> int:
        return self._task.count_examples(split)

    def quality(
        self, outputs: Single, reference: Single, split: Split, chosen: Ints | None = None
    ) -> Mapping[str, float]:
        if chosen is None:
            self._task.check_logits(reference)
        return self._task.quality(outputs, reference, split, chosen)

    @property
    def learnt(self) -> tuple[str, ...]:
        """Names of the trainable parameters, without buffers such as running means."""
        return tuple(name for name, _ in self._module.named_parameters())

    def count_training_examples(self) -> int:
        return self._task.count_examples("calibration")

    def training_outputs(self, parameters: Mapping[str, Tensor], rows: Ints) -> Tensor:
        feeds = {name: one[rows] for name, one in self._task.data.feeds_of("calibration").items()}
        tensors = {name: one.to(self._device) for name, one in parameters.items()}
        with self._running(feeds), plain_attention():
            outputs = select_outputs(self._forward(tensors, feeds)).float().cpu()
        table: Tensor = self._task.flatten_sequences(outputs)
        return self._training_logits(table[:, None] if table.dim() == 1 else table)

    def _training_logits(self, table: Tensor) -> Tensor:
        """Return logits of classes, (n, classes), of any outputs of a classifier."""
        is_single = table.shape[1] == 1
        if self._task.gives_probabilities:
            table = table.logit(_LEAST) if is_single else table.clamp_min(_LEAST).log()
        if is_single and self._task.has_classes:
            return torch.cat([torch.zeros_like(table), table], dim=1)
        return table

    def training_targets(self, rows: Ints) -> Tensor | None:
        targets = self._task.targets_of("calibration", rows)
        return None if targets is None else torch.tensor(targets)

    def _forward(self, tensors: dict[str, Tensor], feeds: Mapping[str, Any]) -> Any:
        """Return what the module gives for a batch; several inputs are its keyword arguments."""
        given = {name: torch.tensor(one) for name, one in feeds.items()}
        args = (given.pop(""),) if "" in given else ()
        return torch.func.functional_call(self._module, tensors, args, given)

    def _call(self, tensors: dict[str, Tensor], feeds: Mapping[str, Any]) -> Single:
        return table_of(self._forward(tensors, feeds))

    def _run(self, parameters: Parameters, batches: Sequence[Mapping[str, Any]]) -> list[Single]:
        """Return the outputs of the module with these parameters, an array for each batch.

        Raises:
            EvaluationError: the module fails, or its output is not an array of numbers.
        """
        first = batches[0] if batches else {}
        with self._running(first), torch.inference_mode(), plain_attention():
            tensors = {name: torch.tensor(array) for name, array in parameters.items()}
            return [self._call(tensors, one) for one in batches]

    @contextmanager
    def _running(self, feeds: Mapping[str, Any]) -> Iterator[None]:
        """Run the module on its device within the block, and name the inputs if it fails.

        Raises:
            EvaluationError: the module fails.
        """
        try:
            with on_device(self._device), deterministic():
                yield
        except DseError:
            raise
        except Exception as error:
            shapes = {name: one.shape[1:] for name, one in feeds.items()}
            shown = ", ".join(f"{name} {shape}".strip() for name, shape in shapes.items())
            raise EvaluationError(
                f"{self.name} does not run on inputs of shape {shown} an example: "
                f"{type(error).__name__}: {error}",
                hint=_hint_of(feeds),
            ) from error

    def _check_rounded(self, seen: set[str]) -> None:
        """Raise EvaluationError if the inputs of a linear layer or convolution were not rounded."""
        missed = [
            name
            for name, layers in self._layers.used_by.items()
            if name not in seen and not all(isinstance(one, nn.Embedding) for one in layers)
        ]
        if missed:
            raise EvaluationError(
                f"the inputs of {', '.join(missed)} cannot be rounded: the model does not call "
                "these layers as modules",
                hint="leave out activations, or write the attention with nn.Linear layers",
            )


def _hint_of(feeds: Mapping[str, Any]) -> str:
    """Return how to mend a batch of inputs on which a module does not run."""
    hint = "data must have the inputs that the model's forward takes"
    whole = [one for one in feeds.values() if one.dtype.kind == "i"]
    if any(one.ndim > _TOKENS for one in whole):  # images, and not token ids
        hint += "; integers stay integers: store floats, as in inputs / np.float32(255)"
    return hint


def single_precision(module: nn.Module) -> nn.Module:
    """Return a copy of a module in evaluation mode, with its weights in single precision.

    Args:
        module: the module; it is not changed.

    Raises:
        SpecError: the object is not a module, or a weight has another type or is not finite.
    """
    if not isinstance(module, nn.Module):
        raise SpecError(
            f"the model is a {type(module).__name__}",
            hint="give a torch.nn.Module, or a function that returns one",
        )
    for name, tensor in (*module.named_parameters(), *module.named_buffers()):
        if tensor.dtype in (torch.float64, torch.complex64, torch.complex128):
            hint = "convert it: module.float()"
            raise SpecError(f"{name} is of type {str(tensor.dtype)[6:]}", hint=hint)
    check_finite(
        {name: one.detach().cpu().float().numpy() for name, one in module.named_parameters()}
    )
    return copy.deepcopy(module).cpu().float().eval().requires_grad_(requires_grad=False)


def parameters_of(module: nn.Module) -> dict[str, Single]:
    """Return a module's parameters and stored floating-point buffers by name, read-only arrays."""
    stored = module.state_dict().keys()
    buffers = {
        name: one
        for name, one in module.named_buffers()
        if name in stored and one.is_floating_point()
    }
    found = {**dict(module.named_parameters()), **buffers}
    arrays = {name: one.detach().numpy().copy() for name, one in found.items()}
    for array in arrays.values():
        array.flags.writeable = False
    return arrays


def rows_of_batch(batches: int) -> int:
    """Return the maximal number of calibration inputs of a layer that each batch gives."""
    return -(-4096 // batches)


@contextmanager
def _nothing() -> Iterator[None]:
    yield


@contextmanager
def plain_attention() -> Iterator[None]:
    """Switch off torch's fused encoder layers, which bypass hooks, within the block."""
    enabled = torch.backends.mha.get_fastpath_enabled()
    torch.backends.mha.set_fastpath_enabled(False)
    try:
        yield
    finally:
        torch.backends.mha.set_fastpath_enabled(enabled)
