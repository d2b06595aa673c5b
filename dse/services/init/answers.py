"""Parser of the answers given to ``dse init``: one line for each parameter and metric."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from dse.core.metric import Goal
from dse.errors import SpecError
from dse.units.units import WRITTEN, factor, quantity, unit

Measuring = Literal["command", "table", "formula"]

PARAMETER_HINT = "threads = 1..16, rate = 0.1..0.9, size = 16, 32, 64 or format = int8, fp16"
METRIC_HINT = "minimize time ms, or maximize accuracy"

QUESTION = "Which design is best?"
"""Default question of a new study."""

_LATER = (
    "give numbers alone, and their unit in space.yaml: {ordinal: [64 KiB, 128 KiB]}; "
    "words are written there as {choice: [5ms, fast]}"
)
_JOINED = frozenset(WRITTEN) - {"B", "s", "h", "min"}
"""Units that may follow a number without a space; ``7B``, ``4h`` and ``2d`` are read as names."""

_WORD = re.compile(r"[A-Za-z_]\w*")


@dataclass(frozen=True, slots=True, kw_only=True)
class ParameterAnswer:
    """Parameter entered by the user: a range from ``low`` to ``high``, or a list of ``values``."""

    name: str
    low: float = 0.0
    high: float = 0.0
    values: tuple[float | str, ...] = ()

    @property
    def whole(self) -> bool:
        """Whether the described parameter is a range of integers."""
        return not self.values and self.low.is_integer() and self.high.is_integer()


@dataclass(frozen=True, slots=True, kw_only=True)
class MetricAnswer:
    """Objective entered by the user for a new study: a metric with goal and unit."""

    name: str
    goal: Goal
    unit: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class InitAnswers:
    """All answers of the user to the questions of ``dse init``, for the files of a new study.

    Raises:
        SpecError: two parameters or two metrics have the same name.
    """

    name: str
    question: str
    measuring: Measuring
    axes: tuple[ParameterAnswer, ...]
    metrics: tuple[MetricAnswer, ...]

    def __post_init__(self) -> None:
        check_names("parameter", self.axes)
        check_names("metric", self.metrics)


EXAMPLE_PARAMETERS = (
    ParameterAnswer(name="threads", low=1.0, high=8.0),
    ParameterAnswer(name="block", values=(16.0, 32.0, 64.0, 128.0)),
    ParameterAnswer(name="format", values=("fp32", "fp16", "int8")),
)
EXAMPLE_METRICS = (
    MetricAnswer(name="time", goal="minimize", unit="ms"),
    MetricAnswer(name="loss", goal="minimize"),
)


def parse_parameter(text: str) -> ParameterAnswer:
    """Parse a parameter from a line such as ``threads = 1..16`` or ``format = int8, fp16``.

    Raises:
        SpecError: the line does not describe a parameter in this notation.
    """
    name, equals, domain = (part.strip() for part in text.partition("="))
    domain = domain.removeprefix("[").removesuffix("]").strip()
    if not equals or not domain:
        raise SpecError(f"{text!r} is no parameter", hint=f"such as {PARAMETER_HINT}")
    _check_word(name)
    low, dots, high = (part.strip() for part in domain.partition(".."))
    if dots:
        ends = [_number(end) for end in (low, high)]
        if any(isinstance(end, str) and _has_unit(end) for end in ends):
            raise SpecError(f"{domain!r} has a unit", hint=_LATER)
        if not all(isinstance(end, float) for end in ends) or not float(ends[0]) < float(ends[1]):
            raise SpecError(f"{domain!r} is no range", hint="two numbers, the smaller first: 1..16")
        return ParameterAnswer(name=name, low=float(ends[0]), high=float(ends[1]))
    values = tuple(_number(one.strip()) for one in domain.split(",") if one.strip())
    measured = next((one for one in values if isinstance(one, str) and _has_unit(one)), None)
    if measured is not None:
        raise SpecError(f"{measured!r} has a unit", hint=_LATER)
    if len(set(values)) < 2 or len(set(values)) < len(values):
        raise SpecError(
            f"{domain!r} is no choice", hint="two values or more, each once: int8, fp16"
        )
    return ParameterAnswer(name=name, values=values)


def parse_metric(text: str) -> MetricAnswer:
    """Parse a metric from a line such as ``minimize time ms`` or ``maximize accuracy``.

    Raises:
        SpecError: the line does not describe a metric in this notation.
    """
    words = text.split()
    goals: dict[str, Goal] = {"minimize": "minimize", "maximize": "maximize"}
    if len(words) not in (2, 3) or words[0] not in goals:
        raise SpecError(f"{text!r} is no metric", hint=f"such as {METRIC_HINT}")
    _check_word(words[1])
    factor(words[2] if len(words) == 3 else "")
    return MetricAnswer(
        name=words[1], goal=goals[words[0]], unit=words[2] if len(words) == 3 else ""
    )


def check_names(what: str, ones: Iterable[ParameterAnswer | MetricAnswer]) -> None:
    """Raise SpecError unless all names of the parameters or metrics are distinct.

    Args:
        what: noun for the error message, such as ``metric``.
        ones: the parameters or the metrics.

    Raises:
        SpecError: a name occurs twice.
    """
    names = Counter(one.name for one in ones)
    twice = next((name for name, count in names.items() if count > 1), None)
    if twice is not None:
        raise SpecError(f"there is a {what} {twice!r} already", hint="name another")


def _check_word(name: str) -> None:
    if not _WORD.fullmatch(name):
        raise SpecError(f"{name!r} is no name", hint="letters, digits and '_', a letter first")


def _has_unit(text: str) -> bool:
    """Return whether a string is a number with a unit: ``64 KiB`` is one, ``7B`` is not."""
    found = quantity(text)
    if found is None or found[1] == "B":
        return False
    if " " not in text.removesuffix(found[1]):
        return found[1] in _JOINED
    try:
        return unit(found[1]) is not None
    except SpecError:
        return False


def _number(text: str) -> float | str:
    try:
        return float(text)
    except ValueError:
        return text
