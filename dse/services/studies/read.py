"""Loading of stored studies for a comparison; from large SQLite files in parallel processes."""

from __future__ import annotations

import os
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from multiprocessing import get_context
from pathlib import Path

import numpy as np

from dse.analysis.runs import Run, is_swept
from dse.core.values import Floats, Ints
from dse.protocols import Storage
from dse.study.storage_access import opened_storage
from dse.study.study_engine import StudyEngine

LARGE_BYTES = 64 * 2**20
"""Database size from which on reading takes longer than starting processes."""

_SQLITE = "sqlite:///"

Columns = tuple[Floats, Ints, Floats]
"""Losses, measurements and seconds of each finished trial."""


def stored_runs(names: Sequence[str], storage: Storage, url: str) -> list[Run]:
    """Load stored studies as runs: the columns of their trials that comparisons need.

    Args:
        names: studies of the storage.
        storage: the storage.
        url: the URL of the storage, by which worker processes open it.

    Raises:
        StudyError: there is no such study.
        StorageError: a study is damaged.
    """
    if len(names) < 2 or not _large(url):
        return [_run(StudyEngine.load(name, storage)) for name in names]
    workers = min(len(names), os.cpu_count() or 1)
    with ProcessPoolExecutor(workers, mp_context=get_context("spawn")) as pool:
        found = list(pool.map(columns_of, [url] * len(names), names))
    return [
        replace(
            _bare(StudyEngine.load(name, storage)), losses=losses, measured=measured, cost_s=cost_s
        )
        for name, (losses, measured, cost_s) in zip(names, found, strict=True)
    ]


def columns_of(url: str, name: str) -> Columns:
    """Return the loss, measurement count and evaluation seconds of each finished trial."""
    run = _run(StudyEngine.load(name, opened_storage(url)))
    return run.losses, run.measured, run.cost_s


def _run(study: StudyEngine) -> Run:
    price, swept = study.plan.budget.price_per_s, is_swept(study.events)
    return Run.of(study.name, study.problem, study.finished, price, swept=swept)


def _bare(study: StudyEngine) -> Run:
    nothing = np.zeros((0, len(study.problem.objectives)))
    return Run(
        name=study.name,
        problem=study.problem,
        losses=nothing,
        measured=np.zeros(0, dtype=np.int64),
        cost_s=np.zeros(0),
        price_per_s=study.plan.budget.price_per_s,
        swept=is_swept(study.events),
    )


def _large(url: str) -> bool:
    file = Path(url.removeprefix(_SQLITE).partition("?")[0])
    return url.startswith(_SQLITE) and file.is_file() and file.stat().st_size >= LARGE_BYTES
