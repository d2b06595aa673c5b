"""Archives of ``torch.export.save``: the graph as JSON, and weights as bytes; no pickle is opened.

An archive also holds example inputs as a pickle, which are not needed.
"""

from __future__ import annotations

import json
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from dse.errors import SpecError

AGAIN = "torch.export.save(torch.export.export(net.eval(), (example,)), 'net.pt2') writes a file"
"""Hint on how to write an archive that can be read."""

_MODEL = "models/model.json"
_FOLDERS = {"weights": "data/weights/", "constants": "data/constants/"}
_MOST_JSON_BYTES = 2**28
_STRIDED = 7

ELEMENT_TYPES: Mapping[int, str] = {
    1: "uint8",
    2: "int8",
    3: "int16",
    4: "int32",
    5: "int64",
    6: "float16",
    7: "float32",
    8: "float64",
    12: "bool",
    13: "bfloat16",
}
"""Element types by their number in an archive.

Source:
    PyTorch 2.13, torch/_export/serde/schema.py, ScalarType.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class ExportedTensor:
    """Tensor of an archive: its bytes, and their layout.

    ``sizes``, ``strides`` and ``offset`` count elements of the type, which is named as in numpy, or
    ``bfloat16``.
    """

    content: bytes
    element: str
    sizes: tuple[int, ...]
    strides: tuple[int, ...]
    offset: int

    @property
    def array(self) -> NDArray[Any]:
        """Values of the tensor; bfloat16 is widened to single precision.

        Raises:
            ValueError: the bytes are fewer than the sizes and strides need.
        """
        if self.element == "bfloat16":
            halves = np.frombuffer(self.content, dtype="<u2").astype(np.uint32)
            flat = (halves << 16).view(np.float32)
        else:
            flat = np.frombuffer(self.content, dtype=np.dtype(self.element).newbyteorder("<"))
        if 0 in self.sizes:
            return np.empty(self.sizes, dtype=flat.dtype)
        reach = sum((size - 1) * step for size, step in zip(self.sizes, self.strides, strict=True))
        if min((self.offset, *self.strides, *self.sizes)) < 0 or self.offset + reach >= len(flat):
            raise ValueError(f"{len(flat)} values are too few for the shape {self.sizes}")
        steps = tuple(step * flat.itemsize for step in self.strides)
        view = np.lib.stride_tricks.as_strided(flat[self.offset :], self.sizes, steps)
        return np.ascontiguousarray(view).reshape(self.sizes)


@dataclass(frozen=True, slots=True, kw_only=True)
class ExportedArchive:
    """Contents of a PyTorch ``.pt2`` archive: graph, signature, and stored tensors by name."""

    graph: Mapping[str, Any]
    signature: Mapping[str, Any]
    tensors: Mapping[str, ExportedTensor]


def read_archive(path: Path) -> ExportedArchive:
    """Read an archive of ``torch.export.save``.

    Args:
        path: the file.

    Raises:
        SpecError: the file is not such an archive, is incomplete, or holds weights as pickles.
    """
    try:
        with zipfile.ZipFile(path) as archive:
            return _read(archive, path)
    except SpecError:
        raise
    except (OSError, zipfile.BadZipFile, ValueError, RecursionError, NotImplementedError) as error:
        _fail(path, f"is not a complete archive of torch.export: {error}")
    except (KeyError, TypeError, AttributeError, IndexError) as error:
        _fail(path, f"has an entry of another form: {type(error).__name__}: {error}")


def _read(archive: zipfile.ZipFile, path: Path) -> ExportedArchive:
    entries = {info.filename.partition("/")[2]: info for info in archive.infolist()}
    if _MODEL not in entries:
        older = any(
            name.endswith("serialized_exported_program.json") for name in archive.namelist()
        )
        why = "is an archive of an older PyTorch, with pickled weights" if older else "has no graph"
        _fail(path, why)
    if any(info.compress_type != zipfile.ZIP_STORED for info in entries.values()):
        _fail(path, "is compressed, which torch.export.save does not do")
    module = _read_json(archive, entries, _MODEL, path)["graph_module"]
    tensors: dict[str, ExportedTensor] = {}
    for kind, folder in _FOLDERS.items():
        named = f"{folder}model_{kind}_config.json"
        if named in entries:
            table = _read_json(archive, entries, named, path)["config"]
            for name, entry in table.items():
                content = _content(archive, entries, folder, entry, f"{path.name}: {name!r}")
                tensors[name] = _tensor(entry, content, f"{path.name}: {name!r}")
    return ExportedArchive(graph=module["graph"], signature=module["signature"], tensors=tensors)


def _read_json(
    archive: zipfile.ZipFile, entries: Mapping[str, zipfile.ZipInfo], name: str, path: Path
) -> Any:  # the content of an archive
    if entries[name].file_size > _MOST_JSON_BYTES:
        _fail(path, f"has {entries[name].file_size} bytes of {name}")
    return json.loads(archive.read(entries[name]))


def _content(
    archive: zipfile.ZipFile,
    entries: Mapping[str, zipfile.ZipInfo],
    folder: str,
    entry: Mapping[str, Any],
    label: str,
) -> bytes:
    if entry["use_pickle"]:
        raise SpecError(
            f"{label} is a pickle, which could run code, and is never read",
            hint="export plain tensors: not subclasses, and no objects",
        )
    name = f"{folder}{entry['path_name']}"
    if name not in entries:
        raise SpecError(f"{label} is missing in the archive", hint=AGAIN)
    return archive.read(entries[name])


def _tensor(entry: Mapping[str, Any], content: bytes, label: str) -> ExportedTensor:
    meta = entry["tensor_meta"]
    element = ELEMENT_TYPES.get(meta["dtype"])
    if element is None or meta["layout"] != _STRIDED:
        raise SpecError(
            f"{label} has an element type or a layout that is not read",
            hint="export the model in single precision: net.float()",
        )
    return ExportedTensor(
        content=content,
        element=element,
        sizes=tuple(int(one["as_int"]) for one in meta["sizes"]),
        strides=tuple(int(one["as_int"]) for one in meta["strides"]),
        offset=int(meta["storage_offset"]["as_int"]),
    )


def _fail(path: Path, problem: str) -> NoReturn:
    raise SpecError(f"{path.name} {problem}", hint=AGAIN)
