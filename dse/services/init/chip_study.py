"""Texts of a first study that chooses number formats of a model together with a chip."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from dse.errors import SpecError
from dse.registry import make

FORMATS = ("int8:channel", "int6:channel", "int4:channel", "int3:channel")
"""Number formats of weights that a new study chooses among."""

_CHIP = "accelerators.systolic"
_TOKENS = ("prefill", "tokens")
"""Keys of the number of tokens: of a decoder, and of an encoder."""

CHIP_QUESTION = "In which number format, on which chip, does the model keep its quality?"
"""Question of a study with a chip whose author states none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ChipStudy:
    """Settings from which the files of a study of a model and a chip are generated.

    Attributes:
        name: name of the study.
        question: question that the study answers.
        shared: options of the compressed model, as the study file has them.
        objective: the quality objective.
        workload: the option ``workload``, as the study file has it.
        layers: names of the layers, each of which has its own format; empty if all layers share a
            format.
    """

    name: str
    question: str
    shared: str
    objective: str
    workload: str
    layers: Sequence[str] = ()

    def texts(self) -> dict[str, str]:
        """Return the texts of the space file and the study file, by file name."""
        return {"space.yaml": self._space(), "study.yaml": self._study()}

    def _space(self) -> str:
        return f"""\
space: {self.name}
parameters:
{format_lines("weight_format", self.layers)}
  activation_format: {{choice: ["int8:channel", "int6:channel", "int4:channel"]}}
  # The chip: a systolic array with three buffers.
  rows: {{ordinal: [8, 16, 32, 64]}}
  cols: {{ordinal: [8, 16, 32, 64]}}
  dataflow: {{choice: [os, ws, is]}}     # what stays in the array: outputs, weights or inputs
  ifmap_sram: {{ordinal: [16 KiB, 64 KiB, 256 KiB]}}
  filter_sram: {{ordinal: [16 KiB, 64 KiB, 256 KiB]}}
  ofmap_sram: {{ordinal: [16 KiB, 64 KiB]}}
"""

    def _study(self) -> str:
        recipe = 'recipe: "format {weight_format}", activations: "{activation_format}"'
        return f"""\
study: {self.name}
question: {self.question}
space: space.yaml
evaluators:
  # Measured: the model with rounded weights and activations, on the search split of the data.
  quality: {{use: compression.recipe, {self.shared}, {recipe}}}
  # Modelled: the layers of the same model on a systolic array, in the same formats.
  chip: {{use: {_CHIP}, workload: {self.workload}}}
objectives:
  - {self.objective}
  - minimize: chip.energy
  - minimize: chip.latency
# constraints: [chip.area <= 5 mm2]
budget: {{measurements: 12}}
seed: 7
"""


def format_lines(name: str, layers: Sequence[str]) -> str:
    """Return the lines of a space that declare the number formats of a model's weights.

    Args:
        name: name of the parameter.
        layers: names of the layers, each of which has its own format; none or one if all share a
            format.
    """
    formats = ", ".join(f'"{one}"' for one in FORMATS)
    if len(layers) < 2:
        return f"  {name}: {{choice: [{formats}]}}  # of all layers"
    listed = [f"  # {place}: {layer}" for place, layer in enumerate(layers)]
    each = f"  {name}: {{each: {len(layers)}, choice: [{formats}]}}"
    return "\n".join(["  # One format for each layer, in this order:", *listed, each])


def workload_text(
    value: object, text: str, shapes: Mapping[str, list[int]]
) -> tuple[str, Sequence[str]]:
    """Return the option ``workload`` that names a model, as the study file has it.

    Also return the names of the weights that may have formats of their own on the chip; empty if
    these are unknown.

    Args:
        value: the model as the option's value: a path, or ``{"python": FILE:function}``.
        text: the same model as it is written in the study file.
        shapes: shape of one example by the name of an input; empty if it is not known.

    Raises:
        SpecError: the model cannot be read as layers, or the shape of its input is not known.
    """
    first: SpecError | None = None
    option: object
    is_folder = isinstance(value, str) and not value.endswith((".onnx", ".pt2"))
    for more, suffix in _token_forms(shapes) if is_folder else _input_forms(shapes):
        if isinstance(value, Mapping):
            option, written = {**value, **more}, f"{text[:-1]}, {suffix}}}" if suffix else text
        elif more:
            option, written = {"file": value, **more}, f"{{file: {text}, {suffix}}}"
        else:
            option, written = value, text
        try:
            chip: Any = make("evaluators", _CHIP, workload=option)
        except SpecError as error:
            first = first or error
        else:
            return written, chip.weight_names
    assert first is not None
    if isinstance(value, Mapping) and not shapes:
        hint = "give the examples as a file, as in --data data.npz, or the model as net.onnx"
        raise SpecError("the shape of the examples is not known", hint=hint, part=["data"])
    raise first


def _token_forms(shapes: Mapping[str, list[int]]) -> Iterator[tuple[dict[str, object], str]]:
    """Yield the keys of a language model's workload to try, each with its text."""
    lengths = [shape[0] for shape in shapes.values() if len(shape) == 1]
    for key in _TOKENS if lengths else ():
        yield {key: lengths[0]}, f"{key}: {lengths[0]}"
    yield {}, ""


def _input_forms(shapes: Mapping[str, list[int]]) -> Iterator[tuple[dict[str, object], str]]:
    """Yield keys to try for a model that reads no tokens, with their text: none, or the shapes."""
    yield {}, ""
    if shapes:
        only = shapes.get("")
        text = only or "{" + ", ".join(f"{name}: {one}" for name, one in shapes.items()) + "}"
        yield {"input": only or dict(shapes)}, f"input: {text}"
