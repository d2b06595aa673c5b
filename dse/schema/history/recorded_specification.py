"""Specification in a study's record: the files, seed and versions that it was started with."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from dse.errors import StudyError
from dse.evaluation.provenance import versions
from dse.schema.history.without_storages import storageless
from dse.schema.models import OptimizerSpec
from dse.schema.study.plan import Plan, plan_of


def begun_with(plan: Plan) -> dict[str, Any]:
    """Return the specification of a new study to store in its record.

    It holds the texts of the study's files, its identity (what must not change later), its question
    and the versions of the software.
    """
    begun = {
        "path": str(plan.path),
        "texts": dict(plan.texts),
        "identity": plain(plan.identity),
        "question": plan.question,
        "provenance": versions(),
    }
    return storageless(begun)


@contextmanager
def reading_record(study: str) -> Iterator[None]:
    """Convert errors in the ``with`` block to StudyError: the study's record is malformed."""
    try:
        yield
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise StudyError(
            f"study {study!r}: its record does not say what was asked",
            hint=f"{type(error).__name__}: {error}"[:200],
        ) from error


def kept_plan(spec: Mapping[str, Any], objects: Mapping[str, Any] | None = None) -> Plan:
    """Rebuild the plan of a stored study from the file texts in its record.

    ``objects`` are the Python objects that were given as evaluator options; they are only needed to
    run the study, not to read it.
    """
    return plan_of(
        Path(spec["path"]),
        kept=storageless(spec)["texts"],  # records of older versions contain the storage
        seed=spec["identity"]["seed"],
        optimizer=OptimizerSpec(**spec["identity"]["optimizer"]),
        objects=objects,
    )


def identity_of(spec: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the identity that a stored study was started with.

    The identity is what must not change during the life of a study. In records of older versions,
    the space in it has another format and is converted.
    """
    identity: Mapping[str, Any] = spec["identity"]
    if "rules" in identity["space"]:
        return identity
    now = plain(kept_plan(spec).identity)
    return {**identity, **{part: now[part] for part in ("space", "order of parameters")}}


def plain(value: Any) -> Any:
    """Return the value as it is after writing and reading JSON, to compare it with a stored one."""
    if isinstance(value, Mapping):
        return {str(key): plain(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [plain(inner) for inner in value]
    return value.item() if isinstance(value, np.generic) else value
