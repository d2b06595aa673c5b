"""The first failure of a study, raised where the user's own function raised it."""

from __future__ import annotations

from typing import Literal, get_args

from dse.api.evaluators import FunctionEvaluator
from dse.core.trial import State, Trial
from dse.errors import SpecError, StudyError, nearest
from dse.study import study as engine

OnError = Literal["raise", "keep"]
"""What becomes of an exception while no trial has come out: it is raised, or only kept."""

_HINT = "mend the function and run again; on_error='keep' keeps failed trials and goes on"


class FirstFailure:
    """Raises the exception of a user's function while every trial of the study failed.

    Args:
        study: the study that is about to run.
        on_error: ``raise``, or ``keep`` for failed trials that end nothing.

    Raises:
        SpecError: ``on_error`` is neither.
    """

    def __init__(self, study: engine.StudyEngine, on_error: OnError) -> None:
        if on_error not in get_args(OnError):
            hint = nearest(on_error, get_args(OnError))
            raise SpecError(f"on_error cannot be {on_error!r}", hint=hint)
        self._study = study
        given = study.plan.objects.values()
        self._functions = [one for one in given if isinstance(one, FunctionEvaluator)]
        for one in self._functions:
            one.error = None
        earlier = study.finished if on_error == "raise" and self._functions else None
        self._raises = earlier is not None
        self._watches = earlier is not None and all(t.state is State.FAILED for t in earlier)
        self._known = {trial.number for trial in earlier or ()}

    def finished(self, trial: Trial) -> None:
        """Look at a trial that is stored.

        Raises:
            Exception: what the function raised, with its traceback, where it ran in this process.
            StudyError: that it failed, where it ran elsewhere.
        """
        if not self._watches:
            return
        fault = trial.fault
        if trial.state is not State.FAILED or fault is None:
            self._watches = False
            return
        if trial.number in self._known or fault.kind not in ("raised", "invalid"):
            return
        for function in self._functions:
            error, function.error = function.error, None
            if error is not None and fault.reason == f"{type(error).__name__}: {error}":
                error.add_note(f"trial {trial.number}, {dict(trial.design)}: {_HINT}")
                raise error
        raise StudyError(f"trial {trial.number} failed: {fault.reason}", hint=_HINT)

    def ended(self) -> None:
        """Look at a run that has ended: a search of modelled designs stores no trial that failed.

        Raises:
            Exception: what a function raised last, where no design has a value.
            StudyError: that no design has one, where the function ran elsewhere.
        """
        if not self._raises:
            return
        proof = self._study.proof
        if not proof.in_vain:
            return
        for function in self._functions:
            error, function.error = function.error, None
            if error is not None:
                error.add_note(f"{proof.failed_words}: {_HINT}")
                raise error
        raise StudyError(proof.failed_words, hint=_HINT)
