"""Study in Python: define, run, continue and inspect it."""

from __future__ import annotations

import warnings
import weakref
from collections.abc import Callable, Mapping
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Any, NoReturn, Unpack

from dse.api.renamed_arguments import renamed_arguments
from dse.api.study_choices import StudyChoices
from dse.api.study_designs import StudyDesigns
from dse.api.study_results import StudyResults
from dse.errors import DseError, StudyError
from dse.system.deprecation import UNTIL
from dse.system.terminal_text import visible

if TYPE_CHECKING:
    from dse.api.ask_tell import Asking
    from dse.api.design_space import Space
    from dse.api.first_failure import OnError
    from dse.api.front import Front
    from dse.api.open import Planned
    from dse.api.python_optimizer import Factory
    from dse.api.study_document import Evaluators, ReportedMetrics, StudyOptions
    from dse.api.tell import MetricValues, Reason
    from dse.core.trial import Trial
    from dse.protocols import Optimizer, Storage
    from dse.schema.study.overrides import BudgetOverrides
    from dse.study import study_engine as engine


class Study(StudyResults, StudyChoices, StudyDesigns):
    """Named optimization problem with its stored trials; an existing study is continued.

    The study is stored in the same storage as by ``dse run``, so that ``dse front NAME``, ``dse
    report NAME`` and ``dse serve`` show it. Its functions are not stored: any program can read the
    study, but only a program that passes the same functions can run it. ``ended`` is why the last
    :meth:`run` or :meth:`ask` found nothing more to do; it is empty while the study continues.

    Example:
        ``Study("tiles", {"tile": [16, 32], "stages": (1, 6)}, [kernel], optimizer="nsga2")``

    Args:
        name: the study's name: letters, digits, ``_``, ``-``, ``.`` and spaces.
        space: a :class:`Space`, the mapping of its parameters, or the path of a space file.
        evaluators: functions made by ``@evaluator``; in a mapping by name also plug-ins, written as
            in a study file: ``{"chip": {"use": "accelerators.systolic", "rows": 16}}``.
        metrics: metrics that the calling program measures and reports itself, see :meth:`ask`, as
            ``reported.time``; a string is a metric without a unit. A mapping gives the parameters
            that each metric depends on: ``{"accuracy": ["bits"]}``; ``None`` means all parameters.
        storage: a storage or its URL; default: ``sqlite:///dse.db``.
        told: older name of ``metrics``, for existing studies; its metrics are called ``told.time``.
        asked: the other keys of a study file: ``minimize`` and ``maximize`` (expressions over
            metrics), ``log_scale`` (objectives that count by their logarithms), ``question``,
            ``constraints``, ``unread``, ``reference``, ``baselines``, ``scenarios``,
            ``fidelities``, ``transfer_from``, ``budget``, ``retries``, ``storage_patience``,
            ``early_stopping``, ``judge``, ``optimizer``, ``executor``, ``seed``. Without
            ``minimize`` and ``maximize``, each metric with a goal is an objective. The
            ``optimizer`` may be a class, a function or an object of the program, too:
            ``optimizer={"use": Annealing, "cooling": 0.9}``.

    Raises:
        SpecErrors: with every mistake in the definition.
        StudyError: a study of this name exists with another definition.
    """

    def __init__(
        self,
        name: str,
        space: Space | Mapping[str, Any] | str | Path,
        evaluators: Evaluators = (),
        *,
        metrics: ReportedMetrics = (),
        storage: str | Storage | None = None,
        told: ReportedMetrics = (),
        **asked: Unpack[StudyOptions],
    ) -> None:
        from dse.api.open import begin_study

        if told:
            text = f"'told' is called 'metrics' now; the old name works until version {UNTIL}"
            warnings.warn(text, FutureWarning, stacklevel=2)
        reported = {"reported": metrics, "told": told}
        self._keep(*begin_study(name, space, evaluators, reported, asked, storage))

    def _keep(self, study: engine.StudyEngine, planned: Planned | None = None) -> None:
        self.engine = study
        self.planned = planned
        self.ended = ""
        self._asking: Asking | None = None
        self._begin = Lock()

    @classmethod
    def open(
        cls,
        file: str | Path,
        *,
        name: str | None = None,
        storage: str | Storage | None = None,
        seed: int | None = None,
    ) -> Study:
        """Return the study that a file describes; create it if it does not exist.

        Example:
            ``Study.open("study.yaml", seed=3).run()``

        Args:
            file: the study file; ``library:studies/...`` is a shipped one.
            name: the study's name; default: the file's ``study:``.
            storage: a storage or its URL; default: the file's.
            seed: the random seed; default: the file's.

        Raises:
            SpecErrors: with every mistake in the file, each with its line.
            StudyError: a study of this name exists with another definition.
        """
        from dse.api.open import open_study

        return cls._of(*open_study(file, name, storage, seed))

    @classmethod
    def load(
        cls,
        name: str,
        storage: str | Storage | None = None,
        evaluators: Evaluators = (),
        *,
        optimizer: Factory | Optimizer | None = None,
    ) -> Study:
        """Return a stored study by name, without its study file.

        Example:
            ``Study.load("tiles", evaluators=[kernel]).run(measurements=40)``

        Args:
            name: the study's name.
            storage: a storage or its URL; default: ``sqlite:///dse.db``.
            evaluators: the functions that it was created with; needed only to run it.
            optimizer: the class, function or object of its optimizer, if a program defined it;
                needed only to run it.

        Raises:
            StudyError: there is no such study, a function has changed, or the study has another
                optimizer.
        """
        from dse.api.open import load_study

        return cls._of(load_study(name, storage, evaluators, optimizer))

    @classmethod
    def _of(cls, study: engine.StudyEngine, planned: Planned | None = None) -> Study:
        made = cls.__new__(cls)
        made._keep(study, planned)  # noqa: SLF001 - of this class
        return made

    @property
    def front(self) -> Front:
        """Pareto front of the study: the feasible trials that no other one dominates."""
        from dse.api.front import front_of

        return front_of(self.engine)

    @renamed_arguments(gain="min_improvement")
    def run(  # noqa: PLR0913 - its options are its arguments
        self,
        *,
        measurements: int | None = None,
        trials: int | None = None,
        time: str | float | None = None,
        cost: str | float | None = None,
        min_improvement: str | float | None = None,
        gap: str | float | None = None,
        confidence: str | float | None = None,
        executor: str | Mapping[str, Any] | None = None,
        workers: int | None = None,
        on_finished: Callable[[Trial], None] | None = None,
        progress: bool | None = None,
        on_error: OnError = "raise",
    ) -> str:
        """Run the study until its budget is used up; return why it stopped.

        After an interrupt all finished trials are stored; call it again to continue.

        Example:
            ``study.run(measurements=40, executor={"use": "processes", "workers": 4})``

        Args:
            measurements: maximum number of measurements of the study. This and the next six
                arguments replace the study's budget.
            trials: maximum number of trials of the study.
            time: maximum total evaluation time: ``"20 min"``, or a number of seconds.
            cost: maximum total cost, at the study's price.
            min_improvement: stop when the expected relative gain in hypervolume is lower:
                ``"0.1 %"``.
            gap: stop when the front misses at most this share of the hypervolume: ``"1 %"``.
            confidence: probability with which ``gap`` bounds the missing share; default: 90 %.
            executor: an executor that replaces the study's: ``"processes"``.
            workers: the number of concurrent evaluations.
            on_finished: called with each trial when it is stored.
            progress: whether to show progress in the notebook cell or the terminal; ``None``: if
                the program has one.
            on_error: ``raise``: raise the exception of a user's function if all trials so far
                have failed, or if no design has a value; ``keep``: only store failed trials. Later
                failures are stored with their trials in both cases.

        Raises:
            SpecError: the budget is invalid.
            Exception: the exception of a user's function, see ``on_error``.
            StudyError: an evaluator cannot run here, or has changed since the study was created.
        """
        from dse.api.progress import ShownRun

        stops: BudgetOverrides = {"measurements": measurements, "trials": trials}
        stops |= {"time": time, "cost": cost, "min_improvement": min_improvement}
        stops |= {"gap": gap, "confidence": confidence}
        shown = ShownRun(self.engine, stops, executor, workers, on_error)
        self.ended = ""
        self.ended = shown.run(on_finished, progress=progress)
        shown.failure.ended()
        return self.ended

    def stop(self) -> bool:
        """Stop the running :meth:`run`: evaluations in progress are completed, none is begun.

        A callback such as ``on_finished`` may call it, and so may another thread. ``run`` then
        returns ``stopped by the program``; call it again to continue.

        Example:
            ``study.run(on_finished=lambda trial: trial.number == 20 and study.stop())``

        Returns:
            Whether a run was in progress; without one, the call has no effect.
        """
        return self.engine.stop()

    def ask(self, count: int = 1, *, wait: bool = False) -> list[Trial]:
        """Return designs for the caller to measure, stored as running trials.

        The list has at least one design; fewer than ``count`` if the budget is nearly used up, or
        if a result must be reported before more can be suggested (``auto`` begins with a single
        design). The list is empty when the study has ended; :attr:`ended` is the reason. The call
        waits while a needed result is still to come from other threads or processes that run the
        study. Threads may share a study.

        Example:
            ``[trial.design for trial in study.ask(4)]``

        Args:
            count: the maximum number of designs.
            wait: wait also for trials that this thread requested, if other threads report them.

        Raises:
            StudyError: no design can be suggested before this thread reports its trials, which are
                named; or the study differs from its stored definition.
            SpecError: ``count`` is not an integer of at least 1.
        """
        from dse.api.ask_tell import Asking

        with self._begin:
            asking = self._asking
            if asking is None or asking.ended:
                asking = self._asking = Asking(self.engine)
                weakref.finalize(self, asking.leave)
        trials = asking.ask(count, wait=wait)
        self.ended = asking.reason
        return trials

    def tell(
        self,
        trial: Trial | int,
        metrics: MetricValues | None = None,
        *,
        failed: Reason | None = None,
        infeasible: Reason | None = None,
    ) -> Trial:
        """Store the result of a design that :meth:`ask` returned; it is on disk afterwards.

        Metrics of models and functions that are not reported are computed by their evaluators.

        Example:
            ``study.tell(trial, {"time": 3.1, "memory": (2.0, 0.1)})``

        Args:
            trial: the trial, or its number.
            metrics: values by metric name (``evaluator.metric``, or ``metric`` alone), in the
                metric's unit; each a number or ``(value, standard error)``.
            failed: instead of metrics, why the measurement failed: a string or the exception.
            infeasible: instead of metrics, why the design cannot exist: a string or the exception.

        Returns:
            The trial as it is stored.

        Raises:
            StudyError: the trial was not requested here, or was reported already.
            SpecError: a metric is unknown, a value is not finite, or not exactly one of
                ``metrics``, ``failed`` and ``infeasible`` is given.
        """
        from dse.api.tell import ReportedResult, number_of

        result, asking = ReportedResult.of(metrics, failed, infeasible), self._asking
        if asking is None:
            raise StudyError("nothing was asked", hint="for trial in study.ask(4): ...")
        return asking.tell(number_of(trial), result)

    def close(self) -> None:
        """Stop requesting designs; unreported trials become pending for another process."""
        with self._begin:
            asking, self._asking = self._asking, None
        if asking is not None:
            asking.close()

    def _repr_html_(self) -> str:
        from dse.api.notebook.parts import or_message
        from dse.api.notebook.study_view import study_html

        return or_message(self.name, lambda: study_html(self.engine))

    def __repr__(self) -> str:
        from dse.report.text.space_words import format_count

        try:
            trials = format_count(len(self.trials), "trial")
            return f"<Study {self.name!r}: {trials}, {len(self.front):,} on the front>"
        except DseError as error:  # it was deleted, or its storage is unavailable
            return f"<Study {self.name!r} that cannot be read: {visible(error.problem)}>"

    def __reduce__(self) -> NoReturn:
        raise TypeError(
            f"the study {self.name!r} cannot be sent to another process; send its name, and there "
            "call Study.load(name, storage, evaluators=[...])"
        )
