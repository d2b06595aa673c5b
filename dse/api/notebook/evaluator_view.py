"""Notebook view of an evaluator: its inputs, its metrics, and its version."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from dse.api.notebook.parts import TableColumn, facts, framed, table
from dse.core.metric import Metric
from dse.report.words import join_list


def evaluator_html(name: str, metrics: Sequence[Metric], spec: Mapping[str, Any]) -> str:
    """Return the HTML view of an evaluator function.

    Args:
        name: the function's name.
        metrics: the metrics it returns.
        spec: its entry in a study file, which lists its inputs and its version.
    """
    kind = str(spec.get("kind", "measured"))
    optional = [f"{one} (may be absent)" for one in spec["optional"]]
    reads = ["all parameters" if one == "*" else one for one in spec["reads"]]
    rows = [
        ("reads", join_list([*reads, *optional]) or "no parameter"),
        ("called with", "columns of many designs" if spec.get("batch") else ""),
        ("version", str(spec["version"])),
    ]
    columns = [
        TableColumn(heading="metric", cells=[one.name for one in metrics]),
        TableColumn(heading="unit", cells=[one.unit or "-" for one in metrics]),
        TableColumn(heading="goal", cells=[one.goal or "-" for one in metrics]),
    ]
    if any(one.words for one in metrics):
        columns.append(
            TableColumn(heading="words", cells=[", ".join(one.words) for one in metrics])
        )
    return framed(f"Evaluator {name}", table(columns), facts(rows), beside=kind)
