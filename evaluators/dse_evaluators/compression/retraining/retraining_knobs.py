"""Settings for compressing and retraining a network, with their defaults and ranges."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from types import MappingProxyType
from typing import Any

from dse.core.values import Value
from dse.errors import SpecError
from dse_evaluators.readings import number, number_format, one_among, word

_TRAINED = ("epochs", "rate", "alpha", "beta", "temperature")

METHODS: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "whole": (),
        "magnitude": ("density",),
        "masked": ("density", *_TRAINED),
        "gradual": ("density", *_TRAINED),
        "l-c": ("density", "steps", "mu_start", "mu_multiplier", *_TRAINED),
        "group-lasso": ("penalty", "interval", "threshold", *_TRAINED),
        "diagonals": ("diagonals_kept", "slots", "penalty", *_TRAINED),
        "low-rank": ("density", "factoring"),
        "factors": ("density", "factoring", *_TRAINED),
        "distorted": ("density", "factoring", "period", *_TRAINED),
    }
)
"""Knobs that each method reads, in addition to ``seed`` and ``format``."""

FACTORINGS = ("svd", "tucker-2")

check_knob = one_among(
    {
        "method": word(*METHODS),
        "factoring": word(*FACTORINGS),
        "format": number_format(),
        "seed": number(0, 2**31 - 1, whole=True),
        "density": number(0.001, 1),
        "epochs": number(1, 1000, whole=True),
        "rate": number(1e-5, 1),
        "alpha": number(0, 1),
        "beta": number(0, 1),
        "temperature": number(0.5, 20),
        "steps": number(1, 200, whole=True),
        "mu_start": number(1e-6, 1e4),
        "mu_multiplier": number(1, 10),
        "penalty": number(0, 0.99),
        "interval": number(1, 1000, whole=True),
        "threshold": number(0, 1),
        "period": number(1, 100_000, whole=True),
        "diagonals_kept": number(0, 1),
        "slots": number(1, 65536, whole=True),
    }
)
"""Check of a knob's value; raises SpecError if the knob is unknown or the value is invalid."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Knobs:
    """Settings of a compression with retraining.

    ``density`` is the fraction of weights kept, over all layers together; for methods that reduce
    the rank, per layer. ``rate`` is the initial learning rate. The loss is a weighted sum:
    1 - ``alpha`` - ``beta`` of cross-entropy with the labels, ``alpha`` of divergence from the
    uncompressed network's outputs at ``temperature``, ``beta`` of squared distance from its logits.
    ``steps``, ``mu_start`` and ``mu_multiplier`` are those of the augmented Lagrangian; ``penalty``
    is the group lasso's fraction of the initial loss, and channels below ``threshold`` are removed
    every ``interval`` epochs; ``diagonals_kept`` is the share of the rotations that is kept of
    each layer but the first and the last, with its channels packed into ciphertexts of ``slots``
    slots as for ``private.convolution``; ``period`` is the number of updates between two rank
    reductions. ``format`` is the number format in which the kept weights are stored.
    """

    method: str = "whole"
    seed: int = 0
    format: str = "fp32"
    density: float = 1.0
    epochs: int = 20
    rate: float = 0.03
    alpha: float = 0.0
    beta: float = 0.0
    temperature: float = 1.0
    steps: int = 20
    mu_start: float = 1e-3
    mu_multiplier: float = 1.3
    penalty: float = 0.0
    interval: int = 5
    threshold: float = 1e-4
    factoring: str = "svd"
    period: int = 20
    diagonals_kept: float = 1.0
    slots: int = 4096


KNOBS: tuple[str, ...] = tuple(field.name for field in fields(Knobs))


def knobs_of(design: Mapping[str, Value], fixed: Mapping[str, Value]) -> Knobs:
    """Return the compression settings of a design; values in ``fixed`` take precedence.

    Settings that the method does not read keep their defaults, so that equal networks have equal
    settings.

    Raises:
        SpecError: the design sets a knob that its method does not read, a knob is unknown, or a
            value is invalid.
    """
    values = {**design, **fixed}
    for name, value in values.items():
        check_knob(name, value)
    method = str(values.get("method", Knobs().method))
    read = read_by(method) | {"method"}
    for name in design:
        if name not in read:
            raise SpecError(
                f"the method {method!r} does not read {name!r}",
                hint=f"in the space: {{..., when: {_readers(name)}}}",
            )
    # Any: each knob is cast to the type of its default.
    knobs: dict[str, Any] = {
        name: type(getattr(Knobs(), name))(values[name]) for name in values if name in read
    }
    return _check_knobs(Knobs(**knobs))


def read_by(method: Value | None) -> frozenset[str]:
    """Return the names of the settings that a method uses; all settings without a method."""
    if method is None:
        return frozenset(KNOBS)
    return frozenset(("seed", "format", *METHODS[str(method)]))


def _check_knobs(knobs: Knobs) -> Knobs:
    if knobs.alpha + knobs.beta > 1:
        raise SpecError(
            f"alpha {knobs.alpha} plus beta {knobs.beta} is more than 1",
            hint="in the space: a constraint alpha + beta <= 1",
        )
    return knobs


def _readers(name: str) -> str:
    found = [method for method, read in METHODS.items() if name in read]
    return f"method in {found}"
