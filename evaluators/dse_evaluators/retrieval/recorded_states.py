"""States of a language model that the user recorded in an ``.npz`` file; errors name the array."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dse.core.values import Floats, Ints
from dse.errors import SpecError, nearest
from dse_evaluators.formats.arrays import Single
from dse_evaluators.retrieval.vector_files import UNREADABLE, check_vectors
from dse_evaluators.workloads.workload import Split

OPTION = "states"
_ARRAYS = ("states", "targets", "logprobs", "sequences")
"""Arrays of a held-out text; in a file their names begin with the split: ``search_states``."""

_SCALARS = ("operations", "model_size")


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordedStates:
    """States of a model of the user on n stored and q held-out tokens.

    Attributes:
        keys: state of the model at each stored token, (n, d).
        followers: token that follows each, (n,).
        states: state of the model at each held-out token, (q, d).
        targets: token that follows each, (q,).
        logprobs: natural logarithm of the probability that the model gives to it, (q,).
        sequences: sequence of each held-out token, (q,).
        operations: operations of the model for a token.
        model_size: size of the model's weights in bytes.
    """

    keys: Single
    followers: Ints
    states: Single
    targets: Ints
    logprobs: Floats
    sequences: Ints
    operations: float
    model_size: float


def read_states(path: str, split: Split) -> RecordedStates:
    """Return the states that a file recorded; arrays of Python objects are refused.

    Args:
        path: an ``.npz`` file with ``keys``, (n, d), ``followers``, (n,), ``operations`` and
            ``model_size``; and for the split, such as search, ``search_states``, (q, d),
            ``search_targets``, ``search_logprobs`` and ``search_sequences``, (q,).
        split: held-out text on which predictions are evaluated.

    Raises:
        SpecError: the file is missing or unreadable, lacks an array, or an array has another shape
            or invalid numbers.
    """
    held_out = [f"{split}_{name}" for name in _ARRAYS]
    found = _load(path, ["keys", "followers", *held_out, *_SCALARS])
    keys = check_vectors(found["keys"], path, "keys")
    states = check_vectors(found[held_out[0]], path, held_out[0])
    if keys.shape[1] != states.shape[1]:
        raise _refuse(
            f"{path}: keys have {keys.shape[1]} numbers, and {held_out[0]} {states.shape[1]}",
            "record the same layer of the same model",
        )
    followers = _read_tokens(path, "followers", found, len(keys))
    targets = _read_tokens(path, held_out[1], found, len(states))
    sequences = _read_tokens(path, held_out[3], found, len(states))
    logprobs = _read_column(path, held_out[2], found, len(states)).astype(np.float64)
    if not (logprobs <= 0).all():
        row = int(np.argmin(logprobs <= 0))
        raise _refuse(
            f"{path}: {held_out[2]}, row {row} is {logprobs[row]:g}",
            "write natural logarithms of probabilities, 0 or less",
        )
    operations, model_size = (_read_scalar(path, name, found) for name in _SCALARS)
    return RecordedStates(
        keys=keys,
        followers=followers,
        states=states,
        targets=targets,
        logprobs=logprobs,
        sequences=sequences,
        operations=operations,
        model_size=model_size,
    )


def find_states(path: str) -> Path:
    """Return the absolute path of a file of states.

    Raises:
        SpecError: there is no such file.
    """
    found = Path(path)
    if not found.is_file():
        folder = found.parent if found.parent.is_dir() else Path()
        beside = [one.name for one in folder.glob("*.npz")]
        raise _refuse(f"there is no file {path}", nearest(found.name, beside))
    return found


def _load(path: str, names: list[str]) -> dict[str, NDArray[Any]]:
    try:
        with find_states(path).open("rb") as file, np.load(file, allow_pickle=False) as archive:
            present = list(getattr(archive, "files", ()))
            for name in names:
                if name not in present:
                    raise _refuse(
                        f"{path} has no array {name!r}",
                        nearest(name, present) or f"it needs {', '.join(names)}",
                    )
            return {name: archive[name] for name in names}
    except (*UNREADABLE, TypeError) as error:
        raise _refuse(
            f"{path} cannot be read as an .npz file: {error}", "write it by numpy.savez"
        ) from error


def _read_column(path: str, name: str, found: dict[str, NDArray[Any]], count: int) -> NDArray[Any]:
    column = found[name]
    if column.shape != (count,):
        raise _refuse(
            f"{path}: {name} has the shape {column.shape}", f"one number for each token, ({count},)"
        )
    if column.dtype.kind not in "fiu":
        raise _refuse(f"{path}: {name} holds {column.dtype}", "write numbers")
    return column


def _read_tokens(path: str, name: str, found: dict[str, NDArray[Any]], count: int) -> Ints:
    column = _read_column(path, name, found, count)
    if column.dtype.kind not in "iu" or column.min() < 0 or int(column.max()) >= 2**63:
        raise _refuse(f"{path}: {name} has numbers that are no tokens", "integers, 0 or more")
    return column.astype(np.int64)


def _read_scalar(path: str, name: str, found: dict[str, NDArray[Any]]) -> float:
    scalar = found[name]
    if scalar.size != 1 or scalar.dtype.kind not in "fiu":
        raise _refuse(f"{path}: {name} is no single number", "such as np.array(2e9)")
    value = float(scalar.ravel()[0])
    if not 0 <= value < np.inf:
        raise _refuse(f"{path}: {name} is {value:g}", "0 or more")
    return value


def _refuse(problem: str, hint: str) -> SpecError:
    return SpecError(problem, hint=hint, part=[OPTION])
