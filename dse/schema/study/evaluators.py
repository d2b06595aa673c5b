"""Construction of a study's evaluators under every scenario, with their inputs bound."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from dse.core.parameter import Parameter
from dse.core.space import DesignSpace
from dse.errors import DseError, SpecError, SpecErrors, nearest, raise_all
from dse.evaluation.bound_evaluator import Bound
from dse.protocols import EVERYTHING, Evaluator, Needs, absent_metrics
from dse.schema.models import EvaluatorSpec, ResourcesSpec, ScenarioSpec, StudySpec
from dse.schema.space.rule_parser import units_of
from dse.schema.space.space_loader import LegibleSpace
from dse.schema.study.binding import (
    bound_of,
    check_formulas,
    check_values,
    evaluator_of,
    repaired_evaluator,
)
from dse.schema.study.fixed_inputs import FixedInputs
from dse.schema.study.former_names import (
    former_options_in,
    keep_former_metrics,
    warn_of_former_names,
)
from dse.schema.study.objectives import SymbolTable
from dse.schema.study.repeats import Replicated
from dse.schema.study.run_sections import check_exclusive, gpus_of, memory_of
from dse.schema.study.scenarios import (
    ANYWHERE,
    Scenarios,
    check_alike,
    check_scenario,
    merge_scenarios,
    version_of,
    weights_of,
)
from dse.schema.study.separable_metrics import StudyNames, expand_formulas, separable_metrics
from dse.schema.yaml.source import SourceDocument
from dse.schema.yaml.validation import ErrorCollector

Options = Callable[[EvaluatorSpec], dict[str, Any]]


@dataclass(frozen=True, kw_only=True)
class Bindings:
    """Evaluators of a study with inputs bound to its parameters, one copy per scenario.

    ``known`` has the units of all names. ``all`` is true where every evaluator of the study is
    valid.
    """

    bound: list[Bound]
    scenarios: Scenarios
    known: SymbolTable
    all: bool


class EvaluatorSet:
    """Factory of a study's evaluators under each scenario.

    Scenarios with the same options and fixed values share one evaluator object.

    Args:
        spec: the valid part of the study file.
        source: the document, for the line numbers of errors.
        mistakes: collector of the errors.
        options: function that returns the constructor options of an evaluator.
        doubtful: evaluators with settings that could not be read.
        fresh: whether the study is new. For a stored study, checks that were introduced later are
            skipped, so that it stays readable.
    """

    def __init__(
        self,
        spec: StudySpec,
        source: SourceDocument,
        mistakes: ErrorCollector,
        options: Options,
        doubtful: Collection[str] = (),
        *,
        fresh: bool = True,
    ) -> None:
        self._fresh = fresh
        self._spec = spec
        self._source = source
        self._mistakes = mistakes
        self._options = options
        self._doubtful = set(doubtful)
        self._lost = set[str]()  # metrics with an invalid unit or formula
        self._scenarios = spec.scenarios or {ANYWHERE: ScenarioSpec()}

    def bound(self, legible: LegibleSpace) -> Bindings:
        """Create all evaluators of the study and bind their inputs; errors are collected."""
        space = legible.space
        made = {name: self._versions(name) for name in self._spec.evaluators}
        weights = weights_of(self._spec.scenarios)
        self._check_scenarios(made, space)
        plain = dict(pair for own in made.items() for pair in _metric_units(*own).items())
        known = self._index_units(legible, plain, made)
        sound = {n: {} if n in self._doubtful else versions for n, versions in made.items()}
        bound = {name: self._bound(name, sound[name], known, space) for name in made}
        for name in self._doubtful & made.keys():
            self._check_formulas(name, made[name], known, space)
        self._place(bound)
        self._declare_parts(bound, space)
        whole = {n: own for n, own in bound.items() if len(own) == len(self._scenarios)}
        for name in sorted(made.keys() - whole.keys()):
            self._mistakes.skip(self._source.place(["evaluators", name]))
        staging = self._try_make(["evaluators"], lambda: merge_scenarios(whole, weights))
        found, scenarios = staging or ([], Scenarios(weights=weights))
        complete = staging is not None and len(whole) == len(made)
        metrics = {name: metric.unit for one in found for name, metric in one.provides.items()}
        plain = {name: unit for name, unit in plain.items() if name not in self._lost}
        if not complete and not self._spec.scenarios:
            metrics = plain
        elif not complete:
            self._doubtful |= made.keys()
        known = self._index_units(legible, metrics, made)
        return Bindings(bound=found, scenarios=scenarios, known=known, all=complete)

    def _index_units(
        self,
        legible: LegibleSpace,
        metrics: Mapping[str, str],
        made: Mapping[str, Mapping[str, Evaluator]],
    ) -> SymbolTable:
        """Return the units of all parameters and metrics, and why other metrics are absent.

        The table also tests whether an unknown name may be missing because of an earlier error. A
        name similar to a known metric of an invalid evaluator counts as misspelt instead.
        """
        known = SymbolTable({**units_of(legible.space.parameters), **metrics})
        known.data = legible.space.data
        known.absent = {
            f"{name}.{metric}": why
            for name, versions in made.items()
            for one in versions.values()
            for metric, why in absent_metrics(one).items()
        }
        known.parameters = legible.space.by_name if self._fresh else {}

        def hides(name: str) -> bool:
            evaluator = name.partition(".")[0]
            if name in self._lost:
                return True
            if evaluator in self._doubtful:
                own = [one for one in known if one.startswith(f"{evaluator}.")]
                return not nearest(name, own).startswith("did you mean")
            return evaluator not in self._spec.evaluators and legible.hides(name)

        known.hides = hides
        return known

    def options(self, bound: Bound) -> Mapping[str, Any]:
        """Return an evaluator's options under its scenario, with fixed inputs and replicates."""
        scenario = bound.scenario or next(
            iter(self._scenarios)
        )  # if shared by all scenarios, the first gives its options
        changes = self._scenarios[scenario].options.get(bound.name, {})
        fixed = bound.evaluator.values if isinstance(bound.evaluator, FixedInputs) else {}
        spec = self._spec.evaluators[bound.name]
        merged = {**spec.options, **changes, **({"values": dict(fixed)} if fixed else {})}
        if spec.replicates:
            merged["replicates"] = spec.replicates.model_dump()
        if spec.parts is not None:
            merged["parts"] = {metric: one.model_dump() for metric, one in spec.parts.items()}
        return merged

    def _versions(self, name: str) -> dict[str, Evaluator]:
        """Create the evaluator for each scenario, by scenario name.

        Scenarios that do not change it share one object.
        """
        kept: dict[str, Evaluator] = {}
        found: dict[str, Evaluator] = {}
        for scenario, one in self._scenarios.items():
            own = one.options.get(name, {})
            path = ["scenarios", scenario, name] if own else ["evaluators", name]
            text = json.dumps(own, sort_keys=True, default=str)
            if text not in kept:
                made = self._make_evaluator(name, own, path)
                if made is None:
                    self._doubtful.add(name)
                    continue
                kept[text] = made
            version = self._try_make(
                ["scenarios", scenario, "values"],
                lambda one=one, made=kept[text]: version_of(one, made),
            )
            if version is None:
                continue
            fixed = version.values if isinstance(version, FixedInputs) else {}
            key = text + json.dumps(fixed, sort_keys=True) if fixed else text
            found[scenario] = kept.setdefault(key, version)
            first = next(iter(found.values()))
            self._try_make(
                path, lambda s=scenario, one=version, f=first: check_alike(name, s, one, f)
            )
        return found

    def made_with(self, name: str, option: str, stated: Mapping[str, object]) -> Evaluator:
        """Create an evaluator with one option changed, or removed.

        Args:
            name: the evaluator's name in the study.
            option: the option.
            stated: replacement of the option: ``{option: value}``, or an empty mapping to remove
                it.

        Raises:
            DseError: the evaluator refuses the value, or requires the option.
        """
        spec = self._spec.evaluators[name]
        rest = {key: one for key, one in spec.options.items() if key != option}
        whole = EvaluatorSpec.model_validate({"use": spec.use, **rest, **stated})
        return evaluator_of(whole, self._options(whole))

    def _make_evaluator(
        self, name: str, changes: Mapping[str, Any], path: Sequence[str | int]
    ) -> Evaluator | None:
        """Create the evaluator, leaving out invalid options, whose errors are collected."""
        spec = self._spec.evaluators[name]
        whole = {"use": spec.use, "bind": spec.bind, **spec.options, **changes}
        changed = EvaluatorSpec.model_validate(whole)
        options: dict[str, Any] | None = self._try_make(path, lambda: self._options(changed))
        if options is None:
            return None
        made, errors = repaired_evaluator(changed, options)
        for error in errors:
            self._doubtful.add(name)
            self._lose(name, error)
            self._mistakes.add_in(error, self._source, path)
        if made is not None:
            kept = self._try_make(path, lambda: keep_former_metrics(name, made, self._source.value))
            made, metrics = kept or (made, {})
            names = {**metrics, **former_options_in(changed)} if self._fresh else {}
            warn_of_former_names(self._source.place(path), names)
        if made is None or not spec.replicates:
            return made
        replicates = spec.replicates
        return self._try_make(path, lambda: Replicated(made, replicates))

    def _check_scenarios(
        self, made: Mapping[str, Mapping[str, Evaluator]], space: DesignSpace
    ) -> None:
        """Collect errors in scenarios, such as fixed values that no evaluator reads."""
        for name, one in self._spec.scenarios.items():
            place = ["scenarios", name]
            self._try_make(
                place, lambda n=name, o=one: check_scenario(n, o, made.keys(), space.by_name.keys())
            )
        for scenario, one in self._spec.scenarios.items() if not self._doubtful else ():
            for reading in one.values:
                evaluators = [v[scenario] for v in made.values() if scenario in v]
                fixed = [
                    e for e in evaluators if isinstance(e, FixedInputs) and reading in e.values
                ]
                if evaluators and not fixed:
                    known = {n for e in evaluators for n in (e.reads | e.optional) - {EVERYTHING}}
                    error = SpecError(
                        f"no evaluator reads {reading!r}", hint=nearest(reading, known)
                    )
                    path = ["scenarios", scenario, "values", reading]
                    self._mistakes.add(error, self._source.place(path))

    def _bound(
        self,
        name: str,
        versions: Mapping[str, Evaluator],
        known: Mapping[str, str],
        space: DesignSpace,
    ) -> dict[str, Bound]:
        """Bind the evaluator's inputs for each scenario, by scenario name.

        Scenarios that do not change it share one object.
        """
        kept: dict[int, Bound] = {}
        found: dict[str, Bound] = {}
        for scenario, evaluator in versions.items():
            if id(evaluator) not in kept:
                bound = self._try_make(
                    ["evaluators", name],
                    lambda e=evaluator: self._one_bound(name, e, known, space),
                )
                if bound is None:
                    continue
                kept[id(evaluator)] = bound
            found[scenario] = kept[id(evaluator)]
        return found

    def _check_formulas(
        self, name: str, versions: Mapping[str, Evaluator], known: SymbolTable, space: DesignSpace
    ) -> None:
        """Collect errors in the formulas of an evaluator whose inputs could not be bound."""
        for evaluator in list(versions.values())[:1]:
            try:
                check_formulas(name, expand_formulas(evaluator, {}, known, space), known, {})
            except DseError as error:
                self._lose(name, error)
                self._mistakes.add_in(error, self._source, ["evaluators", name])

    def _lose(self, name: str, error: DseError) -> None:
        """Record the metrics that an error concerns; formulas with them cause no further error."""
        for one in error.errors if isinstance(error, SpecErrors) else (error,):
            self._lost |= {f"{name}.{own}" for own in one.part[1:2]}

    def _place(self, bound: Mapping[str, dict[str, Bound]]) -> None:
        """Set the resource needs and exclusiveness of each bound evaluator, in place."""
        for name, versions in bound.items():
            spec = self._spec.evaluators[name]
            needs = self._needs(name, spec.resources)
            if spec.exclusive:
                path = ["evaluators", name, "exclusive"]
                for one in list(versions.values())[:1]:
                    self._try_make(path, lambda one=one: check_exclusive(one))
            placed = {
                id(one): replace(one, needs=needs, exclusive=spec.exclusive)
                for one in versions.values()
            }
            versions |= {scenario: placed[id(one)] for scenario, one in versions.items()}

    def _declare_parts(self, bound: Mapping[str, dict[str, Bound]], space: DesignSpace) -> None:
        """Set the separable metrics of each bound evaluator, in place."""
        kinds: dict[str, list[str]] = {"modelled": [], "measured": []}
        for versions in bound.values():
            for one in list(versions.values())[:1]:
                kinds[one.evaluator.kind] += one.provides
        hidden = bool(self._doubtful) or any(not versions for versions in bound.values())
        names = StudyNames(parameters=tuple(space.by_name), hidden=hidden, **kinds)
        for name, versions in bound.items():
            spec, made = self._spec.evaluators[name], dict[int, Bound]()
            for one in versions.values():
                if id(one) not in made:
                    found = self._try_make(
                        ["evaluators", name],
                        lambda one=one, spec=spec: separable_metrics(one, spec.parts, names),
                    )
                    made[id(one)] = found or one
            versions |= {scenario: made[id(one)] for scenario, one in versions.items()}

    def _needs(self, name: str, spec: ResourcesSpec) -> Needs:
        path = ["evaluators", name, "resources"]
        gpu = self._try_make([*path, "gpu"], lambda: gpus_of(spec))
        memory = self._try_make([*path, "memory"], lambda: memory_of(spec))
        return Needs(
            cpu=spec.cpu or 0.0, gpu=gpu or 0.0, memory_bytes=memory or 0, custom=dict(spec.custom)
        )

    def _one_bound(
        self, name: str, evaluator: Evaluator, known: Mapping[str, str], space: DesignSpace
    ) -> Bound:
        errors: list[DseError] = []
        bind = self._spec.evaluators[name].bind
        evaluator = expand_formulas(evaluator, bind, known, space)
        bound: Bound | None = None
        own = dict(known)
        try:
            bound = bound_of(name, evaluator, bind, known, parameters=space.by_name.keys())
            own |= {word: known[full] for word, full in bound.names.items()}
        except DseError as error:
            errors.append(error)
        parameters = {**space.by_name, **_parameters_of(bound, space)}
        try:
            check_formulas(name, evaluator, own, parameters if self._fresh else {})
        except DseError as error:
            self._lose(name, error)
            errors.append(error)
        raise_all(errors)
        assert bound is not None
        check_values(bound, space.by_name)
        return bound

    def _try_make(self, path: Sequence[str | int], make: Any) -> Any:
        """Call ``make`` and return its result; on an error, collect it and return ``None``."""
        try:
            return make()
        except DseError as error:
            self._mistakes.add_in(error, self._source, path)
            return None


def _metric_units(name: str, versions: Mapping[str, Evaluator]) -> dict[str, str]:
    """Return the units of an evaluator's metrics, by names without the scenario: ``chip.time``."""
    evaluator = next(iter(versions.values()), None)
    provides = {} if evaluator is None else evaluator.provides
    return {f"{name}.{own}": metric.unit for own, metric in provides.items()}


def _parameters_of(bound: Bound | None, space: DesignSpace) -> dict[str, Parameter]:
    """Return the parameters that an evaluator reads, keyed by its input names."""
    names = {} if bound is None else bound.names
    return {own: space.by_name[full] for own, full in names.items() if full in space.by_name}
