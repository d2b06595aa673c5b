"""Places for studies (SQLite, an empty schema of PostgreSQL), and a shell to type commands in."""

import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from uuid import uuid4

import pytest
from sqlalchemy import create_engine

from dse.cli.app import main

POSTGRES = os.environ.get("DSE_TEST_POSTGRES", "")

PLACES = [
    "sqlite",
    pytest.param(
        "postgresql",
        marks=pytest.mark.skipif(
            not POSTGRES, reason="PostgreSQL: DSE_TEST_POSTGRES names no database"
        ),
    ),
]


@pytest.fixture(params=PLACES)
def place(request, tmp_path: Path) -> Iterator[str]:
    """The URL of a storage without studies."""
    if request.param == "sqlite":
        yield f"sqlite:///{tmp_path}/study.db"
        return
    if not POSTGRES:
        pytest.skip("PostgreSQL: DSE_TEST_POSTGRES names no database")
    with _new_schema() as url:
        yield url


@contextmanager
def _new_schema() -> Iterator[str]:
    name = f"dse_test_{uuid4().hex}"
    server = create_engine(POSTGRES, isolation_level="AUTOCOMMIT")
    with server.connect() as connection:
        connection.exec_driver_sql(f"CREATE SCHEMA {name}")
        address = server.url.update_query_dict({"options": f"-csearch_path={name}"})
        yield address.render_as_string(hide_password=False)
        connection.exec_driver_sql(f"DROP SCHEMA {name} CASCADE")
    server.dispose()


@dataclass(frozen=True)
class Said:
    """What a command printed, on either stream."""

    stdout: str
    stderr: str


@dataclass(frozen=True)
class Shell:
    """The command line in a folder, in this process: another would take a second to start."""

    folder: Path
    capsys: pytest.CaptureFixture
    monkeypatch: pytest.MonkeyPatch

    def __call__(self, words: Sequence[str], *, code: int = 0, width: int = 160) -> Said:
        """What ``dse`` says to these words; it ends with that exit code."""
        self.monkeypatch.setattr(sys, "argv", ["dse", *words])
        self.monkeypatch.setenv("COLUMNS", str(width))
        self.capsys.readouterr()
        with pytest.raises(SystemExit) as ended:
            main()
        said = Said(*self.capsys.readouterr())
        assert (ended.value.code or 0) == code, f"{words}\n{said.stdout}\n{said.stderr}"
        assert "Traceback" not in said.stderr, said.stderr
        return said


@pytest.fixture
def shell(tmp_path: Path, capsys, monkeypatch) -> Shell:
    """A shell in an empty folder, which finds the programs of this environment."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("DSE_STORAGE", raising=False)
    monkeypatch.setenv("PATH", f"{Path(sys.executable).parent}:{os.environ['PATH']}")
    return Shell(tmp_path, capsys, monkeypatch)
