"""Every workload by the name that a study calls it by."""

from __future__ import annotations

from collections.abc import Mapping

from dse_evaluators.workloads.layers import DIGITS_CNN, Layer
from dse_evaluators.workloads.resnet import RESNET18, RESNET50

WORKLOADS: Mapping[str, tuple[Layer, ...]] = {
    "digits-cnn": DIGITS_CNN,
    "resnet18": RESNET18,
    "resnet50": RESNET50,
}
