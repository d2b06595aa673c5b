"""Readers of the user's model files by their endings, and loading of modules."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from dse.errors import EvaluationError
from dse_evaluators.workloads.own.onnx_layers import onnx_edition, read_onnx
from dse_evaluators.workloads.own.own_data import OwnData
from dse_evaluators.workloads.own.own_function import OwnFunction, call_own, digest, read_own_file
from dse_evaluators.workloads.own.own_quality import Quality
from dse_evaluators.workloads.own.safetensors_file import weight_files
from dse_evaluators.workloads.workload import Layout, Workload

_FOLDER = "a folder with config.json and model.safetensors"


@dataclass(frozen=True, slots=True, kw_only=True)
class Reader:
    """Functions that read model files of one kind, such as ONNX.

    Attributes:
        edition: function that returns a hash of the file's content.
        layout: function that returns the parameters' shapes and the compressible layers.
        load: function that returns the workload of the model on data.
    """

    edition: Callable[[Path], str]
    layout: Callable[[Path], Layout]
    load: Callable[[Path, str, OwnData | None, Sequence[Quality]], Workload]


def reader_of(path: Path) -> Reader | None:
    """Return the reader of a model's file or folder; ``None`` if there is none."""
    return READERS.get(_FOLDER if path.is_dir() else path.suffix)


def layout_of(origin: Any, label: str) -> Layout:
    """Return the parameters' shapes and the compressible layers of a model.

    Args:
        origin: a path, a function of a file, or a module or function of the program.
        label: name of the model for messages.

    Raises:
        SpecError: the model cannot be read.
        EvaluationError: the user's function fails.
    """
    if isinstance(origin, Path):
        reader = reader_of(origin)
        assert reader is not None
        return reader.layout(origin)
    return _module_layout(module_of(origin, label))


def _module_layout(module: Any) -> Layout:
    from dse_evaluators.workloads.own.module_layers import ModuleLayers
    from dse_evaluators.workloads.own.module_workload import parameters_of, single_precision

    module = single_precision(module)
    found = ModuleLayers.of(module)
    shapes = {name: array.shape for name, array in parameters_of(module).items()}
    return Layout(shapes=shapes, layers=tuple(found.used_by), kept=found.kept)


def load_workload(
    origin: Any, label: str, data: OwnData | None, qualities: Sequence[Quality]
) -> Workload:
    """Return the workload of a model on data.

    Args:
        origin: a path, a function of a file, or a module or function of the program.
        label: name of the model for messages.
        data: the examples; without them, only the weights can be used.
        qualities: the quality metrics.

    Raises:
        SpecError: the model cannot be read.
        EvaluationError: the user's function fails.
    """
    if isinstance(origin, Path):
        reader = reader_of(origin)
        assert reader is not None
        return reader.load(origin, label, data, qualities)
    from dse_evaluators.workloads.own.module_workload import ModuleWorkload

    module = module_of(origin, label)
    return ModuleWorkload(name=label, module=module, data=data, qualities=qualities)


@lru_cache(maxsize=16)
def module_of(origin: Any, label: str) -> Any:
    """Return the module that an object is, or that a function returns; it is called once.

    The function runs with the random seed 0, so that every process gets the same weights.

    Args:
        origin: a function of a file, a module or function of the program, or an exported program.
        label: name of the model for messages.

    Raises:
        EvaluationError: the function fails, or returns something else.
    """
    import torch
    from torch import nn

    if isinstance(origin, nn.Module):
        return origin
    if isinstance(origin, Path):
        return _read_exported(origin, _exported_edition(origin))
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        made = origin.call() if isinstance(origin, OwnFunction) else call_own(origin, label)
    if not isinstance(made, nn.Module):
        text = origin.text if isinstance(origin, OwnFunction) else label
        raise EvaluationError(
            f"{text} returns a {type(made).__name__}", hint="return a torch.nn.Module"
        )
    return made


def _onnx_layout(path: Path) -> Layout:
    return read_onnx(path).layout


def _load_onnx(
    path: Path, label: str, data: OwnData | None, qualities: Sequence[Quality]
) -> Workload:
    from dse_evaluators.workloads.own.onnx_workload import OnnxWorkload

    return OnnxWorkload(path, label, data, qualities)


def _exported_edition(path: Path) -> str:
    return digest(read_own_file(path))


@lru_cache(maxsize=4)
def _read_exported(path: Path, edition: str) -> Any:  # noqa: ARG001 - files may change
    from dse_evaluators.workloads.own.exported_module import load_exported

    return load_exported(path)


def _exported_layout(path: Path) -> Layout:
    return _module_layout(_read_exported(path, _exported_edition(path)))


def _load_exported(
    path: Path, label: str, data: OwnData | None, qualities: Sequence[Quality]
) -> Workload:
    from dse_evaluators.workloads.own.module_workload import ModuleWorkload

    module = _read_exported(path, _exported_edition(path))
    return ModuleWorkload(name=label, module=module, data=data, qualities=qualities)


def _folder_edition(folder: Path) -> str:
    files = (folder / "config.json", *weight_files(folder))
    return digest(*(read_own_file(one) for one in files))


def _folder_layout(folder: Path) -> Layout:
    from dse_evaluators.workloads.own.safetensors_model import folder_layout

    return folder_layout(folder)


def _load_folder(
    folder: Path, label: str, data: OwnData | None, qualities: Sequence[Quality]
) -> Workload:
    from dse_evaluators.workloads.own.safetensors_model import load_folder

    return load_folder(folder, label, data, qualities)


READERS: Mapping[str, Reader] = {
    ".onnx": Reader(edition=onnx_edition, layout=_onnx_layout, load=_load_onnx),
    ".pt2": Reader(edition=_exported_edition, layout=_exported_layout, load=_load_exported),
    _FOLDER: Reader(edition=_folder_edition, layout=_folder_layout, load=_load_folder),
}
"""Reader of each kind of model, by the ending of its file; that of folders is last."""
