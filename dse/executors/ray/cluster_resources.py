"""Matching of a task's resource needs with the resources of a cluster's nodes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from dse.errors import PluginError
from dse.protocols import Needs
from dse.units import units

_SHOWN_NODES = 5
_OWN = {"CPU": "cpu", "GPU": "gpu", "memory": "memory"}
_HIDDEN = ("node:", "accelerator_type:", "object_store_memory")


@dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    """Node of a Ray cluster, with the total amount of each resource that it offers."""

    name: str
    offers: Mapping[str, float]

    def rooms(self, wanted: Mapping[str, float]) -> int:
        """Return the number of tasks that fit on the node at the same time."""
        shares = [self.offers.get(name, 0.0) / amount for name, amount in wanted.items()]
        return int(min(shares) + 1e-9)


def wanted_of(needs: Needs) -> dict[str, float]:
    """Return the resources that a task needs, by Ray's names; by default one CPU."""
    amounts = {"CPU": needs.cpu or 1.0, "GPU": needs.gpu, "memory": float(needs.memory_bytes)}
    return {name: amount for name, amount in {**amounts, **needs.custom}.items() if amount}


def rooms_for(wanted: Mapping[str, float], nodes: Sequence[Node]) -> int:
    """Return the number of concurrent tasks that fit on all nodes of the cluster.

    Raises:
        PluginError: no node has room for a single task.
    """
    rooms = sum(node.rooms(wanted) for node in nodes)
    if rooms == 0:
        listed = [f"{node.name} ({_format_amounts(node.offers)})" for node in nodes[:_SHOWN_NODES]]
        more = f" and {len(nodes) - _SHOWN_NODES} more" if len(nodes) > _SHOWN_NODES else ""
        raise PluginError(
            f"no node offers {_format_amounts(wanted)}; "
            f"the cluster has {', '.join(listed) or 'no node'}{more}",
            hint="reduce the evaluator's 'resources', or start a node that offers them",
        )
    return rooms


def _format_amounts(amounts: Mapping[str, float]) -> str:
    """Return the amounts as text: CPU, GPU and memory first, then the others by name."""
    names = [*_OWN, *sorted(amounts.keys() - _OWN.keys())]
    shown = [
        f"{_OWN.get(name, name)}: "
        + (units.shown(round(amounts[name]), "B") if name == "memory" else f"{amounts[name]:g}")
        for name in names
        if name in amounts and not name.startswith(_HIDDEN)
    ]
    return ", ".join(shown) or "nothing"
