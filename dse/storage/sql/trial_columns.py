"""Conversion of rows of trials to columns of arrays, for fast reading of large studies."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from contextlib import suppress

import numpy as np

from dse.core.trials import STATES, TIMES, Trials, numbers, objects
from dse.core.values import Floats, Ints
from dse.storage.sql.codec import build_damage_error, fault_of
from dse.storage.sql.trial_rows import COLUMNS, NOTHING, Row, check_sums

_CODES = {state.value: code for code, state in enumerate(STATES)}
_MANY = 5_000
"""Number of rows from which pyarrow saves more time than its import takes."""


def trials_of(study: str, pages: Iterable[Sequence[Row]]) -> Trials:
    """Convert database rows with the columns :data:`COLUMNS` to trials.

    Args:
        study: the study's name, for the message.
        pages: chunks of rows.

    Raises:
        StorageError: a row is damaged; the message has its number.
    """
    found = [_page(study, rows) for rows in pages]
    return Trials.joined(found)


def _page(study: str, rows: Sequence[Row]) -> Trials:
    try:
        check_sums(study, rows)
        return _columns(rows)
    except (ValueError, TypeError, KeyError, AttributeError, OverflowError) as error:
        if len(rows) == 1:
            raise build_damage_error(study, f"trial {rows[0][0]} is damaged: {error}") from error
        return Trials.joined([_page(study, [row]) for row in rows])


def _columns(rows: Sequence[Row]) -> Trials:
    columns = dict(zip(COLUMNS, zip(*rows, strict=True), strict=True))
    faults = {text: fault_of(text) for text in set(columns["fault"])}
    found = Trials(
        number=np.array(columns["number"], dtype=np.int64),
        told=np.array(columns["told"], dtype=np.int64),
        state=np.array([_CODES[state] for state in columns["state"]], dtype=np.int8),
        cost_s=np.array(columns["cost_s"], dtype=np.float64),
        measured=np.array(columns["measured"], dtype=np.int64),
        attempts=np.array(columns["attempts"], dtype=np.int64),
        worker=_or_none(columns["worker"]),
        ended=_or_none(columns["finished_seq"]),
        **{name: np.array(columns[name], dtype=np.float64) for name in TIMES},  # None is NaN
        designs=objects(columns["design"]),
        faults=objects([faults[text] for text in columns["fault"]]),
        metrics=_numbers(columns["metrics"]),
        spread=_numbers(columns["spread"]),
    )
    if (found.over != (found.ended >= 0)).any():
        raise ValueError("its state contradicts its index among the finished trials")
    return found


def _or_none(values: Sequence[int | None]) -> Ints:
    return np.array([-1 if one is None else one for one in values], dtype=np.int64)


def _numbers(texts: Sequence[str]) -> dict[str, Floats]:
    """Parse one JSON object of numbers per trial to arrays over the trials, by name."""
    if texts.count(NOTHING) == len(texts):
        return {}
    if len(texts) >= _MANY:
        with suppress(ValueError):  # pyarrow refuses lone surrogates in names
            return _arrow_numbers(texts)
    rows = json.loads(f"[{','.join(texts)}]")  # one parser call takes half the time
    if len(rows) != len(texts):
        raise ValueError("its numbers are no object of JSON")
    return numbers(rows)


def _arrow_numbers(texts: Sequence[str]) -> dict[str, Floats]:
    """Parse as :func:`_numbers` does, but with pyarrow: bitwise equal, in a third of the time."""
    import pyarrow as pa
    from pyarrow.json import ReadOptions, read_json

    lines = "\n".join(texts).encode()
    options = ReadOptions(use_threads=False, block_size=len(lines) + 1)
    table = read_json(pa.BufferReader(lines), read_options=options)
    if table.num_rows != len(texts):
        raise ValueError("its numbers are no object of JSON")
    return {
        name: np.asarray(table.column(name).to_numpy(), dtype=np.float64)
        for name in sorted(table.column_names)
    }
