"""Checks of the machine: cores, threads, memory, compiler, GPU and cache folder."""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from collections.abc import Iterator

from dse.evaluation.provenance import gpu
from dse.resources.asset import cache_folder
from dse.services.doctor.finding import Finding, Verdict

_LEAST_BYTES = 2 * 2**30
_GIB = 2.0**30


def machine_findings() -> Iterator[Finding]:
    """Yield one finding for each component of the machine: cores, memory, compiler, GPU, ..."""
    yield _python()
    yield _cores()
    yield _threads()
    yield _memory()
    yield _caches()
    yield _compiler()
    yield _graphics()


def _python() -> Finding:
    message = f"{sys.version.split()[0]} in {sys.prefix}"
    if sys.prefix != sys.base_prefix or os.environ.get("CONDA_PREFIX"):
        return Finding(part="python", verdict=Verdict.FINE, message=message)
    return Finding(
        part="python",
        verdict=Verdict.FINE,
        message=f"{message}, no virtual environment",
        mend="python -m venv .venv keeps its packages apart from the system's",
    )


def _cores() -> Finding:
    usable = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    message = f"{usable} of {os.cpu_count()} may be used"
    return Finding(part="cores", verdict=Verdict.FINE, message=message)


def _threads() -> Finding:
    """Return a finding with the size of the thread pools of numerical libraries.

    With more than one thread per process, parallel workers compete for the cores.
    """
    import numpy as np
    from threadpoolctl import threadpool_info

    np.ones((2, 2)) @ np.ones((2, 2))  # a thread pool is listed only after its first use
    pools = {one["internal_api"]: one["num_threads"] for one in threadpool_info()}
    message = ", ".join(f"{name} {count}" for name, count in sorted(pools.items())) or "no pool"
    most = max(pools.values(), default=1)
    return Finding(
        part="threads",
        verdict=Verdict.FINE,
        message=f"{message} in each process",
        mend="" if most == 1 else "OMP_NUM_THREADS=1 where several workers share the cores",
    )


def _memory() -> Finding:
    import psutil

    memory = psutil.virtual_memory()
    few = memory.available < _LEAST_BYTES
    return Finding(
        part="memory",
        verdict=Verdict.BROKEN if few else Verdict.FINE,
        message=f"{memory.available / _GIB:.1f} GiB of {memory.total / _GIB:.1f} GiB free",
        mend="use fewer workers, or close other programs" if few else "",
    )


def _caches() -> Finding:
    folder = cache_folder()
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            free = shutil.disk_usage(folder).free
    except OSError as error:
        return Finding(
            part="caches",
            verdict=Verdict.BROKEN,
            message=f"{folder}: {error.strerror}",
            mend="set DSE_CACHE to a folder that can be written",
        )
    message = f"{folder}, {free / _GIB:.1f} GiB free"
    return Finding(part="caches", verdict=Verdict.FINE, message=message)


def _compiler() -> Finding:
    found = next(filter(None, map(shutil.which, ("cc", "gcc", "clang"))), None)
    if found:
        return Finding(part="compiler", verdict=Verdict.FINE, message=found)
    return Finding(
        part="compiler",
        verdict=Verdict.ABSENT,
        message="no C compiler; only needed for packages that are compiled during installation",
        mend="apt install gcc, or the equivalent for your system",
    )


def _graphics() -> Finding:
    found = gpu()
    if found:
        return Finding(part="gpu", verdict=Verdict.FINE, message=found)
    return Finding(
        part="gpu",
        verdict=Verdict.ABSENT,
        message="nvidia-smi reports none; models and optimizers run on the CPU",
        mend="only evaluators that measure a GPU need one and its driver",
    )
