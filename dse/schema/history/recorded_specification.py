"""Specification and inherited data in a study's record; how the present specification differs.

The specification holds the files, seed and versions that the study was started with. Data that a
study inherits from earlier ones is stored in its record when it starts.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from dse.core.design import Design
from dse.core.inspection.diff import difference as space_difference
from dse.core.problem import Prior
from dse.core.trial import Trial
from dse.errors import StudyError
from dse.evaluation.provenance import versions
from dse.schema.history.without_storages import storageless
from dse.schema.models import OptimizerSpec
from dse.schema.space.parameters.number_text import spell_number
from dse.schema.study.plan import Plan, plan_of


def begun_with(plan: Plan) -> dict[str, Any]:
    """Return the specification of a new study to store in its record.

    The specification holds the texts of the study's files, its identity (the settings that must not
    change later), its objectives and limits, and the versions of the software.
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
    """Return the value as JSON would store and load it, for comparison with a stored value."""
    if isinstance(value, Mapping):
        return {str(key): plain(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [plain(inner) for inner in value]
    return value.item() if isinstance(value, np.generic) else value


_SHOWN_CHANGES = 3
_LIBRARY = "['library of "
_RESUME = "its record has what was used, and 'dse resume NAME' uses that"


def difference(stored: Mapping[str, Any], now: Mapping[str, Any]) -> str:
    """Describe how a stored study's identity differs from the current one; empty if equal.

    The identity is what must not change during the life of a study: its space, objectives,
    evaluators and so on. Differences of the space come first; how it is split into files does not
    matter. For each other key of the identity, only the first difference is described.
    """
    parts: list[str] = []
    if stored["space"] != now["space"] and (
        changes := space_difference(stored["space"], now["space"], spell_number)
    ):
        more = (
            f" (and {len(changes) - _SHOWN_CHANGES} more)" if len(changes) > _SHOWN_CHANGES else ""
        )
        parts.append("space: " + "; ".join(changes[:_SHOWN_CHANGES]) + more)
        stored, now = _beside_space(stored), _beside_space(now)
    edited = _edited_functions(stored, now)
    parts += [
        f"the function of the evaluator {name!r} was edited; if its results are unchanged, "
        f"declare: @evaluator(..., version={version!r})"
        for name, version in edited.items()
    ]
    if edited:
        stored, now = (_without_versions(one, edited) for one in (stored, now))
    parts += [
        _between(part, stored.get(part), now.get(part))
        for part in sorted((stored.keys() | now.keys()) - {"space"})
        if stored.get(part) != now.get(part)
    ]
    return "; ".join(parts)


def _edited_functions(stored: Mapping[str, Any], now: Mapping[str, Any]) -> dict[str, str]:
    """Return the stored version of each evaluator's Python function that was edited since.

    The keys are evaluator names. An evaluator whose function has another name than before counts as
    a different one and is not returned.
    """
    before, after = (one.get("evaluators", {}) for one in (stored, now))
    found: dict[str, str] = {}
    for name in sorted(before.keys() & after.keys()):
        options, newer = (one[name].get("options", {}) for one in (before, after))
        function = str(options.get("function", ""))
        given = function.startswith("given:") and function == newer.get("function")
        if given and options.get("version") != newer.get("version"):
            found[name] = str(options.get("version"))
    return found


def _without_versions(identity: Mapping[str, Any], names: Collection[str]) -> dict[str, Any]:
    """Return an identity without the versions of these evaluators' functions."""
    evaluators = {
        name: {
            **{key: value for key, value in one.items() if key not in ("options", "version")},
            "options": {k: v for k, v in one.get("options", {}).items() if k != "version"},
        }
        if name in names
        else one
        for name, one in identity.get("evaluators", {}).items()
    }
    return {**identity, "evaluators": evaluators}


def _beside_space(identity: Mapping[str, Any]) -> dict[str, Any]:
    """Return an identity without what is derived from the space: inputs, parameter order."""
    evaluators = {
        name: {key: value for key, value in one.items() if key != "reads"}
        for name, one in identity.get("evaluators", {}).items()
    }
    rest = {part: one for part, one in identity.items() if part != "order of parameters"}
    return {**rest, "evaluators": evaluators}


def _between(path: str, before: Any, after: Any) -> str:
    """Describe the first difference between two values, searched depth-first in mappings."""
    if isinstance(before, dict) and isinstance(after, dict):
        keys = before.keys() | after.keys()
        key = min((k for k in keys if before.get(k) != after.get(k)), key=str)
        return _between(f"{path}.{key}", before.get(key), after.get(key))
    if isinstance(before, list) and isinstance(after, list):
        gone = [one for one in before if one not in after] or before
        new = [one for one in after if one not in before] or after
        if str(gone[:1]).startswith(_LIBRARY) and str(new[:1]).startswith(_LIBRARY):
            return f"the library of 'transfer_from' changed since the study began: {_RESUME}"
        return f"{path}: {gone[:1]} is now {new[:1]}"
    return f"{path}: {before!r} is now {after!r}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """Observation inherited from an earlier study: the metrics of one measured evaluator.

    ``values`` are the values of those parameters that the evaluator read, which may be a part of a
    design; ``spread`` maps metrics to their standard errors.
    """

    values: Design
    metrics: Mapping[str, float]
    spread: Mapping[str, float]

    def trial(self) -> Trial:
        """Return the observation as a trial (number -1), to which surrogates can be fitted."""
        return Trial(number=-1, design=self.values, metrics=self.metrics, spread=self.spread)


@dataclass(frozen=True, slots=True, kw_only=True)
class Inherited:
    """Data inherited from earlier studies: observations, designs with known metrics, prior data.

    ``readings`` are the observations. ``designs`` are the designs whose measured metrics are all
    known, so that the new study evaluates them without measuring. ``studies`` maps each earlier
    study to its number of finished trials at the time of transfer; its later trials are not
    inherited. ``left_out`` maps each unusable study of a library to the reason.
    """

    studies: Mapping[str, int]
    readings: tuple[Reading, ...] = ()
    designs: tuple[Design, ...] = ()
    priors: tuple[Prior, ...] = ()
    left_out: Mapping[str, str] = field(default_factory=dict)

    @staticmethod
    def of(facts: Mapping[str, Any] | None) -> Inherited:
        """Build the inherited data from their JSON form in a study's record; empty for ``None``."""
        facts = facts or {}
        return Inherited(
            studies=facts.get("studies", {}),
            readings=tuple(
                Reading(values=Design(values), metrics=metrics, spread=spread)
                for values, metrics, spread in facts.get("readings", [])
            ),
            designs=tuple(Design(values) for values in facts.get("designs", [])),
            priors=tuple(_prior(one) for one in facts.get("priors", [])),
            left_out=facts.get("left_out", {}),
        )

    def plain(self) -> dict[str, Any]:
        """Return the data in the JSON form that :meth:`of` reads."""
        return {
            "studies": dict(self.studies),
            "readings": [[dict(r.values), r.metrics, r.spread] for r in self.readings],
            "designs": [dict(design) for design in self.designs],
            "priors": [
                {
                    "study": prior.study,
                    "designs": [dict(design) for design in prior.designs],
                    "metrics": {name: _plain(v) for name, v in prior.metrics.items()},
                    **({"library": True} if prior.library else {}),
                }
                for prior in self.priors
            ],
            **({"left_out": dict(self.left_out)} if self.left_out else {}),
        }

    def joined(self, other: Inherited) -> Inherited:
        """Return the union of two sets of inherited data; equal designs are kept once."""
        return Inherited(
            studies={**self.studies, **other.studies},
            readings=self.readings + other.readings,
            designs=tuple(dict.fromkeys(self.designs + other.designs)),
            priors=self.priors + other.priors,
            left_out={**self.left_out, **other.left_out},
        )

    def words(self) -> str:
        """Return a one-line summary: the earlier studies, and how much was inherited from them."""
        names = ", ".join(f"{name} ({count} trials)" for name, count in self.studies.items())
        guessed = sorted({metric for prior in self.priors for metric in prior.metrics})
        parts = [
            f"{len(self.readings)} readings known",
            f"{len(self.designs)} designs to begin with",
        ]
        parts += [f"a guess of {', '.join(guessed)}"] if guessed else []
        parts += [f"left out: {study}, {why}" for study, why in self.left_out.items()]
        return f"from {names or 'no study'}: {'; '.join(parts)}"


def _prior(facts: Mapping[str, Any]) -> Prior:
    return Prior(
        study=facts["study"],
        designs=tuple(Design(values) for values in facts["designs"]),
        metrics={
            name: np.array([math.nan if v is None else v for v in values], dtype=float)
            for name, values in facts["metrics"].items()
        },
        library=bool(facts.get("library")),
    )


def _plain(values: Sequence[float] | np.ndarray[Any, Any]) -> list[float | None]:
    return [float(v) if math.isfinite(v) else None for v in values]
