"""Trust in imported studies: what a run of such a study would start, and the user's consent."""

from __future__ import annotations

from dse.errors import DseError
from dse.evaluation.bound_evaluator import Bound
from dse.protocols import Storage, missing_reason
from dse.registry import names
from dse.report.schemas.study_schema import Trusted
from dse.schema.study.plan import Plan
from dse.storage.trust import has_trust, trust
from dse.study.study_engine import StudyEngine
from dse.system.credentials import mask
from dse.system.terminal_text import visible

_LOCAL = ("auto", "serial", "processes")
"""Executors that run on this machine only."""


_OURS = ("dse.", "dse_evaluators.")
"""Module prefixes of the plug-ins that are shipped with dse."""


def named_programs(plan: Plan) -> list[str]:
    """Return the programs, functions, third-party plug-ins and clusters that a run would use.

    Each line begins with the evaluator's name. Passwords in URLs are masked, and terminal control
    characters are escaped.
    """
    found = [
        f"{bound.name}: {words}"
        for bound in plan.pipeline.bound
        for words in bound.starts or _describe_plugin(plan, bound)
    ]
    if plan.executor.use not in _LOCAL:
        options = "".join(f", {key} {value!r}" for key, value in plan.executor.options.items())
        found.append(f"executor: {plan.executor.use}{options}")
    return [_visible(line) for line in dict.fromkeys(found)]


def _describe_plugin(plan: Plan, bound: Bound) -> list[str]:
    """Describe an evaluator that is not installed here, or is a third-party plug-in.

    It is called for evaluators that start no program. The list is empty for evaluators that are
    shipped with dse.
    """
    missing = missing_reason(bound.evaluator)
    if missing:
        return [missing]
    use = plan.identity["evaluators"][bound.label]["use"]
    place = names("evaluators")[use].value
    return [] if place.startswith(_OURS) else [f"the plug-in {use!r} of this machine: {place}"]


def trust_facts(storage: Storage, name: str) -> Trusted:
    """Return whether a stored study is trusted, and what running it would start.

    If the record of an untrusted study cannot be read, the error is returned as ``problem``; what
    the study would start is then unknown, and the study cannot be run.
    """
    try:
        starts, problem = named_programs(StudyEngine.load(name, storage).plan), ""
    except (DseError, LookupError, TypeError, ValueError, AttributeError) as error:
        starts, problem = [], _visible(str(error))
    trusted = has_trust(storage, name)
    return {"study": name, "trusted": trusted, "starts": starts, "problem": problem}


def trust_study(storage: Storage, name: str) -> Trusted:
    """Mark an imported study as trusted, so that it may be run, and return what it would start.

    Raises:
        StudyError: there is no such study, or its record cannot be read.
    """
    StudyEngine.load(name, storage)
    trust(storage, name)
    return trust_facts(storage, name)


def _visible(text: str) -> str:
    return visible(mask(text)).replace("\n", "\\n").replace("\t", "\\t")
