"""Compilation of C sources to functions that Python calls, each source once."""

from __future__ import annotations

import ctypes
import os
import shutil
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from dse.core.metric import Failure
from dse.errors import EvaluationError
from dse.system.process_guard import Watchdog
from dse_evaluators.generic.build_step import FOLDER, BuildStep
from dse_evaluators.generic.process import Program

_FLAGS = ("-O3", "-march=native", "-fno-math-errno", "-fopenmp", "-shared", "-fPIC")
_TIMEOUT_S = 120.0


def find_compiler() -> str:
    """Return the C compiler: ``$CC``, else ``cc``, ``gcc`` or ``clang``; empty without one."""
    names = (os.environ.get("CC", ""), "cc", "gcc", "clang")
    return next((name for name in names if name and shutil.which(name)), "")


def load_kernel(source: Path, definitions: Mapping[str, str]) -> ctypes.CDLL:
    """Compile a C source with macros, unless that was done before, and load the library.

    Args:
        source: the C file.
        definitions: the value of each macro.

    Raises:
        EvaluationError: there is no compiler, or it fails; the message ends with its last lines.
    """
    return _load(source, tuple(sorted(definitions.items())))


def bind_arrays(library: ctypes.CDLL, *arrays: NDArray[Any], threads: int) -> Callable[[], object]:
    """Return a function that calls the library's ``run`` on arrays with a number of threads."""
    pointers = [ctypes.c_void_p(array.ctypes.data) for array in arrays]

    def call(_held: Sequence[NDArray[Any]] = arrays) -> None:  # they must outlive the pointers
        library.run(*pointers, threads)

    return call


@cache
def _load(source: Path, definitions: tuple[tuple[str, str], ...]) -> ctypes.CDLL:
    compiler = find_compiler()
    if not compiler:
        raise EvaluationError("there is no C compiler", hint="install gcc, or use language: numba")
    macros = tuple(f"-D{name}={value}" for name, value in definitions)
    target = f"{{{FOLDER}}}/kernel.so"
    words = (compiler, *_FLAGS, *macros, "-o", target, source.name, "-lm")
    step = BuildStep(
        program=Program(run=words, cwd=str(source.parent)),
        parameters=frozenset(),
        sources=("*.c", "*.h"),
        timeout_s=_TIMEOUT_S,
    )
    with Watchdog() as watchdog:
        folder = step.build({}, watchdog)
    if isinstance(folder, Failure):
        raise EvaluationError(folder.reason)
    return ctypes.CDLL(str(folder / "kernel.so"))
