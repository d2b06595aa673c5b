"""Module that runs the graph of an archive of ``torch.export.save``, operator by operator."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from dse.errors import EvaluationError, SpecError
from dse_evaluators.workloads.own.exported_archive import (
    AGAIN,
    ELEMENT_TYPES,
    ExportedArchive,
    ExportedTensor,
    read_archive,
)
from dse_evaluators.workloads.own.exported_operators import is_check, operator_of, works_in_place

_KEYWORD = 2
_OTHERWISE = "export it to ONNX, or name its module: {python: net.py:make}"
_FLAGS = ("training", "train")
_TYPES = {number: getattr(torch, name) for number, name in ELEMENT_TYPES.items()}
_MEMORY = {1: torch.contiguous_format, 2: torch.channels_last, 4: torch.preserve_format}
_LAYERS: Mapping[str, type[nn.Module]] = {
    "torch.ops.aten.linear.default": nn.Linear,
    "torch.ops.aten.conv1d.default": nn.Conv1d,
    "torch.ops.aten.conv2d.default": nn.Conv2d,
    "torch.ops.aten.embedding.default": nn.Embedding,
}
_SETTINGS = ("stride", "padding", "dilation", "groups")
Values = dict[str, Any]
"""Tensors and numbers of a run by their name in the graph."""


def load_exported(path: Path) -> nn.Module:
    """Return a module that computes the program in an archive of ``torch.export.save``.

    Args:
        path: the file.

    Raises:
        SpecError: the archive cannot be read, or has an operator that is not known.
    """
    archive = read_archive(path)
    try:
        return ExportedModule(archive)
    except SpecError as error:
        raise SpecError(f"{path.name}: {error.problem}", hint=error.hint) from error
    except (KeyError, TypeError, AttributeError, ValueError, IndexError, RuntimeError) as error:
        problem = f"{path.name} has a graph of another form: {type(error).__name__}: {error}"
        raise SpecError(problem, hint=AGAIN) from error


class ExportedModule(nn.Module):
    """Module of an exported program, whose parameters keep their original names.

    Products with stored weights run as ``Linear``, ``Conv1d``, ``Conv2d`` and ``Embedding``, so
    that they can be compressed. Parameters that no operator uses are left out; of tied weights, one
    name stays.

    Args:
        archive: the archive.

    Raises:
        SpecError: an operator or an input is of a kind that is not read.
    """

    def __init__(self, archive: ExportedArchive) -> None:
        super().__init__()
        self._nodes = [one for one in archive.graph["nodes"] if not is_check(one["target"])]
        used = {name for node in self._nodes for name in _names_of(node["inputs"])}
        self._stored: dict[str, str] = {}
        self._given: list[str] = []
        for spec in archive.signature["input_specs"]:
            self._add_input(spec, archive.tensors, used)
        self._output = _output_of(archive.signature)
        self._fixed = _fixed_batch(archive.graph, self._given)
        self._calls: list[Callable[..., Any]] = [self._call_of(node) for node in self._nodes]
        layers = {str(p): one for p, one in enumerate(self._calls) if isinstance(one, nn.Module)}
        self.layers_of_graph = nn.ModuleDict(layers)

    def forward(self, *inputs: Tensor, **named: Tensor) -> Tensor:
        """Return the first output of the graph for a batch of inputs."""
        values: Values = {**dict(zip(self._given, inputs, strict=False)), **named}
        if values.keys() != set(self._given):
            raise EvaluationError(
                f"the exported program has the inputs {', '.join(self._given)}",
                hint=f"name arrays: data: {{file: data.npz, inputs: [{', '.join(self._given)}]}}",
            )
        count = len(values[self._given[0]])
        if self._fixed is None or self._fixed == count:
            return self._run(values)
        if count % self._fixed:
            raise EvaluationError(
                f"the exported program takes exactly {self._fixed} examples at a time",
                hint="export it with dynamic_shapes={'inputs': {0: torch.export.Dim('n')}}, or "
                "with one example",
            )
        parts = range(0, count, self._fixed)
        return torch.cat(
            [self._run({k: v[p : p + self._fixed] for k, v in values.items()}) for p in parts]
        )

    def _run(self, values: Values) -> Tensor:
        held = dict(values)
        for name, path in self._stored.items():
            owner, _, last = path.rpartition(".")
            held[name] = getattr(self.get_submodule(owner), last)
        for place, node in enumerate(self._nodes):
            call = self._calls[place]
            if isinstance(call, nn.Module):
                signal = node["inputs"][1 if isinstance(call, nn.Embedding) else 0]
                found = self.layers_of_graph[str(place)](_value(signal["arg"], held))
            else:
                found = call(*_args(node, held), **_kwargs(node, held))
            _bind(node["outputs"], found, held)
        result: Tensor = held[self._output]
        return result

    def _add_input(
        self, spec: Mapping[str, Any], tensors: Mapping[str, ExportedTensor], used: set[str]
    ) -> None:
        """Register a parameter, a buffer or a constant of the signature, or note an input."""
        ((kind, entry),) = spec.items()
        if kind == "user_input":
            if "as_tensor" not in entry["arg"]:
                raise SpecError("an input is no tensor", hint="export it with tensors as inputs")
            self._given.append(entry["arg"]["as_tensor"]["name"])
            return
        key = {
            "parameter": "parameter_name",
            "buffer": "buffer_name",
            "tensor_constant": "tensor_constant_name",
        }.get(kind)
        if key is None:
            raise SpecError(f"an input is a {kind}, which is not read", hint=AGAIN)
        name, path = entry["arg"]["name"], str(entry[key])
        if name not in used:
            return
        owner, last = _owner_of(self, path)
        value = torch.tensor(tensors[path].array)
        if kind == "parameter":
            owner.register_parameter(
                last, nn.Parameter(value, requires_grad=value.is_floating_point())
            )
        else:
            owner.register_buffer(last, value)
        self._stored[name] = path

    def _call_of(self, node: Mapping[str, Any]) -> Callable[..., Any]:
        """Return the layer that an operator with stored weights is, or else its function."""
        target = node["target"]
        given = {one["name"]: one["arg"] for one in node["inputs"]}
        for flag in _FLAGS:
            if given.get(flag, {}).get("as_bool"):
                raise SpecError(
                    "it was exported in training mode", hint="call net.eval() before the export"
                )
        first = node["inputs"][0]["arg"].get("as_tensor", {}).get("name") if node["inputs"] else ""
        if works_in_place(target) and (first in self._stored or first in self._given):
            problem = f"{target} changes an input or a parameter"
            raise SpecError(problem, hint="export the module without inplace=True")
        layer = self._layer_of(target, given) if target in _LAYERS else None
        return operator_of(target) if layer is None else layer

    def _layer_of(self, target: str, given: Mapping[str, Any]) -> nn.Module | None:
        """Return a layer with a stored weight and bias; ``None`` for computed ones."""
        weight = self._parameter(given["weight"])
        bias = self._parameter(given.get("bias", {"as_none": True}))
        computed = bias is None and "as_tensor" in given.get("bias", {})
        if weight is None or computed:
            return None
        kind = _LAYERS[target]
        plain = {name: _value(arg, {}) for name, arg in given.items() if name in _SETTINGS}
        layer = _empty_layer(kind, weight, plain)
        layer.weight = weight
        if kind is not nn.Embedding:
            layer.register_parameter("bias", bias)
        return layer

    def _parameter(self, arg: Mapping[str, Any]) -> nn.Parameter | None:
        path = self._stored.get(arg.get("as_tensor", {}).get("name", ""), "")
        return dict(self.named_parameters()).get(path)


def _empty_layer(
    kind: type[nn.Module], weight: Tensor, settings: Mapping[str, Any]
) -> Any:  # a layer with a weight
    with torch.device("meta"):
        if kind is nn.Linear:
            return nn.Linear(weight.shape[1], weight.shape[0], bias=False)
        if kind is nn.Embedding:
            return nn.Embedding(*weight.shape)
        groups = settings.get("groups", 1)
        window = {name: tuple(one) for name, one in settings.items() if name != "groups"}
        inputs, outputs = weight.shape[1] * groups, weight.shape[0]
        return kind(inputs, outputs, tuple(weight.shape[2:]), groups=groups, bias=False, **window)


def _owner_of(root: nn.Module, path: str) -> tuple[nn.Module, str]:
    """Return the module that holds a parameter of a dotted name, made if it is missing."""
    *parts, last = path.split(".")
    for part in parts:
        if part not in dict(root.named_children()):
            root.add_module(part, nn.Module())
        root = root.get_submodule(part)
    return root, last


def _names_of(inputs: Sequence[Mapping[str, Any]]) -> set[str]:
    """Return the names of the tensors that an operator gets."""
    found: set[str] = set()
    for one in inputs:
        arg = one["arg"]
        for held in (arg.get("as_tensor"), *(arg.get("as_tensors") or ())):
            if held:
                found.add(held["name"])
        for held in arg.get("as_optional_tensors") or ():
            found |= {held["as_tensor"]["name"]} if held.get("as_tensor") else set()
    return found


def _output_of(signature: Mapping[str, Any]) -> str:
    for spec in signature["output_specs"]:
        if "user_output" in spec:
            name = spec["user_output"]["arg"].get("as_tensor", {}).get("name")
            if name is None:
                raise SpecError("its first output is no tensor", hint="return logits first")
            return str(name)
        if "buffer_mutation" in spec:
            raise SpecError("it changes buffers", hint="call net.eval() before the export")
    raise SpecError("it has no output", hint=AGAIN)


def _fixed_batch(graph: Mapping[str, Any], inputs: Sequence[str]) -> int | None:
    """Return the number of examples that the graph is fixed to; ``None`` if any may be given.

    Raises:
        SpecError: there is no input, or it has no axis of examples.
    """
    if not inputs:
        raise SpecError("it has no input", hint="export it with an example input")
    sizes = graph["tensor_values"][inputs[0]]["sizes"]
    if not sizes:
        raise SpecError(f"its input {inputs[0]!r} has no axis of examples", hint=AGAIN)
    return int(sizes[0]["as_int"]) if "as_int" in sizes[0] else None


def _args(node: Mapping[str, Any], held: Values) -> list[Any]:
    return [_value(one["arg"], held) for one in node["inputs"] if one.get("kind") != _KEYWORD]


def _kwargs(node: Mapping[str, Any], held: Values) -> dict[str, Any]:
    pairs = [(one["name"], one["arg"]) for one in node["inputs"] if one.get("kind") == _KEYWORD]
    return {name: _value(arg, held) for name, arg in pairs}


def _bind(outputs: Sequence[Mapping[str, Any]], found: Any, held: Values) -> None:
    """Store the results of an operator under their names in the graph."""
    results = [found] if len(outputs) == 1 else list(found)
    for entry, result in zip(outputs, results, strict=True):
        ((kind, value),) = entry.items()
        if kind == "as_tensors":
            held |= {one["name"]: part for one, part in zip(value, result, strict=True)}
        elif kind == "as_tensor":
            held[value["name"]] = result
        elif kind in ("as_sym_int", "as_sym_float", "as_sym_bool"):
            held[value["as_name"]] = result
        elif kind != "as_none":
            raise EvaluationError(f"an operator of the exported program returns {kind}")


def _value(arg: Mapping[str, Any], held: Values) -> Any:
    """Return an argument of an operator: a tensor, a number or a list of them."""
    ((kind, value),) = arg.items()
    if kind not in _READERS:
        raise SpecError(f"an argument {kind} of an operator is not read", hint=_OTHERWISE)
    return _READERS[kind](value, held)


def _number(value: Mapping[str, Any], held: Values) -> Any:
    ((kind, one),) = value.items()
    return held[one] if kind == "as_name" else one


def _optional(value: Mapping[str, Any], held: Values) -> Any:
    return held[value["as_tensor"]["name"]] if value.get("as_tensor") else None


def _unchanged(value: Any, _: Values) -> Any:
    return value


_READERS: Mapping[str, Callable[[Any, Values], Any]] = {
    "as_none": lambda _, __: None,
    "as_tensor": lambda value, held: held[value["name"]],
    "as_tensors": lambda value, held: [held[one["name"]] for one in value],
    "as_optional_tensors": lambda value, held: [_optional(one, held) for one in value],
    "as_float": lambda value, _: float(value),  # infinity is a text
    "as_floats": lambda value, _: [float(one) for one in value],
    **dict.fromkeys(("as_int", "as_ints", "as_bool", "as_bools", "as_string"), _unchanged),
    **dict.fromkeys(("as_sym_int", "as_sym_float", "as_sym_bool"), _number),
    "as_sym_ints": lambda value, held: [_number(one, held) for one in value],
    "as_scalar_type": lambda value, _: _TYPES[value],
    "as_memory_format": lambda value, _: _MEMORY[value],
    "as_layout": lambda _, __: torch.strided,
    "as_device": lambda _, __: torch.device("cpu"),
}
"""Readers of the arguments of operators, by their kind in an archive."""
