"""Access to the notebook that this program runs in: output cells, and HTML display of trials."""

from __future__ import annotations

import sys
from typing import Any
from uuid import uuid4

from dse.api.notebook.parts import or_message
from dse.api.notebook.trial_view import trial_html
from dse.api.notebook.trials_view import trials_html
from dse.core.problem import Problem
from dse.core.trial import Trial
from dse.core.trials import Trials

_HTML = "text/html"


def shell() -> Any | None:  # of IPython, which is optional
    """Return IPython's shell; ``None`` outside of IPython."""
    ipython = sys.modules.get("IPython")
    return None if ipython is None else ipython.get_ipython()


def in_notebook() -> bool:
    """Return whether this code runs in a notebook cell whose output can be updated."""
    return hasattr(shell(), "kernel")


class Cell:
    """Updatable area in the output of the running notebook cell."""

    def __init__(self) -> None:
        found = shell()
        assert found is not None  # the caller has checked in_notebook()
        self._publisher = found.display_pub
        self._where = {"display_id": uuid4().hex}
        self._shown = False

    def show(self, html: str, text: str) -> None:
        """Replace the content of the area; ``text`` is shown where HTML is not supported."""
        self._publisher.publish(
            data={_HTML: html, "text/plain": text}, transient=self._where, update=self._shown
        )
        self._shown = True


class _Trials:
    """HTML display of trials in IPython, in the metric units of their study's problem."""

    def __init__(self) -> None:
        self._problems: list[Problem] = []

    def know(self, problem: Problem) -> None:
        """Register a study's problem, whose metric units the display of its trials uses."""
        others = [one for one in self._problems if one is not problem]
        self._problems = [problem, *others][:_REMEMBERED]

    def one(self, trial: Trial) -> str:
        """Return the HTML view of one trial."""
        return or_message(f"Trial {trial.number}", lambda: trial_html(trial, self._of(trial)))

    def several(self, trials: Trials) -> str:
        """Return the HTML view of several trials of a study."""
        problem = self._of(trials[-1]) if len(trials) else None
        return or_message("Trials", lambda: trials_html(trials, problem))

    def _of(self, trial: Trial) -> Problem | None:
        """Return the last registered problem with the trial's parameters and metrics, or ``None``.

        The lookup is needed because a trial does not refer to its problem.
        """
        return next((one for one in self._problems if _asks(one, trial)), None)


_REMEMBERED = 32


def show_trials_of(problem: Problem) -> None:
    """Show trials of the problem as tables from now on; do nothing outside of IPython."""
    found = shell()
    if found is None:
        return
    formatter = found.display_formatter.formatters[_HTML]
    known = getattr(formatter.type_printers.get(Trial), "__self__", None)
    if not isinstance(known, _Trials):
        known = _Trials()
        formatter.for_type(Trial, known.one)
        formatter.for_type(Trials, known.several)
    known.know(problem)


def _asks(problem: Problem, trial: Trial) -> bool:
    return (
        trial.design.keys() <= problem.space.by_name.keys()
        and trial.metrics.keys() <= problem.sources.keys()
    )
