"""Fail-fast check: raise the exception of a user's function while all trials of a study fail."""

from __future__ import annotations

from typing import Literal, get_args

from dse.api.function_evaluators import FunctionEvaluator
from dse.core.trial import State, Trial
from dse.errors import SpecError, StudyError, nearest
from dse.study import study_engine as engine

OnError = Literal["raise", "keep"]
"""Handling of an exception while all trials have failed: raise it, or only store the failure."""

_HINT = "fix the function and run again; on_error='keep' stores failed trials and continues"


class FirstFailure:
    """Observer that re-raises an exception of a user's function if all trials so far have failed.

    Args:
        study: the study that is about to run.
        on_error: ``raise``, or ``keep`` to only store failed trials.

    Raises:
        SpecError: ``on_error`` is neither ``raise`` nor ``keep``.
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
        """Re-raise the exception of a failed trial if no trial has succeeded so far.

        Args:
            trial: the finished trial.

        Raises:
            Exception: the exception of the function, with its traceback, if it ran in this
                process.
            StudyError: the trial failed in another process.
        """
        if not self._watches:
            return
        failure = trial.failure
        if trial.state is not State.FAILED or failure is None:
            self._watches = False
            return
        if trial.number in self._known or failure.kind not in ("raised", "invalid"):
            return
        for function in self._functions:
            error, function.error = function.error, None
            if error is not None and failure.reason == f"{type(error).__name__}: {error}":
                error.add_note(f"trial {trial.number}, {dict(trial.design)}: {_HINT}")
                raise error
        raise StudyError(f"trial {trial.number} failed: {failure.reason}", hint=_HINT)

    def ended(self) -> None:
        """At the end of a run, raise an exception if no legal design has a value.

        Raises:
            Exception: the last exception of a function, if no design has a value.
            StudyError: no design has a value, and the function ran in another process.
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
