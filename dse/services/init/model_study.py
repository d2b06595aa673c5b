"""Writer of a first study that compresses a model of the user."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dse.errors import DseError, PluginError, StorageError
from dse.registry import make
from dse.services.init.chip_study import CHIP_QUESTION, ChipStudy, format_lines, workload_text

MODEL_QUESTION = "Which number format of each layer keeps the model's quality in the fewest bytes?"
"""Question of a study whose author states none."""

_LENGTH = 64
"""Token ids of an example, where the data is a stream of them."""

_USUAL = ("accuracy", "cosine")
"""Quality metrics to try: the first needs classes as targets, the second needs no targets."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelAnswer:
    """Model, data and quality metric of a new study, as given on the command line.

    Attributes:
        model: a model's file or folder, or ``net.py:make``.
        data: the file of examples, or ``data.py:make``.
        quality: the quality metric; by default accuracy if the data has classes, else cosine.
        has_chip: whether the study also chooses a systolic array that runs the model.
    """

    model: str
    data: str
    quality: str | None = None
    has_chip: bool = False


def write_model_study(
    name: str, question: str, answer: ModelAnswer, folder: Path
) -> Mapping[str, str]:
    """Write the space and the study that compress a model; return their texts by file name.

    The space has one number format for each layer of the model. It has one format for all layers in
    two cases: if a function returns the model, since its layers are unknown without a call; and if
    the study has a chip that divides the model into other layers, such as a decoder's joined
    projections.

    Args:
        name: name of the study.
        question: question that the study answers.
        answer: the model, its data and its quality metric.
        folder: folder to write to; created if it does not exist.

    Raises:
        SpecError: the model or the data cannot be read, or the metric is unknown.
        PluginError: there is no such model.
        StorageError: the folder cannot be written.
    """
    data, (evaluator, quality) = _read_data(answer, folder)
    if answer.has_chip:
        texts = _chip_texts(name, question, answer, folder, (evaluator, quality, data))
        return _write(texts, folder)
    layers = [] if evaluator.starts else list(evaluator.recipes({}))
    goal = evaluator.provides[quality.replace("-", "_")].goal
    metric = quality.replace("-", "_")
    options = f"model: {_option(answer.model, folder)}, "
    shared = f"{options}data: {data}, quality: {quality}"
    texts = {
        "space.yaml": _space(name, layers),
        "study.yaml": _study(name, question, shared, f"{goal}: quality.{metric}"),
    }
    return _write(texts, folder)


def _write(texts: Mapping[str, str], folder: Path) -> Mapping[str, str]:
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for file, text in texts.items():
            (folder / file).write_text(text, encoding="utf-8")
    except OSError as error:
        raise StorageError(f"{folder} cannot be written: {error.strerror}") from error
    return texts


def _chip_texts(
    name: str, question: str, answer: ModelAnswer, folder: Path, made: tuple[Any, str, str]
) -> Mapping[str, str]:
    """Return the texts of a study that also chooses a chip."""
    evaluator, quality, data = made
    metric = quality.replace("-", "_")
    model = _option(answer.model, folder)
    workload, weights = workload_text(_value(answer.model), model, evaluator.example_shapes)
    layers = () if evaluator.starts else tuple(evaluator.recipes({}))
    study = ChipStudy(
        name=name,
        question=CHIP_QUESTION if question == MODEL_QUESTION else question,
        shared=f"model: {model}, data: {data}, quality: {quality}",
        objective=f"{evaluator.provides[metric].goal}: quality.{metric}",
        workload=workload,
        layers=layers if layers == tuple(weights) else (),
    )
    return study.texts()


def _read_data(answer: ModelAnswer, folder: Path) -> tuple[str, tuple[Any, str]]:
    """Return the option ``data`` as the study file has it, with the evaluator and its metric.

    A stream of token ids, or a folder of texts, is cut into examples of a usual length.
    """
    written, value = _option(answer.data, folder), _value(answer.data)
    try:
        return written, _make_evaluator(answer, value)
    except DseError as error:
        if "data" not in error.part or not isinstance(value, str):
            raise
        first = error
    try:
        made = _make_evaluator(answer, {"file": value, "length": _LENGTH})
    except DseError:
        raise first from None
    return f"{{file: {written}, length: {_LENGTH}}}", made


def _make_evaluator(answer: ModelAnswer, data: object) -> tuple[Any, str]:
    """Return the evaluator of the model, and the quality metric that fits the data."""
    options = {"model": _value(answer.model), "data": data}
    if answer.quality is not None:
        made = make("evaluators", "compression.recipe", **options, quality=answer.quality)
        return made, answer.quality
    for quality in _USUAL[:-1]:
        try:
            return make("evaluators", "compression.recipe", **options, quality=quality), quality
        except PluginError:
            raise
        except DseError as error:
            if "quality" not in error.part:
                raise
    last = _USUAL[-1]
    return make("evaluators", "compression.recipe", **options, quality=last), last


def _value(text: str) -> Any:
    """Return an option's value: a path with a slash, or the mapping for a function in a file."""
    file, _, function = text.rpartition(":")
    if file.endswith(".py") and function.isidentifier():
        return {"python": text}
    return str(Path(text).resolve())


def _option(text: str, folder: Path) -> str:
    """Return an option as the study file has it, with a path relative to the file's folder."""
    file, _, function = text.rpartition(":")
    if file.endswith(".py") and function.isidentifier():
        return f'{{python: "{_relative(file, folder)}:{function}"}}'
    return f'"{_relative(text, folder)}"'


def _relative(path: str, folder: Path) -> str:
    found = os.path.relpath(path, folder)
    return found if Path(found).suffix or "/" in found else f"./{found}"


def _space(name: str, layers: list[str]) -> str:
    return f"space: {name}\nparameters:\n{format_lines('bits', layers)}\n"


def _study(name: str, question: str, shared: str, objective: str) -> str:
    return f"""\
study: {name}
question: {question}
space: space.yaml
evaluators:
  # Measured: the model with rounded weights, on the search split of the data.
  quality: {{use: compression.recipe, {shared}, recipe: "format {{bits}}"}}
objectives:
  - {objective}
  - minimize: quality.size
budget: {{measurements: 40}}
seed: 7
"""
