"""The evaluator ``architectures.supernet``: networks with shared weights, in a number format."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from dse.core.batch import Batch
from dse.core.metric import Metric, Metrics
from dse.core.values import Floats, Value
from dse.errors import PluginError, nearest
from dse.protocols import Evaluator
from dse_evaluators.architectures.image_files import DIGITS, digest_images, read_images
from dse_evaluators.architectures.network_inputs import NETWORK_INPUTS, complete_design
from dse_evaluators.architectures.shared_networks import network_of
from dse_evaluators.compression.compression_knobs import CompressionConfig
from dse_evaluators.declared_evaluator import DeclaredEvaluator
from dse_evaluators.formats.words import FORMATS
from dse_evaluators.generic.call_clock import CallTiming
from dse_evaluators.one_by_one import Found, one_by_one
from dse_evaluators.reading_table import Reading, one_of
from dse_evaluators.workloads.judging import METRICS as QUALITY
from dse_evaluators.workloads.on_test_split import OnTestSplit
from dse_evaluators.workloads.resampling import RESAMPLES
from dse_evaluators.workloads.workload import Split, check_split

WEIGHTS = ("inherited", "own")
_INPUTS: Mapping[str, Reading] = {
    **NETWORK_INPUTS,
    "weight_format": one_of(FORMATS, "int8"),
    "activation_format": one_of(FORMATS, "int8"),
}
_METRICS = (
    QUALITY["accuracy"],
    QUALITY["loss"],
    Metric("size", "B", goal="minimize"),
    Metric("latency", "s", goal="minimize"),
    Metric("macs", goal="minimize"),
    Metric("parameters", goal="minimize"),
)


class Supernet(DeclaredEvaluator, reads=_INPUTS, provides=_METRICS, version="", kind="measured"):
    """Accuracy, size and latency of networks that inherit the weights of a supernet.

    A network has two stages of convolutions, the second at half the resolution, and a classifier.
    The supernet is trained once for each ``seed``, in a minute or two, and cached; a network takes
    the first filters, the middle of the kernels and the first layers of each stage. Residual links
    and batch normalisation, by the statistics of the network itself, are folded into its weights.
    It is then rounded to the formats, by calibration images, and measured on held-out ones.

    Args:
        data: ``digits``, scikit-learn's 1,797 images of 8 x 8; or a file ``.npz`` of yours with
            ``images`` (n, channels, side, side) from 0 to 1, and ``labels``.
        weights: ``inherited``, or ``own``: each network is trained alone, to check the winners.
        split: images for the metrics: ``search``, or ``test`` for the final evaluation.
        epochs: epochs of the training of the supernet, or of a network alone.
        batch: images in a call of the latency.
        clock: ``wall``, as ``dse.time_call``, or ``processor`` for a machine with other load.
        precision: relative half-width of the 95 % interval of the latency at which timing ends.
        limit: time limit of a timing: seconds, or a text such as ``1 s``.

    Inputs:
        resolution: side of the images, an even number, by default their own; they are resized.
        width_1: filters of each layer of the first stage.
        depth_1: layers of the first stage; the others are skipped.
        kernel_1_1: side of the window of a layer, 3 or 5; of a skipped layer, without effect.
        seed: seed of the training; as ``seed_input`` of ``replicates:``, seeds are replicates.

    Limits:
        The latency is that of PyTorch's fp32 kernels
        on one thread: formats change quality and size, not time. With 1,797 images, differences of
        less than a point of accuracy are noise.

    Error:
        Exact on the images of the split. Kendall's rank correlation of the losses of 12 drawn
        networks in int8: .58 to .79 between inherited and own weights, over two seeds each; .76
        between own weights of two seeds. Inherited weights are worse by 6 to 46 points of accuracy
        (``benchmarks/supernet.py``).

    Source:
        Cai et al.: Once-for-All, 2020; Yu, Huang: Universally Slimmable Networks, 2019.

    Example:
        parameters: {width_1: [4, 8], depth_1: [1, 2], width_2: [8, 16], depth_2: [1]}
        objectives: {accuracy: maximize, size: minimize}

    Raises:
        PluginError: an option is invalid.
        SpecError: a file of images cannot be read.
    """

    data: str = DIGITS
    weights: str = WEIGHTS[0]
    split: Split = "search"
    epochs: int = 60
    batch: int = 1
    resolution: int | None = None
    weight_format: str | None = None
    activation_format: str | None = None
    seed: int | None = None
    clock: str = "wall"
    precision: float = 0.05
    limit: float | str = "1 s"

    def __post_init__(self) -> None:
        check_split(self.split)
        if self.weights not in WEIGHTS:
            hint = nearest(str(self.weights), WEIGHTS)
            raise PluginError(f"weights cannot be {self.weights!r}", hint=hint)
        if self.epochs < 1 or self.batch < 1:
            raise PluginError("epochs and batch are whole numbers above 0")
        self._timing = CallTiming.of(self.clock, self.precision, self.limit)
        self.version = f"2-{digest_images(self.data)}-{self.weights}-{self.epochs}-{self.split}"
        super().__post_init__()

    def evaluate(self, batch: Batch) -> Metrics:
        """Return the metrics of n designs, (n,) by name; each design is measured separately."""
        return one_by_one(batch, self.provides, self._measure_design, uncertain=("latency",))

    def test_evaluator(self) -> Evaluator | None:
        """Return an evaluator of the same metrics on the test split, with bootstrap resamples."""
        if self.split == "test":
            return None
        held_out = replace(self, split="test")
        return OnTestSplit(
            evaluator=held_out,
            measure=held_out._measure,  # noqa: SLF001 - of this class
            resampled=("accuracy", "loss"),
            count=RESAMPLES,
            uncertain=("latency",),
        )

    def _measure_design(self, design: Mapping[str, Value]) -> Found:
        return self._measure(design)[0]

    def _measure(self, design: Mapping[str, Value]) -> tuple[Found, Mapping[str, Floats]]:
        # Imported here: it takes seconds, and checking a study does not need it.
        from dse_evaluators.architectures.network_quality import NetworkRequest, measure_network

        data = read_images(self.data)
        chosen = complete_design(self._readings, design, data.side)
        recipe = CompressionConfig(
            weight_format=str(chosen["weight_format"]),
            activation_format=str(chosen["activation_format"]),
        )
        asked = NetworkRequest(
            net=network_of(chosen),
            weights=self.weights,
            recipe=recipe,
            seed=int(chosen["seed"]),
            epochs=self.epochs,
            batch=self.batch,
        )
        return measure_network(asked, data, self.split, self._timing)
