"""The evaluator ``architectures.proxies``: cheap scores that may rank networks as training does."""

from __future__ import annotations

from collections.abc import Mapping

from dse.core.batch import Batch
from dse.core.metric import Metric, Metrics
from dse.core.values import Value
from dse.errors import PluginError
from dse_evaluators.architectures.image_files import DIGITS, digest_images, read_images
from dse_evaluators.architectures.network_inputs import NETWORK_INPUTS, complete_design
from dse_evaluators.architectures.shared_networks import network_of
from dse_evaluators.declared_evaluator import DeclaredEvaluator
from dse_evaluators.one_by_one import one_by_one

_METRICS = (
    Metric("step_loss", goal="minimize"),
    Metric("grad_sign", goal="maximize"),
    Metric("alignment", goal="maximize"),
    Metric("start_alignment", goal="maximize"),
    Metric("macs"),
    Metric("parameters"),
)


class Proxies(
    DeclaredEvaluator, reads=NETWORK_INPUTS, provides=_METRICS, version="", kind="measured"
):
    """Scores of networks that are untrained or hardly trained, as low fidelities of their quality.

    ``step_loss`` is the loss on the search split after some steps of training. ``grad_sign`` is
    the score of GradSign: how far gradients of single images agree in their signs, summed over the
    weights. ``alignment`` is the label-gradient alignment (LGA) after the same steps: whether
    images of one class have similar gradients; ``start_alignment`` is that of the random weights.
    ``macs`` and ``parameters`` are counts, the simplest proxies. The networks and the images are
    those of ``architectures.supernet``.

    Args:
        data: ``digits``, or a file ``.npz`` of yours, as in ``architectures.supernet``.
        steps: steps of training with 32 images each, for ``step_loss`` and ``alignment``.
        images: images for ``grad_sign`` and the alignments, at least 2.

    Inputs:
        resolution: side of the images, an even number, by default their own.
        seed: seed of the weights, and of the images that are drawn.

    Limits:
        A proxy ranks networks of one space and one data set, or does not: `dse front` shows its
        rank agreement on the networks that were evaluated. 0.1 to 0.5 s a network.

    Error:
        Kendall's rank correlation with the loss of 12 drawn networks after their training: .76 for
        ``step_loss``, .73 for ``grad_sign``, .61 for ``macs``, .58 for ``parameters``
        (``benchmarks/supernet.py``).

    Source:
        Zhang, Jia: GradSign, 2022; Mok et al.: Demystifying the Neural Tangent Kernel, 2022;
        Abdelfattah et al.: Zero-Cost Proxies for Lightweight NAS, 2021.

    Example:
        options: {steps: 10}
        parameters: {width_1: [4, 8], depth_1: [1, 2], width_2: [8, 16], depth_2: [1]}
        objectives: {step_loss: minimize, parameters: minimize}

    Raises:
        PluginError: an option is invalid.
        SpecError: a file of images cannot be read.
    """

    data: str = DIGITS
    steps: int = 40
    images: int = 32
    resolution: int | None = None
    seed: int | None = None

    def __post_init__(self) -> None:
        if self.steps < 1 or self.images < 2:
            raise PluginError("steps is a whole number above 0, and images one above 1")
        self.version = f"2-{digest_images(self.data)}-{self.steps}-{self.images}"
        super().__post_init__()

    def evaluate(self, batch: Batch) -> Metrics:
        """Return the metrics of n designs, (n,) by name; each design is measured separately."""
        return one_by_one(batch, self.provides, self._measure_design)

    def _measure_design(self, design: Mapping[str, Value]) -> dict[str, float]:
        # Imported here: it takes seconds, and checking a study does not need it.
        from dse_evaluators.architectures import proxy_scores
        from dse_evaluators.architectures.supernet_weights import layers_for

        data = read_images(self.data)
        chosen = complete_design(self._readings, design, data.side)
        net, seed = network_of(chosen), int(chosen["seed"])
        layers = layers_for(net, data.train)
        judged = data.judging["search"]
        start = proxy_scores.train_briefly(net, data.train, seed, 0)
        trained = proxy_scores.train_briefly(net, data.train, seed, self.steps)
        return {
            "step_loss": proxy_scores.score_loss(net, trained, judged),
            "grad_sign": proxy_scores.score_grad_sign(net, data.train, seed, self.images),
            "alignment": proxy_scores.score_alignment(net, trained, data.train, seed, self.images),
            "start_alignment": proxy_scores.score_alignment(
                net, start, data.train, seed, self.images
            ),
            "macs": float(sum(one.macs for one in layers)),
            "parameters": float(sum(one.weights + one.filters for one in layers)),
        }
