"""Models of the user as they are named in a study: a file, a function or an object."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from dse.errors import DseError, PluginError, SpecError, nearest
from dse_evaluators.workloads.model_factories import distribution_of, registered_names
from dse_evaluators.workloads.models import MODELS, ModelRef, model_of
from dse_evaluators.workloads.own.model_file import EXPORT, check_model_file, names_file
from dse_evaluators.workloads.own.own_data import DataSource, OwnData, data_source
from dse_evaluators.workloads.own.own_function import OwnFunction, digest
from dse_evaluators.workloads.own.own_identity import object_edition
from dse_evaluators.workloads.own.own_model import OwnModel
from dse_evaluators.workloads.own.own_outputs import check_targets
from dse_evaluators.workloads.own.own_quality import qualities_of
from dse_evaluators.workloads.own.plugin_model import PluginFunction, plugin_parts

GIVEN = "given:"
"""Prefix of an object's name in the record of a study that a Python program defined."""


def model_ref(
    model: object, data: object = None, quality: object = None, *, runs: bool = False
) -> ModelRef:
    """Return the model that the options ``model``, ``data`` and ``quality`` name.

    Files are read and checked; functions are not called.

    Args:
        model: the name of a built-in model, a path, ``{python: FILE.py:function}`` or an object.
        data: the examples: a path, a mapping, or arrays; only for models of the user.
        quality: the quality metrics: a name, a function, or a list; only for models of the user.
        runs: whether the model is run, so that it needs data.

    Raises:
        PluginError: no model has this name.
        SpecError: a file cannot be read, the data is missing or does not fit the metrics.
    """
    if isinstance(model, str) and not names_file(model) and not model.startswith(GIVEN):
        is_registered = model not in MODELS and model in registered_names()
        _check_alone(model, data, quality, has_quality=not is_registered)
        if is_registered:
            return _registered(model, quality, runs=runs)
        _check_name(model)
        return model
    return _own_model(model, data, quality, runs=runs)


def _registered(name: str, quality: object, *, runs: bool) -> OwnModel:
    """Return a model that another package registers."""
    parts = plugin_parts(name)
    try:
        own = _own_model(
            parts["model"], parts.get("data"), quality or parts.get("quality"), runs=runs
        )
    except SpecError as error:
        origin = f"the model {name!r} of {distribution_of(name)}"
        part = error.part if quality else ("model",)
        raise SpecError(f"{origin}: {error.problem}", hint=error.hint, part=part) from error
    return replace(own, label=name)


def _check_alone(model: str, data: object, quality: object, *, has_quality: bool) -> None:
    """Raise SpecError if data, or quality metrics, are given for a model that has its own."""
    for name, value in (("data", data), ("quality", quality if has_quality else None)):
        if (model in MODELS or model in registered_names()) and value is not None:
            hint = "leave it out; a model of your own is a path, such as model: net.onnx"
            raise SpecError(f"{model} has its own {name}", hint=hint, part=[name])


def _own_model(model: object, data: object, quality: object, *, runs: bool) -> OwnModel:
    origin, edition, label = _origin_of(model)
    missing = ""
    if isinstance(origin, str):
        missing = f"{label!r} is an object of the Python program that began the study"
    if runs and data is None:
        hint = "as in data: data.npz, with the arrays inputs and targets"
        raise SpecError(f"{label} needs data to run on", hint=hint, part=["data"])
    found = _source(data)
    qualities = qualities_of(quality)
    known = "" if found is None else found.edition
    names = [f"{one.metric.name}{one.edition}" for one in qualities]
    own = OwnModel(
        label=label,
        edition=digest(edition.encode(), known.encode(), "\n".join(names).encode())[:8],
        origin=origin,
        data=found,
        qualities=qualities,
        missing=missing,
    )
    _check_own(own)
    return own


def _check_own(own: OwnModel) -> None:
    """Check what is known without calling a function of the user.

    Raises:
        SpecError: the model has no layer to compress, or the data does not fit the metrics.
    """
    if own.is_known:
        try:
            layers = own.layers
        except DseError as error:
            raise SpecError(error.problem, hint=error.hint, part=["model"]) from error
        if not layers:
            raise SpecError(
                f"{own.label} has no layer that can be compressed",
                hint="layers are Linear, Conv1d, Conv2d, Embedding and attention projections",
                part=["model"],
            )
    if own.data is not None and not own.data.is_deferred and not own.missing:
        try:
            data = own.data.load()
            check_targets(data, own.qualities)
            _check_inputs(own, data)
        except DseError as error:
            part = error.part or ("data",)
            raise SpecError(error.problem, hint=error.hint, part=part) from error


def _check_inputs(own: OwnModel, data: OwnData) -> None:
    """Raise SpecError unless the data has an input of each name that a model's file states."""
    wanted = own.layout.inputs if own.is_known else ()
    if not wanted or (len(wanted) == 1 and not data.named) or set(wanted) == set(data.named):
        return
    given = ", ".join(data.named) or "one without a name"
    raise SpecError(
        f"{own.label} has the inputs {', '.join(wanted)}, but the data has {given}",
        hint=f"name arrays: data: {{file: data.npz, inputs: [{', '.join(wanted)}]}}",
    )


def _source(data: object) -> DataSource | None:
    held = data.get("python", "") if isinstance(data, Mapping) else data
    if data is None or (isinstance(held, str) and held.startswith(GIVEN)):
        return None
    return data_source(data)


def _check_name(model: str) -> None:
    """Raise PluginError unless a model, built in or registered, has this name."""
    try:
        model_of(model)
    except PluginError as error:
        hint = nearest(model, (*MODELS, *registered_names()))
        if Path(model).exists():
            hint = f"a file or folder is named by a path: ./{model}"
        elif not hint.startswith("did"):
            hint = f"{hint}; a model of your own is a path, such as model: net.onnx"
        raise PluginError(error.problem, hint=hint, part=["model"]) from error


def _origin_of(model: object) -> tuple[Any, str, str]:
    """Return the origin of a user's model, a hash of its content, and its name for messages."""
    try:
        if isinstance(model, str | Path):
            if str(model).startswith(GIVEN):
                return model, str(model), str(model)[len(GIVEN) :]
            return _file_origin(Path(model))
        if isinstance(model, Mapping):
            return _mapping_origin(model)
    except SpecError as error:
        raise SpecError(error.problem, hint=error.hint, part=["model"]) from error
    if not callable(model):
        raise SpecError(
            f"a model cannot be {model!r}",
            hint="a name, a path, {python: net.py:make}, or a torch.nn.Module",
            part=["model"],
        )
    if isinstance(model, PluginFunction):
        return model, digest(model.text.encode()), model.text
    return model, object_edition(model), type(model).__name__


def _mapping_origin(model: Mapping[Any, Any]) -> tuple[Any, str, str]:
    if isinstance(model.get("python"), str) and model["python"].startswith(GIVEN):
        return _origin_of(model["python"])
    odd = next((key for key in model if key != "python"), None)
    if odd is not None or not model:
        hint = nearest(odd, ["python"]) if odd is not None else "as in {python: net.py:make}"
        raise SpecError(f"a model has no key {odd!r}", hint=hint)
    if callable(model["python"]):
        return model["python"], object_edition(model["python"]), "the model"
    function = OwnFunction.of(model["python"])
    return function, digest(function.edition.encode(), function.name.encode()), function.name


def _file_origin(path: Path) -> tuple[Any, str, str]:
    from dse_evaluators.workloads.own.own_readers import READERS, reader_of

    check_model_file(path)
    if path.suffix == ".safetensors":
        path = path.parent  # its config.json gives the model's shape
    if reader_of(path) is None:
        hint = f"known: {', '.join(READERS)}; {EXPORT}"
        raise SpecError(f"{path.name} is not a model file", hint=hint)
    reader = reader_of(path)
    assert reader is not None
    return path, reader.edition(path), path.name
