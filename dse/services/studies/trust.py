"""Programs that running a stored study would start, and the user's consent to that."""

from __future__ import annotations

from dse.errors import DseError
from dse.evaluation.bound_evaluator import Bound
from dse.protocols import Storage
from dse.registry import names
from dse.report.schemas.study import Trusted
from dse.schema.study.plan import Plan
from dse.storage.trust import has_trust, trust
from dse.study.study import StudyEngine
from dse.system.credentials import mask
from dse.system.terminal_text import visible

_LOCAL = ("auto", "serial", "processes")
"""Executors that stay on this machine."""


_OURS = ("dse.", "dse_evaluators.")
"""How the modules of plug-ins begin that come with dse."""


def named_programs(plan: Plan) -> list[str]:
    """Return the programs, functions, plug-ins of others and clusters that a run would use.

    Each line begins with the evaluator's name, and has no password of a URL and no character that a
    terminal would obey.
    """
    found = [
        f"{bound.name}: {words}"
        for bound in plan.pipeline.bound
        for words in bound.starts or _describe_plugin(plan, bound)
    ]
    if plan.executor.use not in _LOCAL:
        options = "".join(f", {key} {told!r}" for key, told in plan.executor.options.items())
        found.append(f"executor: {plan.executor.use}{options}")
    return [_visible(line) for line in dict.fromkeys(found)]


def _describe_plugin(plan: Plan, bound: Bound) -> list[str]:
    """Describe an evaluator that starts no program: code of others, or missing here."""
    missing = getattr(bound.evaluator, "missing", "")
    if missing:
        return [missing]
    use = plan.identity["evaluators"][bound.label]["use"]
    place = names("evaluators")[use].value
    return [] if place.startswith(_OURS) else [f"the plug-in {use!r} of this machine: {place}"]


def trust_facts(storage: Storage, name: str) -> Trusted:
    """Return whether a stored study may be run, and what that would start.

    A stranger's record may be beyond reading: what it would start is then unknown, and it cannot be
    run either.
    """
    try:
        starts, problem = named_programs(StudyEngine.load(name, storage).plan), ""
    except (DseError, LookupError, TypeError, ValueError, AttributeError) as error:
        starts, problem = [], _visible(str(error))
    trusted = has_trust(storage, name)
    return {"study": name, "trusted": trusted, "starts": starts, "problem": problem}


def trust_study(storage: Storage, name: str) -> Trusted:
    """Let an imported study be run, and return what it would start.

    Raises:
        StudyError: there is no such study, or its record cannot be read.
    """
    StudyEngine.load(name, storage)
    trust(storage, name)
    return trust_facts(storage, name)


def _visible(text: str) -> str:
    return visible(mask(text)).replace("\n", "\\n").replace("\t", "\\t")
