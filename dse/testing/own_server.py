"""PostgreSQL servers of a test's own, to be killed, stopped and replaced."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

USER = "postgres"
"""Who runs servers where a test is run by root: they refuse to be run by it."""


def find_program(name: str) -> str:
    """Return the path of a program of PostgreSQL; empty where there is none."""
    folders = sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)
    return shutil.which(name, path=os.pathsep.join([*map(str, folders), os.defpath])) or ""


def words_as_server(command: Sequence[str]) -> list[str]:
    """Return the command that runs a program as the user who runs servers."""
    drop = ["setpriv", f"--reuid={USER}", f"--regid={USER}", "--clear-groups"]
    return [*(drop if os.geteuid() == 0 else []), *command]


def run_as_server(command: Sequence[str], folder: Path) -> str:
    """Run a program as the user who runs servers; return what it prints."""
    done = subprocess.run(  # noqa: S603 - our own words
        words_as_server(command), cwd=folder, capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise RuntimeError(f"{command[0]} failed: {done.stdout}{done.stderr}")
    return done.stdout


@dataclass(frozen=True, kw_only=True)
class OwnServer:
    """A server with a socket in its folder, and a database ``dse`` of the user ``dse``."""

    folder: Path

    @property
    def url(self) -> str:
        """The URL of its database."""
        return f"postgresql+psycopg://dse@/dse?host={self.folder}"

    def create(self) -> None:
        """Make the cluster of files, and start it."""
        self._run("initdb", "-D", "data", "--auth=trust", "--username=dse", "--no-sync")
        self.start()
        self._run("createdb", "-h", str(self.folder), "-U", "dse", "dse")

    def copy_from(self, primary: OwnServer) -> None:
        """Begin as a standby of another server, and start."""
        source = ["-h", str(primary.folder), "-U", "dse"]
        self._run("pg_basebackup", *source, "-D", "data", "-R", "--no-sync", "-c", "fast")
        self.start()

    def start(self) -> None:
        """Start, and wait until it answers."""
        options = f"-k {self.folder} -c listen_addresses='' -c fsync=off"
        self._run("pg_ctl", "-D", "data", "-w", "-l", "log", "-o", options, "start")

    def kill(self) -> None:
        """End it at once, as a loss of power would."""
        self._run("pg_ctl", "-D", "data", "-m", "immediate", "stop")

    def promote(self) -> None:
        """Let a standby take writes."""
        self._run("pg_ctl", "-D", "data", "-w", "promote")

    def freeze(self) -> None:
        """Stop all of its processes where they are."""
        self._signal(signal.SIGSTOP)

    def thaw(self) -> None:
        """Let all of its processes go on."""
        self._signal(signal.SIGCONT)

    def execute(self, *statements: str) -> None:
        """Execute statements, each in a transaction of its own."""
        for text in statements:
            self._run("psql", "-h", str(self.folder), "-U", "dse", "-d", "dse", "-qc", text)

    def _signal(self, number: int) -> None:
        first = int((self.folder / "data" / "postmaster.pid").read_text().split()[0])
        children = Path(f"/proc/{first}/task/{first}/children").read_text().split()
        for pid in (first, *map(int, children)):
            os.kill(pid, number)

    def _run(self, program: str, *words: str) -> None:
        run_as_server([find_program(program), *words], self.folder)
