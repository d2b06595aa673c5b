"""Evaluation data of the user: files, arrays or a function, divided into splits."""

from __future__ import annotations

import zipfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from numbers import Real
from pathlib import Path
from typing import Any

import numpy as np

from dse.core.values import Ints
from dse.errors import DseError, EvaluationError, PluginError, SpecError, nearest
from dse_evaluators.formats.arrays import as_array
from dse_evaluators.workloads.own.own_folder import folder_edition, read_folder
from dse_evaluators.workloads.own.own_function import OwnFunction, digest, read_own_file
from dse_evaluators.workloads.own.own_identity import object_edition
from dse_evaluators.workloads.own.own_splits import (
    PARTS,
    Examples,
    join_inputs,
    make_splits,
    read_splits,
)
from dse_evaluators.workloads.own.own_table import TABLES, read_columns
from dse_evaluators.workloads.own.plugin_model import PluginFunction

_INPUTS = ("inputs", "x", "X", "images", "features", "tokens")
_TARGETS = ("targets", "y", "Y", "labels", "target", "label")
_KEYS = (
    "file",
    "python",
    "arrays",
    "inputs",
    "targets",
    "split",
    "length",
    "size",
    "texts",
    "calibration",
    "test",
    "seed",
)
_SHARES = {"calibration": 0.2, "test": 0.4}


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnData:
    """Examples of the user's data, with the split of each example.

    ``inputs`` is (n, ...): floats in single precision or integers; with several inputs, ``inputs``
    is the first, and ``named`` has all of them by name. ``targets`` is (n, ...) or ``None``;
    ``parts`` has the place of each example's split in ``PARTS``, (n,).
    """

    inputs: Examples
    targets: Examples | None
    parts: Ints
    named: Mapping[str, Examples] = field(default_factory=dict)

    def inputs_of(self, split: str) -> Examples:
        """Return the inputs of a split, ``calibration``, ``search`` or ``test``, (m, ...)."""
        return self.inputs[self.parts == PARTS.index(split)]

    def feeds_of(self, split: str) -> dict[str, Examples]:
        """Return the inputs of a split by name, each (m, ...); a single input has an empty name."""
        chosen = self.parts == PARTS.index(split)
        given = self.named or {"": self.inputs}
        return {name: array[chosen] for name, array in given.items()}

    def targets_of(self, split: str) -> Examples | None:
        """Return the targets of a split, (m, ...); ``None`` if the data has no targets."""
        return None if self.targets is None else self.targets[self.parts == PARTS.index(split)]


@dataclass(frozen=True, slots=True, kw_only=True)
class DataSource:
    """Origin of the user's data: a file, a function or arrays, and how to divide it.

    Two sources are equal if they have the same ``edition``, a hash of content and settings.
    """

    edition: str
    origin: Path | OwnFunction | Any = field(compare=False, repr=False)
    settings: tuple[tuple[str, Any], ...] = field(default=(), compare=False)

    @property
    def starts(self) -> tuple[str, ...]:
        """Description of the function that gives the data; empty for files and arrays."""
        return (self.origin.text,) if isinstance(self.origin, OwnFunction) else ()

    @property
    def is_deferred(self) -> bool:
        """Whether the examples are made by a function that only an evaluation calls."""
        return isinstance(self.origin, OwnFunction | PluginFunction)

    def load(self) -> OwnData:
        """Return the examples; a file or a function is read once per process.

        Raises:
            SpecError: the content is not valid data.
            EvaluationError: the function fails.
        """
        return _load_data(self)


def data_source(value: object) -> DataSource:
    """Return the source that the option ``data`` names, without calling a function.

    Args:
        value: a path, arrays ``(inputs, targets)`` or ``inputs``, or a mapping with ``file``,
            ``python`` or ``arrays`` and settings.

    Raises:
        SpecError: the file does not exist, or a setting is unknown or out of range.
    """
    try:
        return _source_of(value)
    except SpecError as error:
        raise (
            error if error.part else SpecError(error.problem, hint=error.hint, part=["data"])
        ) from error


def _source_of(value: object) -> DataSource:
    if isinstance(value, str | Path):
        value = {"file": value}
    elif not isinstance(value, Mapping) or not {"file", "python", "arrays"} & value.keys():
        value = {"arrays": value}
    settings = {key: one for key, one in value.items() if key not in ("file", "python", "arrays")}
    _check_settings(value)
    origin: Any
    if "file" in value:
        origin = Path(str(value["file"]))
        if origin.is_dir():
            edition = folder_edition(origin)
        else:
            edition = digest(read_own_file(origin))
            _check_ending(origin)
    elif "python" in value and not callable(value["python"]):
        origin = OwnFunction.of(value["python"])
        edition = digest(origin.edition.encode(), origin.name.encode())
    else:
        origin = value["arrays"] if "arrays" in value else value["python"]
        is_plugin = isinstance(origin, PluginFunction)
        edition = digest(origin.text.encode()) if is_plugin else object_edition(origin)
    held = tuple(sorted(settings.items()))
    return DataSource(
        edition=digest(edition.encode(), repr(held).encode()), origin=origin, settings=held
    )


def _check_settings(value: Mapping[str, Any]) -> None:
    for key in value:
        if key not in _KEYS:
            raise SpecError(f"data has no key {key!r}", hint=nearest(key, _KEYS))
    if len({"file", "python", "arrays"} & value.keys()) != 1:
        raise SpecError("data names more than one source", hint="file, python or arrays")
    shares = {key: value.get(key, usual) for key, usual in _SHARES.items()}
    for key, share in shares.items():
        if not isinstance(share, Real) or not 0 < float(share) < 1:
            raise SpecError(f"{key} is {share!r}", hint="a fraction of the examples, such as 0.2")
    if sum(shares.values()) >= 1:
        raise SpecError("calibration and test leave no examples for search", hint="sum below 1")
    _check_whole("seed", value.get("seed", 0), least=0)
    _check_whole("length", value.get("length", 1), least=1)


def _check_whole(key: str, number: object, *, least: int) -> None:
    if isinstance(number, bool) or not isinstance(number, int) or number < least:
        raise SpecError(f"{key} is {number!r}", hint=f"a whole number, as in {key}: 64")


def _check_ending(path: Path) -> None:
    if path.suffix in (".npy", ".pkl", ".pickle", ".pt", ".pth"):
        problem = f"data cannot be read from {path.name}"
        raise SpecError(problem, hint="write np.savez('data.npz', inputs=x, targets=y)")
    if path.suffix not in (".npz", *TABLES):
        problem = f"{path.name} has no known ending"
        hint = f"known: .npz, {', '.join(TABLES)}, or a folder of images or texts"
        raise SpecError(problem, hint=hint)


@lru_cache(maxsize=16)
def _load_data(source: DataSource) -> OwnData:
    settings = dict(source.settings)
    is_folder = isinstance(source.origin, Path) and source.origin.is_dir()
    _check_effect(settings, source.origin)
    given, targets, words = _read_origin(source.origin, settings)
    named = _named_inputs(given) if isinstance(given, Mapping) else {}
    inputs = next(iter(named.values())) if named else _plain(given, "the inputs")
    if "length" in settings and not is_folder:
        inputs = _cut_windows(inputs, settings["length"], is_single=not named)
    targets = None if targets is None else _plain(targets, "the targets")
    if inputs.ndim < 2 and not named:
        raise SpecError(
            f"the inputs have the shape {inputs.shape}",
            hint="(examples, ...); for a stream of token ids, length: 64 cuts it into examples",
        )
    if targets is not None and len(targets) != len(inputs):
        problem = f"there are {len(inputs)} inputs and {len(targets)} targets"
        raise SpecError(problem, hint="one target for each input")
    if words is not None:
        if len(words) != len(inputs):
            problem = f"there are {len(inputs)} inputs and {len(words)} split names"
            raise SpecError(problem, hint="one split name for each input")
        return OwnData(inputs=inputs, targets=targets, parts=read_splits(words), named=named)
    calibration, test = (float(settings.get(key, usual)) for key, usual in _SHARES.items())
    shares = (calibration, 1 - calibration - test, test)
    examples = join_inputs([named[one] for one in sorted(named)]) if named else inputs
    parts = make_splits(examples, targets, shares, settings.get("seed", 0))
    return OwnData(inputs=inputs, targets=targets, parts=parts, named=named)


def _check_effect(settings: Mapping[str, Any], origin: Any) -> None:
    """Raise SpecError if a setting has no effect on data of this origin."""
    if "texts" in settings and not _is_table(origin):
        raise SpecError("texts names columns of a table", hint=f"of {', '.join(TABLES)}")
    if "size" in settings and not (isinstance(origin, Path) and origin.is_dir()):
        raise SpecError("size scales images of a folder", hint="leave it out: inputs have a shape")


def _is_table(origin: Any) -> bool:
    """Return whether examples are the rows of a table."""
    return isinstance(origin, Path) and origin.suffix in TABLES


def _named_inputs(given: Mapping[Any, Any]) -> dict[str, Examples]:
    """Return several inputs by name, each of as many examples.

    Raises:
        SpecError: there is none, or they differ in the number of examples.
    """
    named = {str(name): _plain(one, f"the inputs {name!r}") for name, one in given.items()}
    counts = {name: len(array) for name, array in named.items()}
    if len(set(counts.values())) != 1:
        listed = ", ".join(f"{name}: {count}" for name, count in counts.items()) or "none"
        problem = f"the inputs differ in the number of examples: {listed}"
        raise SpecError(problem, hint="the first axis of each is the examples")
    return named


def _read_origin(
    origin: Any, settings: Mapping[str, Any]
) -> tuple[Any, Any | None, Examples | None]:
    """Return the inputs, the targets and the split names of a source, as they are stored."""
    if isinstance(origin, Path):
        try:
            columns = _columns(origin, settings)
        except (SpecError, PluginError) as error:
            raise (
                error
                if "data" in error.part
                else SpecError(error.problem, hint=error.hint, part=["data"])
            ) from error
        return columns
    given = origin
    if isinstance(origin, OwnFunction):
        given = origin.call()
    elif callable(origin) and not hasattr(origin, "shape"):
        given = origin()
    if isinstance(given, Mapping):
        return _named_arrays(given, settings, "the data")
    if isinstance(given, tuple) and len(given) == 2:
        return given[0], given[1], None
    return given, None, None


def _columns(path: Path, settings: Mapping[str, Any]) -> tuple[Any, Any | None, Examples | None]:
    if path.is_dir():
        return read_folder(path, settings)
    if path.suffix != ".npz":
        return read_columns(path, settings, _TARGETS)
    try:
        with path.open("rb") as file, np.load(file, allow_pickle=False) as archive:
            arrays = {name: archive[name] for name in archive.files}
    except (OSError, ValueError, EOFError, zipfile.BadZipFile, NotImplementedError) as error:
        pickled = "pickle" in str(error).lower() or "object" in str(error).lower()
        why = "it holds Python objects, which are never unpickled" if pickled else str(error)
        hint = "write np.savez('data.npz', inputs=x, targets=y) with arrays of numbers"
        raise SpecError(f"{path} cannot be read: {why}", hint=hint) from error
    except AttributeError as error:  # a bare .npy file under the name .npz
        raise SpecError(
            f"{path} is not an archive of arrays", hint="np.savez writes one"
        ) from error
    return _named_arrays(arrays, settings, path.name)


def _named_arrays(
    arrays: Mapping[str, Any], settings: Mapping[str, Any], place: str
) -> tuple[Any, Any | None, Examples | None]:
    wanted = settings.get("inputs")
    if isinstance(wanted, list | tuple):
        inputs: Any | None = {one: _pick(arrays, one, (), place) for one in wanted}
    else:
        inputs = _pick(arrays, wanted, _INPUTS, place)
    if inputs is None:
        hint = f"name the array: inputs: {next(iter(arrays), 'x')}"
        raise SpecError(f"{place} has no array {' or '.join(_INPUTS)}", hint=hint)
    targets = _pick(arrays, settings.get("targets"), _TARGETS, place)
    split = _pick(arrays, settings.get("split"), ("split",), place)
    return inputs, targets, None if split is None else np.asarray(split)


def _pick(
    arrays: Mapping[str, Any], name: object, usual: Sequence[str], place: str
) -> Any | None:  # an array of the user
    if name is not None:
        if name not in arrays:
            raise SpecError(f"{place} has no array {name!r}", hint=nearest(name, arrays))
        return arrays[str(name)]
    return next((arrays[one] for one in usual if one in arrays), None)


def _plain(given: Any, label: str) -> Examples:
    """Return an array of numbers: floats in single precision, or integers of 64 bits.

    Raises:
        SpecError: the values are not numbers, not finite, or have no examples.
    """
    try:
        array = as_array(given)
    except ValueError as error:
        raise SpecError(f"{label} have rows of different lengths", hint="pad them") from error
    if array.dtype.kind == "b":
        array = array.astype(np.int64)
    if array.dtype.kind == "V" and np.can_cast(array.dtype, np.float32):
        array = array.astype(np.float32)  # bfloat16 and floats of 8 bits
    if array.dtype.kind not in "iuf":
        problem = f"{label} are of type {array.dtype}, which are not numbers"
        raise SpecError(problem, hint="give floats, or integer classes and token ids")
    if array.ndim == 0 or array.size == 0:
        raise SpecError(f"{label} have the shape {array.shape}", hint="(examples, ...)")
    if array.dtype.kind != "f":
        return array.astype(np.int64)
    single = array.astype(np.float32)
    if not np.isfinite(single).all():
        row = int(np.argwhere(~np.isfinite(single))[0][0]) + 1
        raise SpecError(f"{label} have an infinite value or NaN in row {row}", hint="remove it")
    return single


def _cut_windows(stream: Examples, length: int, *, is_single: bool) -> Examples:
    """Cut a stream of token ids, (n,), into examples of ``length`` tokens each; drop the rest."""
    if not is_single:
        raise SpecError("length cuts one stream of token ids, not several inputs")
    if stream.ndim != 1 or stream.dtype.kind != "i":
        raise SpecError("length cuts a stream of token ids", hint="an array of integers, (n,)")
    if len(stream) < length:
        raise SpecError(f"{len(stream)} tokens are fewer than length: {length}")
    return stream[: len(stream) // length * length].reshape(-1, length)


def as_evaluation_error(error: DseError) -> EvaluationError:
    """Convert an error in the user's data or model that is detected only when a study runs."""
    return EvaluationError(error.problem, hint=error.hint)
