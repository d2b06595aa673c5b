"""Checkpoint file of an exhaustive search, written atomically."""

from __future__ import annotations

import hashlib
import json
import math
import os
import tempfile
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from dse.core.inspection.fingerprint import fingerprint
from dse.core.problem import Problem
from dse.errors import StudyError
from dse.optimizers.exact.chunks import judged
from dse.optimizers.exact.running_front import RunningFront
from dse.resources.asset import cache_folder

_KIND = "dse exhaustive "
"""Start of the first line in every version; files of older versions are ignored, not refused."""

_MARK = f"{_KIND}2"
"""Start of the first line in this version; the digest of the second line follows."""

_PROBES = 256


@dataclass(frozen=True, slots=True, kw_only=True)
class EnumerationProgress:
    """Progress of an enumeration: the finished index ranges, and the front found in them."""

    found: RunningFront
    done: frozenset[int] = field(default_factory=frozenset)

    def after(self, part: int, found: RunningFront) -> EnumerationProgress:
        """Return the progress after one more index range of the enumeration is finished."""
        return EnumerationProgress(found=self.found.joined(found), done=self.done | {part})


class Checkpoint:
    """File that saves the progress of one exhaustive search, so that it can be continued.

    A damaged file is ignored, and so is one of another problem or of another version of the
    program.

    Args:
        path: the file.
        key: key of the search, see :func:`checkpoint_of`.

    Raises:
        StudyError: the file exists and is not a checkpoint.
    """

    def __init__(self, path: Path, key: str) -> None:
        self.path = path
        self._key = key
        with suppress(OSError), path.open("rb") as file:
            if file.read(len(_KIND)) != _KIND.encode():
                raise StudyError(f"{path} is no checkpoint of a search", hint="name another file")

    def read(self, objectives: int) -> EnumerationProgress | None:
        """Read the saved progress; ``None`` if it is missing, damaged or of another problem."""
        try:
            head, body = self.path.read_text().splitlines()
            if head != _head(body):
                return None
            fields = json.loads(body)
        except (OSError, ValueError):
            return None
        return _progress(fields, objectives) if fields["key"] == self._key else None

    def write(self, progress: EnumerationProgress) -> None:
        """Save the progress atomically, so that a crash leaves the old file or the new one.

        A failure to write is ignored; the next run then repeats the search.
        """
        body = json.dumps({"key": self._key, **_plain(progress)})
        with suppress(OSError):
            self.path.parent.mkdir(parents=True, exist_ok=True)
            handle, name = tempfile.mkstemp(dir=self.path.parent, prefix=self.path.name)
            try:
                with os.fdopen(handle, "w") as file:
                    file.write(f"{_head(body)}\n{body}\n")
                    file.flush()
                    os.fsync(file.fileno())
                Path(name).replace(self.path)
            except BaseException:
                Path(name).unlink(missing_ok=True)
                raise


def checkpoint_of(problem: Problem, chosen: str | None, size: int) -> Checkpoint | None:
    """Return the checkpoint of an exhaustive search of the problem; ``None`` without a path.

    Args:
        problem: problem to search.
        chosen: path of the file, if the user set one; by default in :func:`cache_folder`, if the
            problem has an identity.
        size: number of consecutive designs that are searched, and recorded as finished, at once.
    """
    if chosen is None and not problem.identity:
        return None
    key = _key(problem, size)
    path = Path(chosen) if chosen else cache_folder() / f"exhaustive-{key[:16]}"
    return Checkpoint(path, key)


def _key(problem: Problem, size: int) -> str:
    """Return a hash of what determines the result: space, formulas and evaluators.

    The problem's identity names the evaluators. Their results for some designs are hashed too, to
    detect changes of their code.
    """
    total = problem.space.count() or 0
    places = np.linspace(0, total - 1, min(total, _PROBES)).astype(np.int64)
    losses, violations, possible = judged(problem, problem.space.legal.at_indices(places))
    rows = np.column_stack([losses, violations])
    rows[~possible] = np.nan
    parts = [
        problem.identity,
        fingerprint(problem.space),
        [parameter.name for parameter in problem.space.parameters],
        [(o.goal, o.text, o.scale) for o in problem.objectives],
        [(limit.text, limit.scale, limit.strict) for limit in problem.limits],
        total,
        size,
        hashlib.sha256(rows.tobytes()).hexdigest(),
    ]
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()


def _head(body: str) -> str:
    return f"{_MARK} {hashlib.sha256(body.encode()).hexdigest()}"


def _plain(progress: EnumerationProgress) -> dict[str, Any]:
    found = progress.found
    return {
        "done": sorted(progress.done),
        "losses": found.losses.tolist(),
        "places": found.places.tolist(),
        "total": found.total,
        "feasible": found.feasible,
        "least": found.least,
        "violation": found.violation if math.isfinite(found.violation) else None,
        "impossible": found.impossible,
        "failed": found.failed,
        "lost": found.lost,
    }


def _progress(fields: dict[str, Any], objectives: int) -> EnumerationProgress:
    losses = np.array(fields["losses"], dtype=np.float64).reshape(-1, objectives)
    return EnumerationProgress(
        done=frozenset(fields["done"]),
        found=RunningFront(
            losses=losses,
            places=np.array(fields["places"], dtype=np.int64),
            total=fields["total"],
            feasible=fields["feasible"],
            least=fields["least"],
            violation=math.inf if fields["violation"] is None else fields["violation"],
            impossible=fields["impossible"],
            failed=fields["failed"],
            lost=fields["lost"],
        ),
    )
