"""A study in Python: asked, run, gone on with, and looked at."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Unpack

from dse import study as engine
from dse.api.asking import Asking
from dse.api.front import Front
from dse.api.question import Asked, Cast, Evaluators, document_of
from dse.api.space import Space
from dse.core.metric import Metric
from dse.core.problem import Problem
from dse.core.trial import Trial
from dse.core.trials import Trials
from dse.errors import StudyError
from dse.interchange.frames import to_pandas, to_polars
from dse.protocols import Storage
from dse.schema.budgets import changed
from dse.schema.files import resolved
from dse.schema.models import BudgetSpec, PluginSpec
from dse.schema.plan import plan_of


class Study:
    """A named question with its record; one that exists is gone on with.

    It is kept where ``dse run`` keeps its studies, so that ``dse front NAME``, ``dse report NAME``
    and ``dse serve`` show it. Its functions are known to this program alone: others can read such
    a study, and only a program that gives the same functions can run it.

    Args:
        name: what it is called; letters, digits, ``_``, ``-``, ``.`` and spaces.
        space: which designs exist: a :class:`Space`, the mapping of its parameters, or a file.
        evaluators: functions made by ``@evaluator``; in a mapping by name also plug-ins, as a
            study file says them: ``{"chip": {"use": "accelerators.systolic", "rows": 16}}``.
        told: metrics that the program tells itself, with :meth:`ask` and :meth:`tell`.
        storage: a storage or its URL; ``sqlite:///dse.db`` where nothing is said.
        asked: the question, see :class:`dse.api.question.Asked`: ``minimize``, ``maximize``,
            ``constraints``, ``budget``, ``optimizer``, ``seed``, and all else that a file can say.

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
        told: Sequence[Metric] = (),
        storage: str | Storage | None = None,
        **asked: Unpack[Asked],
    ) -> None:
        cast = Cast.of(evaluators, told)
        self._begin(document_of(name, cast, asked), _space(space), cast.objects, storage)

    def _begin(
        self,
        document: Mapping[str, Any],
        space: Space,
        objects: Mapping[str, Any],
        storage: str | Storage | None,
    ) -> None:
        path = Path.cwd() / f"({document['study']}) study"
        inner = Path.cwd() / f"({document['study']}) space"
        file = str(space.file or inner)
        documents: dict[str, Mapping[str, Any]] = {str(path): {**document, "space": file}}
        if space.file is None:
            documents[file] = space.document
        plan = plan_of(path, documents=documents, objects=objects)
        mend = f"another name, or forget the old one: dse studies delete {plan.name!r}"
        self._keep(engine.Study.of(plan, storage=storage, hint=f"give this one {mend}"))

    def _keep(self, study: engine.Study) -> None:
        self.engine = study
        self._asking: Asking | None = None

    @classmethod
    def open(cls, file: str | Path, **options: Any) -> Study:
        """The study that a file describes: begun now, or gone on with if it exists.

        Args:
            file: the study file; ``library:studies/...`` is a shipped one.
            options: ``name``, ``storage`` and ``seed``, instead of the file's.

        Raises:
            SpecErrors: with every mistake in the file, each with its line.
            StudyError: a study of this name exists and asks something else.
        """
        path = resolved(str(file), Path.cwd() / "study.yaml")
        return cls._of(engine.Study.open(path, **options))

    @classmethod
    def load(
        cls, name: str, storage: str | Storage | None = None, evaluators: Evaluators = ()
    ) -> Study:
        """The study of that name, from its record alone.

        Args:
            name: what it is called.
            storage: a storage or its URL; ``sqlite:///dse.db`` where nothing is said.
            evaluators: the functions that it was begun with, if it is to be run.

        Raises:
            StudyError: there is none, or a function is another than it was.
        """
        objects = Cast.of(evaluators, ()).objects if evaluators else {}
        found = engine.Study.load(name, storage, objects=objects)
        for label, told in found.plan.identity["evaluators"].items():
            given = objects.get(told["options"].get("function"))
            if given is not None and given.version != told["options"]["version"]:
                raise StudyError(
                    f"the function {label!r} is another than the study {name!r} was begun with",
                    hint="ask it under another name, or give the version that it had",
                )
        return cls._of(found)

    @classmethod
    def _of(cls, study: engine.Study) -> Study:
        made = cls.__new__(cls)
        made._keep(study)  # noqa: SLF001 - it is one of ours
        return made

    @property
    def name(self) -> str:
        """What it is called."""
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
        return Front(self.name, self.engine.front, exact=self.engine.exact)

    def run(
        self,
        *,
        measurements: int | None = None,
        trials: int | None = None,
        time: str | float | None = None,
        cost: str | float | None = None,
        gain: str | float | None = None,
        executor: str | Mapping[str, Any] | None = None,
        on_finished: Callable[[Trial], None] = lambda _: None,
    ) -> str:
        """Go on until the budget is used up; why it stopped is returned.

        An interrupt loses nothing that was finished: call it again.

        Args:
            measurements: stop after so many in all; this and the next four are instead of the
                study's budget.
            trials: stop after so many in all.
            time: stop after so long in all: ``"20 min"``, or seconds.
            cost: stop when so much is spent, at the study's price.
            gain: stop when less of the hypervolume is expected to be gained: ``"0.1 %"``.
            executor: where evaluations run, instead of the study's: ``"processes"``.
            on_finished: told each trial when it is stored.

        Raises:
            StudyError: an evaluator cannot be run here, or is another than it was.
        """
        told = {"measurements": measurements, "trials": trials}
        spec = BudgetSpec(**told, time=time, cost=cost, gain=gain)
        return self.engine.run(
            budget=changed(self.engine.plan.budget, spec),
            executor=_plugin(executor),
            on_finished=on_finished,
        )

    def ask(self, count: int = 1) -> list[Trial]:
        """Designs to be measured by the caller, kept as running trials; none: the study is done.

        Fewer come where a bound is near, or where something must be told first.

        Raises:
            StudyError: the study is not what it was begun with.
        """
        if self._asking is None or self._asking.ended:
            self._asking = Asking(self.engine)
        return self._asking.ask(count)

    def tell(
        self,
        trial: Trial | int,
        metrics: Mapping[str, float | tuple[float, float]] | None = None,
        *,
        failed: str = "",
        infeasible: str = "",
    ) -> Trial:
        """Keep what came of a design that was asked; it is on disk when this returns.

        Metrics that are not told, of models and of functions, the study's evaluators find out.

        Args:
            trial: the trial, or its number.
            metrics: by the study's names or by their own; ``(value, standard error)`` is one too.
            failed: why the design could not be measured, in place of metrics.
            infeasible: why the design cannot exist, in place of metrics.

        Raises:
            StudyError: the trial is not one that was asked here and not told yet.
            SpecError: there is no such metric, or its value is no number.
        """
        if self._asking is None:
            raise StudyError("nothing was asked", hint="for trial in study.ask(4): ...")
        number = trial if isinstance(trial, int) else trial.number
        return self._asking.tell(number, metrics or {}, failed=failed, infeasible=infeasible)

    def close(self) -> None:
        """End asking: trials that were not told are given back, for whoever goes on."""
        if self._asking is not None:
            self._asking.close()
            self._asking = None

    def to_pandas(self) -> Any:  # pandas is an extra
        """A row for each trial: state, parameters, metrics and their spread.

        Raises:
            PluginError: pandas is not installed.
        """
        return to_pandas(self)

    def to_polars(self) -> Any:  # polars is an extra
        """A row for each trial: state, parameters, metrics and their spread.

        Raises:
            PluginError: polars is not installed.
        """
        return to_polars(self)

    def __repr__(self) -> str:
        trials = self.trials
        return f"<Study {self.name!r}: {len(trials):,} trials, {len(self.front)} on the front>"


def _space(space: Space | Mapping[str, Any] | str | Path) -> Space:
    if isinstance(space, Space):
        return space
    return Space(space) if isinstance(space, Mapping) else Space.read(space)


def _plugin(told: str | Mapping[str, Any] | None) -> PluginSpec | None:
    if told is None:
        return None
    return PluginSpec(use=told) if isinstance(told, str) else PluginSpec(**told)
