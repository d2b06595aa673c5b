"""Parser of objectives and constraints, which expands functions of scenarios and baselines."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from dse.core.expressions.expression import Expression
from dse.core.expressions.parser import ARGUMENTS, parse
from dse.core.metric import Goal
from dse.schema.study import baselines
from dse.schema.study import scenario_statistics as robust
from dse.schema.study.baselines import Baselines
from dse.schema.study.scenarios import Scenarios

_FUNCTIONS = {**ARGUMENTS, **robust.FUNCTIONS, **baselines.FUNCTIONS}


@dataclass(frozen=True, kw_only=True)
class FormulaParser:
    """Parser of a study's objectives and constraints, over metrics.

    Functions over scenarios such as ``worst`` and values of baselines are expanded.
    """

    scenarios: Scenarios
    baselines: Baselines

    def objective(self, text: str, goal: Goal) -> Expression:
        """Parse the formula of an objective over all scenarios.

        Raises:
            SpecError: the text is not a formula, or uses scenarios or baselines incorrectly.
        """
        side = robust.worse(goal)
        written = robust.written_out(parse(text, _FUNCTIONS), self.scenarios, side)
        return self.baselines.folded(written)

    def rules(self, text: str) -> Iterator[Expression]:
        """Yield a constraint on metrics, once for each scenario if scenarios change its metrics.

        Raises:
            SpecError: as :meth:`objective` does.
        """
        for one in robust.everywhere(parse(text, _FUNCTIONS), self.scenarios):
            yield self.baselines.folded(one)

    def under(self, text: str, scenario: str) -> Expression:
        """Parse a formula for one scenario: ``worst(chip.latency)`` is the latency there.

        It raises as :meth:`objective` does.
        """
        alone = robust.under(parse(text, _FUNCTIONS), self.scenarios, scenario)
        return self.baselines.folded(alone)
