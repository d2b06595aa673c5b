"""The evaluator ``architectures.graph-nets``: graph neural networks that were trained and timed."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from dse.core.batch import Batch
from dse.core.metric import Failure, Metric, Metrics
from dse.core.values import Ints
from dse.errors import PluginError, nearest
from dse_evaluators.architectures.cell_graphs import NODES, hash_cells
from dse_evaluators.architectures.trained_graph_nets import (
    DATA_SETS,
    OPERATIONS,
    SKIP,
    read_trained_networks,
    version_of,
)
from dse_evaluators.declared_evaluator import DeclaredEvaluator
from dse_evaluators.reading_table import NumberInput, Reading, one_of
from dse_evaluators.workloads.workload import Split, check_split

_INPUTS: Mapping[str, Reading] = {
    **{f"operation_{node}": one_of(OPERATIONS) for node in range(1, NODES + 1)},
    **{f"input_{node}": NumberInput(0, node - 1, whole=True) for node in range(2, NODES + 1)},
}
_METRICS = (
    Metric("accuracy", goal="maximize"),
    Metric("latency", "s", goal="minimize"),
    Metric("parameters", goal="minimize"),
)
_MISSING = Failure(kind="infeasible", reason="this network was not trained on the data set")


class GraphNets(DeclaredEvaluator, reads=_INPUTS, provides=_METRICS, version=""):
    """Accuracy, latency and parameters of graph neural networks, trained on nine data sets.

    A network is a cell of four operations. Each reads the input of the cell (0) or an operation
    before it; operations that no other reads are the output. Cells that compute the same are one
    network: an operation ``skip`` and the order of branches make many of them. All networks of
    the space were trained, 26,206, with three seeds; on ``proteins`` 2,021.

    ``accuracy`` is the mean of the seeds; on ``proteins`` it is the area under the ROC curve.

    Args:
        data: ``cora``, ``citeseer``, ``pubmed``, ``cs``, ``physics``, ``photo``, ``computers``,
            ``arxiv`` or ``proteins``.
        split: nodes for the accuracy: ``search``, the validation nodes, or ``test`` for the final
            evaluation.

    Inputs:
        operation_1: a convolution over neighbours, ``fc`` without neighbours, or ``skip``.
        input_2: the operation that the second one reads, or 0 for the input of the cell.

    Limits:
        Latency was measured on one GPU, by the authors of the table; its file states no unit, and
        seconds are assumed. A network whose operations are all ``skip`` is infeasible. Needs the
        asset nas-bench-graph.

    Error:
        Exact: a look-up in the authors' table.

    Source:
        Qin, Zhang, Wang, Zhang, Zhu: NAS-Bench-Graph: Benchmarking Graph Neural Architecture
        Search, 2022; package nas-bench-graph 1.4.0.

    Example:
        options: {data: cora}
        parameters:
          operation_1: [gcn, gat]
          operation_2: [gcn, skip]
          operation_3: [fc]
          operation_4: [sage, skip]
          input_2: [0, 1]
          input_3: [0, 2]
          input_4: [3]

    Raises:
        PluginError: there is no such data set or split.
    """

    data: str
    split: Split = "search"

    def __post_init__(self) -> None:
        if self.data not in DATA_SETS:
            known = nearest(str(self.data), DATA_SETS) or f"data: {', '.join(DATA_SETS)}"
            raise PluginError(f"there is no data set {self.data!r}", hint=known)
        check_split(self.split)
        self.version = f"{version_of(self.data)}-{self.split}"
        super().__post_init__()

    def evaluate(self, batch: Batch) -> Metrics:
        """Return the metrics of n designs by name, each (n,)."""
        codes = self._readings.columns(batch)
        inputs: Ints = np.zeros((len(batch), NODES), dtype=np.int64)
        operations: Ints = np.zeros((len(batch), NODES), dtype=np.int64)
        for node in range(NODES):
            operations[:, node] = codes[f"operation_{node + 1}"]
            if node:
                inputs[:, node] = codes[f"input_{node + 1}"]
        hashes, table = read_trained_networks(self.data)
        asked = hash_cells(inputs, operations, skip=SKIP)
        places = np.minimum(np.searchsorted(hashes, asked), len(hashes) - 1)
        missing = hashes[places] != asked
        columns = {
            name: np.where(
                missing, np.nan, table[self.split if name == "accuracy" else name][places]
            )
            for name in self.provides
        }
        return Metrics(
            columns=columns,
            failures=dict.fromkeys(np.flatnonzero(missing).tolist(), _MISSING),
        )
