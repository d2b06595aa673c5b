"""Files of pass@k: shares of problems that one of k answers solves, or counts per problem."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from math import isfinite
from pathlib import Path
from typing import NamedTuple

import numpy as np

from dse.errors import SpecError
from dse_evaluators.csv_files.csv_rows import check_columns, open_csv

_SHARES = ("class", "model", "k", "pass")
_COUNTS = ("class", "model", "n", "c")
_OTHERS = ("temperature", "tokens", "problems", "n", "source", "problem", "note")
_MISSPELT = ("temperature", "tokens", "problems")
"""Optional columns that change results, so that a misspelt one is refused."""
_EXAMPLE = "class,model,k,pass or, with a row for each problem, class,model,n,c"
_ENVELOPE = (
    "each temperature is a policy with a difficulty of its own; one fit to the best of them for "
    "each k is off by up to 8 points: write rows for each temperature"
)
_ROUNDING = 5e-4
"""Rounding of published shares, which the checks between shares of one class grant."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PassCurve:
    """Share of the problems of a class that a model solves with at least one of k answers, by k.

    ``tokens`` is the length of an answer, 0 if the file has none; ``temperature`` that of the
    sampling, ``None`` if it is unknown; ``problems`` the number of problems, 0 if it is unknown;
    ``where`` the first line of the file, for messages.
    """

    group: str
    model: str
    tokens: float
    temperature: float | None = None
    solved: Mapping[int, float]
    problems: float
    where: str

    @property
    def name(self) -> str:
        """Class and model, and the temperature if it is known, for messages."""
        return _CurveKey(self.group, self.model, self.tokens, self.temperature).name


class _CurveKey(NamedTuple):
    """Class, model, length and temperature, which all rows of one curve share."""

    group: str
    model: str
    tokens: float
    temperature: float | None

    @property
    def name(self) -> str:
        """Class and model, and the temperature if it is known, for messages."""
        sampled = "" if self.temperature is None else f" at temperature {self.temperature:g}"
        return f"{self.group} of {self.model}{sampled}"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Row:
    where: str
    cells: Mapping[str, str]

    def read_number(self, name: str, least: float, most: float, *, whole: bool = False) -> float:
        """Return a cell as a number in a range.

        Raises:
            SpecError: the cell is not a number in the range.
        """
        text = self.cells[name].strip()
        try:
            value = float(text)
        except ValueError as error:
            hint = f"write {text.replace(',', '.')}, with a point" if "," in text else ""
            problem = f"{name} is {text!r}, which is no number"
            raise SpecError(problem, where=self.where, hint=hint) from error
        kind = "whole number" if whole else "number"
        if not isfinite(value) or (whole and value != round(value)):
            raise SpecError(f"{name} is {text}, which is no {kind}", where=self.where)
        if not least <= value <= most:
            hint = f"a {kind} of {least:g} to {most:g}"
            if name == "pass" and 1 < value <= 100:
                hint = f"write a share: {value / 100:g}"
            raise SpecError(f"{name} is {text}", where=self.where, hint=hint)
        return value

    @property
    def key(self) -> _CurveKey:
        """Class, model, length of an answer and temperature of the sampling.

        Raises:
            SpecError: a cell is empty or invalid.
        """
        texts = [self.cells[name].strip() for name in ("class", "model")]
        for name, text in zip(("class", "model"), texts, strict=True):
            if not text:
                raise SpecError(f"{name} is empty", where=self.where, hint="fill the cell")
        tokens = self.read_number("tokens", 1, 1e9) if "tokens" in self.cells else 0.0
        return _CurveKey(texts[0], texts[1], tokens, self.temperature)

    @property
    def temperature(self) -> float | None:
        """Temperature of the sampling, ``None`` if the file does not state it.

        Raises:
            SpecError: the cell is no number, such as ``best`` for the best of some temperatures.
        """
        text = self.cells.get("temperature", "").strip()
        if not text:
            return None
        try:
            float(text)
        except ValueError as error:
            problem = f"temperature is {text!r}: shares at several temperatures are no single curve"
            raise SpecError(problem, where=self.where, hint=_ENVELOPE) from error
        return self.read_number("temperature", 0, 100)


def read_pass_file(path: Path) -> tuple[PassCurve, ...]:
    """Read a CSV file of shares (class, model, k, pass) or of counts (class, model, n, c).

    Counts have a row for each problem: ``c`` of its ``n`` answers are right. They become shares at
    k = 1, 2, 4, ... up to the smallest n. Columns ``tokens`` (length of an answer), ``temperature``
    (of the sampling: rows of each are a curve), ``problems``, ``n`` (answers that were drawn for a
    share) and ``source`` are optional.

    Raises:
        SpecError: the file cannot be read, lacks a column, or a row is invalid or contradicts
            another; with the line.

    Source:
        Chen et al.: Evaluating Large Language Models Trained on Code, 2021, section 2.1, for the
        unbiased estimate of pass@k from counts.
    """
    table = open_csv(path, _EXAMPLE)
    form = _find_form(table.names, path)
    rows: dict[_CurveKey, list[_Row]] = {}
    for cells in table.rows:
        row = _Row(where=cells.place, cells=cells.cells)
        rows.setdefault(row.key, []).append(row)
    if form is _SHARES:
        _check_temperatures(rows)
    read = _curve_of_shares if form is _SHARES else _curve_of_counts
    return tuple(read(key, some) for key, some in rows.items())


def _find_form(names: Sequence[str], path: Path) -> Sequence[str]:
    form = _SHARES if {"k", "pass"} & set(names) or "c" not in names else _COUNTS
    check_columns(names, form, path, _EXAMPLE)
    where = f"{path}:1"
    if {"pass", "c"} <= set(names):
        problem = "there are both shares (pass) and counts (c)"
        raise SpecError(problem, where=where, hint=f"leave one out: columns are {_EXAMPLE}")
    for name in names:
        meant = [] if name in (*form, *_OTHERS) else get_close_matches(name, _MISSPELT, 1, 0.8)
        if meant:  # other columns are the user's own, and have no effect
            hint = f"did you mean {meant[0]!r}?"
            raise SpecError(f"the column {name!r} is not read", where=where, hint=hint)
    return form


def _check_temperatures(rows: Mapping[_CurveKey, Sequence[_Row]]) -> None:
    """Check that no curve has its pass@1 at another temperature than its other shares."""
    single = {key for key, some in rows.items() if any(_is_single(row) for row in some)}
    for key, some in rows.items():
        beside = [one for one in single if one[:3] == key[:3]]
        if key in single or not beside:
            continue
        problem = f"{key.name} has no pass@1, which is stated of {beside[0].name}"
        raise SpecError(problem, where=some[0].where, hint=_ENVELOPE)


def _is_single(row: _Row) -> bool:
    return row.read_number("k", 1, 1e9, whole=True) == 1


def _curve_of_shares(key: _CurveKey, rows: Sequence[_Row]) -> PassCurve:
    found: dict[int, tuple[float, _Row]] = {}
    for row in rows:
        most = row.read_number("n", 1, 1e9, whole=True) if row.cells.get("n", "") else 1e9
        count = int(row.read_number("k", 1, 1e9, whole=True))
        if count > most:
            problem = f"pass@{count} is stated from {most:g} answers"
            raise SpecError(problem, where=row.where, hint="k is at most n")
        if count in found:
            problem = f"{key.name} has pass@{count} twice"
            hint = "remove one, or add a column tokens or temperature"
            raise SpecError(problem, where=row.where, hint=hint)
        found[count] = (row.read_number("pass", 0, 1), row)
    _check_shares(key, dict(sorted(found.items())))
    first = rows[0]
    problems = first.read_number("problems", 1, 1e12) if first.cells.get("problems", "") else 0.0
    solved = {count: found[count][0] for count in sorted(found)}
    return PassCurve(
        **key._asdict(),
        solved=solved,
        problems=problems,
        where=first.where,
    )


def _check_shares(key: _CurveKey, found: Mapping[int, tuple[float, _Row]]) -> None:
    """Check the shares of one class and model, by rising k, against one another."""
    name = key.name
    first = next(iter(found.values()))
    if 1 not in found:
        hint = "add the row with k = 1: it is the mean share of right answers"
        raise SpecError(f"{name} has no pass@1", where=first[1].where, hint=hint)
    single = found[1][0]
    before, last = 0.0, 0
    for count, (share, row) in found.items():
        if share < before - _ROUNDING:
            problem = f"pass@{count} of {name} is {share:g}, below pass@{last}, which is {before:g}"
            hint = "the share of solved problems cannot fall with more answers"
            raise SpecError(problem, where=row.where, hint=hint)
        most = 1.0 - (1.0 - single) ** count
        # A pass@1 of 0.001 may have been 0.0014, and k answers multiply that rounding.
        if share > 1.0 - max(1.0 - single - _ROUNDING, 0.0) ** count + _ROUNDING:
            problem = f"pass@{count} of {name} is {share:g}, and pass@1 is {single:g}"
            hint = (
                f"with this pass@1 at most {most:.4g} of the problems are solved by {count} answers"
            )
            raise SpecError(problem, where=row.where, hint=hint)
        before, last = max(share, before), count
    _check_single(name, single, first[1].where)


def _check_single(name: str, single: float, where: str) -> None:
    if not 0 < single < 1:
        what = "no answer is right" if single == 0 else "every answer is right"
        hint = "leave this class out: no difficulty can be fitted to it"
        raise SpecError(f"{name}: {what}, pass@1 is {single:g}", where=where, hint=hint)


def _curve_of_counts(key: _CurveKey, rows: Sequence[_Row]) -> PassCurve:
    drawn, right = [], []
    for row in rows:
        answers = row.read_number("n", 1, 1e9, whole=True)
        solved = row.read_number("c", 0, 1e9, whole=True)
        if solved > answers:
            problem = f"c is {solved:g}, more than the {answers:g} answers of the problem"
            raise SpecError(problem, where=row.where, hint="c is at most n")
        drawn.append(answers)
        right.append(solved)
    n, c = np.array(drawn), np.array(right)
    counts = [2**power for power in range(int(n.min()).bit_length())]
    shares = {count: _estimate_share(n, c, count) for count in counts}
    where = rows[0].where
    _check_single(key.name, shares[1], where)
    return PassCurve(
        **key._asdict(),
        solved=shares,
        problems=float(len(rows)),
        where=where,
    )


def _estimate_share(n: np.ndarray, c: np.ndarray, count: int) -> float:
    """Return the unbiased estimate of pass@k: the mean of 1 - C(n - c, k) / C(n, k)."""
    missed = np.ones_like(n)
    for place in range(count):
        missed *= np.clip(n - c - place, 0.0, None) / (n - place)
    return float(np.mean(1.0 - missed))


def is_number(value: object) -> bool:
    """Return whether an option is a number and not a Boolean."""
    return isinstance(value, int | float) and not isinstance(value, bool)
