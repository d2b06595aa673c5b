"""A study by several optimizers over seeds, so that they can be compared."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Unpack

from dse.api.study import Study
from dse.errors import StudyError

if TYPE_CHECKING:
    from dse.api.comparison import Comparison
    from dse.core.trial import Trial
    from dse.protocols import Storage
    from dse.schema.study.budget import Budget
    from dse.schema.study.overrides import BudgetOverrides
    from dse.study import study as engine


class _Watching:
    """Observer that passes finished trials to the caller."""

    def __init__(self, on_finished: Callable[[Trial], None]) -> None:
        self.finished = on_finished

    def begins(self, study: engine.StudyEngine, budget: Budget) -> None:
        """Nothing."""

    def ended(self) -> None:
        """Nothing."""


def sweep(
    study: Study | str | Path,
    *,
    optimizers: Sequence[str] = (),
    seeds: int = 5,
    name: str | None = None,
    storage: str | Storage | None = None,
    executor: str | Mapping[str, Any] | None = None,
    on_finished: Callable[[Trial], None] = lambda _: None,
    **stops: Unpack[BudgetOverrides],
) -> Comparison:
    """Run a study by every optimizer with every seed, and compare the optimizers.

    The studies are called NAME.OPTIMIZER.SEED. Those that have ended are not run again, and one
    that was cut is gone on with: after an interrupt, call it again.

    Example:
        ``sweep("study.yaml", optimizers=["auto", "tpe"], seeds=10, measurements=40)``

    Args:
        study: a study that was asked in Python or opened from its file, or the file.
        optimizers: by name; the study's own without any.
        seeds: how many for each, from the study's on.
        name: instead of the study's.
        storage: a storage or its URL; the study's without.
        executor: where evaluations run, instead of the study's: ``{"use": "processes",
            "workers": 4}``.
        on_finished: told each trial when it is stored.
        stops: when each study stops, instead of the study's budget: ``measurements``, ``trials``,
            ``time`` (seconds, or a text with a unit), ``cost``, ``gain``.

    Raises:
        SpecErrors: the file has mistakes, or an optimizer does not fit it.
        StudyError: the study is one that was loaded from its record, or cannot be run.
    """
    from dse.api.comparison import Comparison
    from dse.api.error_text import in_python
    from dse.schema.study.plan import plan_of
    from dse.schema.yaml.files import resolve_path
    from dse.services.studies.sweep import Sweep

    if isinstance(study, Study):
        if study.planned is None:
            raise StudyError(
                f"{study.name!r} was loaded from its record, which knows one optimizer alone",
                hint="sweep the file, or the study that is asked in Python",
            )
        planned, where = study.planned, ""
        name, storage = name or study.name, storage or study.engine.storage
    else:
        path = resolve_path(str(study), Path.cwd() / "study.yaml")
        planned, where = partial(plan_of, path), str(path)
    with in_python():
        whole = Sweep.of(planned, optimizers, seeds, where=where, name=name, storage=storage)
        whole.run(_Watching(on_finished), stops, executor)
        return Comparison(whole.comparison())
