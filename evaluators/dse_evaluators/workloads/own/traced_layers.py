"""Layers of a PyTorch module: the products of one forward pass, as PyTorch dispatches them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from math import prod
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils import _pytree as pytree
from torch.utils._python_dispatch import TorchDispatchMode

from dse.errors import EvaluationError
from dse_evaluators.workloads.layer_table import LayerTable, Lookup, ReadLayers
from dse_evaluators.workloads.layers import Layer
from dse_evaluators.workloads.shaped_layers import (
    Shape,
    convolve_shapes,
    multiply_shapes,
    transpose_convolution,
)

_ATEN = torch.ops.aten

_UNREAD = ("_fft_", "cdist", "mkldnn_rnn", "_trilinear", "_native_multi_head", "_transformer_enc")
"""Starts of the names of operators that multiply and are not read as layers."""

_FUSED = "_scaled_dot_product_"
"""Start of the names of fused attention operators."""


def trace_layers(module: nn.Module, shapes: Mapping[str, Shape], label: str) -> ReadLayers:
    """Return the layers of one forward pass of a module on zeros.

    Convolutions, matrix products, also those of attention and of recurrent cells, are layers. A
    product is unweighted if both sides depend on the input.

    Args:
        module: the module; its mode is evaluation within this function.
        shapes: shape of each input with the batch, by the name of an argument; ``""`` is the first.
        label: name of the model for messages.

    Raises:
        EvaluationError: the module fails on such inputs, or has an operator that is not read.
    """
    was_training = module.training
    module.eval()
    try:
        recorder = _run_with_numbers(module, shapes, label)
    finally:
        module.train(was_training)
    return ReadLayers(table=recorder.table(), stored=recorder.stored())


def _run_with_numbers(module: nn.Module, shapes: Mapping[str, Shape], label: str) -> _LayerRecorder:
    """Run a module on real numbers or, if it cannot take them, on integers such as token ids."""
    first: Exception | None = None
    for kind in (torch.float32, torch.int64):
        recorder = _LayerRecorder(module)
        inputs = {name: torch.zeros(shape, dtype=kind) for name, shape in shapes.items()}
        try:
            _run(module, recorder, inputs)
        except _UnreadOperatorError as error:
            raise EvaluationError(
                f"{label} has an operator that cannot be read as a layer: {error}",
                hint="write it with matrix products and convolutions",
            ) from error
        except Exception as error:  # noqa: BLE001 - the user's code
            first = first or error
        else:
            return recorder
    listed = ", ".join(f"{name or 'the input'} of {list(shape)}" for name, shape in shapes.items())
    problem = str(first).strip().partition("\n")[0]
    raise EvaluationError(
        f"{label} cannot be run with {listed}: {type(first).__name__}: {problem:.200}",
        hint="input is the shape of one example, without the batch",
    ) from first


def _run(module: nn.Module, recorder: _LayerRecorder, inputs: dict[str, Tensor]) -> None:
    args = (inputs.pop(""),) if "" in inputs else ()
    fast_path = torch.backends.mha.get_fastpath_enabled()
    mkldnn = torch._C._get_mkldnn_enabled()  # noqa: SLF001 - torch.backends' own function warns
    torch.backends.mha.set_fastpath_enabled(False)  # fused operators hide the products
    torch._C._set_mkldnn_enabled(False)  # noqa: FBT003, SLF001
    try:
        with ExitStack() as stack:
            stack.enter_context(torch.no_grad())
            stack.enter_context(sdpa_kernel(SDPBackend.MATH))
            stack.enter_context(recorder.named_modules())
            stack.enter_context(recorder)
            module(*args, **inputs)
    finally:
        torch.backends.mha.set_fastpath_enabled(fast_path)
        torch._C._set_mkldnn_enabled(mkldnn)  # noqa: SLF001


class _UnreadOperatorError(Exception):
    """A module calls an operator that multiplies and is not read."""


class _LayerRecorder(TorchDispatchMode):  # type: ignore[no-untyped-call]  # of torch
    """Mode that records each product with the name of its weight or module.

    A tensor is constant if it is a parameter, a buffer, or computed from constants alone.
    """

    def __init__(self, module: nn.Module) -> None:
        super().__init__()  # type: ignore[no-untyped-call]  # of torch
        self._module = module
        self._stack: list[tuple[str, nn.Module]] = [("", module)]
        self._stored: dict[int, str] = {}
        self._constant: dict[int, Any] = {}  # storages, kept so that their ids stay theirs
        self._sizes: dict[str, int] = {}
        self._layers: dict[str, Layer] = {}
        self._lookups: list[tuple[Lookup, str]] = []
        self._weights: set[str] = set()
        self._made_of: dict[str, frozenset[str]] = {}
        for name, one in (*module.named_parameters(), *module.named_buffers()):
            self._stored[_storage(one)] = name
            self._keep(one)
        for name, one in module.named_parameters():
            self._sizes[name] = one.numel()

    def table(self) -> LayerTable:
        """Return the layers that were recorded."""
        counted = self._weights | {name for _, name in self._lookups}
        lookups = tuple(
            Lookup(
                name=one.name,
                rows=one.rows,
                width=one.width,
                picked=one.picked,
                shared=name in self._weights,
            )
            for one, name in self._lookups
        )
        return LayerTable(
            layers=tuple(self._layers.values()),
            lookups=lookups,
            others=sum(size for name, size in self._sizes.items() if name not in counted),
        )

    def stored(self) -> tuple[frozenset[str], ...]:
        """Return the names of the parameters that the weights of each layer are made of."""
        return tuple(self._made_of[name] for name in self._layers)

    @contextmanager
    def named_modules(self) -> Iterator[None]:
        """Follow which module runs within the block."""
        handles = []
        for name, one in self._module.named_modules():
            handles.append(one.register_forward_pre_hook(self._enter(name)))
            handles.append(one.register_forward_hook(self._leave, always_call=True))
        try:
            yield
        finally:
            for handle in handles:
                handle.remove()

    def _enter(self, name: str) -> Callable[..., None]:
        def run(module: nn.Module, _: object) -> None:
            self._stack.append((name, module))

        return run

    def _leave(self, *_: object) -> None:
        self._stack.pop()

    def __torch_dispatch__(
        self,
        func: Any,
        types: Any,
        args: tuple[Any, ...] = (),
        kwargs: Mapping[str, Any] | None = None,
    ) -> Any:
        named = dict(kwargs or {})
        packet = func.overloadpacket
        name = packet.__name__
        if name.startswith(_UNREAD):
            raise _UnreadOperatorError(name)
        result = func(*args, **named)
        if func._schema.is_mutable:  # noqa: SLF001 - torch has no other way to know
            self._forget(args[0], args[1:])
        tensors = [one for one in pytree.tree_leaves((args, named)) if isinstance(one, Tensor)]
        if not all(map(self._is_constant, tensors)):
            self._record(packet, args, result)
            return result
        for one in pytree.tree_leaves(result):
            if isinstance(one, Tensor):
                self._keep(one)
        return result

    def _record(self, packet: Any, args: Sequence[Any], result: Any) -> None:
        if packet in _OPERANDS:
            self._multiply(*(args[place] for place in _OPERANDS[packet]))
        elif packet in _CONVOLUTIONS:
            self._convolve(args, result)
        elif packet == _ATEN.embedding:
            self._look_up(args[0], args[1])
        elif packet.__name__.startswith(_FUSED):
            queries, keys, values = args[:3]
            self._multiply(queries, keys.transpose(-1, -2))
            self._multiply(queries.new_empty((*queries.shape[:-1], keys.shape[-2])), values)

    def _is_constant(self, one: Tensor) -> bool:
        if isinstance(self._stack[-1][1], nn.RNNBase):  # its first state is constant, but a row
            return _storage(one) in self._stored
        return _storage(one) in self._constant

    def _forget(self, written: object, values: object) -> None:
        """Note that a tensor is not constant any more if values that are not are written to it."""
        tensors = [one for one in pytree.tree_leaves(values) if isinstance(one, Tensor)]
        if isinstance(written, Tensor) and not all(map(self._is_constant, tensors)):
            self._constant.pop(_storage(written), None)

    def _keep(self, one: Tensor) -> None:
        self._constant[_storage(one)] = one.untyped_storage()

    def _multiply(self, left: Tensor, right: Tensor) -> None:
        learnt = (self._is_constant(left), self._is_constant(right))
        operands = [
            _unexpanded(one) if known else tuple(one.shape)
            for one, known in zip((left, right), learnt, strict=True)
        ]
        one = operands[0] if len(operands[0]) > 1 else (1, *operands[0])
        other = operands[1] if len(operands[1]) > 1 else (*operands[1], 1)
        stored = self._use([x for x, known in zip((left, right), learnt, strict=True) if known])
        layer = multiply_shapes(
            self._name(stored), one, other, left_weighted=learnt[0], right_weighted=learnt[1]
        )
        self._add(layer, stored)

    def _convolve(self, args: Sequence[Any], result: Tensor) -> None:
        images, filters, _, stride, _, _, is_transposed, _, groups = args[:9]
        stored = self._use([filters] if self._is_constant(filters) else [])
        name, shapes = self._name(stored), (tuple(images.shape), tuple(filters.shape))
        if is_transposed:
            self._add(transpose_convolution(name, *shapes, groups=groups), stored)
            return
        strides = tuple(stride) * (len(shapes[1]) - 2 if len(stride) == 1 else 1)
        after = tuple(result.shape)
        layer = convolve_shapes(name, *shapes, after, strides=strides, groups=groups)
        self._add(layer, stored)

    def _look_up(self, table: Tensor, places: Tensor) -> None:
        if not self._is_constant(table):
            return
        rows, width = table.shape
        stored = self._stored.get(_storage(table), "")
        name = stored.removesuffix(".weight") or self._stack[-1][0] or "embedding"
        one = Lookup(name=name, rows=rows, width=width, picked=prod(places.shape))
        self._lookups.append((one, stored))

    def _use(self, weights: Sequence[Tensor]) -> list[str]:
        """Note that a product has these weights; return the names of those that are stored."""
        stored = [self._stored[_storage(one)] for one in weights if _storage(one) in self._stored]
        self._weights.update(stored)
        return stored

    def _name(self, stored: Sequence[str]) -> str:
        """Return the name of a product: that of its stored weight, or that of its module."""
        if stored:
            return stored[0].removesuffix(".weight")
        module = self._stack[-1][0]
        return f"{module}.product" if module else "product"

    def _add(self, layer: Layer, stored: Sequence[str]) -> None:
        """Add a layer; the steps of a recurrent cell are rows of one product."""
        name, before = layer.name, self._layers.get(layer.name)
        if before is not None and isinstance(self._stack[-1][1], nn.RNNBase):
            layer = multiply_shapes(
                name,
                (before.height + layer.height, layer.channels),
                (layer.channels, layer.filters),
                left_weighted=False,
                right_weighted=True,
            )
        else:
            count = 1
            while name in self._layers:
                count += 1
                name = f"{layer.name}{count}"
        self._layers[name] = replace(layer, name=name)
        self._made_of[name] = frozenset(stored)


_OPERANDS: Mapping[Any, tuple[int, int]] = {
    _ATEN.mm: (0, 1),
    _ATEN.bmm: (0, 1),
    _ATEN.mv: (0, 1),
    _ATEN.dot: (0, 1),
    _ATEN.addmm: (1, 2),
    _ATEN._addmm_activation: (1, 2),  # noqa: SLF001 - its name
    _ATEN.baddbmm: (1, 2),
    _ATEN.addbmm: (1, 2),
    _ATEN.addmv: (1, 2),
}
"""Matrix products, with the places of their operands among the arguments."""

_CONVOLUTIONS = (_ATEN.convolution, _ATEN._convolution, _ATEN.convolution_overrideable)  # noqa: SLF001


def _storage(one: Tensor) -> int:
    """Return an id of the memory that a tensor and its views share."""
    return int(one.untyped_storage()._cdata)  # noqa: SLF001 - the only id that meta tensors have


def _unexpanded(one: Tensor) -> Shape:
    """Return the shape of a tensor without the copies that broadcasting makes of a matrix."""
    leading = (
        1 if stride == 0 else size
        for size, stride in zip(one.shape[:-2], one.stride()[:-2], strict=True)
    )
    return (*leading, *one.shape[-2:])
