"""Vectors of the user: arrays, and files of NumPy, Parquet or CSV; errors name the row."""

from __future__ import annotations

import hashlib
import zipfile
import zlib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dse.errors import SpecError, nearest
from dse_evaluators.formats.arrays import Single
from dse_evaluators.generic.table_file import read_table

VECTORS, QUERIES = "vectors", "queries"
"""Options of the evaluator, and names of the arrays in an ``.npz`` file."""

_TABLES = (".csv", ".csv.gz", ".tsv", ".parquet", ".pq")
_ENDINGS = (".npy", ".npz", *_TABLES)
_BLOCK = 1 << 14  # rows that are checked at once

UNREADABLE = (
    OSError,
    ValueError,
    EOFError,
    AttributeError,
    RuntimeError,  # also NotImplementedError: encrypted, or compressed in an unknown way
    zipfile.BadZipFile,
    zlib.error,
)
"""Errors of NumPy for files that are damaged or of another format."""


def digest_of(given: object, option: str) -> str:
    """Return a hash of a file's bytes, or of an array.

    Raises:
        SpecError: there is no such file, or it is neither a path nor an array.
    """
    if isinstance(given, np.ndarray):
        head = hashlib.sha256(f"{given.shape}{given.dtype}".encode())
        head.update(np.ascontiguousarray(given).tobytes())
        return head.hexdigest()[:16]
    with _find_file(given, option).open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()[:16]


def read_vectors(given: object, option: str) -> Single:
    """Return finite vectors, (n, d), from an array or a file.

    An ``.npz`` file has one array, or one with the name of the option. A table has a column of
    lists, or a column per dimension; a CSV file has a header.

    Args:
        given: an array, or the path of a file.
        option: ``vectors`` or ``queries``.

    Raises:
        SpecError: the file is missing or unreadable, or does not have n vectors of finite numbers.
    """
    name = "the array" if isinstance(given, np.ndarray) else str(given)
    found = given if isinstance(given, np.ndarray) else _read_file(given, option)
    return check_vectors(found, name, option)


def has_queries(given: object) -> bool:
    """Return whether a file of vectors has queries beside them, as an ``.npz`` file may.

    Raises:
        SpecError: it cannot be read.
    """
    if not isinstance(given, str) or not given.endswith(".npz"):
        return False
    return QUERIES in _load(Path(given), lambda: _names_in(Path(given)), VECTORS)


def check_vectors(array: NDArray[Any], name: str, option: str) -> Single:
    """Return an array as vectors in single precision, (n, d), all finite.

    Raises:
        SpecError: it has another shape or type, or a number is not finite.
    """
    if array.dtype.kind not in "fiu":
        raise SpecError(
            f"{name} holds {array.dtype}", hint="write real numbers, such as float32", part=[option]
        )
    if array.ndim != 2 or not array.size:
        raise SpecError(
            f"{name} has the shape {array.shape}",
            hint="write an array of n vectors with d numbers each, (n, d)",
            part=[option],
        )
    with np.errstate(over="ignore"):  # too large for single precision: reported as not finite
        vectors = np.ascontiguousarray(array, np.float32)
    for start in range(0, len(vectors), _BLOCK):
        wrong = np.argwhere(~np.isfinite(vectors[start : start + _BLOCK]))
        if len(wrong):
            row, column = wrong[0].tolist()
            value = array[start + row, column]
            raise SpecError(
                f"{name}, row {start + row} of {option}: number {column} is {value}, which is not "
                "finite in single precision",
                hint="remove the row (rows and numbers are counted from 0)",
                part=[option],
            )
    return vectors


def _find_file(given: object, option: str) -> Path:
    if not isinstance(given, str):
        hint = f"write the path of a file: {', '.join(_ENDINGS)}"
        raise SpecError(f"{option} is {given!r}", hint=hint, part=[option])
    path = Path(given)
    if not path.is_file():
        folder = path.parent if path.parent.is_dir() else Path()
        beside = [one.name for one in folder.iterdir() if one.name.endswith(_ENDINGS)]
        hint = nearest(path.name, beside)
        raise SpecError(f"there is no file {given}", hint=hint, part=[option])
    return path


def _read_file(given: object, option: str) -> NDArray[Any]:
    path = _find_file(given, option)
    if not path.name.endswith(_ENDINGS):
        hint = f"known extensions: {', '.join(_ENDINGS)}"
        raise SpecError(f"{path} is no file of vectors by its name", hint=hint, part=[option])
    if path.name.endswith(_TABLES):
        return _read_columns(path, option)
    if path.suffix == ".npy":
        found: NDArray[Any] = _load(path, lambda: np.load(path, allow_pickle=False), option)
        return found
    arrays = _read_archive(path, option)
    if option in arrays:
        return arrays[option]
    if len(arrays) != 1:
        problem = f"{path} has no array {option!r}, and {len(arrays)} others"
        hint = nearest(option, arrays)
        raise SpecError(problem, hint=hint, part=[option])
    return next(iter(arrays.values()))


def _read_archive(path: Path, option: str) -> Mapping[str, NDArray[Any]]:
    def load() -> Mapping[str, NDArray[Any]]:
        with path.open("rb") as file, np.load(file, allow_pickle=False) as archive:
            return {name: archive[name] for name in archive.files}

    return _load(path, load, option)


def _names_in(path: Path) -> list[str]:
    with path.open("rb") as file, np.load(file, allow_pickle=False) as archive:
        return list(archive.files)


def _load(path: Path, load: Callable[[], Any], option: str) -> Any:
    try:
        return load()
    except UNREADABLE as error:
        first = str(error).partition("\n")[0]
        problem = f"{path} cannot be read as arrays: {first}"
        raise SpecError(problem, hint="write it with numpy.save", part=[option]) from error


def _read_columns(path: Path, option: str) -> NDArray[Any]:
    """Return the vectors of a table: a column of lists, or a column for each dimension."""
    import pyarrow as pa

    table = read_table(str(path)).arrow
    nested = [name for name in table.column_names if pa.types.is_nested(table.field(name).type)]
    lists = [name for name in nested if _is_list(table.field(name).type)]
    if len(nested) > 1 or nested != lists:
        problem = f"{path} has the nested columns {', '.join(nested)}"
        raise SpecError(problem, hint="keep one column of lists of numbers", part=[option])
    if lists:
        return _stack_lists(path, table.column(lists[0]).combine_chunks(), option)
    for name in table.column_names:
        kind, empty = table.field(name).type, table.column(name).null_count
        if not (pa.types.is_integer(kind) or pa.types.is_floating(kind)) or empty:
            what = f"has {empty} empty cells" if empty else f"holds {kind}, no numbers"
            hint = "keep one column of numbers for each dimension"
            raise SpecError(f"{path}: column {name!r} {what}", hint=hint, part=[option])
    return np.stack([column.to_numpy() for column in table.columns], axis=1)


def _is_list(kind: Any) -> bool:
    import pyarrow as pa

    ways = (pa.types.is_list, pa.types.is_large_list, pa.types.is_fixed_size_list)
    return any(is_way(kind) for is_way in ways)


def _stack_lists(path: Path, column: Any, option: str) -> NDArray[Any]:
    import pyarrow.compute as pc

    lengths = pc.list_value_length(column).to_numpy(zero_copy_only=False)
    odd = np.flatnonzero(lengths != lengths[0])  # an empty cell is NaN, which equals nothing
    if len(odd) or not lengths[0] > 0:
        row = int(odd[0]) if len(odd) else 0
        problem = f"{path}, row {row} has {lengths[row]} numbers, and row 0 has {lengths[0]}"
        raise SpecError(problem, hint="give all rows equally many numbers", part=[option])
    flat: NDArray[Any] = column.flatten().to_numpy(zero_copy_only=False)
    return flat.reshape(len(lengths), -1)
