"""Levels of effort of a grey-box suggestion: data of the surrogates, and candidates."""

from __future__ import annotations

from dataclasses import dataclass

from dse.optimizers.bayesian.measured_settings import BRED, DRAWN
from dse.optimizers.bayesian.model_fitting import MOST


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchEffort:
    """Amounts of training data and candidates that the search uses at one level of effort.

    Attributes:
        rows: most values to which a Gaussian process is fitted.
        drawn: candidates drawn at random.
        bred: candidates of each of three kinds bred from the front.
        climbs: rounds of the local search around the best candidates.
        stride: factor on the number of trials between two fits of the hyperparameters.
    """

    rows: int
    drawn: int
    bred: int
    climbs: int
    stride: int

    @property
    def words(self) -> str:
        """Description of the level of effort, for an event of the study."""
        fits = "" if self.stride == 1 else f", lengths fitted {self.stride} times less often"
        return f"{self.drawn:,} candidates drawn, at most {self.rows} values fitted{fits}"


OFFSPRING = "offspring of the front, without a surrogate"
"""Description of the cheapest level, for a recorded event."""

LEVELS = (
    SearchEffort(rows=MOST, drawn=DRAWN, bred=BRED, climbs=5, stride=1),
    SearchEffort(rows=128, drawn=256, bred=128, climbs=2, stride=4),
    SearchEffort(rows=64, drawn=64, bred=32, climbs=1, stride=16),
)
"""Levels with surrogates, the full effort first."""
