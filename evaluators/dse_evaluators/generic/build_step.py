"""Build step of a program, run once for each combination of its compile-time parameters."""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from dse.core.design import base
from dse.core.metric import Failure
from dse.core.values import Value
from dse.errors import PluginError, nearest
from dse.resources.asset import cache_folder
from dse.system.process_guard import Watchdog
from dse_evaluators.generic.options import seconds_of, texts_of
from dse_evaluators.generic.process import ProcessResult, Program, run

FOLDER = "DSE_BUILD_DIR"
"""Variable, and name in braces, of the folder of the build."""

_PLACEHOLDER = re.compile(r"\{([^\W\d]\w*(?:\[\w+\])?)\}")
_DONE = ".dse-built"
_LAST_LINES = 2_000
"""Number of trailing characters of the compiler's output that a fault keeps."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BuildStep:
    """Build command that compiles what a design needs, into a folder of its own.

    ``parameters`` are the compile-time parameters. ``{NAME}`` in an argument is replaced by the
    value of the parameter; an argument that names a parameter without a value in a design is left
    out. The compile-time parameters are also on stdin, as JSON.

    A finished build is reused for designs with the same compile-time parameters, as long as the
    command line, the sources and the compiler stay the same. A failed build is not kept.
    """

    program: Program
    parameters: frozenset[str]
    sources: tuple[str, ...]
    timeout_s: float

    def build(self, design: Mapping[str, Value], watchdog: Watchdog) -> Path | Failure:
        """Return the folder of a design's build, or the reason if the build failed.

        Processes that need the same build at the same time wait for one of them.
        """
        chosen = {name: value for name, value in design.items() if base(name) in self.parameters}
        words = fill_in(self.program.run, chosen, self.parameters)
        try:
            folder = cache_folder() / "builds" / self._digest(words, chosen)
            with _locked(folder):
                if (folder / _DONE).is_file():
                    return folder
                return self._build_in(folder, words, chosen, watchdog)
        except OSError as error:
            return Failure(kind="raised", reason=f"the build cannot be run: {error}")

    def _build_in(
        self, folder: Path, words: Sequence[str], chosen: Mapping[str, Value], watchdog: Watchdog
    ) -> Path | Failure:
        """Build in an empty folder, and mark it as finished.

        Raises:
            OSError: the program cannot be started, or the folder cannot be written.
        """
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        program = replace(
            self.program,
            run=tuple(word.replace(f"{{{FOLDER}}}", str(folder)) for word in words),
            env={**self.program.env, FOLDER: str(folder)},
        )
        ended = run(program, _text_of(chosen), timeout_s=self.timeout_s, watchdog=watchdog)
        failure = _build_fault(ended, self.timeout_s)
        if failure is not None:
            shutil.rmtree(folder, ignore_errors=True)
            return failure
        (folder / _DONE).touch()
        return folder

    def _digest(self, words: Sequence[str], chosen: Mapping[str, Value]) -> str:
        """Return a digest of everything that the build is known to depend on.

        Raises:
            OSError: a source cannot be read.
        """
        digest = hashlib.sha256()
        settings = [words, dict(self.program.env), self.program.cwd, _compiler(self.program)]
        digest.update(json.dumps(settings).encode() + _text_of(chosen))
        for path in self._source_files():
            content = hashlib.sha256(path.read_bytes()).hexdigest()
            digest.update(f"{path}\0{content}\0".encode())
        return digest.hexdigest()[:32]

    def _source_files(self) -> Iterator[Path]:
        folder = Path(self.program.cwd or ".")
        for pattern in self.sources:
            yield from sorted(path for path in folder.glob(pattern) if path.is_file())

    def check(self) -> None:
        """Check that each source file of the build exists.

        Raises:
            PluginError: a source names no file.
        """
        folder = Path(self.program.cwd or ".")
        for pattern in self.sources:
            if not any(path.is_file() for path in folder.glob(pattern)):
                files = [path.name for path in folder.iterdir()] if folder.is_dir() else []
                raise PluginError(
                    f"there is no file {pattern!r}",
                    hint=nearest(pattern, files),
                    part=["build", "sources"],
                )


def build_step_of(option: Any, program: Program) -> BuildStep | None:
    """Return the build step that the option ``build`` describes; ``None`` without the option.

    Args:
        option: a mapping with ``run``, and at will ``parameters``, ``sources`` and ``timeout``.
            Without ``parameters`` they are the names in braces in ``run``; without ``sources`` they
            are the arguments of ``run`` that are files.
        program: the program whose working directory and environment the build has.

    Raises:
        PluginError: the option is malformed.
    """
    if option is None:
        return None
    example = 'write build: {run: [cc, -O3, "-DTILE={tile}", -o, "{DSE_BUILD_DIR}/a.out", a.c]}'
    if not isinstance(option, Mapping) or "run" not in option:
        raise PluginError(f"build is {option!r}, without run", hint=example, part=["build"])
    known = ("run", "parameters", "sources", "timeout")
    for name in option:
        if name not in known:
            hint = nearest(str(name), known)
            raise PluginError(f"build has no {name!r}", hint=hint, part=["build", str(name)])
    words = _texts("run", option["run"])
    if not words or not words[0] or any("\0" in word for word in words):
        raise PluginError("build.run names no program", hint=example, part=["build", "run"])
    return BuildStep(
        program=replace(program, run=words),
        parameters=_parameters_of(option, words),
        sources=_sources_of(option, words, Path(program.cwd or ".")),
        timeout_s=seconds_of("timeout", option.get("timeout", "10 min")),
    )


def names_in(words: Sequence[str]) -> frozenset[str]:
    """Return the names in braces in arguments, without those of the variables ``DSE_...``."""
    found = (base(name) for word in words for name in _PLACEHOLDER.findall(word))
    return frozenset(name for name in found if not name.startswith("DSE_"))


def fill_in(
    words: Sequence[str], values: Mapping[str, Value], names: frozenset[str]
) -> tuple[str, ...]:
    """Replace parameters in braces by their values; leave out arguments with an inactive one.

    Args:
        words: the arguments.
        values: the value of each parameter that the design has.
        names: the parameters to replace; other names in braces stay as they are.
    """
    filled = []
    for word in words:
        wanted = [name for name in _PLACEHOLDER.findall(word) if base(name) in names]
        if all(name in values for name in wanted):
            text = word
            for name in wanted:
                text = text.replace(f"{{{name}}}", _word_of(values[name]))
            filled.append(text)
    return tuple(filled)


def _word_of(value: Value) -> str:
    """Return a value as an argument: ``true`` as 1, so that C's preprocessor can read it."""
    return str(int(value)) if isinstance(value, bool) else str(value)


def _text_of(chosen: Mapping[str, Value]) -> bytes:
    return json.dumps(chosen, sort_keys=True, allow_nan=False).encode()


def _texts(option: str, given: Any) -> tuple[str, ...]:
    try:
        return texts_of(option, given)
    except PluginError as error:
        raise PluginError(error.problem, hint=error.hint, part=["build", option]) from error


def _parameters_of(option: Mapping[str, Any], words: Sequence[str]) -> frozenset[str]:
    named = names_in(words)
    if "parameters" not in option:
        return named
    listed = frozenset(_texts("parameters", option["parameters"]))
    for name in sorted(named - listed):
        raise PluginError(
            f"build.run names {{{name}}}, which is not in build.parameters",
            hint=f"add {name} to parameters, or leave parameters out",
            part=["build", "parameters"],
        )
    return listed


def _sources_of(option: Mapping[str, Any], words: Sequence[str], folder: Path) -> tuple[str, ...]:
    if "sources" not in option:
        relative = (word for word in words[1:] if word and not Path(word).is_absolute())
        return tuple(word for word in relative if (folder / word).is_file())
    listed = _texts("sources", option["sources"])
    absolute = next((one for one in listed if not one or Path(one).is_absolute()), None)
    if absolute is not None:
        raise PluginError(
            f"build.sources holds {absolute!r}",
            hint="write paths relative to cwd, such as [kernel.c, 'include/*.h']",
            part=["build", "sources"],
        )
    return listed


def _compiler(program: Program) -> tuple[str, int, int]:
    """Return the path, size and time of change of the program that builds, as its identity."""
    name = program.run[0]
    folder = program.cwd or "."
    path = str(Path(folder) / name) if "/" in name else shutil.which(name)
    if path is None or not os.path.exists(path):  # noqa: PTH110 - one call for both
        return name, 0, 0
    found = Path(path).stat()
    return path, found.st_size, found.st_mtime_ns


@contextmanager
def _locked(folder: Path) -> Iterator[None]:
    """Hold the lock of a build, which ends with the process that holds it.

    Raises:
        OSError: the lock cannot be created.
    """
    from portalocker import LockFlags, lock

    folder.parent.mkdir(parents=True, exist_ok=True)
    with folder.with_suffix(".lock").open("w", encoding="ascii") as file:
        lock(file, LockFlags.EXCLUSIVE)
        yield


def _build_fault(ended: ProcessResult, timeout_s: float) -> Failure | None:
    lines = (ended.stderr.strip() or ended.stdout.strip())[-_LAST_LINES:]
    note = f": {lines}" if lines else ", with nothing printed"
    if ended.timed_out:
        return Failure(kind="timeout", reason=f"the build ran for more than {timeout_s:g} s{note}")
    if ended.status < 0:
        reason = f"the build was killed by signal {-ended.status}{note}"
        return Failure(kind="lost", reason=reason)
    if ended.status > 0:
        reason = f"the build failed with exit status {ended.status}{note}"
        return Failure(kind="raised", reason=reason)
    return None
