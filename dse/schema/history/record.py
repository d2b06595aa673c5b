"""Specification that a study was started with, as kept in its record."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from dse.errors import StudyError
from dse.evaluation.provenance import versions
from dse.schema.history.without_storages import storageless
from dse.schema.models import PluginSpec
from dse.schema.study.plan import Plan, plan_of


def begun_with(plan: Plan) -> dict[str, Any]:
    """Return the specification that a study is started with, for its record."""
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
    """Raise StudyError where what is kept of a study is nothing that :func:`begun_with` gives."""
    try:
        yield
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise StudyError(
            f"study {study!r}: its record does not say what was asked",
            hint=f"{type(error).__name__}: {error}"[:200],
        ) from error


def kept_plan(spec: Mapping[str, Any], objects: Mapping[str, Any] | None = None) -> Plan:
    """The plan of a stored study, from the texts that it was begun with.

    ``objects`` is what a Python program gives in place of texts; a study can be read without.
    """
    return plan_of(
        Path(spec["path"]),
        kept=storageless(spec)["texts"],  # one of an older version names its storage
        seed=spec["identity"]["seed"],
        optimizer=PluginSpec(**spec["identity"]["optimizer"]),
        objects=objects,
    )


def identity_of(spec: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the identity that a stored study was started with.

    An older record, which described its space differently, is converted.
    """
    identity: Mapping[str, Any] = spec["identity"]
    if "rules" in identity["space"]:
        return identity
    now = plain(kept_plan(spec).identity)
    return {**identity, **{part: now[part] for part in ("space", "order of parameters")}}


def plain(value: Any) -> Any:
    """The value as JSON would give it back, so that stored and new identities compare equal."""
    if isinstance(value, Mapping):
        return {str(key): plain(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [plain(inner) for inner in value]
    return value.item() if isinstance(value, np.generic) else value
