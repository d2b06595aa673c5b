"""What a beginner says of a study, a line for each parameter and metric."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

from dse.core.metric import Goal
from dse.errors import SpecError
from dse.units import factor, quantity, unit

Measuring = Literal["command", "table", "formula"]

PARAMETER_HINT = "threads = 1..16, rate = 0.1..0.9, size = 16, 32, 64 or format = int8, fp16"
METRIC_HINT = "minimize time ms, or maximize accuracy"

QUESTION = "Which design is best?"
"""What is asked where nobody says it."""

_LATER = "give numbers alone, and their unit in space.yaml: {ordinal: [64 KiB, 128 KiB]}"

_WORD = re.compile(r"[A-Za-z_]\w*")


@dataclass(frozen=True, slots=True, kw_only=True)
class Axis:
    """One parameter: its range where ``values`` is empty, else all that it can be."""

    name: str
    low: float = 0.0
    high: float = 0.0
    values: tuple[float | str, ...] = ()

    @property
    def whole(self) -> bool:
        """True for a range of whole numbers."""
        return not self.values and self.low.is_integer() and self.high.is_integer()


@dataclass(frozen=True, slots=True, kw_only=True)
class Wish:
    """One metric, and where it should go."""

    name: str
    goal: Goal
    unit: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Beginning:
    """All that is needed to write a study that runs."""

    name: str
    question: str
    measuring: Measuring
    axes: tuple[Axis, ...]
    wishes: tuple[Wish, ...]


EXAMPLE_AXES = (
    Axis(name="threads", low=1.0, high=8.0),
    Axis(name="block", values=(16.0, 32.0, 64.0, 128.0)),
    Axis(name="format", values=("fp32", "fp16", "int8")),
)
EXAMPLE_WISHES = (Wish(name="time", goal="minimize", unit="ms"), Wish(name="loss", goal="minimize"))


def axis_of(text: str) -> Axis:
    """The parameter of a line such as ``threads = 1..16`` or ``format = int8, fp16``.

    Raises:
        SpecError: it is no such line.
    """
    name, equals, told = (part.strip() for part in text.partition("="))
    told = told.removeprefix("[").removesuffix("]").strip()
    if not equals or not told:
        raise SpecError(f"{text!r} is no parameter", hint=f"such as {PARAMETER_HINT}")
    _check_word(name)
    low, dots, high = (part.strip() for part in told.partition(".."))
    if dots:
        ends = [_number(end) for end in (low, high)]
        if any(isinstance(end, str) and _has_unit(end) for end in ends):
            raise SpecError(f"{told!r} has a unit", hint=_LATER)
        if not all(isinstance(end, float) for end in ends) or not float(ends[0]) < float(ends[1]):
            raise SpecError(f"{told!r} is no range", hint="two numbers, the smaller first: 1..16")
        return Axis(name=name, low=float(ends[0]), high=float(ends[1]))
    values = tuple(_number(one.strip()) for one in told.split(",") if one.strip())
    measured = next((one for one in values if isinstance(one, str) and _has_unit(one)), None)
    if measured is not None:
        raise SpecError(f"{measured!r} has a unit", hint=_LATER)
    if len(set(values)) < 2 or len(set(values)) < len(values):
        raise SpecError(f"{told!r} is no choice", hint="two values or more, each once: int8, fp16")
    return Axis(name=name, values=values)


def wish_of(text: str) -> Wish:
    """The metric of a line such as ``minimize time ms`` or ``maximize accuracy``.

    Raises:
        SpecError: it is no such line.
    """
    words = text.split()
    goals: dict[str, Goal] = {"minimize": "minimize", "maximize": "maximize"}
    if len(words) not in (2, 3) or words[0] not in goals:
        raise SpecError(f"{text!r} is no metric", hint=f"such as {METRIC_HINT}")
    _check_word(words[1])
    factor(words[2] if len(words) == 3 else "")
    return Wish(name=words[1], goal=goals[words[0]], unit=words[2] if len(words) == 3 else "")


def _check_word(name: str) -> None:
    if not _WORD.fullmatch(name):
        raise SpecError(f"{name!r} is no name", hint="letters, digits and '_', a letter first")


def _has_unit(text: str) -> bool:
    """True for a number with its unit: ``64 KiB``; ``7B`` is rather the size of a model."""
    told = quantity(text)
    try:
        return told is not None and told[1] != "B" and unit(told[1]) is not None
    except SpecError:
        return False


def _number(text: str) -> float | str:
    try:
        return float(text)
    except ValueError:
        return text
