"""Ours: the space as a diagram of its legal designs."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
from statement import Row, Setting, Statement
from tool import Tool

from dse.core.batch import Batch
from dse.core.space import DesignSpace
from dse.schema.space.space_loader import space_from
from dse.schema.yaml.files import Files

SPACES = Path(__file__).resolve().parents[2] / "spaces"


def stated(statement: Statement) -> DesignSpace:
    """The space that the file describes."""
    return _read(statement.file, tuple(statement.arguments.items()))


@cache
def _read(file: str, arguments: tuple[tuple[str, Setting], ...]) -> DesignSpace:
    path = SPACES / file
    described = dict(Files().source(path).value)
    described["arguments"] = described.get("arguments", {}) | dict(arguments)
    return space_from(described, beside=path)


@cache
def _example(file: str, arguments: tuple[tuple[str, Setting], ...]) -> Row:
    space = _read(file, arguments)
    (design,) = space.sample(1, np.random.default_rng(0)).designs()
    return tuple(design.get(parameter.name) for parameter in space.parameters)


def example(statement: Statement) -> dict[str, Setting | None]:
    """One legal design."""
    row = _example(statement.file, tuple(statement.arguments.items()))
    return dict(zip(statement.names, row, strict=True))


def _fresh(statement: Statement) -> DesignSpace:
    """The same parameters and rules, nothing solved yet."""
    return replace(stated(statement))


def _prepare(statement: Statement) -> None:
    stated(statement)


def _count(statement: Statement) -> int:
    count = _fresh(statement).count()
    return -1 if count is None else count


def _listed(statement: Statement, most: int | None) -> int:
    space = _fresh(statement)
    have = 0
    for batch in space.enumerate():
        for parameter in space.parameters:
            batch[parameter.name]
        have += len(batch)
        if most is not None and have >= most:
            break
    return have


def _sampled(statement: Statement, number: int, seed: int) -> Batch:
    return _fresh(statement).sample(number, np.random.default_rng(seed))


def _rows(statement: Statement, drawn: object) -> list[Row]:
    assert isinstance(drawn, Batch)
    names = [parameter.name for parameter in stated(statement).parameters]
    return [tuple(design.get(name) for name in names) for design in drawn.designs()]


OURS = Tool(
    name="dse", prepare=_prepare, count=_count, listed=_listed, sampled=_sampled, rows=_rows
)
