"""Workload of a hardware model as a study names it: a name, a file, a function or an object."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any, Protocol

from dse.errors import DseError, PluginError, SpecError, nearest
from dse_evaluators.workloads.catalogue import ONNX, axis_sizes, table_of
from dse_evaluators.workloads.layer_table import LayerTable, ReadLayers
from dse_evaluators.workloads.layers import Layer
from dse_evaluators.workloads.onnx_graph import OpenAxes
from dse_evaluators.workloads.onnx_import import read_onnx_layers
from dse_evaluators.workloads.own.language_model_table import read_language_model
from dse_evaluators.workloads.own.model_file import EXPORT, check_model_file, names_file
from dse_evaluators.workloads.own.named_model import GIVEN
from dse_evaluators.workloads.own.own_function import OwnFunction, digest
from dse_evaluators.workloads.own.own_identity import object_edition
from dse_evaluators.workloads.shaped_layers import Shape

_OPTION = "workload"
_BATCH = "batch"
_FORMS = (
    "a name, a path, {python: net.py:make, input: [3, 32, 32]}, or {like: llama3-8b, layers: 4}"
)
_SHAPED = "{python: net.py:make, input: [3, 32, 32]}, the shape of one example"
_OF_FILE = "{file: net.pt2, input: [3, 32, 32]}, the shape of one example"
_MOST = 2**31 - 1


@dataclass(frozen=True, kw_only=True)
class LayeredWorkload:
    """Workload of a hardware model, before its layers are read.

    Attributes:
        label: name in messages.
        origin: a name of the catalogue, a path, a function of a file, a module or a mapping with
            ``like``.
        keys: options that follow the name or the path, by name, such as ``{"decode": "128"}``.
        shapes: shape of one example by the name of an input; ``""`` is the only one.
        missing: why the layers cannot be read here; empty if they can.
        content: hash of the function and the shapes, where layers are known only when it runs.
    """

    label: str
    origin: Any = field(compare=False, repr=False)
    keys: Mapping[str, str] = field(default_factory=dict)
    shapes: Mapping[str, Shape] = field(default_factory=dict)
    missing: str = ""
    content: str = ""

    @property
    def is_named(self) -> bool:
        """Whether the workload is one of the catalogue."""
        return isinstance(self.origin, str) and not self.missing

    @property
    def is_known(self) -> bool:
        """Whether the layers are known without calling a function of the user's file."""
        return not self.missing and not isinstance(self.origin, OwnFunction)

    @property
    def starts(self) -> tuple[str, ...]:
        """Descriptions of the user's functions that an evaluation calls."""
        return (self.origin.text,) if isinstance(self.origin, OwnFunction) else ()

    @property
    def edition(self) -> str:
        """Hash of the layers of a workload of the user; empty for one of the catalogue.

        Trained values do not count, because no number of a hardware model depends on them. The hash
        of a function is that of its file and of the shapes.
        """
        if self.is_named:
            return ""
        text = repr(self.table) if self.is_known else self.content
        return digest(text.encode())[:8]

    @property
    def table(self) -> LayerTable:
        """Table of the layers of the workload.

        Raises:
            SpecError: the file cannot be read as layers.
            EvaluationError: the user's function or module fails.
            PluginError: the object belongs to another program, or onnx is not installed.
        """
        return self._read.table

    @property
    def layers(self) -> tuple[Layer, ...]:
        """Layers of the workload, read from a file, function or module when needed."""
        return self.table.layers

    @property
    def entries(self) -> WeightEntries:
        """Entries of a list with one value for each weight; errors are those of :attr:`table`."""
        weighted = [layer.weighted for layer in self.layers]
        if not self._read.stored:
            names = tuple(layer.name for layer in self.layers if layer.weighted)
            places = (number - 1 if one else -1 for one, number in _counted(weighted))
            return WeightEntries(names=names, places=tuple(places))
        from dse_evaluators.workloads.own.own_readers import layout_of

        names = layout_of(self.origin, self.label).layers
        own = {name: place for place, name in enumerate(names)}
        places = (next((own[x] for x in sorted(one) if x in own), -1) for one in self._read.stored)
        return WeightEntries(names=names, places=tuple(places))

    @property
    def notes(self) -> tuple[str, ...]:
        """Sentences on what the layers leave out, if they are known."""
        return self._read.notes if self.is_known else ()

    @cached_property
    def _read(self) -> ReadLayers:
        if self.missing:
            raise PluginError(self.missing)
        if self.is_named:
            return ReadLayers(table=table_of(self.origin))
        found = self._read_own()
        if not found.table.layers:
            raise SpecError(
                f"{self.label} has no layer that is a matrix product",
                hint="layers are convolutions, matrix products and recurrent cells",
            )
        return found

    def _read_own(self) -> ReadLayers:
        if isinstance(self.origin, Path) and self.origin.suffix == ".onnx":
            return read_onnx_layers(self.origin, self.open_axes)
        if isinstance(self.origin, Path | Mapping) and not _is_exported(self.origin):
            return read_language_model(self.origin, self.keys, self.label)
        return _trace(self.origin, self.label, tuple(sorted(self.shapes.items())))

    @property
    def open_axes(self) -> OpenAxes:
        """Sizes of the open axes of an ONNX file."""
        items = [f"{name}={size}" for name, size in self.keys.items()]
        sizes = axis_sizes(self.label, items)
        return OpenAxes(sizes=sizes, shapes=self.shapes, batch=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class WeightEntries:
    """Entries of a list that has one value for each weight that can be compressed.

    Attributes:
        names: names of the weights; of a file or module they are those of ``compression.recipe``,
            in its order.
        places: for each layer, the index of its weight; -1 if it has none.
    """

    names: tuple[str, ...]
    places: tuple[int, ...]


class TakesWorkload(Protocol):
    """Evaluator whose version, notes and started functions depend on its workload."""

    version: str


def declare_workload(evaluator: TakesWorkload, value: object) -> LayeredWorkload:
    """Return the workload that an evaluator's option names, and declare it on the evaluator.

    Args:
        evaluator: the evaluator; for a workload of the user, its version gets the edition, and it
            gets ``notes``, ``missing`` and ``starts``. If it calls a function, it is not pure.
        value: the value of the option ``workload``.

    Raises:
        SpecError: there is no such workload, or its file cannot be read.
        PluginError: onnx is not installed.
    """
    try:
        found = workload_of_option(value)
        edition, notes = found.edition, found.notes
        if found.is_named:
            _ = found.table  # so that a name is checked
    except DseError as error:
        part = error.part or (_OPTION,)
        kind = PluginError if isinstance(error, PluginError) else SpecError
        raise kind(error.problem, hint=error.hint, part=part) from error
    if found.is_named:
        return found
    declared = {"notes": notes, "missing": found.missing, "starts": found.starts}
    for name, one in {"version": f"{evaluator.version}-{edition}", **declared}.items():
        setattr(evaluator, name, one)
    if found.starts or found.missing:
        setattr(evaluator, "pure", False)  # noqa: B010 - of some evaluators only
    return found


def known_layers(evaluator: TakesWorkload, value: object) -> tuple[Layer, ...]:
    """Return the layers of a workload for an evaluator that needs them before a study runs.

    Args:
        evaluator: the evaluator, as for :func:`declare_workload`.
        value: the value of the option ``workload``.

    Raises:
        SpecError: there is no such workload, its file cannot be read, or the layers are known only
            when a function runs.
        PluginError: onnx is not installed.
    """
    found = declare_workload(evaluator, value)
    if found.is_known or found.missing:
        return () if found.missing else found.layers
    raise SpecError(
        f"{type(evaluator).__name__} needs the layers of {found.label} before it runs",
        hint="export the model to ONNX: workload: net.onnx",
        part=[_OPTION],
    )


def workload_of_option(value: object) -> LayeredWorkload:
    """Return the workload that the option ``workload`` names; files are read later.

    Args:
        value: a name of the catalogue; a path, with sizes as in ``net.onnx:tokens=128``; a mapping
            ``{file: net.onnx, input: [3, 32, 32]}``, ``{python: net.py:make, input: [3, 32, 32]}``
            or ``{like: llama3-8b, layers: 4, decode: 128}``; a module in Python.

    Raises:
        SpecError: the value has another form, or names a file that does not exist.
    """
    if isinstance(value, str | Path):
        return _of_text(str(value))
    if isinstance(value, Mapping):
        return _of_mapping(value)
    return _of_object(value, {})


def _of_text(text: str) -> LayeredWorkload:
    if text.startswith(GIVEN):
        return _missing(text)
    kind, _, rest = text.strip().partition(":")
    if kind.lower() == ONNX and rest:
        folder, slash, last = rest.rpartition("/")
        name, *items = last.split(",")
        keys = axis_sizes(text, items)
        return _of_file(f"{folder}{slash}{name}", {key: str(one) for key, one in keys.items()}, {})
    file, keys_text = _divide(text)
    if not names_file(file):
        hint = f"a file or folder is named by a path: ./{file}"
        if Path(file).exists():
            try:
                table_of(text)
            except SpecError as error:
                raise SpecError(error.problem, hint=hint) from error
        return LayeredWorkload(label=text, origin=text)
    return _of_file(file, _pairs(text, keys_text), {})


def _divide(text: str) -> tuple[str, str]:
    """Return a path and the options that follow it, as in ``./llama:decode=128,batch=4``."""
    found = re.fullmatch(r"(.+?)(?::([^:/\\]*=[^:/\\]*))?", text, re.DOTALL)
    return (found[1], found[2] or "") if found else (text, "")


def _pairs(text: str, keys: str) -> dict[str, str]:
    return {key: str(one) for key, one in axis_sizes(text, filter(None, keys.split(","))).items()}


def _of_mapping(value: Mapping[Any, Any]) -> LayeredWorkload:
    named = [key for key in ("file", "python", "like") if key in value]
    if len(named) != 1:
        problem = f"a workload has one of the keys file, python and like, not {list(value)}"
        raise SpecError(problem, hint=_FORMS)
    rest = {key: one for key, one in value.items() if key != named[0]}
    shapes = _shapes_of(rest.pop("input", None))
    match named[0], value[named[0]]:
        case "file", str() | Path() as file:
            return _of_file(str(file), {key: _size(key, one) for key, one in rest.items()}, shapes)
        case "like", str() | Mapping() as like:
            if shapes:
                raise SpecError("input has no meaning with like", hint="as in prefill: 128")
            return _of_like(like, rest)
        case "python", function:
            odd = next(iter(rest), None)
            if odd is not None:
                hint = nearest(str(odd), ["python", "input"])
                raise SpecError(f"a workload with python has no key {odd!r}", hint=hint)
            return _of_function(function, shapes)
        case key, odd_value:
            raise SpecError(f"{key} cannot be {odd_value!r}", hint=_FORMS)


def _of_file(text: str, keys: dict[str, str], shapes: Mapping[str, Shape]) -> LayeredWorkload:
    path = Path(text)
    check_model_file(path)
    if path.suffix == ".safetensors":
        path = path.parent  # its config.json gives the shapes
    is_config = path.is_dir() or path.suffix == ".json"
    if not is_config and path.suffix not in (".onnx", ".pt2"):
        hint = f"known: .onnx, .pt2, a folder with config.json; {EXPORT}"
        raise SpecError(f"{path.name} is not a model file", hint=hint)
    if _is_exported(path):
        _check_exported(path, keys, shapes)
    if is_config and shapes:
        hint = f"give the number of tokens: {path.name}:prefill=128"
        raise SpecError(f"input has no meaning for {path.name}", hint=hint)
    return LayeredWorkload(label=path.name, origin=path, keys=keys, shapes=shapes)


def _is_exported(origin: Any) -> bool:
    """Return whether a workload is an archive of ``torch.export.save``."""
    return isinstance(origin, Path) and origin.suffix == ".pt2"


def _check_exported(path: Path, keys: Mapping[str, str], shapes: Mapping[str, Shape]) -> None:
    """Raise SpecError unless the layers of an exported program have the shape of an example."""
    if keys:
        raise SpecError(f"{path.name} has no open axis {next(iter(keys))!r}", hint=_OF_FILE)
    if not shapes:
        raise SpecError(f"{path.name} needs the shape of its input", hint=_OF_FILE)


def _of_like(like: object, rest: Mapping[Any, Any]) -> LayeredWorkload:
    phases = ("prefill", "decode", "tokens", _BATCH)
    keys = {key: _size(key, one) for key, one in rest.items() if key in phases}
    fields = {key: one for key, one in rest.items() if key not in phases}
    origin = {"like": like, **fields}
    return LayeredWorkload(label=str(like), origin=origin, keys=keys)


def _of_function(function: object, shapes: Mapping[str, Shape]) -> LayeredWorkload:
    if isinstance(function, str) and function.startswith(GIVEN):
        return _missing(function)
    if callable(function):
        return _of_object(function, shapes)
    own = OwnFunction.of(function)
    if not shapes:
        raise SpecError(f"{own.name} needs the shape of its input", hint=_SHAPED)
    return LayeredWorkload(
        label=own.name,
        origin=own,
        shapes=shapes,
        content=f"{own.edition} {own.name} {sorted(shapes.items())}",
    )


def _of_object(value: object, shapes: Mapping[str, Shape]) -> LayeredWorkload:
    if not callable(value):
        raise SpecError(f"a workload cannot be {value!r}", hint=_FORMS)
    label = type(value).__name__
    if not shapes:
        hint = 'workload={"python": net, "input": [3, 32, 32]}, the shape of one example'
        raise SpecError(f"{label} needs the shape of its input", hint=hint)
    content = f"{object_edition(value)} {sorted(shapes.items())}"
    return LayeredWorkload(label=label, origin=value, shapes=shapes, content=content)


def _missing(text: str) -> LayeredWorkload:
    label = text[len(GIVEN) :]
    reason = f"{label!r} is an object of the Python program that began the study"
    return LayeredWorkload(label=label, origin=text, missing=reason, content=text)


def _shapes_of(value: object) -> dict[str, Shape]:
    """Return the shapes of examples, by the name of an input; ``""`` is the only one."""
    if value is None:
        return {}
    named = value if isinstance(value, Mapping) else {"": value}
    shapes: dict[str, Shape] = {}
    for name, one in named.items():
        sizes: list[Any] = list(one) if isinstance(one, list | tuple) else [None]
        if not all(type(size) is int and 1 <= size <= _MOST for size in sizes):
            hint = "sizes of one example, as in [3, 32, 32], or {ids: [128], mask: [128]}"
            raise SpecError(f"input cannot be {value!r}", hint=hint)
        shapes[str(name)] = tuple(sizes)
    return shapes


def _size(key: object, value: object) -> str:
    if type(value) is not int or not 1 <= value <= _MOST:
        raise SpecError(f"{key} cannot be {value!r}", hint="a whole number from 1")
    return str(value)


def _counted(flags: Iterable[bool]) -> Iterator[tuple[bool, int]]:
    """Yield each flag with the number of true flags so far, itself included."""
    count = 0
    for one in flags:
        count += one
        yield one, count


@lru_cache(maxsize=32)
def _trace(origin: Any, label: str, shapes: tuple[tuple[str, Shape], ...]) -> ReadLayers:
    from dse_evaluators.workloads.own.own_readers import module_of
    from dse_evaluators.workloads.own.traced_layers import trace_layers

    module = module_of(origin, label)
    return trace_layers(module, {name: (1, *shape) for name, shape in shapes}, label)
