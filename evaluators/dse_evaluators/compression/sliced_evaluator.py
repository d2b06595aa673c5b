"""The evaluator `compression.sliced`: a transformer with a narrower stream, measured."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from dse.core.batch import Batch
from dse.core.metric import Kind, Metric, Metrics
from dse.core.values import Value
from dse.errors import PluginError, nearest
from dse_evaluators.compression.cut_measures import depth_of, metrics_of
from dse_evaluators.compression.sliced_stream import DIRECTIONS, restore_tables, slice_tables
from dse_evaluators.compression.template import members
from dse_evaluators.one_by_one import one_by_one
from dse_evaluators.readings import check_readings, number, word
from dse_evaluators.workloads.editions import edition_of
from dse_evaluators.workloads.workload import Split

SLICE = "slice"


@dataclass(kw_only=True)
class Sliced:
    """Cuts off the directions in which a transformer's stream varies least, and runs it.

    ``slice`` is the share that goes, one number for all parts, or a list with one for each
    attention, each feed-forward part and the head, in the order of the stream. ``directions`` is
    how those that stay are chosen: ``principal`` unless the design says ``largest`` or ``random``.
    ``computation`` is the multiplications for a character as a share of the whole model's, those
    of the residual's crossings and of attention itself among them.

    Args:
        model: its name; its stream has norms without means.
        split: ``search``, or ``test`` for the end.

    Source:
        Ashkboos et al., SliceGPT: Compress Large Language Models by Deleting Rows and Columns,
        2024, section 3.

    Raises:
        PluginError: there is no such model or split.
    """

    model: str = "shakespeare-lm"
    split: Split = "search"

    reads: frozenset[str] = field(default=frozenset({SLICE}), init=False)
    optional: frozenset[str] = field(default=frozenset({"directions"}), init=False)
    units: Mapping[str, str] = field(default_factory=dict, init=False)
    provides: Mapping[str, Metric] = field(init=False)
    kind: Kind = field(default="measured", init=False)
    version: str = field(init=False)

    def __post_init__(self) -> None:
        self.provides = metrics_of(self.model, self.split)
        self.version = f"1-{edition_of(self.model)}"

    def check_values(self, values: Mapping[str, Sequence[Value]]) -> None:
        checks = {SLICE: number(0, 1), "directions": word(*DIRECTIONS)}
        check_readings(values, checks, {SLICE: 2 * depth_of(self.model) + 1})

    def evaluate(self, batch: Batch) -> Metrics:
        """One model after the other."""
        return one_by_one(batch, self.provides, self._measure_design)

    def _measure_design(self, design: Mapping[str, Value]) -> Mapping[str, float]:
        # What runs models takes seconds to import, and who only checks a study needs none of it.
        from dse_evaluators.compression import other_parameters
        from dse_evaluators.workloads.models import workload_of

        directions = str(design.get("directions", DIRECTIONS[0]))
        if directions not in DIRECTIONS:
            raise PluginError(
                f"there are no directions {directions!r}", hint=nearest(directions, DIRECTIONS)
            )
        whole = workload_of(self.model)
        listed = members(SLICE, tuple(design))
        names = sorted(listed, key=lambda name: int(name[len(SLICE) + 1 : -1])) or [SLICE]
        shares = [float(design[name]) for name in names]
        records = slice_tables(
            whole.parameters, other_parameters.calibration(self.model), shares, directions
        )
        return other_parameters.measure_cut(self.model, restore_tables(records), self.split)
