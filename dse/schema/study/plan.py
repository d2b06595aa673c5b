"""Construction of a study's plan from its file; all errors are found before the study runs."""

from __future__ import annotations

import hashlib
import json
import warnings
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

from dse.core.design import Design
from dse.core.inspection.fingerprint import outline
from dse.core.metric import FailureKind
from dse.core.problem import Problem
from dse.core.space import DesignSpace
from dse.errors import DseError, SpecError, SpecErrors
from dse.evaluation.bound_evaluator import Bound
from dse.evaluation.early_stopping import Rule
from dse.evaluation.pipeline import Pipeline
from dse.protocols import user_options
from dse.registry import load, options_of
from dse.schema.models import (
    EvaluatorSpec,
    OptimizerSpec,
    PartialStudySpec,
    PluginSpec,
    PriorSpec,
    StudySpec,
)
from dse.schema.space.space_loader import LegibleSpace, legible_space
from dse.schema.study.assumptions import Assumption, assumptions_of
from dse.schema.study.budget import Budget
from dse.schema.study.claims import Claim
from dse.schema.study.evaluators import Bindings, EvaluatorSet
from dse.schema.study.former_names import rename_former_options
from dse.schema.study.formulas import AskedFormulas, problems_alone
from dse.schema.study.plugin_checks import AUTO, check_is_space, is_space
from dse.schema.study.run_sections import patience_of, retries_of, stages_of
from dse.schema.study.scenarios import weights_of
from dse.schema.study.sections import Question, Sections
from dse.schema.study.unread import Readers
from dse.schema.study.user_files import EACH_VALUE, resolve_each_value, resolve_user_option
from dse.schema.yaml.files import Files, rename_old_keys, resolve_path
from dse.schema.yaml.source import Path_, SourceDocument
from dse.schema.yaml.validation import ErrorCollector, legible

__all__ = ["AUTO", "Plan", "plan_of"]

_PATHS = ("file", "cwd")
"""Options of evaluators that are paths, relative to the study's file."""


@dataclass(frozen=True, kw_only=True)
class Plan:
    """Checked and complete specification of a study, ready to run.

    Attributes:
        transfer_from: earlier studies and libraries of studies to transfer results from.
        libraries: for each library's folder, a line per file with its SHA-256 and name.
        stages: the stage of a trial, from 0, at which each evaluator runs, by label.
        identity: what must not change during the life of the study, by key: space, seed, ...
        texts: every file that the study was read from, by path, for its record.
        weights: the weights of the scenarios, which sum to 1.
        alone: the optimization problem of each scenario taken alone.
        judge: whether the front is measured on a test split after the search: ``test`` or ``none``;
            ``None`` measures it if an evaluator has a test split.
        awaited: baselines that must be measured before any objective has a value.
        claims: claims of papers, compared with the results, and findings; no effect on the run.
        assumptions: assumed values that the paper does not state.
        asked: parser of limits and objectives that users ask about later.
        warnings: errors that are fatal for a new study only, and warnings for a stored one.
        objects: Python objects given as options of evaluators or as the optimizer, by the texts
            that name them.
    """

    name: str
    question: str
    path: Path
    problem: Problem
    pipeline: Pipeline
    optimizer: OptimizerSpec
    executor: PluginSpec
    storage: str | None
    budget: Budget
    retries: Mapping[FailureKind, int]
    storage_patience_s: float
    transfer_from: tuple[PriorSpec, ...]
    libraries: Mapping[str, str]
    stages: Mapping[str, int]
    identity: Mapping[str, Any]
    texts: Mapping[str, str] = field(repr=False)
    weights: Mapping[str, float] = field(default_factory=dict)
    alone: Mapping[str, Problem] = field(default_factory=dict, repr=False)
    awaited: Mapping[str, Design] = field(default_factory=dict)
    early_stopping: Rule | None = None
    judge: Literal["test", "none"] | None = None
    claims: tuple[Claim, ...] = field(default=(), repr=False)
    assumptions: tuple[Assumption, ...] = field(default=(), repr=False)
    asked: AskedFormulas | None = field(default=None, repr=False)
    warnings: tuple[str, ...] = ()
    objects: Mapping[str, Any] = field(default_factory=dict, repr=False)


def plan_of(
    path: Path,
    *,
    kept: Mapping[str, str] | None = None,
    seed: int | None = None,
    optimizer: PluginSpec | None = None,
    measured: Mapping[str, Mapping[str, float]] | None = None,
    documents: Mapping[str, Mapping[str, Any]] | None = None,
    objects: Mapping[str, Any] | None = None,
) -> Plan:
    """Read and check the study file at ``path``, and return its plan.

    Args:
        path: the study file.
        kept: the file texts of a stored study, by path, read instead of the disk.
        seed: replaces the file's seed.
        optimizer: replaces the file's optimizer.
        measured: measured metrics of each named baseline.
        documents: contents of files that exist only in memory, by path.
        objects: Python objects for options of evaluators with texts such as ``given:kernel``, and
            for an optimizer such as ``python:Annealing``.

    Raises:
        SpecErrors: all errors in the study file and the files that it names.
    """
    files = Files(kept=kept or {}, documents=documents or {})
    renamed = rename_old_keys(files.source(path))
    source = renamed.source
    if is_space(source.value):
        hint = f"a study names it: 'space: {path.name}'; dse init writes a first one"
        error = SpecError("this is no study", where=source.place(["space"]), hint=hint)
        raise SpecErrors([error])
    mistakes = ErrorCollector()
    for one in renamed.mistakes:
        mistakes.add(one)
    for text in () if kept else renamed.warnings:
        warnings.warn(text, FutureWarning, stacklevel=2)
    spec, rest, lost = legible(StudySpec, PartialStudySpec, source, mistakes)
    if spec is None:
        mistakes.skip("all but the keys")
        mistakes.check()
    assert spec is not None
    if optimizer is not None:
        spec = spec.model_copy(update={"optimizer": OptimizerSpec.of(optimizer)})
    builder = _Builder(spec, rest, files, objects or {}, mistakes, lost)
    return builder.plan(spec.seed if seed is None else seed, measured or {})


class _Builder:
    """Builder of a plan that checks each section of the study file, even after errors in others."""

    def __init__(
        self,
        spec: StudySpec,
        source: SourceDocument,
        files: Files,
        objects: Mapping[str, Any],
        mistakes: ErrorCollector,
        lost: Collection[Path_],
    ) -> None:
        self.spec = spec
        self.objects = objects
        self.source = source
        self.files = files
        self.mistakes = mistakes
        self.lost = lost
        doubtful = {str(path[1]) for path in lost if path[0] == "evaluators" and len(path) > 1}
        self.cast = EvaluatorSet(
            spec, source, mistakes, self._options, doubtful, fresh=not files.kept
        )

    def plan(self, seed: int, measured: Mapping[str, Mapping[str, float]]) -> Plan:
        legible = self._space()
        cast = self.cast.bound(legible)
        if ("evaluators",) in self.lost or ("space",) in self.lost:
            cast.known.hides = lambda _: True
        sections = Sections(
            spec=self.spec,
            source=self.source,
            mistakes=self.mistakes,
            legible=legible,
            cast=cast,
            measured=measured,
            lost={str(path[0]) for path in self.lost},
            stored=bool(self.files.kept),
            objects=self.objects,
        )
        sections.check_options()
        question = sections.question()
        unread = self._unread(legible, cast, question)
        assumptions = self._assumptions(legible)
        pipeline = sections.asked(question)
        problem = sections.problem(question, pipeline, seed)
        early_stopping = sections.early(problem)
        sections.check_judge()
        sections.check_factorial(problem)
        sections.check_gap(problem)
        libraries = self._libraries()
        self.mistakes.check()
        assert pipeline is not None
        assert problem is not None
        identity = self._identity(problem, cast.bound, libraries)
        problem = replace(problem, identity=json.dumps(identity, sort_keys=True, default=str))
        return Plan(
            name=self.spec.study,
            question=self.spec.question,
            path=self.source.path,
            problem=problem,
            pipeline=pipeline,
            optimizer=self.spec.optimizer,
            executor=self.spec.executor,
            storage=self.spec.storage,
            budget=question.budget,
            retries=retries_of(self.spec.retries),
            storage_patience_s=patience_of(self.spec.storage_patience),
            transfer_from=tuple(self.spec.transfer_from),
            libraries={folder: files for folder, files in libraries if folder},
            stages=stages_of(pipeline.bound, pipeline.sources, question.ladders),
            identity=identity,
            texts=dict(self.files.texts),
            weights=cast.scenarios.weights,
            alone=problems_alone(problem, self.spec, sections.formulas, cast.known, sections.lists),
            awaited=sections.baselines.awaited,
            early_stopping=early_stopping,
            judge=self.spec.judge,
            claims=question.claims,
            assumptions=assumptions,
            asked=AskedFormulas.of(sections.formulas, cast.known, sections.lists, problem),
            warnings=unread,
            objects=self.objects,
        )

    def _space(self) -> LegibleSpace:
        where = self.source.place(["space"])
        try:
            path = resolve_path(self.spec.space, self.source.path)
            check_is_space(self.files.source(path, named_at=where), where)
            return legible_space(path, self.files, self.mistakes, named_at=where)
        except DseError as error:
            if ("space",) not in self.lost:
                self.mistakes.add(error, where)
            return LegibleSpace(
                space=DesignSpace(parameters=()), hides=lambda _: True, partial=True
            )

    def _options(self, spec: EvaluatorSpec) -> dict[str, Any]:
        options = rename_former_options(spec)
        for key, value in options.items():
            if isinstance(value, str) and value in self.objects:
                options[key] = self.objects[value]
        for key in _PATHS:
            if isinstance(options.get(key), str):
                options[key] = str(resolve_path(options[key], self.source.path))
        plugin = load("evaluators", spec.use)
        for name in user_options(plugin):
            key = name.removesuffix(EACH_VALUE)
            if key not in options:
                continue
            resolve = resolve_user_option if key == name else resolve_each_value
            options[key] = resolve(options[key], self.source.path, self.objects)
        if "cwd" in options_of(plugin):
            options.setdefault("cwd", str(self.source.path.parent))
        return options

    def _assumptions(self, legible: LegibleSpace) -> tuple[Assumption, ...]:
        if not self.spec.assumes:
            return ()
        if legible.partial:
            self.mistakes.skip(self.source.place(["assumes"]))
            return ()
        return assumptions_of(self.spec, self.source, self.files, self.mistakes)

    def _unread(self, legible: LegibleSpace, cast: Bindings, question: Question) -> tuple[str, ...]:
        """Collect errors for unused parameters; for a stored study, return them as warnings."""
        if legible.partial or not cast.all or not question.whole:
            self.mistakes.skip("whether every parameter is read")
            return ()
        formulas = [o.expression for o in question.objectives]
        formulas += [limit.slack for limit in question.limits]
        readers = Readers(
            spec=self.spec,
            source=self.source,
            space=legible.space,
            space_file=self.files.source(resolve_path(self.spec.space, self.source.path)),
            bound=cast.bound,
            formulas=frozenset().union(*(one.names for one in formulas)),
            made=self.cast.made_with,
        )
        found = list(readers.mistakes())
        if self.files.kept:
            return tuple(str(one) for one in found)
        for one in found:
            self.mistakes.add(one)
        return ()

    def _libraries(self) -> list[tuple[str, str]]:
        """Return the folder and the digests of each library; empty texts for earlier studies."""
        found = []
        for place, one in enumerate(self.spec.transfer_from):
            where = self.source.place(["transfer_from", place, "library"])
            folder, digests = "", ""
            try:
                if one.library is not None:
                    path = resolve_path(one.library, self.source.path)
                    folder, digests = str(path), self.files.studies(path, named_at=where)
            except DseError as error:
                self.mistakes.add(error, where)
            found.append((folder, digests))
        return found

    def _identity(
        self, problem: Problem, bound: list[Bound], libraries: list[tuple[str, str]]
    ) -> dict[str, Any]:
        return {
            "space": outline(problem.space),
            "order of parameters": [p.name for p in problem.space.parameters],
            "evaluators": {
                one.label: {
                    "use": self.spec.evaluators[one.name].use,
                    "options": self.cast.options(one),
                    "version": one.evaluator.version,
                    "reads": dict(sorted(one.names.items())),
                }
                for one in bound
            },
            "objectives": [f"{o.goal} {o.text} [{o.unit}]" for o in problem.objectives],
            "constraints": list(self.spec.constraints),
            "reference": list(problem.fixed_reference or []),
            "baselines": [dict(design) for design in problem.baselines],
            "optimizer": self.spec.optimizer.entry,
            "seed": problem.seed,
            **({"scenarios": weights_of(self.spec.scenarios)} if self.spec.scenarios else {}),
            **({"fidelities": dict(problem.ladders)} if problem.ladders else {}),
            # Studies of earlier versions are held against these keys: they keep their first names.
            **(
                {
                    "prior": [
                        library_identity(digests) if digests else one.study
                        for one, (_, digests) in zip(earlier, libraries, strict=True)
                    ]
                }
                if (earlier := self.spec.transfer_from)
                else {}
            ),
            **(
                {"early": rule.model_dump(by_alias=True)}
                if (rule := self.spec.early_stopping)
                else {}
            ),
        }


def library_identity(digests: str) -> str:
    """Return a library's entry in the identity of a study: number of files, and their digest.

    Args:
        digests: the SHA-256 and name of each file, one a line.
    """
    digest = hashlib.sha256(digests.encode()).hexdigest()
    return f"library of {len(digests.splitlines())} files, SHA-256 {digest}"
