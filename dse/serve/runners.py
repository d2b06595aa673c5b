"""Processes that this server started, each of which runs one study."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from threading import Lock

from dse.core.trial import Driver
from dse.errors import StudyError
from dse.study.liveness import here

MOST = 8
"""Maximum number of studies that are run at once."""

_GRACE_S = 60.0
"""Seconds that a driver has to stop: its workers, and their programs, need some seconds each."""
_TAIL_BYTES = 4_000


@dataclass(kw_only=True)
class Runner:
    """Process that runs a study, with the file that its output is written to."""

    process: subprocess.Popen[bytes]
    log: Path
    stopping: bool = False

    @property
    def runs(self) -> bool:
        """Whether the process that runs the study is still alive."""
        return self.process.poll() is None

    @property
    def last_words(self) -> str:
        """Last lines that the process printed, if it failed.

        The text is empty while the process runs, or if it ended normally or was paused.
        """
        if self.runs or self.stopping or self.process.returncode in (0, 3):
            return ""
        try:
            return self.log.read_bytes()[-_TAIL_BYTES:].decode(errors="replace")
        except OSError:
            return ""

    def stop(self) -> None:
        """Send the process one SIGINT, after which it releases its trials and ends.

        Later calls do nothing: a second SIGINT would keep the process from releasing its trials.
        """
        if not self.stopping:
            self.stopping = True
            self.process.send_signal(signal.SIGINT)


@dataclass(kw_only=True)
class Runners:
    """Registry of the processes that run studies, at most one for each study.

    Args:
        url: the storage of the studies; an in-memory one cannot be shared with another process.
    """

    url: str
    _runners: dict[str, Runner] = field(default_factory=dict)
    _lock: Lock = field(default_factory=Lock)
    _folder: tempfile.TemporaryDirectory[str] = field(
        default_factory=lambda: tempfile.TemporaryDirectory(prefix="dse-serve-")
    )

    def of(self, study: str) -> Runner | None:
        """Return the latest process that this server started for the study; else ``None``."""
        return self._runners.get(study)

    def start(self, study: str, options: Sequence[str] = ()) -> None:
        """Start or resume a study in a new process.

        Args:
            study: the name of a study in the storage.
            options: command-line options of ``dse resume``.

        Raises:
            StudyError: this server already runs it, runs too many, or the storage is in memory.
        """
        if self.url.startswith("memory:"):
            problem = "an in-memory storage cannot be shared with another process"
            raise StudyError(problem, hint="dse serve --storage sqlite:///dse.db")
        with self._lock:
            runner = self._runners.get(study)
            if runner is not None and runner.runs:
                problem = f"{study!r} is already run by process {runner.process.pid}"
                hint = "it is stopping: try again in a moment" if runner.stopping else ""
                raise StudyError(problem, hint=hint)
            if sum(one.runs for one in self._runners.values()) >= MOST:
                raise StudyError(
                    f"{MOST} studies are already running", hint="pause one of them first"
                )
            self._runners[study] = self._begun(study, options)

    def pause(self, study: str, there: Sequence[Driver] = ()) -> None:
        """Ask the process of a study to release its trials and end; the study can be resumed.

        Args:
            study: the study's name.
            there: all living drivers (processes that run the study).

        Raises:
            StudyError: this server does not run it.
        """
        with self._lock:
            runner = self._runners.get(study)
            if runner is not None and runner.runs:
                runner.stop()
                return
        if there:
            where = ", ".join(f"process {one.pid} of {one.host.split()[0]}" for one in there[:5])
            problem = f"{study!r} is run elsewhere: {where}"
            raise StudyError(problem, hint="pause it there, with Ctrl-C")
        raise StudyError(f"no process runs {study!r}")

    def own(self, study: str, driver: Driver) -> bool:
        """Return whether the driver (process that runs a study) was started by this server."""
        runner = self._runners.get(study)
        return runner is not None and driver.pid == runner.process.pid and driver.host == here()

    def close(self) -> None:
        """Pause all studies started here and wait; kill processes that do not end in time."""
        running = [runner for runner in self._runners.values() if runner.runs]
        for runner in running:
            runner.stop()
        for runner in running:
            try:
                runner.process.wait(_GRACE_S)
            except subprocess.TimeoutExpired:
                runner.process.kill()
                runner.process.wait()
        self._folder.cleanup()

    def _begun(self, study: str, options: Sequence[str]) -> Runner:
        descriptor, name = tempfile.mkstemp(dir=self._folder.name, suffix=".log")
        words = [sys.executable, "-m", "dse", "resume", "--quiet", *options, "--", study]
        with open(descriptor, "wb") as log:  # noqa: PTH123 - it is a descriptor
            process = subprocess.Popen(  # noqa: S603 - the study's name is one word after "--"
                words,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                env=self._environment(),
                start_new_session=True,
            )
        return Runner(process=process, log=Path(name))

    def _environment(self) -> dict[str, str]:
        """Return the environment variables for a process that runs a study.

        They contain the storage URL, which may hold a password, but not the server's token.
        """
        ours = {name: value for name, value in os.environ.items() if name != "DSE_TOKEN"}
        return {**ours, "DSE_STORAGE": self.url}
