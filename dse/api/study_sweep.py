"""Sweep: one study run by several optimizers with several seeds, for a comparison."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Unpack

from dse.api.study import Study
from dse.errors import StudyError

if TYPE_CHECKING:
    from dse.api.python_optimizer import Given
    from dse.api.study_comparison import Comparison
    from dse.core.trial import Trial
    from dse.protocols import Storage
    from dse.schema.study.budget import Budget
    from dse.schema.study.overrides import BudgetOverrides
    from dse.study import study_engine as engine


class _Watching:
    """Observer of a sweep that calls the caller's ``on_finished`` with each finished trial."""

    def __init__(self, on_finished: Callable[[Trial], None]) -> None:
        self.finished = on_finished

    def begins(self, study: engine.StudyEngine, budget: Budget) -> None:
        """Do nothing."""

    def ended(self) -> None:
        """Do nothing."""


def sweep(
    study: Study | str | Path,
    *,
    optimizers: Sequence[Given] = (),
    seeds: int = 5,
    name: str | None = None,
    storage: str | Storage | None = None,
    executor: str | Mapping[str, Any] | None = None,
    on_finished: Callable[[Trial], None] = lambda _: None,
    **stops: Unpack[BudgetOverrides],
) -> Comparison:
    """Run a study with every optimizer and every seed, and compare the optimizers.

    The studies are named NAME.OPTIMIZER.SEED. Finished studies are not run again, and an
    interrupted study is continued: after an interrupt, call it again.

    Example:
        ``sweep("study.yaml", optimizers=["auto", "tpe"], seeds=10, measurements=40)``

    Args:
        study: a study defined in Python or opened from its file, or the path of the file.
        optimizers: names of optimizers, or classes, functions or objects of the program; default:
            the study's own.
        seeds: the number of consecutive seeds per optimizer, starting at the study's seed.
        name: the common prefix NAME; default: the study's name.
        storage: a storage or its URL; default: the study's.
        executor: an executor that replaces the study's: ``{"use": "processes", "workers": 4}``.
        on_finished: called with each trial when it is stored.
        stops: a budget for each study that replaces the study's: ``measurements``, ``trials``,
            ``time`` (seconds, or a string with a unit), ``cost``, ``min_improvement``,
            ``gap``, ``confidence``.

    Raises:
        SpecErrors: the file has mistakes, or an optimizer does not support it.
        StudyError: the study was loaded from its record, or cannot be run.
    """
    from dse.api.error_text import in_python
    from dse.api.python_optimizer import name_optimizers
    from dse.api.study_comparison import Comparison
    from dse.schema.study.plan import plan_of
    from dse.schema.yaml.files import resolve_path
    from dse.services.studies.sweep_runs import Sweep

    if isinstance(study, Study):
        if study.planned is None:
            raise StudyError(
                f"{study.name!r} was loaded from its record, which has only one optimizer",
                hint="sweep the study file, or a study that is defined in Python",
            )
        planned, where = study.planned, ""
        name, storage = name or study.name, storage or study.engine.storage
    else:
        path = resolve_path(str(study), Path.cwd() / "study.yaml")
        planned, where = partial(plan_of, path), str(path)
    uses, objects = name_optimizers(optimizers)
    if objects:
        held = planned.keywords.get("objects", {}) if isinstance(planned, partial) else {}
        planned = partial(planned, objects={**held, **objects})
    with in_python():
        whole = Sweep.of(planned, uses, seeds, where=where, name=name, storage=storage)
        whole.run(_Watching(on_finished), stops, executor)
        return Comparison(whole.comparison())
