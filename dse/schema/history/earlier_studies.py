"""Transfer of an earlier study's data to a new study, as observations or as prior data."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from dse.core.design import Design, key_of
from dse.core.pareto import ParetoSet
from dse.core.problem import Prior
from dse.core.trial import State, Trial
from dse.core.values import Floats, Value
from dse.schema.history.lineage import (
    Lineage,
    Same,
    StudyLineage,
    corresponding,
    legal_design,
    measured_evaluators,
    normalize_value,
)
from dse.schema.history.recorded_specification import Inherited, Reading
from dse.units import units

MOST = 1_000
"""Maximum number of trials in the prior data of a study; of more, evenly spaced ones are taken."""


def inherit_from(
    name: str, new: StudyLineage, old: StudyLineage, finished: Sequence[Trial]
) -> Inherited:
    """Return the data that a new study inherits from the earlier study ``name``.

    An observation by an evaluator with the same plug-in, options and version is valid in the new
    study too. If such observations cover all measured metrics of an earlier trial, its design is
    feasible in the new study, and the trial was measured in the earlier study or is on its Pareto
    front, the new study evaluates the design first, without measuring it again. Other values of
    measured metrics become prior data for the surrogates.

    Args:
        name: the earlier study's name.
        new: the new study.
        old: the earlier study.
        finished: the finished trials of the earlier study.
    """
    lineage = Lineage(new, old)
    measured = [bound.label for bound in measured_evaluators(new.pipeline)]
    same = {label: lineage.found[label] for label in measured if label in lineage.found}
    readings = _readings(new, same, finished)
    designs: dict[int, Design] = {}
    if measured and len(same) == len(measured):
        designs = _designs(new, old, same, finished)
    known = {metric for one in same.values() for metric in one.metrics}
    prior = _prior(name, new, old, finished, lambda m, t: m in known and t.number in designs)
    return Inherited(
        studies={name: len(finished)},
        readings=readings,
        designs=tuple(dict.fromkeys(designs.values())),
        priors=(prior,) if prior is not None else (),
    )


def _readings(
    new: StudyLineage, same: Mapping[str, Same], finished: Sequence[Trial]
) -> tuple[Reading, ...]:
    """Return earlier observations by evaluators that both studies use, one per distinct input.

    Of observations with equal inputs, the first is returned.
    """
    found: dict[tuple[str, str], Reading] = {}
    for label, one in same.items():
        for trial in finished:
            metrics = one.renamed(trial.metrics)
            if len(metrics) == len(one.metrics):
                values = one.read(trial, new.problem.space)
                reading = Reading(values=values, metrics=metrics, spread=one.renamed(trial.spread))
                found.setdefault((label, key_of(values)), reading)
    return tuple(found.values())


def _designs(
    new: StudyLineage, old: StudyLineage, same: Mapping[str, Same], finished: Sequence[Trial]
) -> dict[int, Design]:
    """Return the designs that the new study need not measure, by the number of the earlier trial.

    These are designs feasible in the new study whose measured metrics are all known, from trials
    that were measured or are on the earlier Pareto front.
    """
    front = {trial.number for trial in ParetoSet.of(old.problem, finished).trials}
    found: dict[int, Design] = {}
    for trial in finished:
        is_complete = all(
            len(one.renamed(trial.metrics)) == len(one.metrics) for one in same.values()
        )
        if is_complete and (trial.measured or trial.number in front):
            design = legal_design(_values(new, same, trial), new.problem.space)
            if design is not None:
                found[trial.number] = design
    return found


def _values(new: StudyLineage, same: Mapping[str, Same], trial: Trial) -> dict[str, Value]:
    """Return the trial's parameter values, keyed by their names in the new space."""
    names = {name: name for name in new.problem.space.by_name}
    for one in same.values():
        names |= one.parameters
    space = new.problem.space
    return {
        n: normalize_value(trial.design[o], n, space) for n, o in names.items() if o in trial.design
    }


def _prior(
    name: str,
    new: StudyLineage,
    old: StudyLineage,
    finished: Sequence[Trial],
    known: Callable[[str, Trial], bool],
) -> Prior | None:
    """Return earlier values of the new study's measured metrics as prior data; else ``None``.

    Values for which ``known`` is true are left out: the new study inherits them as observations.
    """
    done = [trial for trial in finished if trial.state in (State.DONE, State.OUTSIDE)]
    if len(done) > MOST:
        done = [done[place] for place in np.linspace(0, len(done) - 1, MOST).round().astype(int)]
    columns: dict[str, Floats] = {}
    for metric in sorted(new.problem.measured):
        own = new.problem.metrics[metric]
        other = corresponding(metric, own, old.problem.metrics)
        if other is not None:
            factor = units.converted(1.0, old.problem.metrics[other].unit, own.unit)
            numbers = [np.nan if known(metric, t) else t.metrics.get(other, np.nan) for t in done]
            columns[metric] = factor * np.array(numbers, dtype=float)
    columns = {metric: values for metric, values in columns.items() if np.isfinite(values).any()}
    if not columns:
        return None
    rows = np.flatnonzero(np.isfinite(list(columns.values())).any(axis=0)).tolist()
    return Prior(
        study=name,
        designs=tuple(Design(_values(new, {}, done[row])) for row in rows),
        metrics={metric: values[rows] for metric, values in columns.items()},
    )
