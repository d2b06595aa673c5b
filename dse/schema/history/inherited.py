"""Data that a study inherits from earlier ones, stored in its record when it starts."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from dse.core.design import Design
from dse.core.problem import Prior
from dse.core.trial import Trial


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """Observation inherited from an earlier study: the metrics of one measured evaluator.

    ``values`` are the parameter values that the evaluator read, which may be a part of a design;
    ``spread`` maps metrics to their standard errors.
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

    ``readings`` are the observations. ``designs`` are those whose measured metrics are all known,
    so that the new study evaluates them without measuring. ``studies`` maps each earlier study to
    its number of finished trials at the time of transfer; its later trials are not inherited.
    ``left_out`` maps studies of a library that are of no use here to the reason.
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
