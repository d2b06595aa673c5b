"""Image networks in ONNX files: those that the package onnx ships, or a file of the user."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from dse.errors import DseError, EvaluationError, PluginError, SpecError, nearest
from dse_evaluators.workloads.onnx_runtime import Session, library, read_model
from dse_evaluators.workloads.own.model_file import check_model_file, names_file

SHIPPED: Mapping[str, str] = {
    "alexnet": "bvlc_alexnet",
    "densenet121": "densenet121",
    "inception-v1": "inception_v1",
    "inception-v2": "inception_v2",
    "resnet50": "resnet50",
    "shufflenet": "shufflenet",
    "squeezenet": "squeezenet",
    "vgg19": "vgg19",
    "zfnet512": "zfnet512",
}
"""Files of the package onnx by the names of their networks: published graphs, constant weights."""

_FOLDER = Path("backend") / "test" / "data" / "light"
_TYPES = {"tensor(float)": np.float32, "tensor(uint8)": np.uint8}
_MEAN = np.array([123.675, 116.28, 103.53], np.float32)
_DEVIATION = np.array([58.395, 57.12, 57.375], np.float32)  # of ImageNet's channels

Layout = Literal["channels-first", "channels-last"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ImageInput:
    """Input of an image network; ``batch`` is ``None`` if any number of images can be run."""

    name: str
    layout: Layout
    channels: int
    height: int
    width: int
    batch: int | None
    is_float: bool

    def normalise(self, pixels: NDArray[np.uint8]) -> NDArray[Any]:
        """Return the input of one image from its pixels, (height, width) or (height, width, 3)."""
        shaped = pixels.reshape(self.height, self.width, self.channels)
        found: NDArray[Any] = shaped
        if self.is_float:
            mean, deviation = (row[: self.channels] for row in (_MEAN, _DEVIATION))
            found = (shaped.astype(np.float32) - mean) / deviation
        if self.layout == "channels-first":
            found = found.transpose(2, 0, 1)
        return np.ascontiguousarray(found)


@dataclass(frozen=True, slots=True, kw_only=True)
class ImageNetwork:
    """An ONNX file of an image network, and its input."""

    label: str
    content: bytes
    input: ImageInput

    def session(self, threads: int) -> Session:
        """Return a session that runs the network on some threads.

        Raises:
            EvaluationError: onnxruntime cannot run the file.
        """
        return Session(self.content, threads=threads)


def check_network(model: str) -> str:
    """Check that a network exists; return a hash of its file, or the name of a shipped network.

    Raises:
        PluginError: no shipped network has this name.
        SpecError: there is no such file, or it is no ONNX file by its name.
    """
    if not names_file(model):
        if model not in SHIPPED:
            hint = f"{nearest(model, SHIPPED)}; a network of yours is a path: model: ./net.onnx"
            raise PluginError(f"there is no network {model!r}", hint=hint, part=["model"])
        return model
    path = Path(model)
    try:
        check_model_file(path)
    except SpecError as error:
        raise SpecError(error.problem, hint=error.hint, part=["model"]) from error
    if path.suffix != ".onnx":
        hint = "write it with torch.onnx.export, and name the file: model: net.onnx"
        raise SpecError(f"{path.name} is no ONNX file", hint=hint, part=["model"])
    return hashlib.sha256(read_model(path)).hexdigest()[:16]


@lru_cache(maxsize=2)
def read_network(model: str, side: int | None) -> ImageNetwork:
    """Return a network by its name or path.

    Args:
        model: the name of a shipped network, or the path of an ONNX file.
        side: height and width of the images, for a file that leaves them free.

    Raises:
        PluginError: onnx or onnxruntime is not installed.
        EvaluationError: the file is no image network, or ``side`` does not fit it.
    """
    if names_file(model):
        content = read_model(Path(model))
    else:
        content = _free_batch_axis(read_model(_shipped_file(model)))
    try:
        inputs = Session(content).inputs
        found = _image_input(inputs, side)
    except DseError as error:
        raise EvaluationError(f"{model}: {error.problem}", hint=error.hint) from error
    return ImageNetwork(label=model, content=content, input=found)


def _shipped_file(model: str) -> Path:
    spec = find_spec("onnx")
    folder = Path(spec.origin).parent if spec is not None and spec.origin else None
    path = None if folder is None else folder / _FOLDER / f"light_{SHIPPED[model]}.onnx"
    if path is None or not path.is_file():
        raise PluginError(
            f"the network {model} is a file of the package onnx, which is not installed",
            hint="pip install 'dse-engine[onnx]'",
        )
    return path


def _free_batch_axis(content: bytes) -> bytes:
    """Return a graph whose batch of one is free: in its inputs, outputs and reshapes.

    A zero in the shape of a ``Reshape`` copies the axis of its input.
    """
    onnx = library("onnx")
    changed = onnx.load_model_from_string(content)
    graph = changed.graph
    shapes = {node.input[1] for node in graph.node if node.op_type == "Reshape"}
    for value in (*graph.input, *graph.output):
        axes = value.type.tensor_type.shape.dim
        if len(axes) > 1 and axes[0].dim_value == 1 and value.name not in shapes:
            axes[0].dim_param = "images"
    del graph.value_info[:]  # intermediate shapes of one image
    for tensor in graph.initializer:
        if tensor.name in shapes:
            wanted = np.array(onnx.numpy_helper.to_array(tensor))
            if len(wanted) > 1 and wanted[0] == 1:
                wanted[0] = 0
                tensor.CopyFrom(onnx.numpy_helper.from_array(wanted, tensor.name))
    return bytes(changed.SerializeToString())


def _image_input(
    inputs: Mapping[str, tuple[str, tuple[int | None, ...]]], side: int | None
) -> ImageInput:
    """Return the only input of a network, as an image.

    Raises:
        EvaluationError: it takes no images, or ``side`` does not fit it.
    """
    wanted = "an image network has one input of floats or bytes: (n, 3, h, w) or (n, h, w, 3)"
    if len(inputs) != 1:
        raise EvaluationError(f"the network has {len(inputs)} inputs", hint=wanted)
    name, (kind, shape) = next(iter(inputs.items()))
    place = next((axis for axis in (1, 3) if len(shape) == 4 and shape[axis] in (1, 3)), None)
    if place is None or kind not in _TYPES:
        raise EvaluationError(f"its input {name!r} is {kind} of shape {shape}", hint=wanted)
    height, width = (shape[2], shape[3]) if place == 1 else (shape[1], shape[2])
    is_free = height is None or width is None
    if is_free and side is None:
        hint = "state their height and width with the option side, such as side: 224"
        raise EvaluationError("the network takes images of any size", hint=hint)
    if side is not None and not is_free:
        problem = f"the network takes images of {height} x {width}, and side is {side}"
        raise EvaluationError(problem, hint="leave side out")
    channels = shape[place]
    assert channels is not None
    return ImageInput(
        name=name,
        layout="channels-first" if place == 1 else "channels-last",
        channels=channels,
        height=height if height is not None else int(side or 0),
        width=width if width is not None else int(side or 0),
        batch=shape[0],
        is_float=kind == "tensor(float)",
    )
