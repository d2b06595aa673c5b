"""Parameter blocks: parameters joined so that small rules become lists of allowed combinations."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from dse.core.batch import Column
from dse.core.expressions.expression import Expression
from dse.core.legal_set.decision_diagram import Codes
from dse.core.parameter import Finite

MOST_ROWS = 256
"""Most combinations of a block of several parameters."""

_TRIED_ROWS = 16_384


@dataclass(frozen=True)
class ParameterBlock:
    """Coupled parameters, by index in their group, and their allowed value combinations.

    The group is the set of parameters that rules couple, directly or through other parameters.
    """

    places: tuple[int, ...]
    rows: Codes  # (r, k)


def fold_rules(
    parameters: Sequence[Finite], rules: Sequence[Expression]
) -> tuple[list[ParameterBlock], list[Expression]]:
    """Fold rules over few combinations into blocks of parameters; return blocks and other rules.

    Each parameter is in exactly one block. A rule over one parameter shortens its domain; a rule
    over several parameters joins their blocks and filters the combinations, if at most
    :data:`MOST_ROWS` remain.
    """
    places = {parameter.name: place for place, parameter in enumerate(parameters)}
    home = list(range(len(parameters)))
    blocks = {
        place: ParameterBlock((place,), np.arange(len(parameter.values), dtype=np.int32)[:, None])
        for place, parameter in enumerate(parameters)
    }
    left = list[Expression]()
    for rule in sorted(rules, key=lambda one: len(one.names)):
        touched = sorted({home[places[name]] for name in rule.names & places.keys()})
        merged = _merge_blocks(parameters, [blocks[one] for one in touched], rule)
        if merged is None:
            left.append(rule)
            continue
        for one in touched:
            del blocks[one]
        blocks[touched[0]] = merged
        for place in merged.places:
            home[place] = touched[0]
    return list(blocks.values()), left


def _merge_blocks(
    parameters: Sequence[Finite], blocks: Sequence[ParameterBlock], rule: Expression
) -> ParameterBlock | None:
    """Return the join of the blocks, filtered by the rule; ``None`` if it is too large."""
    sizes = [len(block.rows) for block in blocks]
    if not blocks or (len(blocks) > 1 and math.prod(sizes) > _TRIED_ROWS):
        return None
    picks = np.indices(sizes).reshape(len(sizes), -1)
    rows = np.concatenate(
        [block.rows[pick] for block, pick in zip(blocks, picks, strict=True)], axis=1
    )
    places = tuple(place for block in blocks for place in block.places)
    columns = {
        parameters[place].name: Column.coded(parameters[place].values, rows[:, turn])
        for turn, place in enumerate(places)
    }
    rows = rows[rule.holds(columns, len(rows), unknown=True)]
    return None if len(blocks) > 1 and len(rows) > MOST_ROWS else ParameterBlock(places, rows)
