"""Declaration that a measured metric is approximately a sum of terms over groups of parameters."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from dse.core.batch import Batch
from dse.core.values import Floats


@dataclass(frozen=True, slots=True, kw_only=True)
class Separable:
    """Declaration that a metric is approximately a sum of terms, one for each group of parameters.

    A term is the product of a sensitivity, which is learnt from measurements, and a modelled
    feature of the group. For example, the loss of a network whose layers are quantized is
    approximately the sum over its layers of sensitivity times quantization noise. A declaration is
    a prior: an optimizer drops it if the measurements contradict it.

    Attributes:
        groups: the parameters of each part; a group may have one parameter, and groups that share
            a parameter count as one part.
        by: name of a modelled metric; its change when the values of one group change is the group's
            feature. Empty if ``features`` computes the features, or if they are unknown.
        features: function from n designs to the features of each group, (n, groups).
        monotone: whether the metric changes in one direction with each feature.
    """

    groups: tuple[frozenset[str], ...]
    by: str = ""
    features: Callable[[Batch], Floats] | None = field(default=None, compare=False)
    monotone: bool = True
