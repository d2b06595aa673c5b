"""How one tool stands against the best of the others, cell by cell."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

Cell = Mapping[str, Any]


def summary(cells: Iterable[Cell], mine: str) -> list[str]:
    """Who was right in how many cells, and where the tool is closest to another, or behind."""
    told = list(cells)
    tools = dict.fromkeys(cell["tool"] for cell in told)
    right = {tool: sum(_right(c) for c in told if c["tool"] == tool) for tool in tools}
    asked = {(cell["space"], cell["question"]) for cell in told}
    lines = [f"{tool}: right in {right[tool]} of {len(asked)} cells" for tool in tools]
    ratios = sorted(
        (ratio, *where, peer)
        for where in asked
        if (found := _ratio([c for c in told if (c["space"], c["question"]) == where], mine))
        for ratio, peer in [found]
    )
    closest = [
        f"{mine} takes {ratio:.2f} of the time of {peer} to {question} {space}"
        for ratio, space, question, peer in reversed(ratios[-3:])
    ]
    return [*lines, *closest]


def _right(cell: Cell) -> bool:
    return bool(cell["verdict"] == "ok")


def _ratio(cells: list[Cell], mine: str) -> tuple[float, str] | None:
    """The tool's time over the least time of any other that is right, and which that is."""
    ours = [c["seconds"] for c in cells if c["tool"] == mine and _right(c)]
    peers = [(c["seconds"], c["tool"]) for c in cells if c["tool"] != mine and _right(c)]
    if not ours or not peers:
        return None
    least, peer = min(peers)
    return ours[0] / least, peer
