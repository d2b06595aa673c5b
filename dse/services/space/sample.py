"""Sampling of legal designs: uniform, Sobol, stratified, or with some values fixed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

import numpy as np

from dse.core.batch import Batch, concatenate_batches
from dse.core.design import Design
from dse.core.inspection.rule_check import why
from dse.core.inspection.rule_conflicts import draw_legal, narrow_space
from dse.core.space import DesignSpace
from dse.core.values import Value
from dse.errors import DesignError
from dse.report.text.space_words import rule_text

Method = Literal["uniform", "sobol", "stratified"]

MAX_SOBOL = 21_201
"""Largest dimension for which the direction numbers of Joe and Kuo are available."""

MOST_VALUES = 200_000_000
"""Largest number of values (designs times parameters) drawn at once: about a gigabyte."""

_ROUNDS = 100


def draw(space: DesignSpace, count: int, seed: int, method: Method) -> Batch:
    """Draw legal designs by one of the methods ``uniform``, ``sobol`` and ``stratified``.

    ``sobol`` maps a Sobol sequence to designs, and ``stratified`` a Latin hypercube; points that
    violate a constraint on real parameters are replaced by further points of the same type. The
    result has fewer than ``count`` designs if almost all points are illegal.

    Raises:
        DesignError: no design was found, ``count`` designs do not fit in memory, or the space has
            too many parameters for the method.
    """
    check_size(space, count)
    if method == "uniform":
        return space.sample(count, np.random.default_rng(seed))
    from scipy.stats import qmc

    if method == "sobol" and space.coordinates > MAX_SOBOL:
        raise DesignError(
            f"a Sobol sequence has at most {MAX_SOBOL:,} coordinates, not {space.coordinates:,}",
            hint="--method stratified",
        )
    sequence = (qmc.Sobol if method == "sobol" else qmc.LatinHypercube)(space.coordinates, rng=seed)
    found, have = list[Batch](), 0
    for _ in range(_ROUNDS):
        missing = max(count - have, 1)
        block = 1 << (missing - 1).bit_length() if method == "sobol" else missing
        batch = space.at(sequence.random(block))
        found.append(batch.take(np.arange(min(len(batch), count - have))))
        have += len(found[-1])
        if have >= count:
            break
    if not have:
        raise space.legal.no_draw()
    return concatenate_batches(found)


def too_few(space: DesignSpace, found: int, count: int) -> str:
    """Return the warning for a sample that has fewer designs than requested."""
    tries = max((c.tries for c in space.legal.components if c.dropped), default=0)
    many = f" in {max(tries, 4 * count):,} draws" if tries else ""
    return f"only {found:,} of {count:,} designs were found{many}: the rules reject almost all"


def check_size(space: DesignSpace, count: int) -> None:
    """Raise DesignError unless ``count`` designs of the space fit in memory at once."""
    most = MOST_VALUES // max(len(space.parameters), 1)
    if count > most:
        raise DesignError(
            f"{count:,} designs of {len(space.parameters):,} parameters are too many at once",
            hint=f"at most {most:,}; draw several times with other seeds, or enumerate",
        )


def design_with(space: DesignSpace, values: Mapping[str, Value], seed: int) -> Design:
    """Return a random legal design in which some parameters have the given values.

    Raises:
        DesignError: there is no such design; the hint lists the rules that exclude it.
    """
    found = draw_legal(part_with(space, values), np.random.default_rng(seed))
    return space.batch([found]).design(0)


def part_with(space: DesignSpace, values: Mapping[str, Value]) -> DesignSpace:
    """Return the subspace in which some parameters have the given values.

    Raises:
        DesignError: the subspace is empty; the hint lists the rules that exclude it.
    """
    explanation = why(space, values) if values else None
    if explanation is not None and explanation.example is None:
        verb = "has" if explanation.left == 0 else "was found that has"
        rules = [rule_text(space, rule) for rule in explanation.against]
        raise DesignError(f"no legal design {verb} these values", hint="; ".join(rules))
    return narrow_space(space, values)
