"""Scenarios: every evaluator that one of them changes, once for each, under names of its own.

A metric that differs between scenarios is there once for each: ``chip.latency@chat``. All that
comes after sees ordinary metrics. Scenarios under which an evaluator is the same and reads the same
share one, so that nothing is measured twice.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace

from dse.errors import SpecError, nearest
from dse.evaluation.bound_evaluator import Bound
from dse.evaluation.pipeline import order_evaluators
from dse.protocols import Evaluator
from dse.schema.models import ScenarioSpec
from dse.schema.study.fixed_inputs import FixedInputs, reading_of, reads_any

ANYWHERE = ""
"""The one scenario of a study that states none."""

_FIXED = {"use", "bind", "replicates", "resources", "exclusive"}
"""Keys of an evaluator that are not options of its plug-in."""


@dataclass(frozen=True, kw_only=True)
class Scenarios:
    """Weights of a study's scenarios, and the name of each metric under each of them.

    ``weights`` add up to one. ``metrics`` holds, for a metric that differs between scenarios, its
    full name under each.
    """

    weights: Mapping[str, float] = field(default_factory=dict)
    metrics: Mapping[str, Mapping[str, str]] = field(default_factory=dict)

    def under(self, name: str, scenario: str) -> str:
        """Return the metric or other name that a formula's name denotes under a scenario."""
        return self.metrics.get(name, {}).get(scenario, name)


def weights_of(specs: Mapping[str, ScenarioSpec]) -> dict[str, float]:
    """The share of each scenario."""
    total = sum(spec.weight for spec in specs.values())
    return {name: spec.weight / total for name, spec in specs.items()}


def check_scenario(
    name: str, spec: ScenarioSpec, evaluators: Collection[str], parameters: Collection[str]
) -> None:
    """Nothing, if the scenario speaks of what the study has.

    Raises:
        SpecError: its name cannot stand in a formula, it changes an evaluator that there is not,
            or fixes what a design chooses.
    """
    if not name.isidentifier():
        raise SpecError(
            f"{name!r} cannot stand in a formula", hint="letters, digits and '_', such as rush_hour"
        )
    for one, options in spec.options.items():
        if one not in evaluators:
            hint = nearest(one, ["weight", "values", *evaluators])
            raise SpecError(f"there is no evaluator {one!r}", hint=hint)
        for key in sorted(_FIXED & options.keys()):
            raise SpecError(
                f"a scenario changes the options of {one}, and not its {key!r}",
                hint="declare a second evaluator",
            )
    for reading in spec.values:
        if reading in parameters:
            raise SpecError(
                f"{reading} is a parameter of the space: a design chooses it, and no scenario does",
                hint="leave it out of the space if it is not to be chosen",
            )


def version_of(spec: ScenarioSpec, made: Evaluator) -> Evaluator:
    """Return the evaluator of a scenario's options, with the values that the scenario fixes.

    Raises:
        SpecError: a value has a unit that does not fit.
    """
    values = {
        reading: reading_of(made, reading, told)
        for reading, told in spec.values.items()
        if reads_any(made, reading)
    }
    return FixedInputs(made, values) if values else made


def check_alike(name: str, scenario: str, one: Evaluator, first: Evaluator) -> None:
    """Check that an evaluator reports the same metrics under both scenarios.

    Raises:
        SpecError: it does not, or one of them in another unit.
    """
    lacking = sorted(first.provides.keys() ^ one.provides.keys())
    if lacking:
        raise SpecError(
            f"under {scenario!r}, {name} tells other metrics than under the first scenario: "
            f"{', '.join(lacking)}",
            hint="a scenario changes what numbers are, not which there are",
        )
    for own, metric in one.provides.items():
        if metric.unit != first.provides[own].unit:
            raise SpecError(
                f"under {scenario!r}, {name}.{own} is in {metric.unit or 'no unit'}, and under "
                f"the first scenario in {first.provides[own].unit or 'no unit'}"
            )


def merge_scenarios(
    versions: Mapping[str, Mapping[str, Bound]], weights: Mapping[str, float]
) -> tuple[list[Bound], Scenarios]:
    """Return the evaluators of all scenarios, and the names of what differs between them.

    Args:
        versions: each evaluator under each scenario, reading metrics by their plain names; the
            same object where scenarios do not change it.
        weights: the share of each scenario; none for a study without.

    Raises:
        SpecError: two tell one metric, or they read one another in a circle.
    """
    metrics: dict[str, Mapping[str, str]] = {}
    found: list[Bound] = []
    for first in order_evaluators([next(iter(own.values())) for own in versions.values()]):
        cast: dict[str, Bound] = {}
        seen: dict[tuple[int, str], Bound] = {}
        for scenario, plain in versions[first.name].items():
            names = {own: metrics.get(n, {}).get(scenario, n) for own, n in plain.names.items()}
            key = (id(plain), json.dumps(names, sort_keys=True))
            cast[scenario] = seen.setdefault(key, replace(plain, names=names, scenario=scenario))
        if len(seen) == 1:
            found.append(replace(cast[next(iter(cast))], scenario=ANYWHERE))
            continue
        found += seen.values()
        for own in first.evaluator.provides:
            metrics[first.metric(own)] = {s: one.metric(own) for s, one in cast.items()}
    return found, Scenarios(weights=weights, metrics=metrics)
