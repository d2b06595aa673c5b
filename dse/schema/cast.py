"""The evaluators of a study, made and bound as its file tells them, under every scenario."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from dse.bound import Bound
from dse.core.space import Space
from dse.errors import DseError, SpecError, nearest
from dse.protocols import EVERYTHING, Evaluator, Needs
from dse.schema.binding import bound_of, check_formulas, check_values, evaluator_of
from dse.schema.given import Given
from dse.schema.mistakes import Mistakes
from dse.schema.models import EvaluatorSpec, ResourcesSpec, ScenarioSpec, StudySpec
from dse.schema.replicated import Replicated
from dse.schema.resources import check_exclusive, gpus_of, memory_of
from dse.schema.scenarios import (
    ANYWHERE,
    Scenarios,
    check_alike,
    check_scenario,
    staged,
    version_of,
    weights_of,
)
from dse.schema.source import Source
from dse.schema.spaces.rules import units_of

Options = Callable[[EvaluatorSpec], dict[str, Any]]


class Cast:
    """Makes each evaluator once for all scenarios that give it the same options and values."""

    def __init__(
        self, spec: StudySpec, source: Source, mistakes: Mistakes, options: Options
    ) -> None:
        self._spec = spec
        self._source = source
        self._mistakes = mistakes
        self._options = options
        self._scenarios = spec.scenarios or {ANYWHERE: ScenarioSpec()}

    def bound(self, space: Space | None) -> tuple[list[Bound], Scenarios]:
        """All evaluators with what each of their readings is; mistakes are collected."""
        made = {name: self._versions(name) for name in self._spec.evaluators}
        weights = weights_of(self._spec.scenarios)
        if space is None:
            return [], Scenarios(weights=weights)
        parameters = space.by_name.keys()
        for name, one in self._spec.scenarios.items():
            place = ["scenarios", name]
            self._guarded(
                place, lambda n=name, o=one: check_scenario(n, o, made.keys(), parameters)
            )
        self._check_read(made)
        known = units_of(space.parameters)
        for name, versions in made.items():
            for evaluator in list(versions.values())[:1]:
                known |= {f"{name}.{own}": m.unit for own, m in evaluator.provides.items()}
        bound = {name: self._bound(name, made[name], known, space) for name in made}
        self._place(bound)
        whole = {n: own for n, own in bound.items() if len(own) == len(self._scenarios)}
        found = self._guarded(["evaluators"], lambda: staged(whole, weights))
        return found if found is not None else ([], Scenarios(weights=weights))

    def options(self, bound: Bound) -> Mapping[str, Any]:
        """What the file says of an evaluator under its scenario, with the values fixed for it."""
        scenario = bound.scenario or next(
            iter(self._scenarios)
        )  # the same under all is as the first
        changes = self._scenarios[scenario].options.get(bound.name, {})
        fixed = bound.evaluator.values if isinstance(bound.evaluator, Given) else {}
        spec = self._spec.evaluators[bound.name]
        told = {**spec.options, **changes, **({"values": dict(fixed)} if fixed else {})}
        return {**told, **({"replicates": spec.replicates.model_dump()} if spec.replicates else {})}

    def _versions(self, name: str) -> dict[str, Evaluator]:
        """The evaluator under each scenario: one object where it does not differ."""
        kept: dict[str, Evaluator] = {}
        found: dict[str, Evaluator] = {}
        for scenario, one in self._scenarios.items():
            own = one.options.get(name, {})
            path = ["scenarios", scenario, name] if own else ["evaluators", name]
            text = json.dumps(own, sort_keys=True, default=str)
            if text not in kept:
                made = self._guarded(path, lambda own=own: self._made(name, own))
                if made is None:
                    continue
                kept[text] = made
            version = self._guarded(
                ["scenarios", scenario, "values"],
                lambda one=one, made=kept[text]: version_of(one, made),
            )
            if version is None:
                continue
            fixed = version.values if isinstance(version, Given) else {}
            key = text + json.dumps(fixed, sort_keys=True) if fixed else text
            found[scenario] = kept.setdefault(key, version)
            first = next(iter(found.values()))
            self._guarded(
                path, lambda s=scenario, one=version, f=first: check_alike(name, s, one, f)
            )
        return found

    def made_with(self, name: str, option: str, value: object) -> Evaluator:
        """The evaluator with another value of an option, or without it (``None``).

        Raises:
            DseError: it does not take the value, or cannot do without.
        """
        spec = self._spec.evaluators[name]
        rest = {key: one for key, one in spec.options.items() if key != option}
        changed = {**rest, **({} if value is None else {option: value})}
        whole = EvaluatorSpec.model_validate({"use": spec.use, **changed})
        return evaluator_of(whole, self._options(whole))

    def _made(self, name: str, changes: Mapping[str, Any]) -> Evaluator:
        spec = self._spec.evaluators[name]
        whole = {"use": spec.use, "bind": spec.bind, **spec.options, **changes}
        changed = EvaluatorSpec.model_validate(whole)
        made = evaluator_of(changed, self._options(changed))
        return Replicated(made, spec.replicates) if spec.replicates else made

    def _check_read(self, made: Mapping[str, Mapping[str, Evaluator]]) -> None:
        """A value that no evaluator reads is a misspelt one."""
        for scenario, one in self._spec.scenarios.items():
            for reading in one.values:
                evaluators = [v[scenario] for v in made.values() if scenario in v]
                fixed = [e for e in evaluators if isinstance(e, Given) and reading in e.values]
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
        space: Space,
    ) -> dict[str, Bound]:
        """The evaluator bound under each scenario: one object where it does not differ."""
        kept: dict[int, Bound] = {}
        found: dict[str, Bound] = {}
        for scenario, evaluator in versions.items():
            if id(evaluator) not in kept:
                bound = self._guarded(
                    ["evaluators", name],
                    lambda e=evaluator: self._one_bound(name, e, known, space),
                )
                if bound is None:
                    continue
                kept[id(evaluator)] = bound
            found[scenario] = kept[id(evaluator)]
        return found

    def _place(self, bound: Mapping[str, dict[str, Bound]]) -> None:
        """Tell each evaluator what it needs of its machine."""
        for name, versions in bound.items():
            spec = self._spec.evaluators[name]
            needs = self._needs(name, spec.resources)
            if spec.exclusive:
                path = ["evaluators", name, "exclusive"]
                for one in list(versions.values())[:1]:
                    self._guarded(path, lambda one=one: check_exclusive(one))
            placed = {
                id(one): replace(one, needs=needs, exclusive=spec.exclusive)
                for one in versions.values()
            }
            versions |= {scenario: placed[id(one)] for scenario, one in versions.items()}

    def _needs(self, name: str, spec: ResourcesSpec) -> Needs:
        path = ["evaluators", name, "resources"]
        gpu = self._guarded([*path, "gpu"], lambda: gpus_of(spec))
        memory = self._guarded([*path, "memory"], lambda: memory_of(spec))
        return Needs(
            cpu=spec.cpu or 0.0, gpu=gpu or 0.0, memory_bytes=memory or 0, custom=dict(spec.custom)
        )

    def _one_bound(
        self, name: str, evaluator: Evaluator, known: Mapping[str, str], space: Space
    ) -> Bound:
        check_formulas(name, evaluator, known)
        bind = self._spec.evaluators[name].bind
        bound = bound_of(name, evaluator, bind, known, parameters=space.by_name.keys())
        check_values(bound, space.by_name)
        return bound

    def _guarded(self, path: Sequence[str | int], make: Any) -> Any:
        """What ``make`` gives, or ``None`` with its mistake kept."""
        try:
            return make()
        except DseError as error:
            self._mistakes.add(error, self._source.place([*path, *error.part]))
            return None
