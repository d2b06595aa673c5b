"""A study in Python: asked, run, gone on with, and looked at."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Mapping
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Any, NoReturn, Unpack

from dse.errors import DseError, StudyError
from dse.system.terminal_text import visible

if TYPE_CHECKING:
    from dse.analysis.effects import Effects
    from dse.api.ask_tell import Asking
    from dse.api.first_failure import OnError
    from dse.api.front import Front
    from dse.api.open import Planned
    from dse.api.record import StudyRecord
    from dse.api.space import Space
    from dse.api.study_document import Evaluators, StudyOptions, ToldMetrics
    from dse.api.tell import Reason, Told
    from dse.core.problem import Problem
    from dse.core.trial import Trial
    from dse.core.trials import Trials
    from dse.core.values import Value
    from dse.protocols import Storage
    from dse.schema.study.overrides import BudgetOverrides
    from dse.study import study as engine


class Study:
    """A named question with its record; one that exists is gone on with.

    It is kept where ``dse run`` keeps its studies, so that ``dse front NAME``, ``dse report NAME``
    and ``dse serve`` show it. Its functions are known to this program alone: others can read such
    a study, and only a program that gives the same functions can run it. ``ended`` is why the last
    :meth:`run` or :meth:`ask` found nothing more to do; it is empty while the study goes on.

    Example:
        ``Study("tiles", {"tile": [16, 32], "stages": (1, 6)}, [kernel], optimizer="nsga2")``

    Args:
        name: what it is called; letters, digits, ``_``, ``-``, ``.`` and spaces.
        space: which designs exist: a :class:`Space`, the mapping of its parameters, or a file.
        evaluators: functions made by ``@evaluator``; in a mapping by name also plug-ins, as a
            study file says them: ``{"chip": {"use": "accelerators.systolic", "rows": 16}}``.
        told: metrics that the program tells itself, with :meth:`ask` and :meth:`tell`; a text is
            a metric without a unit. In a mapping with the parameters that each depends on:
            ``{"accuracy": ["bits"]}``; ``None`` is all.
        storage: a storage or its URL; ``sqlite:///dse.db`` where nothing is said.
        asked: the question: ``minimize`` and ``maximize``, each expressions over metrics, and the
            keys of a study file: ``question``, ``constraints``, ``unread``, ``reference``,
            ``baselines``, ``scenarios``, ``fidelities``, ``prior``, ``budget``, ``retries``,
            ``storage_patience``, ``early``, ``optimizer``, ``executor``, ``seed``. Without goals
            each metric that has one counts.

    Raises:
        SpecErrors: with every mistake in the question.
        StudyError: a study of this name exists and asks something else.
    """

    def __init__(
        self,
        name: str,
        space: Space | Mapping[str, Any] | str | Path,
        evaluators: Evaluators = (),
        *,
        told: ToldMetrics = (),
        storage: str | Storage | None = None,
        **asked: Unpack[StudyOptions],
    ) -> None:
        from dse.api.open import begin_study

        self._keep(*begin_study(name, space, evaluators, told, asked, storage))

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
        """The study that a file describes: begun now, or gone on with if it exists.

        Example:
            ``Study.open("study.yaml", seed=3).run()``

        Args:
            file: the study file; ``library:studies/...`` is a shipped one.
            name: what it is called, instead of the file's ``study:``.
            storage: a storage or its URL, instead of the file's.
            seed: instead of the file's.

        Raises:
            SpecErrors: with every mistake in the file, each with its line.
            StudyError: a study of this name exists and asks something else.
        """
        from dse.api.open import open_study

        return cls._of(*open_study(file, name, storage, seed))

    @classmethod
    def load(
        cls, name: str, storage: str | Storage | None = None, evaluators: Evaluators = ()
    ) -> Study:
        """The study of that name, from its record alone.

        Example:
            ``Study.load("tiles", evaluators=[kernel]).run(measurements=40)``

        Args:
            name: what it is called.
            storage: a storage or its URL; ``sqlite:///dse.db`` where nothing is said.
            evaluators: the functions that it was begun with, if it is to be run.

        Raises:
            StudyError: there is none, or a function is another than it was.
        """
        from dse.api.open import load_study

        return cls._of(load_study(name, storage, evaluators))

    @classmethod
    def _of(cls, study: engine.StudyEngine, planned: Planned | None = None) -> Study:
        made = cls.__new__(cls)
        made._keep(study, planned)  # noqa: SLF001 - it is one of ours
        return made

    @property
    def name(self) -> str:
        """Name of the study."""
        return self.engine.name

    @property
    def problem(self) -> Problem:
        """The question as optimizers see it."""
        return self.engine.problem

    @property
    def trials(self) -> Trials:
        """All trials by number: designs, states, metrics, spread, faults."""
        return self.engine.trials

    @property
    def front(self) -> Front:
        """The designs that no other beats."""
        from dse.api.front import front_of

        return front_of(self.engine)

    def run(  # noqa: PLR0913 - its options are its arguments
        self,
        *,
        measurements: int | None = None,
        trials: int | None = None,
        time: str | float | None = None,
        cost: str | float | None = None,
        gain: str | float | None = None,
        executor: str | Mapping[str, Any] | None = None,
        workers: int | None = None,
        on_finished: Callable[[Trial], None] | None = None,
        progress: bool | None = None,
        on_error: OnError = "raise",
    ) -> str:
        """Go on until the budget is used up; why it stopped is returned.

        An interrupt loses nothing that was finished: call it again.

        Example:
            ``study.run(measurements=40, executor={"use": "processes", "workers": 4})``

        Args:
            measurements: stop after so many in all; this and the next four are instead of the
                study's budget.
            trials: stop after so many in all.
            time: stop after so long in all: ``"20 min"``, or seconds.
            cost: stop when so much is spent, at the study's price.
            gain: stop when less of the hypervolume is expected to be gained: ``"0.1 %"``.
            executor: where evaluations run, instead of the study's: ``"processes"``.
            workers: how many evaluations at once.
            on_finished: told each trial when it is stored.
            progress: show how far it is: in the notebook's cell, or in the terminal; ``None``
                where there is one, ``False`` nowhere.
            on_error: ``raise`` what a function of yours raises before any trial came out, or where
                no design has a value; ``keep`` ends nothing. Later failures are kept with their
                trials either way.

        Raises:
            SpecError: there is no such budget.
            Exception: that of your function, see ``on_error``.
            StudyError: an evaluator cannot be run here, or is another than it was.
        """
        from dse.api.progress import ShownRun

        stops: BudgetOverrides = {"measurements": measurements, "trials": trials}
        stops |= {"time": time, "cost": cost, "gain": gain}
        shown = ShownRun(self.engine, stops, executor, workers, on_error)
        self.ended = ""
        self.ended = shown.run(on_finished, progress=progress)
        shown.failure.ended()
        return self.ended

    def ask(self, count: int = 1, *, wait: bool = False) -> list[Trial]:
        """Return designs to be measured by the caller, kept as running trials.

        At least one; fewer than ``count`` where a bound is near, or where something must be
        reported first: ``auto`` begins with one. None when the study has ended: :attr:`ended` says
        why. While others hold what must be reported first, it waits for them. Threads may share a
        study.

        Example:
            ``[trial.design for trial in study.ask(4)]``

        Args:
            count: how many at most.
            wait: wait also for trials that this thread asked, where other threads report them.

        Raises:
            StudyError: nothing can be asked before this thread reports its trials, which are
                named; or the study is not what it was begun with.
            SpecError: ``count`` is no whole number from 1 on.
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
        metrics: Told | None = None,
        *,
        failed: Reason | None = None,
        infeasible: Reason | None = None,
    ) -> Trial:
        """Keep what came of a design that was asked; it is on disk when this returns.

        Metrics that are not told, of models and of functions, the study's evaluators find out.

        Example:
            ``study.tell(trial, {"time": 3.1, "memory": (2.0, 0.1)})``

        Args:
            trial: the trial, or its number.
            metrics: by the study's names or by their own, in their own units; ``(value, standard
                error)`` is one too.
            failed: why the design could not be measured, in place of metrics; words, or the
                exception.
            infeasible: why the design cannot exist, in place of metrics; words, or the exception.

        Returns:
            The trial as it is stored.

        Raises:
            StudyError: the trial is not one that was asked here and not told yet.
            SpecError: there is no such metric, its value is no number, or not one thing is told.
        """
        from dse.api.tell import Said, number_of

        said, asking = Said.of(metrics, failed, infeasible), self._asking
        if asking is None:
            raise StudyError("nothing was asked", hint="for trial in study.ask(4): ...")
        return asking.tell(number_of(trial), said)

    def close(self) -> None:
        """Stop asking: trials that were not reported are given back, for a later driver."""
        with self._begin:
            asking, self._asking = self._asking, None
        if asking is not None:
            asking.close()

    def evaluate(self, *designs: Mapping[str, Value]) -> list[Trial]:
        """Return the designs evaluated by all evaluators, in this process; store nothing.

        What the study measured before is not measured again.

        Example:
            ``study.evaluate({"tile": 64, "stages": 2})[0].metrics``

        Args:
            designs: each the values of a legal design; quantities may be texts with a unit.

        Raises:
            DesignError: one is not legal.
            StudyError: an evaluator cannot be run here, or is another than it was.
        """
        from dse.schema.study.designs import design_of
        from dse.services.studies.evaluate import evaluate_designs

        return evaluate_designs(
            self.engine, [design_of(one, self.problem.space) for one in designs]
        )

    def add(self, design: Mapping[str, Value]) -> int:
        """Add a design of one's own as a pending trial, which the next run takes up first.

        Example:
            ``study.add({"tile": 64, "stages": 2})``

        Returns:
            The number of the trial.

        Raises:
            DesignError: the design is not legal.
            StudyError: a trial has it already, or the study is not what it was begun with.
        """
        from dse.schema.study.designs import design_of
        from dse.services.studies.add_design import add_pending_design

        return add_pending_design(self.engine, design_of(design, self.problem.space), self.trials)

    def effects(self, *metrics: str) -> list[Effects]:
        """Main effects and interactions of parameters on metrics: shares of their variance.

        Over a full factorial they are the analysis of variance; over the trials of another
        optimizer they describe what it looked at.

        Args:
            metrics: metrics or objectives; all that is asked where none is named.

        Raises:
            StudyError: there is no such metric, or fewer than two trials have it.
        """
        from dse.services.studies.answer import study_effects

        return study_effects(self.engine, metrics)

    def report(self, file: str | Path) -> Path:
        """Write the study as one HTML page that opens anywhere, without a network.

        Raises:
            StorageError: the file cannot be written.
        """
        from dse.report.json.atomic_file import write_whole
        from dse.services.studies.report import report_text

        write_whole(Path(file), report_text(self.engine))
        return Path(file)

    @property
    def record(self) -> StudyRecord:
        """Stored data of the study: status, events, provenance, proof.

        The record can be exported, migrated and deleted.
        """
        from dse.api.record import StudyRecord

        return StudyRecord(self.engine)

    def to_pandas(self) -> Any:  # pandas is an extra
        """A row for each trial: state, parameters, metrics and their spread.

        Raises:
            PluginError: pandas is not installed.
        """
        from dse.interop.data_frames import to_pandas

        return to_pandas(self)

    def to_polars(self) -> Any:  # polars is an extra
        """A row for each trial: state, parameters, metrics and their spread.

        Raises:
            PluginError: polars is not installed.
        """
        from dse.interop.data_frames import to_polars

        return to_polars(self)

    def _repr_html_(self) -> str:
        from dse.api.notebook.parts import or_message
        from dse.api.notebook.study import study_html

        return or_message(self.name, lambda: study_html(self.engine))

    def __repr__(self) -> str:
        from dse.report.text.space_words import format_count

        try:
            trials = format_count(len(self.trials), "trial")
            return f"<Study {self.name!r}: {trials}, {len(self.front):,} on the front>"
        except DseError as error:  # it was deleted, or its storage is away
            return f"<Study {self.name!r} that cannot be read: {visible(error.problem)}>"

    def __reduce__(self) -> NoReturn:
        raise TypeError(
            f"the study {self.name!r} cannot be sent to another process; send its name, and there: "
            "Study.load(name, storage, evaluators=[...])"
        )
