"""Workloads that are ONNX files: what onnxruntime needs to quantize, run and time them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol, runtime_checkable

from numpy.typing import NDArray

from dse_evaluators.formats.arrays import Single
from dse_evaluators.workloads.workload import Parameters, Workload

Feeds = Mapping[str, NDArray[Any]]
"""Inputs of a graph by name, (n, ...)."""


@runtime_checkable
class OnnxFileWorkload(Workload, Protocol):
    """Workload whose outputs are those of an ONNX file."""

    def with_parameters(self, parameters: Parameters) -> bytes:
        """Return the ONNX file with these parameters in place of its own.

        Raises:
            EvaluationError: a parameter has a different shape than in the file.
        """
        ...

    def onnx_batches(self, split: str) -> Sequence[Feeds]:
        """Return the inputs of the file for the examples of a split, in batches.

        Args:
            split: ``search``, ``test`` or ``calibration``.
        """
        ...

    def read_outputs(self, tables: Sequence[Single], split: Any) -> Single:
        """Return the outputs for each example, (n, k), from the file's first output by batch."""
        ...
