"""Operators of recommendation models, from the sizes that the files of DLRM and DeepRecSys have."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

from dse.errors import SpecError, nearest

KINDS = ("linear", "lookup", "attention", "recurrent", "other")
"""Kinds of operators; others join, add and multiply vectors."""

Sizes = Mapping[str, Any]
"""Keys of a file of sizes, such as ``arch_mlp_top: 256-64-1``."""

MODELS: Mapping[str, Sizes] = json.loads(
    Path(__file__).with_name("recommender_models.json").read_text(encoding="utf-8")
)
"""The eight models of DeepRecSys by name.

Source:
    harvard-acc/DeepRecSys@1383176 (MIT), ``models/configs``; lists of equal tables are shortened.
"""

_LIST = re.compile(r"\d+(\*\d+)?(-\d+(\*\d+)?)*")
_EXAMPLE = "as in '1024-512-1', or '500000*32' for 32 equal numbers"


@dataclass(frozen=True, slots=True, kw_only=True)
class Operator:
    """Calls of operators that follow one another; numbers are of one sample, except weights."""

    kind: str
    calls: int
    macs: int = 0
    weights: int = 0
    moved: int = 0
    """Numbers of activations that are read and written."""
    gathered: int = 0
    """Numbers of table rows that are read at random."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RecommenderModel:
    """Operators of a model, numbers of its tables, and what one sample brings along."""

    operators: tuple[Operator, ...]
    table_numbers: int
    dense_inputs: int
    indices: int

    @property
    def numbers(self) -> int:
        """Number of all parameters, without biases."""
        return self.table_numbers + sum(one.weights for one in self.operators)


def read_model(sizes: Sizes, label: str) -> RecommenderModel:
    """Return the operators of a model from its sizes.

    Args:
        sizes: keys of a file of DLRM or DeepRecSys: ``model_type``, ``arch_mlp_bot``,
            ``arch_mlp_top``, ``arch_embedding_size``, ``arch_sparse_feature_size``,
            ``num_indices_per_lookup``, ``arch_interaction_op``, and those of a type of model.
        label: name of the model for messages.

    Raises:
        SpecError: a key is unknown, missing or invalid.

    Source:
        harvard-acc/DeepRecSys@1383176 (MIT), ``models``: the operators of each type.
    """
    if not isinstance(sizes, Mapping):
        raise SpecError(f"{label} is no mapping", hint="as in {model_type: dlrm, ...}")
    reader = _Reader(sizes, label)
    kind = sizes.get("model_type", "dlrm")
    if kind not in _TYPES:
        raise SpecError(f"{label}: model_type is {kind!r}", hint=nearest(str(kind), _TYPES))
    known = (*_KEYS, *_IGNORED)
    odd = next((key for key in sizes if key not in known), None)
    if odd is not None:
        raise SpecError(f"{label} has no key {odd!r}", hint=nearest(str(odd), known))
    return _TYPES[kind](reader)


@dataclass(frozen=True, slots=True)
class _Reader:
    """Reader of the keys of one file of sizes."""

    sizes: Sizes
    label: str

    def number(self, key: str, default: int | None = None) -> int:
        value = self.sizes.get(key, default)
        if type(value) is not int or value < 1:
            raise SpecError(
                f"{self.label}: {key} cannot be {value!r}", hint="a whole number from 1"
            )
        return value

    def numbers(self, key: str, default: str | None = None) -> list[int]:
        """Return the numbers of a list such as ``256-64-1`` or ``500000*32``."""
        value = self.sizes.get(key, default)
        text = str(value) if type(value) in (str, int) else ""
        if not _LIST.fullmatch(text):
            raise SpecError(f"{self.label}: {key} cannot be {value!r}", hint=_EXAMPLE)
        found: list[int] = []
        for item in text.split("-"):
            number, _, times = item.partition("*")
            found += [int(number)] * int(times or 1)
        if len(found) > _MOST or not all(found):
            raise SpecError(f"{self.label}: {key} cannot be {value!r}", hint=_EXAMPLE)
        return found

    def tables(self, extra: Sequence[int] = ()) -> tuple[list[int], Operator]:
        """Return the rows of all tables, and their look-ups."""
        rows = [*self.numbers("arch_embedding_size"), *extra]
        read = len(rows) * self.number("num_indices_per_lookup", 1) * self.dim
        operator = Operator(
            kind="lookup", calls=len(rows), gathered=read, moved=len(rows) * self.dim
        )
        return rows, operator

    @property
    def dim(self) -> int:
        """Width of a row of a table."""
        return self.number("arch_sparse_feature_size")

    def model(
        self, rows: Sequence[int], operators: Sequence[Operator], dense: int
    ) -> RecommenderModel:
        return RecommenderModel(
            operators=tuple(operators),
            table_numbers=sum(rows) * self.dim,
            dense_inputs=dense,
            indices=len(rows) * self.number("num_indices_per_lookup", 1),
        )


def _layers(widths: Sequence[int], kind: str = "linear", times: int = 1) -> list[Operator]:
    """Return fully connected layers, each with its activation."""
    return [
        Operator(
            kind=kind,
            calls=2 * times,
            macs=times * inputs * outputs,
            weights=times * inputs * outputs,
            moved=times * (inputs + 3 * outputs),
        )
        for inputs, outputs in pairwise(widths)
    ]


def _join(numbers: int, calls: int = 1) -> Operator:
    """Return the operator that joins vectors into one of some numbers."""
    return Operator(kind="other", calls=calls, moved=2 * numbers)


def _dlrm(reader: _Reader) -> RecommenderModel:
    rows, looked_up = reader.tables()
    bottom = reader.numbers("arch_mlp_bot")
    vectors = len(rows) + 1
    joined = bottom[-1] + len(rows) * reader.dim
    operators = [*_layers(bottom), looked_up]
    kind = reader.sizes.get("arch_interaction_op", "dot")
    if kind not in ("cat", "dot"):
        problem = f"{reader.label}: arch_interaction_op is {kind!r}"
        raise SpecError(problem, hint=nearest(str(kind), ("cat", "dot")))
    if kind == "dot":
        pairs = vectors * (vectors - 1) // 2
        macs = vectors * vectors * reader.dim
        operators.append(Operator(kind="other", calls=2, macs=macs, moved=joined + 2 * pairs))
        joined = bottom[-1] + pairs
    operators.append(_join(joined))
    top = [joined, *reader.numbers("arch_mlp_top")]
    return reader.model(rows, [*operators, *_layers(top)], bottom[0])


def _wide_and_deep(reader: _Reader) -> RecommenderModel:
    rows, looked_up = reader.tables()
    dense = reader.numbers("arch_mlp_bot")[0]
    joined = dense + len(rows) * reader.dim
    operators = [looked_up, _join(joined), *_layers([joined, *reader.numbers("arch_mlp_top")])]
    return reader.model(rows, operators, dense)


def _multi_task(reader: _Reader) -> RecommenderModel:
    found = _wide_and_deep(reader)
    tasks = _layers(reader.numbers("arch_mlp_tasks"), times=reader.number("num_multi_tasks", 1))
    return RecommenderModel(
        operators=(*found.operators, *tasks),
        table_numbers=found.table_numbers,
        dense_inputs=found.dense_inputs,
        indices=found.indices,
    )


def _collaborative(reader: _Reader) -> RecommenderModel:
    rows, looked_up = reader.tables()
    top = reader.numbers("arch_mlp_top")
    half = len(rows) // 2 * reader.dim
    last = [reader.dim + top[-2], top[-1]] if len(top) > 1 else [reader.dim, top[-1]]
    multiplied = Operator(kind="other", calls=1, moved=3 * reader.dim)
    deep = [_join(half), *_layers([half, *top[:-1]])]
    operators = [looked_up, multiplied, *deep, _join(last[0]), *_layers(last)]
    return reader.model(rows, operators, 0)


def _interest(reader: _Reader) -> RecommenderModel:
    behaviors = reader.number("user_behavior_tables", 1)
    base = reader.numbers("arch_embedding_size")
    if len(base) < 4:
        problem = f"{reader.label}: arch_embedding_size has {len(base)} tables"
        raise SpecError(problem, hint="at least 4: profile, behavior, candidate, context")
    rows, looked_up = reader.tables([base[1]] * behaviors)
    dim, count = reader.dim, len(rows) - 3
    widths = [3 * dim, *reader.numbers("arch_mlp_bot"), dim]
    attended = [
        Operator(kind="attention", calls=2 * count, moved=count * (3 + 6) * dim),
        *_layers(widths, kind="attention", times=count),
        Operator(kind="attention", calls=1, moved=(count + 1) * dim),
    ]
    top = [4 * dim, *reader.numbers("arch_mlp_top")]
    return reader.model(rows, [looked_up, *attended, _join(4 * dim), *_layers(top)], 0)


def _evolution(reader: _Reader) -> RecommenderModel:
    rows, looked_up = reader.tables()
    dim, width, steps = reader.dim, reader.number("hidden_size", 64), len(rows) - 3
    if steps < 1:
        problem = f"{reader.label}: arch_embedding_size has {len(rows)} tables"
        raise SpecError(problem, hint="at least 4: profile, behaviors, candidate, context")
    operators = [looked_up, _join(steps * dim)]
    for inputs in (dim, width):
        operators += [
            Operator(
                kind="recurrent",
                calls=1,
                macs=steps * inputs * width,
                weights=inputs * width,
                moved=steps * (inputs + width),
            ),
            Operator(
                kind="recurrent",
                calls=3 * steps,
                macs=steps * width * width,
                weights=width * width,
                moved=steps * 7 * width,
            ),
        ]
    attended = Operator(
        kind="attention",
        calls=3,
        macs=steps * width * width,
        weights=width * width,
        moved=steps * 7 * width,
    )
    joined = width + 3 * dim
    top = _layers([joined, *reader.numbers("arch_mlp_top")])
    return reader.model(rows, [*operators, attended, _join(joined), *top], 0)


_MOST = 100_000
_KEYS = (
    "model_type",
    "arch_mlp_bot",
    "arch_mlp_top",
    "arch_mlp_tasks",
    "num_multi_tasks",
    "arch_embedding_size",
    "arch_sparse_feature_size",
    "num_indices_per_lookup",
    "arch_interaction_op",
    "user_behavior_tables",
    "hidden_size",
)
_IGNORED = ("model_name", "num_indices_per_lookup_fixed")
_TYPES = {
    "dlrm": _dlrm,
    "wnd": _wide_and_deep,
    "mtwnd": _multi_task,
    "ncf": _collaborative,
    "din": _interest,
    "dien": _evolution,
}
