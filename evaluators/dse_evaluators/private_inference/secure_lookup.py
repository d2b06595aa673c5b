"""The evaluator ``private.lookup``: activations by secure lookup tables or garbled circuits."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import numpy as np

from dse.core.metric import Failure, Metric, Metrics
from dse.core.values import Floats
from dse_evaluators.counts import check_count
from dse_evaluators.declared_evaluator import DeclaredEvaluator
from dse_evaluators.private_inference.encrypted_layers import layers_from
from dse_evaluators.reading_table import NumberInput, Reading, one_of

_METHODS = ("table", "garbled-circuit")
_GATE_BYTES = 32.0
"""Two ciphertexts of 128 bits for each AND gate: half gates, Zahur et al. 2015."""
_LABEL_BYTES = 16.0
_GATES_PER_BIT = 2.0

INPUTS: Mapping[str, Reading] = {
    "bits": NumberInput(2, 24, whole=True),
    "method": one_of(_METHODS, "table"),
    "operands": NumberInput(1, 2, default=1, whole=True),
}
METRICS = (
    Metric(name="traffic", unit="B", goal="minimize"),
    Metric(name="storage", unit="B", goal="minimize"),
    Metric(name="rounds", goal="minimize"),
    Metric(name="calls"),
)


class SecureLookup(DeclaredEvaluator, reads=INPUTS, provides=METRICS, version="1"):
    """Online traffic and storage of activation functions that two parties compute securely.

    A secure lookup table has an entry for each value of its input: both parties send the masked
    input and read one entry; its storage doubles with each bit. A garbled ReLU sends labels of its
    inputs; its gates may be sent before the input is known.

    Args:
        workload: a network (``docs/workloads.md``) whose layers each end in one call for each
            output; without it, metrics are of ``calls`` calls.
        calls: number of calls, or with a workload the number of inferences.
        most_storage: most bytes that a party stores; a design that needs more is infeasible.

    Inputs:
        bits: width of the function's input.
        method: ``table``, or ``garbled-circuit`` for a ReLU by half gates.
        operands: inputs of the function; a table of two inputs has the square of the entries of a
            table of one input.

    Limits:
        Tables and gates are used once, so storage is for one inference. The traffic of a garbled
        circuit includes its gates, although they may be sent earlier. Latency and the making of
        tables are not modelled, nor is the accuracy of rounded activations: measure it by
        ``compression.recipe``.

    Error:
        At 8 bits, a table sends 2 B, 1/320 of the traffic of garbled circuits; the paper states
        2 B, and 1/280 to 1/560.

    Source:
        Lam et al.: Tabula, 2022. Zahur, Rosulek, Evans: Two Halves Make a Whole, 2015.

    Example:
        parameters: {bits: [4, 6, 8, 10], method: [table, garbled-circuit]}

    Raises:
        SpecError: an option is invalid.
        PluginError: a count is invalid, or onnx is not installed.
    """

    user_options: ClassVar[Sequence[str]] = ("workload",)

    workload: object = None
    calls: int = 1
    most_storage: float | None = None
    bits: float | None = None
    method: str | None = None
    operands: float | None = None

    def __post_init__(self) -> None:
        check_count("calls", self.calls, least=1)
        self._calls = float(self.calls)
        if self.workload is not None:
            layers: Any = layers_from(self, self.workload, None, None)
            made = [one.filters * one.pixels // one.stride**2 for one in layers]
            self._calls = float(sum(made)) * self.calls
        super().__post_init__()

    def compute(self, inputs: Mapping[str, Floats]) -> Metrics:
        """Return the metrics of n designs."""
        bits, operands = inputs["bits"], inputs["operands"]
        garbled = inputs["method"] == _METHODS.index("garbled-circuit")
        gates = _GATES_PER_BIT * bits * _GATE_BYTES * operands
        labels = _LABEL_BYTES * bits * operands
        entries = np.exp2(bits * operands)
        storage = np.where(garbled, gates + labels, entries * bits / 8.0) * self._calls
        failures: dict[int, Failure] = {}
        if self.most_storage is not None:
            reason = f"a party stores more than {self.most_storage:g} B"
            failures = {
                row: Failure(kind="infeasible", reason=reason)
                for row in np.flatnonzero(storage > self.most_storage).tolist()
            }
        return Metrics(
            columns={
                "traffic": np.where(garbled, gates + labels, 2.0 * operands * bits / 8.0)
                * self._calls,
                "storage": storage,
                "rounds": np.ones(len(bits)),
                "calls": np.full(len(bits), self._calls),
            },
            failures=failures,
        )
