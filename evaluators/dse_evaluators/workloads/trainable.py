"""Protocol of a workload whose parameters gradient descent can train further."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol, runtime_checkable

from torch import Tensor

from dse.core.values import Ints


@runtime_checkable
class Trainable(Protocol):
    """Workload that PyTorch can train, on examples of its calibration split.

    Laws: no example for training is one of the splits ``search`` and ``test``; outputs are those of
    :meth:`Workload.outputs` for the same parameters and examples, with gradients.
    """

    @property
    def learnt(self) -> tuple[str, ...]:
        """Names of the parameters that training may change."""
        ...

    def count_training_examples(self) -> int:
        """Return the number of examples to train on; a sequence is one example."""
        ...

    def training_outputs(self, parameters: Mapping[str, Tensor], rows: Ints) -> Tensor:
        """Return the outputs for some training examples, (n, k), as a function of parameters.

        Args:
            parameters: all parameters by name.
            rows: places of the examples, (n,).
        """
        ...

    def training_targets(self, rows: Ints) -> Tensor | None:
        """Return the targets of training examples: classes, (n,), or numbers; None without any.

        Args:
            rows: places of the examples, (n,).
        """
        ...
