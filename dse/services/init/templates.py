"""Templates for the files of a first study, with comments; the study runs without changes."""

from __future__ import annotations

import csv
import io
import json
from dataclasses import replace
from itertools import product
from pathlib import Path
from string import Template

from dse.services.init.answers import InitAnswers, ParameterAnswer

_LISTED = 4
"""Number of values that the table lists for a range."""


def files(asked: InitAnswers) -> dict[str, str]:
    """Return the texts of the files of a new study, by file name."""
    if asked.measuring == "table":
        asked = replace(asked, axes=tuple(map(_list_values, asked.axes)))
    written = {"space.yaml": _space(asked), "study.yaml": _study(asked)}
    if asked.measuring == "command":
        written["measure.py"] = _program(asked)
    if asked.measuring == "table":
        written["measured.csv"] = _table(asked)
    return written


def _space(asked: InitAnswers) -> str:
    lines = [
        "# The parameters, and the constraints on their combinations.",
        f"space: {_quote_yaml(asked.name)}",
        "parameters:",
        *(f"  {axis.name}: {_domain(axis)}" for axis in asked.axes),
    ]
    example = next((axis for axis in asked.axes if axis.values), asked.axes[0])
    lines += [
        "# Rules over the parameters: a design that breaks one is never tried. For example:",
        "# constraints:",
        f"#   - {example.name} != {_value(example, 0.0)}",
    ]
    return "\n".join(lines) + "\n"


def _domain(axis: ParameterAnswer) -> str:
    if not axis.values:
        kind = "integer" if axis.whole else "real"
        return f"{{{kind}: [{axis.low:g}, {axis.high:g}]}}"
    kind = "choice" if any(isinstance(one, str) for one in axis.values) else "ordinal"
    listed = ", ".join(
        _quote_yaml(one) if isinstance(one, str) else f"{one:g}" for one in axis.values
    )
    return f"{{{kind}: [{listed}]}}"


def _study(asked: InitAnswers) -> str:
    lines = [
        f"study: {_quote_yaml(asked.name)}",
        f"question: {_quote_yaml(asked.question)}",
        "space: space.yaml",
        "evaluators:",
        *_evaluator(asked),
        "objectives:",
        *(f"  - {metric.goal}: bench.{metric.name}" for metric in asked.metrics),
        "# Limits that a feasible design must satisfy, such as:",
        "# constraints:",
        f"#   - bench.{asked.metrics[0].name} <= 2{f' {asked.metrics[0].unit}'.rstrip()}",
    ]
    if asked.measuring != "formula":
        lines.append("budget: {measurements: 30}     # equal designs are measured once")
    return "\n".join(lines) + "\n"


def _evaluator(asked: InitAnswers) -> list[str]:
    units = ", ".join(f"{metric.name}: {_quote_yaml(metric.unit)}" for metric in asked.metrics)
    match asked.measuring:
        case "command":
            return [
                "  # A program that receives each design as JSON and prints its metrics.",
                "  bench:",
                "    use: command",
                "    run: [python3, measure.py]",
                f"    metrics: {{{units}}}     # each with its unit",
                "    timeout: 10 min",
            ]
        case "table":
            return [
                "  # One row for each measured design; other designs cannot be evaluated.",
                f"  bench: {{use: table, file: measured.csv, metrics: {{{units}}}}}",
            ]
        case "formula":
            return [
                "  # Formulas over the parameters. These are examples: replace them by yours.",
                "  bench:",
                "    use: expression",
                "    metrics:",
                *(
                    f"      {metric.name}: {{formula: {_quote_yaml(_formula(asked, at))}"
                    f"{f', unit: {_quote_yaml(metric.unit)}' if metric.unit else ''}}}"
                    for at, metric in enumerate(asked.metrics)
                ),
            ]


def _formula(asked: InitAnswers, place: int) -> str:
    """Return the formula of a synthetic metric: 1 plus a sum of squared distances.

    There is one distance per parameter: from the parameter, scaled to 0 to 1, to its optimum by
    :func:`_best`.
    """
    best = _best(place)
    unit = f" * 1 {asked.metrics[place].unit}" if asked.metrics[place].unit else ""
    terms = " + ".join(f"({_share(axis)} - {best}) ** 2" for axis in asked.axes)
    return f"(1 + {terms}){unit}"


def _share(axis: ParameterAnswer) -> str:
    """Return a formula that scales the parameter from 0 (first value) to 1 (last value)."""
    if any(isinstance(one, str) for one in axis.values):
        last = max(len(axis.values) - 1, 1)
        terms = [
            f"{at / last:.3g} * ({axis.name} == '{one}')" for at, one in enumerate(axis.values)
        ]
        return f"({' + '.join(terms[1:])})"
    low, high = _ends(axis)
    return f"({axis.name} - {low:g}) / {high - low:g}"


def _ends(axis: ParameterAnswer) -> tuple[float, float]:
    numbers = [float(one) for one in axis.values] or [axis.low, axis.high]
    return min(numbers), max(numbers)


def _program(asked: InitAnswers) -> str:
    text = Path(__file__).with_name("measure.txt").read_text(encoding="utf-8")
    values = {
        axis.name: [_as_sent(one) for one in axis.values or (axis.low, axis.high)]
        for axis in asked.axes
    }
    best = {metric.name: _best(place) for place, metric in enumerate(asked.metrics)}
    sample = {name: some[0] for name, some in values.items()}
    return Template(text).substitute(
        sample=json.dumps(sample), values=json.dumps(values), best=json.dumps(best)
    )


def _as_sent(value: float | str) -> float | str:
    """Return a value in the type that a program receives: integral floats become integers."""
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _best(place: int) -> float:
    """Return the optimum of the synthetic metric with index ``place``, from 0 to 1.

    It is the optimal value of every parameter after scaling to that range.
    """
    return 0.2 if place % 2 == 0 else 0.8


def _table(asked: InitAnswers) -> str:
    """Return a CSV table of all combinations of values, with synthetic metrics."""
    file = io.StringIO()
    writer = csv.writer(file, lineterminator="\n")
    writer.writerow(
        [*(axis.name for axis in asked.axes), *(metric.name for metric in asked.metrics)]
    )
    grids = [_grid(axis) for axis in asked.axes]
    for row in product(*grids):
        numbers = [
            _made_up(place, [share for _, share in row]) for place in range(len(asked.metrics))
        ]
        writer.writerow([*(value for value, _ in row), *(f"{number:.4g}" for number in numbers)])
    return file.getvalue()


def _list_values(axis: ParameterAnswer) -> ParameterAnswer:
    """Return the parameter with listed values; a range becomes a few evenly spaced values."""
    if axis.values:
        return axis
    shares = [at / (_LISTED - 1) for at in range(_LISTED)]
    numbers = [axis.low + share * (axis.high - axis.low) for share in shares]
    rounded = [float(round(one)) if axis.whole else float(f"{one:g}") for one in numbers]
    return ParameterAnswer(name=axis.name, values=tuple(dict.fromkeys(rounded)))


def _grid(axis: ParameterAnswer) -> list[tuple[str, float]]:
    """Return each value of a parameter as text, with its index scaled to 0 to 1."""
    last = max(len(axis.values) - 1, 1)
    texts = [one if isinstance(one, str) else f"{one:g}" for one in axis.values]
    return [(text, at / last) for at, text in enumerate(texts)]


def _made_up(place: int, shares: list[float]) -> float:
    return 1.0 + sum((share - _best(place)) ** 2 for share in shares)


def _value(axis: ParameterAnswer, default: float) -> str:
    first = axis.values[0] if axis.values else default
    return f"'{first}'" if isinstance(first, str) else f"{first:g}"


def _quote_yaml(text: str) -> str:
    """Return a text as a YAML scalar, quoted where YAML would read it as another type."""
    plain = text.replace("_", "").replace("-", "").isalnum() and not text[0].isdigit()
    reserved = text.lower() in {"true", "false", "yes", "no", "on", "off", "null", "none", "y", "n"}
    return text if plain and not reserved else json.dumps(text, ensure_ascii=False)
