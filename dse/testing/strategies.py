"""Hypothesis strategies for parameters, spaces and losses."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import strategies as st

from dse.core.expressions.expression import Expression
from dse.core.expressions.parser import parse
from dse.core.parameter import Choice, Finite, Integer, Ordinal
from dse.core.space import DesignSpace
from dse.core.values import Floats

_CHOICES = ("int8", "fp8", "mxfp4", "bf16")


@st.composite
def finite_parameters(draw: Any, name: str) -> Finite:
    """Generate an integer, ordinal or choice parameter with two to six values."""
    kind = draw(st.sampled_from(["integer", "ordinal", "choice"]))
    if kind == "integer":
        low = draw(st.integers(-2, 3))
        step = draw(st.integers(1, 2))
        return Integer(name=name, low=low, high=low + step * draw(st.integers(1, 4)), step=step)
    if kind == "ordinal":
        values = draw(st.lists(st.integers(1, 16), min_size=2, max_size=5, unique=True))
        return Ordinal(name=name, values=tuple(sorted(values)))
    size = draw(st.integers(2, 4))
    return Choice(name=name, values=_CHOICES[:size])


@st.composite
def spaces(draw: Any) -> DesignSpace:
    """Generate a constrained space of two to five finite parameters, possibly without a design."""
    count = draw(st.integers(2, 5))
    parameters = tuple(draw(finite_parameters(f"p{place}")) for place in range(count))
    conditions = {
        p.name: draw(_tests(parameters[:place]))
        for place, p in enumerate(parameters)
        if place and draw(st.booleans()) and draw(st.booleans())
    }
    rules = draw(st.lists(_rules(parameters), max_size=3))
    return DesignSpace(parameters=parameters, conditions=conditions, constraints=tuple(rules))


def losses(rows: int = 12, columns: int = 3) -> st.SearchStrategy[Floats]:
    """Return a strategy for small loss arrays with many ties, (n, m).

    Args:
        rows: maximum n; the minimum is 1.
        columns: m, the number of objectives.
    """
    numbers = st.integers(0, 5).map(float)
    row = st.lists(numbers, min_size=columns, max_size=columns)
    return st.lists(row, min_size=1, max_size=rows).map(np.array)


@st.composite
def _tests(draw: Any, parameters: tuple[Finite, ...]) -> Expression:
    """Generate a comparison of one parameter with one of its values, as an expression."""
    parameter = draw(st.sampled_from(parameters))
    value = draw(st.sampled_from(parameter.values))
    if isinstance(parameter, Choice):
        return parse(f"{parameter.name} {draw(st.sampled_from(['==', '!=']))} '{value}'")
    return parse(f"{parameter.name} {draw(st.sampled_from(['<=', '>=', '!=']))} {value}")


@st.composite
def _rules(draw: Any, parameters: tuple[Finite, ...]) -> Expression:
    """Generate a constraint over one to three parameters."""
    numeric = [p.name for p in parameters if not isinstance(p, Choice)]
    one, other = draw(_tests(parameters)).text, draw(_tests(parameters)).text
    shapes = [f"{one} or {other}", f"{one} -> {other}", f"not ({one} and {other})"]
    if len(numeric) > 1:
        a, b = draw(st.permutations(numeric))[:2]
        shapes += [f"{a} * {b} <= 20", f"{a} + {b} != 3", f"{a} % 2 == 0 or {b} > 2"]
        shapes += [f"{one} -> {a} - {b} < 4", f"0.1 * {a} + 0.3 * {b} <= 1.1"]
        shapes += [f"min({a}, {b}) > 1 or {other}", f"2 <= {a} + {b} <= 12", f"{a} is not absent"]
    if len(numeric) > 2:
        a, b, c = draw(st.permutations(numeric))[:3]
        shapes += [f"{a} * {b} * {c} <= 64", f"{a} + {b} - {c} <= 6", f"{a} + {b} + {c} == 8"]
        shapes += [f"all_different({a}, {b}, {c})", f"max({a}, {b}, {c}) <= 7 and {one}"]
        shapes += [f"({one}) + ({a} > {b}) + ({b} > {c}) >= 2", f"{a} % {b} == 0 -> {c} > 1"]
    return parse(draw(st.sampled_from(shapes)))
