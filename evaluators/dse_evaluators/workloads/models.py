"""Registry of the models that can be run, by the name that a study uses.

Metrics and layer names are listed here, so that a study file can be checked without torch and
without a model's assets.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib import import_module

from dse.core.metric import Metric
from dse.errors import PluginError, nearest
from dse_evaluators.workloads.judging import CLASSIFIER, METRICS
from dse_evaluators.workloads.workload import Workload


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkloadModel:
    """Registered workload: its factory function, quality metrics and compressible layers."""

    maker: str  # module:function
    quality: tuple[str, ...]  # names in METRICS
    layers: tuple[str, ...]  # its `compressible`

    @property
    def metrics(self) -> dict[str, Metric]:
        """Quality metrics of the workload, by name."""
        return {name: METRICS[name] for name in self.quality}


MODELS: Mapping[str, WorkloadModel] = {
    "digits-cnn": WorkloadModel(
        maker="dse_evaluators.workloads.digits_cnn:digits_cnn",
        quality=CLASSIFIER,
        layers=("conv1.weight", "conv2.weight", "conv3.weight", "fc1.weight", "fc2.weight"),
    ),
    "mnist-cnn": WorkloadModel(
        maker="dse_evaluators.workloads.mnist_cnn:mnist_cnn",
        quality=CLASSIFIER,
        layers=("conv1.weight", "conv2.weight", "conv3.weight", "fc1.weight", "fc2.weight"),
    ),
    "shakespeare-lm": WorkloadModel(
        maker="dse_evaluators.workloads.character_lm:character_lm",
        quality=("bits_per_character", *CLASSIFIER),
        layers=(
            "embed",
            *(
                f"blocks.{block}.{layer}"
                for block in range(3)
                for layer in ("attention.qkv", "attention.out", "ffn.up", "ffn.down")
            ),
            "head",
        ),
    ),
    "minilm": WorkloadModel(
        maker="dse_evaluators.workloads.minilm:minilm",
        quality=("spearman", "cosine"),
        layers=(
            *(
                f"embeddings.{what}_embeddings.weight"
                for what in ("position", "token_type", "word")
            ),
            *(
                f"encoder.layer.{block}.{layer}.weight"
                for block in range(6)
                for layer in (
                    "attention.output.dense",
                    "attention.self.key",
                    "attention.self.query",
                    "attention.self.value",
                    "intermediate.dense",
                    "output.dense",
                )
            ),
        ),
    ),
    "movielens-dlrm": WorkloadModel(
        maker="dse_evaluators.workloads.movielens_dlrm:movielens_dlrm",
        quality=("auc", "loss", "divergence"),
        layers=(
            "embed_user.weight",
            "embed_movie.weight",
            "embed_occupation.weight",
            "embed_decade.weight",
            "embed_region.weight",
            "bottom1.weight",
            "bottom2.weight",
            "top1.weight",
            "top2.weight",
            "top3.weight",
        ),
    ),
    "magika": WorkloadModel(
        maker="dse_evaluators.workloads.magika:magika",
        quality=CLASSIFIER,
        layers=("embed.weight", "conv.weight", "dense.weight"),
    ),
}


def model_of(name: str) -> WorkloadModel:
    """Return the registered properties of a model, without creating it.

    Raises:
        PluginError: no model has this name.
    """
    if name not in MODELS:
        raise PluginError(f"there is no model {name!r}", hint=nearest(str(name), MODELS))
    return MODELS[name]


@cache
def workload_of(name: str) -> Workload:
    """Return the workload of this name, trained or read from its assets once per process.

    Raises:
        PluginError: no model has this name, or it needs an asset that is not installed.
    """
    module, _, function = model_of(name).maker.partition(":")
    made: Workload = getattr(import_module(module), function)()
    return made
