"""The evaluator `compression.width`: a transformer with fewer heads and neurons, measured."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from dse.core.batch import Batch
from dse.core.metric import Kind, Metric, Metrics
from dse.core.values import Value
from dse.errors import PluginError, nearest
from dse_evaluators.compression.cut_measures import depth_of, metrics_of
from dse_evaluators.compression.template import members
from dse_evaluators.compression.width_narrowed import REPAIRS, Width, narrow_blocks
from dse_evaluators.one_by_one import one_by_one
from dse_evaluators.readings import check_readings, number, word
from dse_evaluators.workloads.editions import edition_of
from dse_evaluators.workloads.shapes import shapes_of
from dse_evaluators.workloads.workload import Split

HEAD = 32
"""Numbers of a head: ``character_network.HEAD``, which takes seconds to import."""


@dataclass(kw_only=True)
class Narrowed:
    """Takes heads and neurons out of a trained transformer, and runs what is left.

    ``heads`` is how many stay in each block and ``neurons`` which share, as lists or one value for
    all blocks; without either of a block, that part is gone. ``repair`` is ``refitted`` unless the
    design says ``none``: the tables behind what was cut are fitted to what they said before.
    Nothing is trained again.

    Args:
        model: its name.
        split: ``search``, or ``test`` for the end.

    Source:
        Michel, Levy, Neubig, Are Sixteen Heads Really Better than One?, 2019.

    Raises:
        PluginError: there is no such model or split.
    """

    model: str = "shakespeare-lm"
    split: Split = "search"

    reads: frozenset[str] = field(default=frozenset({"heads", "neurons"}), init=False)
    optional: frozenset[str] = field(default=frozenset({"repair"}), init=False)
    units: Mapping[str, str] = field(default_factory=dict, init=False)
    provides: Mapping[str, Metric] = field(init=False)
    kind: Kind = field(default="measured", init=False)
    version: str = field(init=False)

    def __post_init__(self) -> None:
        self.provides = metrics_of(self.model, self.split)
        self.version = f"1-{edition_of(self.model)}"

    def check_values(self, values: Mapping[str, Sequence[Value]]) -> None:
        most = shapes_of(self.model)["blocks.0.attention.out"][1] // HEAD
        checks = {
            "heads": number(0, most, whole=True),
            "neurons": number(0, 1),
            "repair": word(*REPAIRS),
        }
        check_readings(values, checks, dict.fromkeys(("heads", "neurons"), depth_of(self.model)))

    def evaluate(self, batch: Batch) -> Metrics:
        """One model after the other."""
        return one_by_one(batch, self.provides, self._measure_design)

    def _measure_design(self, design: Mapping[str, Value]) -> Mapping[str, float]:
        # What runs models takes seconds to import, and who only checks a study needs none of it.
        from dse_evaluators.compression import other_parameters
        from dse_evaluators.workloads.models import workload_of

        repair = str(design.get("repair", REPAIRS[0]))
        if repair not in REPAIRS:
            raise PluginError(f"there is no repair {repair!r}", hint=nearest(repair, REPAIRS))
        inputs = other_parameters.calibration(self.model) if repair == "refitted" else None
        whole = workload_of(self.model).parameters
        cut = narrow_blocks(whole, widths(design, depth_of(self.model)), inputs, head=HEAD)
        return other_parameters.measure_cut(self.model, cut, self.split)


def widths(design: Mapping[str, Value], blocks: int) -> list[Width]:
    """Return the width that a design leaves of each block."""
    heads, neurons = (_each(design, name, blocks) for name in ("heads", "neurons"))
    return [
        Width(heads=round(float(head)), neurons=float(share))
        for head, share in zip(heads, neurons, strict=True)
    ]


def _each(design: Mapping[str, Value], name: str, blocks: int) -> list[Value]:
    """The entries of a list in its order, or the one value for each block."""
    if not members(name, tuple(design)):
        return [design[name]] * blocks
    return [design[f"{name}[{block}]"] for block in range(blocks)]
