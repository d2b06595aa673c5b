"""PostgreSQL servers for tests: a shared one, and private ones that a test may kill."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from uuid import uuid4

import psutil
import pytest
from sqlalchemy import create_engine

USER = "postgres"
"""User that runs the servers if tests run as root, which PostgreSQL refuses."""

POSTGRES = os.environ.get("DSE_TEST_POSTGRES", "")
"""URL of a database in which tests may create schemas; empty if not configured."""

needs_postgres = pytest.mark.skipif(
    not POSTGRES, reason="PostgreSQL: DSE_TEST_POSTGRES names no database"
)


def find_program(name: str) -> str:
    """Return the path of a PostgreSQL program; empty if it is not installed."""
    folders = sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)
    return shutil.which(name, path=os.pathsep.join([*map(str, folders), os.defpath])) or ""


def words_as_server(command: Sequence[str]) -> list[str]:
    """Return the command, wrapped to run as :data:`USER` if this process runs as root."""
    drop = ["setpriv", f"--reuid={USER}", f"--regid={USER}", "--clear-groups"]
    return [*(drop if os.geteuid() == 0 else []), *command]


def run_as_server(command: Sequence[str], folder: Path) -> str:
    """Run a program as the server's user; return its standard output.

    Raises:
        RuntimeError: the program failed.
    """
    done = subprocess.run(
        words_as_server(command), cwd=folder, capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise RuntimeError(f"{command[0]} failed: {done.stdout}{done.stderr}")
    return done.stdout


@dataclass(frozen=True, kw_only=True)
class OwnServer:
    """PostgreSQL server with a Unix socket in its folder; user and database are ``dse``."""

    folder: Path

    @property
    def url(self) -> str:
        """URL of the server's database."""
        return f"postgresql+psycopg://dse@/dse?host={self.folder}"

    def create(self) -> None:
        """Initialize the database files, start the server, and create the database."""
        self._run("initdb", "-D", "data", "--auth=trust", "--username=dse", "--no-sync")
        self.start()
        self._run("createdb", "-h", str(self.folder), "-U", "dse", "dse")

    def copy_from(self, primary: OwnServer) -> None:
        """Copy another server's files, and start as its standby."""
        source = ["-h", str(primary.folder), "-U", "dse"]
        self._run("pg_basebackup", *source, "-D", "data", "-R", "--no-sync", "-c", "fast")
        self.start()

    def start(self) -> None:
        """Start the server and wait until it accepts connections."""
        options = f"-k {self.folder} -c listen_addresses='' -c fsync=off"
        self._run("pg_ctl", "-D", "data", "-w", "-l", "log", "-o", options, "start")

    def kill(self) -> None:
        """Stop the server without a shutdown, as a power failure would."""
        self._run("pg_ctl", "-D", "data", "-m", "immediate", "stop")

    def promote(self) -> None:
        """Promote a standby, so that it accepts writes."""
        self._run("pg_ctl", "-D", "data", "-w", "promote")

    def freeze(self) -> None:
        """Suspend all processes of the server."""
        self._signal(signal.SIGSTOP)

    def thaw(self) -> None:
        """Resume all processes of the server."""
        self._signal(signal.SIGCONT)

    def execute(self, *statements: str) -> None:
        """Execute statements, each in a transaction of its own."""
        for text in statements:
            self._run("psql", "-h", str(self.folder), "-U", "dse", "-d", "dse", "-qc", text)

    def _signal(self, number: int) -> None:
        first = int((self.folder / "data" / "postmaster.pid").read_text().split()[0])
        server = psutil.Process(first)
        for process in (server, *server.children()):
            process.send_signal(number)

    def _run(self, program: str, *words: str) -> None:
        run_as_server([find_program(program), *words], self.folder)


@contextmanager
def new_schema() -> Iterator[str]:
    """Create an empty schema on the server, yield its URL, and drop it afterwards."""
    name = f"dse_test_{uuid4().hex}"
    server = create_engine(POSTGRES, isolation_level="AUTOCOMMIT")
    with server.connect() as connection:
        connection.exec_driver_sql(f"CREATE SCHEMA {name}")
        address = server.url.update_query_dict({"options": f"-csearch_path={name}"})
        yield address.render_as_string(hide_password=False)
        connection.exec_driver_sql(f"DROP SCHEMA {name} CASCADE")
    server.dispose()
