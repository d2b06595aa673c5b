"""Every workload by the name that a study calls it by."""

from __future__ import annotations

from collections.abc import Mapping

from dse.errors import SpecError, nearest
from dse_evaluators.workloads.layers import DIGITS_CNN, MNIST_CNN, MOVIELENS_MLP, Layer
from dse_evaluators.workloads.resnet import RESNET18, RESNET50

WORKLOADS: Mapping[str, tuple[Layer, ...]] = {
    "digits-cnn": DIGITS_CNN,
    "mnist-cnn": MNIST_CNN,
    "movielens-dlrm": MOVIELENS_MLP,  # what it multiplies; looking up is no multiplication
    "resnet18": RESNET18,
    "resnet50": RESNET50,
}


def layers_of(text: str) -> tuple[Layer, ...]:
    """The layers of a workload by its name.

    Raises:
        SpecError: there is no such workload.
    """
    if text not in WORKLOADS:
        raise SpecError(f"workload cannot be {text!r}", hint=nearest(text, WORKLOADS))
    return WORKLOADS[text]
