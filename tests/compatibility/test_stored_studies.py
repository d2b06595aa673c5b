"""A study that an earlier version stored and exported is opened, gone on with and proved.

``training`` was asked, measured, stored (``version_5.sql``) and exported by the version that first
named the driver of each report; before that, ``tests/storage`` has the databases of older ones.
"""

from __future__ import annotations

import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from dse.api.storages import import_study
from dse.api.study import Study

HERE = Path(__file__).parent
BEST = [
    {"tp": 2, "dp": 16, "micro": 1, "format": "mxfp4", "block": 16},
    {"tp": 4, "dp": 8, "micro": 1, "format": "mxfp4", "block": 16},
]


@pytest.fixture(params=["version_5.sql", "training.jsonl", "training.parquet"])
def study(request, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Study]:
    monkeypatch.chdir(tmp_path)
    url = f"sqlite:///{tmp_path}/study.db"
    source = HERE / request.param
    if source.suffix == ".sql":
        with closing(sqlite3.connect(tmp_path / "study.db")) as connection:
            connection.executescript(source.read_text(encoding="utf-8"))
    else:
        import_study(source, storage=url, trust=True)
    with closing(Study.load("training", storage=url)) as found:
        yield found


def test_an_older_study_is_opened_gone_on_with_and_proved(study: Study) -> None:
    assert [dict(trial.design) for trial in study.front.trials] == BEST
    assert study.record.verify().whole
    study.run(measurements=12)
    assert len(study.trials) == 12
    assert study.record.verify().whole


def test_the_files_of_an_older_version_ask_the_same_designs(tmp_path: Path) -> None:
    for name in ("space.yaml", "training.yaml"):
        shutil.copy(HERE / name, tmp_path)
    import_study(HERE / "training.jsonl", storage=f"sqlite:///{tmp_path}/older.db")
    with closing(Study.load("training", storage=f"sqlite:///{tmp_path}/older.db")) as older:
        asked = [trial.design for trial in older.trials]
    with closing(Study.open(tmp_path / "training.yaml", storage="memory://")) as anew:
        anew.run(measurements=10)
        assert [trial.design for trial in anew.trials] == asked
