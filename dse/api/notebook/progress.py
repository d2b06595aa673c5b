"""The notebook that this program runs in, if it does: its cells, and how it shows trials."""

from __future__ import annotations

import sys
from typing import Any
from uuid import uuid4

from dse.api.notebook.parts import or_message
from dse.api.notebook.trial import trial_html
from dse.api.notebook.trials import trials_html
from dse.core.problem import Problem
from dse.core.trial import Trial
from dse.core.trials import Trials

_HTML = "text/html"


def shell() -> Any | None:  # IPython's, which is no requirement
    """IPython's shell; ``None`` where there is none."""
    ipython = sys.modules.get("IPython")
    return None if ipython is None else ipython.get_ipython()


def in_notebook() -> bool:
    """True in a cell, whose output can be shown anew."""
    return hasattr(shell(), "kernel")


class Cell:
    """A place in the output of the cell that runs now."""

    def __init__(self) -> None:
        found = shell()
        assert found is not None  # as in_notebook() says
        self._publisher = found.display_pub
        self._where = {"display_id": uuid4().hex}
        self._shown = False

    def show(self, html: str, text: str) -> None:
        """Show this there from now on; ``text`` where HTML cannot be shown."""
        self._publisher.publish(
            data={_HTML: html, "text/plain": text}, transient=self._where, update=self._shown
        )
        self._shown = True


class _Trials:
    """Notebook views of trials, in the units of their study."""

    def __init__(self) -> None:
        self._problems: list[Problem] = []

    def know(self, problem: Problem) -> None:
        """There are trials of this question."""
        others = [one for one in self._problems if one is not problem]
        self._problems = [problem, *others][:_REMEMBERED]

    def one(self, trial: Trial) -> str:
        """A trial."""
        return or_message(f"Trial {trial.number}", lambda: trial_html(trial, self._of(trial)))

    def several(self, trials: Trials) -> str:
        """All trials of a study, or some."""
        problem = self._of(trials[-1]) if len(trials) else None
        return or_message("Trials", lambda: trials_html(trials, problem))

    def _of(self, trial: Trial) -> Problem | None:
        """Return the latest problem that has the trial's names; ``None`` without one.

        A trial itself does not state its problem.
        """
        return next((one for one in self._problems if _asks(one, trial)), None)


_REMEMBERED = 32


def show_trials_of(problem: Problem) -> None:
    """Nothing, outside of IPython; there, its trials are shown as tables from now on."""
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
