"""Reasons why trials failed or ended infeasible, as text for a terminal."""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Iterator, Sequence

from dse.core.trial import State, Trial
from dse.report.text.space_words import format_count
from dse.study.storage_access import DEFAULT_STORAGE
from dse.system.credentials import storage_words

_HEAD, _TAIL = 60, 240
"""Characters kept at both ends of a long reason; a traceback names its error at the end."""


def gist(reason: str) -> str:
    """Return the reason of a failure; if it is long, only its beginning and its end."""
    text = reason.strip()
    short = len(text) <= _HEAD + _TAIL
    return text if short else f"{text[:_HEAD].rstrip()} … {text[-_TAIL:].lstrip()}"


def are_in_vain(trials: Sequence[Trial]) -> bool:
    """Return whether every trial that is not infeasible has failed, and at least one has."""
    states = {trial.state for trial in trials} - {State.INFEASIBLE}
    return states == {State.FAILED}


def lines(name: str, trials: Sequence[Trial], *, storage: str | None = None) -> Iterator[str]:
    """Yield lines with the numbers of failed and infeasible trials and the commonest reasons.

    Args:
        name: the study's name.
        trials: its finished trials.
        storage: the URL of its storage; default: the default storage.
    """
    failed = [trial for trial in trials if trial.state is State.FAILED]
    yield from _summarize_reasons(failed, len(trials), "failed")
    none = [trial for trial in trials if trial.state is State.INFEASIBLE]
    yield from _summarize_reasons(none, len(trials), "ended infeasible")
    if failed and len(failed) == len(trials):
        yield "a failed design is not tried again: fix the cause, try one design (dse evaluate),"
        elsewhere = storage not in (None, DEFAULT_STORAGE)
        where = f" {storage_words(storage)}" if storage and elsewhere else ""
        forget = f"dse studies delete {shlex.quote(name)}{where}"
        yield f"then delete this study ({forget}) and run it again"


def _summarize_reasons(some: Sequence[Trial], all_: int, what: str) -> Iterator[str]:
    reasons = Counter(trial.failure.reason for trial in some if trial.failure is not None)
    if reasons:
        reason, same = reasons.most_common(1)[0]
        whole = f"all {format_count(all_, 'trial')}" if all_ > 1 else "the only trial"
        share = whole if len(some) == all_ else f"{len(some)} of {format_count(all_, 'trial')}"
        alike = "" if same == len(some) else f"; {same} of them"
        yield f"{share} {what}{alike}: {gist(reason)}"
