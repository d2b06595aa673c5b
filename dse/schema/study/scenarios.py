"""Scenarios, such as workloads: evaluators are copied for each scenario that changes them.

A metric that differs between scenarios exists once per scenario, as ``chip.latency@chat``. The rest
of the program handles these as ordinary metrics. Scenarios under which an evaluator and its inputs
are the same share one copy, so that nothing is measured twice.
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
"""Name of the only scenario of a study that declares none."""

_FIXED = {"use", "bind", "parts", "replicates", "resources", "exclusive"}
"""Keys of an evaluator in the study file that are not options of its plug-in."""


@dataclass(frozen=True, kw_only=True)
class Scenarios:
    """Weights of a study's scenarios, and the metric names that they introduce.

    ``weights`` sum to 1. ``metrics`` maps each metric that differs between scenarios to its name in
    each scenario: ``{'chip.latency': {'chat': 'chip.latency@chat'}}``.
    """

    weights: Mapping[str, float] = field(default_factory=dict)
    metrics: Mapping[str, Mapping[str, str]] = field(default_factory=dict)

    def under(self, name: str, scenario: str) -> str:
        """Return the metric's name in a scenario: ``chip.latency@chat`` for ``chip.latency``."""
        return self.metrics.get(name, {}).get(scenario, name)


def weights_of(specs: Mapping[str, ScenarioSpec]) -> dict[str, float]:
    """Return the scenario weights, normalized to a sum of 1."""
    total = sum(spec.weight for spec in specs.values())
    return {name: spec.weight / total for name, spec in specs.items()}


def check_scenario(
    name: str, spec: ScenarioSpec, evaluators: Collection[str], parameters: Collection[str]
) -> None:
    """Check that a scenario changes only evaluators, options and inputs that the study has.

    Raises:
        SpecError: the scenario's name is not an identifier, it changes an unknown evaluator or a
            key that is not an option, or it fixes a parameter of the space.
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
                f"a scenario can change the options of {one}, but not its {key!r}",
                hint="declare a second evaluator",
            )
    for reading in spec.values:
        if reading in parameters:
            raise SpecError(
                f"{reading} is a parameter of the space, so a scenario cannot fix its value",
                hint="remove it from the space if it is not part of the search",
            )


def version_of(spec: ScenarioSpec, made: Evaluator) -> Evaluator:
    """Return the evaluator with inputs fixed to the values that a scenario states.

    Args:
        spec: the scenario.
        made: the evaluator, created with the scenario's options.

    Raises:
        SpecError: a value has a unit of another dimension than the input.
    """
    values = {
        reading: reading_of(made, reading, value)
        for reading, value in spec.values.items()
        if reads_any(made, reading)
    }
    return FixedInputs(made, values) if values else made


def check_alike(name: str, scenario: str, one: Evaluator, first: Evaluator) -> None:
    """Check that an evaluator reports the same metrics under a scenario as under the first.

    Raises:
        SpecError: the metrics differ, or one of them has another unit.
    """
    lacking = sorted(first.provides.keys() ^ one.provides.keys())
    if lacking:
        raise SpecError(
            f"under {scenario!r}, {name} reports other metrics than under the first scenario: "
            f"{', '.join(lacking)}",
            hint="a scenario may change the values of metrics, not which metrics there are",
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
    """Return the distinct evaluators of all scenarios in topological order, and the metric names.

    Metrics that differ between scenarios get the scenario in their name.

    Args:
        versions: each evaluator under each scenario, with inputs named by metrics without a
            scenario; the same object where scenarios do not change it.
        weights: the normalized weight of each scenario; empty for a study without scenarios.

    Raises:
        SpecError: two evaluators report the same metric, or their inputs form a cycle.
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
