"""Validation of study and space files, without measurements and without starting programs."""

from __future__ import annotations

import re
from collections.abc import Sized
from pathlib import Path

from dse.core.problem import Problem
from dse.errors import DseError, SpecError, SpecErrors
from dse.protocols import ChecksProgram, Evaluator, HasNotes
from dse.report.schemas.reproduction import JudgedFile
from dse.report.text.space_words import big
from dse.schema.space.space_loader import space_of
from dse.schema.study.assumption_ends import impossible_ends
from dse.schema.study.fixed_inputs import FixedInputs
from dse.schema.study.plan import Plan, plan_of
from dse.schema.study.plugin_checks import is_study
from dse.schema.study.repeats import Replicated
from dse.schema.yaml.files import Files, resolve_path
from dse.schema.yaml.source import shown
from dse.schema.yaml.validation import ErrorCollector
from dse.study.library_members import inherit_libraries
from dse.system.credentials import mask

_PROBES = 64
_GETS = re.compile(r"dse assets install [\w.-]+")
"""Command that an evaluator's error message suggests when the files of a model are missing."""


def judged_file(file: str) -> JudgedFile:
    """Check a study or space file; return a summary, or every error in it.

    Nothing is measured and no program is started, but pure modelled evaluators are called on a few
    random designs.

    Args:
        file: a path, or ``library:studies/...`` for an example study in the package.
    """
    judged: JudgedFile = {
        "file": file,
        "ok": True,
        "summary": "",
        "designs": None,
        "modelled": [],
        "measured": [],
        "not_probed": {},
        "notes": {},
        "errors": [],
        "unchecked": [],
    }
    try:
        path = resolve_path(file, Path.cwd() / "study.yaml")
        if is_study(Files().source(path).value):
            _tell_study(judged, path)
        else:
            _tell_space(judged, path)
    except DseError as error:
        errors = error.errors if isinstance(error, SpecErrors) else (error,)
        judged["ok"] = False
        judged["unchecked"] = list(error.unchecked) if isinstance(error, SpecErrors) else []
        judged["errors"] = [
            {"problem": e.problem, "where": e.where, "hint": e.hint, "message": str(e)}
            for e in errors
        ]
    return judged


def _tell_space(judged: JudgedFile, path: Path) -> None:
    space = space_of(path, Files())
    judged["designs"] = space.count()
    judged["summary"] = (
        f"{_format_count(space.parameters, 'parameter')}, {_format_design_count(judged['designs'])}"
    )


def _tell_study(judged: JudgedFile, path: Path) -> None:
    plan = _plan(path)
    _check_programs(plan)
    problem, bound = plan.problem, plan.pipeline.bound
    impossible = list(impossible_ends(plan))
    if impossible:
        raise SpecErrors(impossible)
    notes = _probe_models(problem, path)
    judged["designs"] = problem.space.count()
    judged["modelled"] = [b.label for b in bound if b.evaluator.kind == "modelled"]
    judged["measured"] = [b.label for b in bound if b.evaluator.kind == "measured"]
    judged["not_probed"] = {
        b.label: [mask(words) for words in b.starts]
        for b in bound
        if b.starts or (b.evaluator.kind == "modelled" and not b.pure)
    }
    judged["notes"] = {
        b.label: list(evaluator.notes)
        for b in bound
        if isinstance(evaluator := _unwrapped(b.evaluator), HasNotes) and evaluator.notes
    }
    kinds = {"modelled": judged["modelled"], "measured": judged["measured"]}
    judged["summary"] = (
        f"{_format_count(problem.space.parameters, 'parameter')}, "
        f"{_format_design_count(judged['designs'])}; "
        + "; ".join(f"{kind}: {', '.join(names)}" for kind, names in kinds.items() if names)
        + f"; {_format_count(problem.objectives, 'objective')}"
        + f", {_format_count(problem.limits, 'limit')}"
        + (f", {_format_count(plan.claims, 'claim')}" if plan.claims else "")
        + (f", {_format_count(plan.assumptions, 'assumption')}" if plan.assumptions else "")
        + _describe_libraries(plan)
        + notes
    )


def _describe_libraries(plan: Plan) -> str:
    """Return how many studies of the libraries are usable, and why the rest is not, as text."""
    if not plan.libraries:
        return ""
    found = inherit_libraries(plan.libraries, plan.problem)
    left_out = [f"; left out: {name}, {why}" for name, why in found.left_out.items()]
    count = len(found.studies)
    return f", a library of {count} {'study' if count == 1 else 'studies'}" + "".join(left_out)


def _plan(path: Path) -> Plan:
    """Return the plan of a study file, after checking the file.

    Raises:
        SpecErrors: the file has mistakes. If it runs programs, the error also lists that their
            existence was not checked.
    """
    try:
        return plan_of(path)
    except SpecErrors as error:
        stated = Files().source(path).value.get("evaluators")
        every = stated.values() if isinstance(stated, dict) else ()
        runs = any(isinstance(one, dict) and "run" in one for one in every)
        rest = ["whether programs and scripts exist"] if runs else []
        raise SpecErrors(error.errors, [*error.unchecked, *rest]) from error


def _check_programs(plan: Plan) -> None:
    """Check that the programs of the evaluators exist on this machine.

    With the ``ray`` executor nothing is checked: programs may exist on the cluster only.

    Raises:
        SpecErrors: a program does not exist.
    """
    if plan.executor.use == "ray":
        return
    source, mistakes = Files().source(plan.path), ErrorCollector()
    for one in plan.pipeline.bound:
        evaluator = _unwrapped(one.evaluator)
        try:
            if isinstance(evaluator, ChecksProgram):
                evaluator.check_program()
        except DseError as error:
            mistakes.add(error, source.place(["evaluators", one.name, *error.part]))
    mistakes.check()


def _unwrapped(evaluator: Evaluator) -> Evaluator:
    """Return the evaluator without wrappers for fixed inputs and replicates."""
    while isinstance(evaluator, FixedInputs | Replicated):
        evaluator = evaluator.evaluator
    return evaluator


def _probe_models(problem: Problem, path: Path) -> str:
    """Call the pure modelled evaluators on random designs, to find inputs that they reject.

    Returns:
        A note for the summary; empty if there is nothing to report.
    """
    metrics = problem.known(problem.space.sample(_PROBES, problem.rng(0)))
    broken = [failure for failure in metrics.failures.values() if failure.kind != "infeasible"]
    absent = next((_GETS.search(failure.reason) for failure in broken), None)
    if absent:  # not a mistake in the study: it may be run on another machine
        return f"; not tried before `{absent[0]}`"
    if broken:
        raise SpecError(
            f"a modelled evaluator fails on {len(broken)} of {_PROBES} random designs: "
            f"{broken[0].reason}",
            where=shown(path),
        )
    impossible = len(metrics.failures)
    return f"; {impossible} of {_PROBES} random designs are infeasible" if impossible else ""


def _format_count(things: Sized, noun: str) -> str:
    return f"{len(things)} {noun}{'' if len(things) == 1 else 's'}"


def _format_design_count(count: int | None) -> str:
    if count is None:
        return "legal designs not countable"
    return f"{big(count)} legal design{'' if count == 1 else 's'}"
