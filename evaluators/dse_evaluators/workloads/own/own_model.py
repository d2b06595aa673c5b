"""Models of the user: their layers, metrics and data, before they are loaded."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from math import prod
from pathlib import Path
from typing import Any

from dse.core.metric import Metric
from dse.errors import PluginError, SpecError, nearest
from dse_evaluators.workloads.models import ModelRef
from dse_evaluators.workloads.own.own_data import DataSource, as_evaluation_error
from dse_evaluators.workloads.own.own_function import OwnFunction, digest
from dse_evaluators.workloads.own.own_quality import Quality
from dse_evaluators.workloads.own.plugin_model import PluginFunction
from dse_evaluators.workloads.workload import Layout, Workload

DEVICES = ("cpu", "cuda", "auto")
"""Devices that run models of the user."""

CALIBRATIONS = ("independent", "sequential")
"""Whose outputs calibrate a layer: those of the original layers before it, or compressed ones."""

_MOST_LISTED = 6


@dataclass(frozen=True, kw_only=True)
class OwnModel:
    """Model of the user with data and quality metrics, before it is loaded.

    Two models are equal if they have the same ``edition``, a hash of model, data and metrics.

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
        """Whether the model's layers are known without calling a function of the user."""
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
    """Return a model that runs on the given device.

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
    """Return a decoder with a rotation folded into its weights.

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
    """Return a model whose layers are calibrated independently, or in order.

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
