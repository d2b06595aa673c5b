"""Validation of an optimizer's suggestions before they are stored, as plug-ins may be faulty."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import NoReturn

from dse.core.design import Design
from dse.core.space import DesignSpace
from dse.errors import DesignError, PluginError

_HINT = (
    "this is a fault of the optimizer, and none of these designs was stored; "
    "dse.testing.OptimizerContract tests that an optimizer asks only legal, new designs"
)


def check_suggestions(
    designs: Sequence[Design],
    space: DesignSpace,
    *,
    by: str,
    wanted: int,
    asked: Mapping[Design, Collection[int]],
    rungs: int = 0,
) -> None:
    """Check that suggested designs are legal, new and not too many.

    Args:
        designs: the suggested designs.
        space: the space in which they have to be legal.
        by: the optimizer's name, for the message.
        wanted: maximum number of designs.
        asked: the numbers of the trials, finished or not, of each earlier design.
        rungs: how often a design may be suggested again, at higher fidelities.

    Raises:
        PluginError: a check fails; the message names the design and the rule that it breaks.
    """
    if len(designs) > wanted:
        raise PluginError(
            f"the optimizer {by!r} suggests {len(designs)} designs where {wanted} are wanted",
            hint=_HINT,
        )
    _check_legal(designs, space, by)
    if len(set(designs)) < len(designs):
        twice = next(d for place, d in enumerate(designs) if d in designs[:place])
        _refuse(by, twice, "which is twice in one suggestion")
    for design in designs:
        trials = asked.get(design, ())
        if len(trials) > rungs:
            _refuse(by, design, f"which trial {max(trials)} is already")


def _check_legal(designs: Sequence[Design], space: DesignSpace, by: str) -> None:
    """Check the legality of all designs in one batch; if it fails, find the illegal design."""
    if all(isinstance(design, Design) for design in designs):
        try:
            batch = space.batch(designs)
            if batch.designs() == list(designs) and space.are_legal(batch).all():
                return
        except (DesignError, TypeError, ValueError):
            pass  # a value is outside its domain: the loop below names it
    for design in designs:
        if not isinstance(design, Design):
            _refuse(by, design, f"which is a {type(design).__name__}, not a Design")
        try:
            space.check(design)
            written = space.batch([design]).design(0)
        except DesignError as error:
            _refuse(by, design, f"but {error.problem}", error)
        if written != design:
            name = next(n for n in design if repr(design[n]) != repr(written[n]))
            _refuse(by, design, f"where {name} is written {written[name]!r}, not {design[name]!r}")


def _refuse(by: str, design: object, why: str, error: DesignError | None = None) -> NoReturn:
    values = dict(design) if isinstance(design, Design) else design
    place = error.where if error else ""
    mend = f"{error.hint}; {_HINT}" if error and error.hint else _HINT
    raise PluginError(f"the optimizer {by!r} suggests {values}, {why}", where=place, hint=mend)
