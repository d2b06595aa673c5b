"""Whether the kernel has ended processes around this one because memory was short."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

_ROOT = Path("/sys/fs/cgroup")


def kills() -> int:
    """How often the kernel ended a process of this one's control group for want of memory.

    It only ever rises; 0 too where nobody counts.

    Source:
        ``oom_kill`` in ``memory.events`` (Documentation/admin-guide/cgroup-v2.rst) and in
        ``memory.oom_control`` (cgroup-v1/memory.rst) of the Linux kernel.
    """
    return sum(_counted(path) for path in _counters())


def _counters() -> Iterator[Path]:
    """Both versions' files; a container sees its own group as the root of all."""
    try:
        lines = Path("/proc/self/cgroup").read_text().splitlines()
    except OSError:
        return
    for line in lines:
        number, controllers, group = line.split(":", 2)
        if "memory" in controllers.split(","):
            root, name = _ROOT / "memory", "memory.oom_control"
        elif number == "0":
            root, name = _ROOT, "memory.events"
        else:
            continue
        own = root / group.lstrip("/") / name
        yield own if own.exists() else root / name


def _counted(path: Path) -> int:
    try:
        words = dict(line.split(None, 1) for line in path.read_text().splitlines() if " " in line)
        return int(words.get("oom_kill", 0))
    except (OSError, ValueError):
        return 0
