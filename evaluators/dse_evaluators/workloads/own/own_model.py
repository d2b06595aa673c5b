"""Models of the user as they are named in a study: a file, a function or an object."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from math import prod
from pathlib import Path
from typing import Any

from dse.core.metric import Metric
from dse.errors import DseError, PluginError, SpecError, nearest
from dse_evaluators.workloads.model_factories import distribution_of, registered_names
from dse_evaluators.workloads.models import MODELS, ModelRef, model_of
from dse_evaluators.workloads.own.model_file import EXPORT, check_model_file, names_file
from dse_evaluators.workloads.own.own_data import (
    DataSource,
    OwnData,
    as_evaluation_error,
    data_source,
)
from dse_evaluators.workloads.own.own_function import OwnFunction, digest
from dse_evaluators.workloads.own.own_identity import object_edition
from dse_evaluators.workloads.own.own_outputs import check_targets
from dse_evaluators.workloads.own.own_quality import Quality, qualities_of
from dse_evaluators.workloads.own.plugin_model import PluginFunction, plugin_parts
from dse_evaluators.workloads.workload import Layout, Workload

GIVEN = "given:"
"""Prefix of an object's name in the record of a study that a Python program defined."""

DEVICES = ("cpu", "cuda", "auto")
"""Devices that run models of the user."""

CALIBRATIONS = ("independent", "sequential")
"""Whose outputs calibrate a layer: those of the original layers before it, or compressed ones."""

_MOST_LISTED = 6


@dataclass(frozen=True, kw_only=True)
class OwnModel:
    """Model of the user with its data and quality metrics, before it is loaded.

    Two are equal if their ``edition``, a hash of the model, the data and the metrics, is.

    Attributes:
        label: name of the model in messages.
        edition: hash of the model's and the data's content.
        origin: a path, a function of a file, or an object of the program.
        data: source of the examples; ``None`` if none was named.
        qualities: the quality metrics.
        missing: why the model cannot be run here; empty if it can.
        device: device that runs it: ``cpu``, ``cuda``, or ``auto``, ``cuda`` where there is one.
        rotation: the rotation that is folded into its weights, such as ``hadamard:7``.
        is_sequential: whether layers are calibrated with the outputs of the compressed layers
            before them.
    """

    label: str
    edition: str
    origin: Any = field(compare=False, repr=False)
    data: DataSource | None = field(compare=False)
    qualities: tuple[Quality, ...] = field(compare=False)
    missing: str = ""
    device: str = "cpu"
    rotation: str = "none"
    is_sequential: bool = False

    @property
    def metrics(self) -> dict[str, Metric]:
        """Quality metrics of the model, by name."""
        return {one.metric.name: one.metric for one in self.qualities}

    @property
    def starts(self) -> tuple[str, ...]:
        """Descriptions of the user's functions that an evaluation calls."""
        own = (self.origin.text,) if isinstance(self.origin, OwnFunction) else ()
        data = () if self.data is None else self.data.starts
        return (*own, *data, *(text for one in self.qualities for text in one.starts))

    @property
    def is_known(self) -> bool:
        """Whether the layers are known without calling a function of the user."""
        return not self.missing and not isinstance(self.origin, OwnFunction | PluginFunction)

    @cached_property
    def layout(self) -> Layout:
        """Shapes of all parameters, and the layers that can be compressed.

        Raises:
            EvaluationError: the user's function fails.
            SpecError: the model cannot be read.
        """
        from dse_evaluators.workloads.own.own_readers import layout_of

        return layout_of(self.origin, self.label)

    @property
    def layers(self) -> tuple[str, ...]:
        """Names of the weights that can be compressed."""
        return self.layout.layers

    @property
    def shapes(self) -> Mapping[str, tuple[int, ...]]:
        """Shape of each parameter, by name."""
        return self.layout.shapes

    @property
    def notes(self) -> tuple[str, ...]:
        """Sentence on the weights that no recipe compresses; empty if there are none."""
        kept = self.layout.kept if self.is_known else ()
        if not kept:
            return ()
        sizes = {name: prod(shape) for name, shape in self.shapes.items()}
        share = sum(sizes[name] for name in kept) / sum(sizes.values())
        rest = len(kept) - _MOST_LISTED
        listed = [*kept[:_MOST_LISTED], *([f"{rest} more"] if rest > 0 else [])]
        return (
            f"{share:.1%} of the weights of {self.label} stay in single precision, because no "
            f"operator applies to their layers: {', '.join(listed)}",
        )

    def make(self) -> Workload:
        """Load the model and its data.

        Raises:
            EvaluationError: the model or its data cannot be read, or do not fit.
            PluginError: the model cannot be run here.
        """
        from dse_evaluators.workloads.own.own_readers import load_workload

        if self.missing:
            raise PluginError(self.missing)
        try:
            data = None if self.data is None else self.data.load()
            workload = load_workload(self.origin, self.label, data, self.qualities)
            if self.device != "cpu":
                workload = _moved(workload, self.device)
            return workload if self.rotation == "none" else _rotated(workload, self.rotation)
        except SpecError as error:
            raise as_evaluation_error(error) from error


def run_on(model: ModelRef, device: str) -> ModelRef:
    """Return a model that runs on a device; its edition names the device if it is not the CPU.

    Args:
        model: the model.
        device: one of :data:`DEVICES`.

    Raises:
        SpecError: there is no such device, or the model runs on the CPU only.
    """
    if device not in DEVICES:
        hint = nearest(device, DEVICES)
        raise SpecError(f"there is no device {device!r}", hint=hint, part=["device"])
    if device == "cpu":
        return model
    name = model if isinstance(model, str) else model.label
    if not isinstance(model, OwnModel) or name.endswith(".onnx"):
        raise SpecError(
            f"{name} runs on the CPU only",
            hint="leave out device; it applies to folders with safetensors and to torch modules",
            part=["device"],
        )
    return replace(model, device=device, edition=f"{model.edition}-{device}")


def rotate_model(model: ModelRef, rotation: str) -> ModelRef:
    """Return a model with a rotation folded into its weights, which its edition names.

    Args:
        model: the model.
        rotation: ``none``, ``hadamard``, ``hadamard:7`` with a seed, or ``learned
            100/int4:channel``, in 100 steps for a number format.

    Raises:
        SpecError: there is no such rotation, or the model cannot be rotated.
    """
    if rotation == "none":
        return model
    from dse_evaluators.workloads.own.families.rotation_text import read_rotation

    learning, seed = read_rotation(rotation)
    own = _own_module(model, "rotation")
    if isinstance(own.origin, Path):
        from dse_evaluators.workloads.own.safetensors_model import match_weights

        match_weights(own.origin).rotated(seed)
    text = f"hadamard{seed}" if learning is None else repr(learning)
    return replace(own, rotation=rotation, edition=f"{own.edition}-{digest(text.encode())[:6]}")


def calibrate_in_order(model: ModelRef, calibration: str) -> ModelRef:
    """Return a model whose layers are calibrated independently, or in order, as its edition states.

    Args:
        model: the model.
        calibration: ``independent`` or ``sequential``.

    Raises:
        SpecError: there is no such calibration, or the model cannot be calibrated in order.
    """
    if calibration not in CALIBRATIONS:
        hint = nearest(calibration, CALIBRATIONS)
        raise SpecError(f"there is no calibration {calibration!r}", hint=hint, part=["calibration"])
    if calibration == "independent":
        return model
    own = _own_module(model, "calibration")
    return replace(own, is_sequential=True, edition=f"{own.edition}-sequential")


def _own_module(model: ModelRef, option: str) -> OwnModel:
    """Return a model of the user that PyTorch runs.

    Raises:
        SpecError: the model is another one.
    """
    name = model if isinstance(model, str) else model.label
    if not isinstance(model, OwnModel) or name.endswith(".onnx"):
        raise SpecError(
            f"{option} does not apply to {name}",
            hint=f"leave out {option}; it applies to folders with safetensors and torch modules",
            part=[option],
        )
    return model


def _rotated(workload: Workload, rotation: str) -> Workload:
    """Return a workload with a rotation folded into its weights."""
    from dse_evaluators.workloads.own.families.rotation_text import read_rotation
    from dse_evaluators.workloads.own.module_workload import ModuleWorkload

    assert isinstance(workload, ModuleWorkload)
    learning, seed = read_rotation(rotation)
    if learning is None:
        workload.rotate(seed)
    else:
        workload.learn_rotation(learning)
    return workload


def _moved(workload: Workload, device: str) -> Workload:
    """Return a workload that runs its module on a device."""
    from dse_evaluators.workloads.own.module_workload import ModuleWorkload

    assert isinstance(workload, ModuleWorkload)
    workload.move_to(device)
    return workload


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
