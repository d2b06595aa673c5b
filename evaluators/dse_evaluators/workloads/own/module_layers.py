"""Layers of a PyTorch module whose weights can be compressed, and the inputs that they get."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from dse.errors import EvaluationError
from dse_evaluators.formats.arrays import Single
from dse_evaluators.formats.format import Format
from dse_evaluators.workloads.workload import Signals

Hook = Callable[[str, nn.Module, Tensor], Tensor]
"""Function of a layer's weight name, the layer and its inputs; it returns the inputs to use."""

_MOST_SAMPLES = 4096
"""Maximal number of calibration inputs of a layer."""


class CachedSignal(nn.Identity):
    """Identity layer through which attention's keys or values pass, to be rounded to a format."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ModuleLayers:
    """Compressible weights of a module by name, each with the layers that use it.

    ``kept`` are the other parameters of two or more axes, which stay in single precision.
    """

    used_by: Mapping[str, tuple[nn.Module, ...]]
    kept: tuple[str, ...]

    @staticmethod
    def of(module: nn.Module) -> ModuleLayers:
        """Return the compressible weights of a module's layers.

        Those are the weights of ``Linear``, ``Conv1d``, ``Conv2d`` and ``Embedding``, and the
        projections of ``MultiheadAttention`` where queries, keys and values have one width.
        """
        names = {id(parameter): name for name, parameter in module.named_parameters()}
        found: dict[str, list[nn.Module]] = {}
        for layer in module.modules():
            weight = _weight_of(layer)
            if weight is not None and id(weight) in names:
                found.setdefault(names[id(weight)], []).append(layer)
        ordered = [name for name in names.values() if name in found]
        kept = [name for name, one in module.named_parameters() if one.dim() > 1]
        return ModuleLayers(
            used_by={name: tuple(found[name]) for name in ordered},
            kept=tuple(name for name in kept if name not in found),
        )

    @contextmanager
    def hooked(self, hook: Hook) -> Iterator[None]:
        """Context manager in which the inputs of every layer pass through ``hook``.

        Embeddings have indices as inputs, which the hook does not get.
        """
        handles = [
            layer.register_forward_pre_hook(_pre_hook(hook, name), with_kwargs=True)
            for name, layers in self.used_by.items()
            for layer in layers
            if not isinstance(layer, nn.Embedding)
        ]
        try:
            yield
        finally:
            for handle in handles:
                handle.remove()


@contextmanager
def rounding_cache(module: nn.Module, signals: Signals) -> Iterator[None]:
    """Round the keys and values of attention to their format within the block.

    Raises:
        EvaluationError: the module has no place where keys and values pass.
    """
    places = [one for one in module.modules() if isinstance(one, CachedSignal)]
    if signals.rounds_cache and not places:
        raise EvaluationError(
            "the keys and values of this model cannot be rounded",
            hint="leave out kv_cache: it applies to decoders read from safetensors",
        )
    # Each block has a place for its keys, then one for its values.
    keys, values = (signals.cache_formats(part, len(places) // 2) for part in ("keys", "values"))
    forms = [form for both in zip(keys, values, strict=True) for form in both]
    handles = [
        place.register_forward_hook(_cache_hook(form))
        for place, form in zip(places, forms, strict=True)
        if form is not None
    ]
    try:
        yield
    finally:
        for handle in handles:
            handle.remove()


def _cache_hook(form: Format) -> Callable[[nn.Module, object, Tensor], Tensor]:
    """Return a hook that rounds the outputs of a module."""
    return lambda _, __, given: torch.tensor(form.quantize(given.cpu().numpy()))


def round_inputs(layer: nn.Module, name: str, inputs: Tensor, signals: Signals) -> Tensor:
    """Return a layer's inputs rounded to the format of activations.

    Scales run along the inputs of a linear layer, and along the channels, then the positions, of
    each example of a convolution.

    Args:
        layer: the layer.
        name: the name of its weight.
        inputs: its inputs, (..., inputs) or (n, channels, ...).
        signals: the formats.
    """
    if signals.activations is None or not inputs.numel():  # an expert that no token is routed to
        return inputs
    window = _window(layer)
    if not window:
        return torch.tensor(signals.rounded(name, inputs.cpu().numpy()))
    axes = tuple(range(inputs.dim() - window, inputs.dim()))
    return torch.tensor(
        signals.activations.quantize(inputs.cpu().numpy(), (*axes, inputs.dim() - window - 1))
    )


def calibration_rows(layer: nn.Module, inputs: Tensor, most: int = _MOST_SAMPLES) -> Single:
    """Return inputs of a layer as rows of a matrix, (rows, inputs of one output).

    The windows of a convolution are rows; so are those of each group of a grouped convolution,
    which therefore share one estimate of the inputs' moments.

    Args:
        layer: the layer.
        inputs: its inputs.
        most: the largest number of rows; of more, a random sample with a fixed seed is drawn.
    """
    rows = _windows(layer, inputs) if _window(layer) else inputs.flatten(0, -2)
    if len(rows) > most:
        drawn = np.random.default_rng(0).choice(len(rows), most, replace=False)
        rows = rows[torch.tensor(np.sort(drawn))]
    return rows.contiguous().cpu().numpy().copy()


def _windows(layer: Any, inputs: Tensor) -> Tensor:  # a Conv1d or a Conv2d
    flat = isinstance(layer, nn.Conv1d)
    padding = _padding_of(layer)  # of the last axis first, as torch pads
    mode = "constant" if layer.padding_mode == "zeros" else layer.padding_mode
    signal = functional.pad(inputs, padding, mode=mode) if any(padding) else inputs
    if flat:
        signal = signal.unsqueeze(2)
    one = (1,) if flat else ()
    patches = functional.unfold(
        signal,
        (*one, *layer.kernel_size),
        dilation=(*one, *layer.dilation),
        stride=(*one, *layer.stride),
    )
    count = len(patches)
    grouped = patches.reshape(count, layer.groups, -1, patches.shape[-1])
    return grouped.movedim(-1, 1).flatten(0, 2)


def _padding_of(layer: Any) -> tuple[int, ...]:
    """Return the padding before and after each axis, the last axis first."""
    if layer.padding == "valid":
        return (0, 0) * len(layer.kernel_size)
    if layer.padding == "same":
        pairs = [
            (step * (size - 1) // 2, step * (size - 1) - step * (size - 1) // 2)
            for size, step in zip(layer.kernel_size, layer.dilation, strict=True)
        ]
    else:
        pairs = [(one, one) for one in layer.padding]
    return tuple(end for pair in reversed(pairs) for end in pair)


def _window(layer: nn.Module) -> int:
    """Return the number of axes along which a convolution's window moves; 0 for other layers."""
    return 1 if isinstance(layer, nn.Conv1d) else 2 if isinstance(layer, nn.Conv2d) else 0


def _weight_of(layer: nn.Module) -> nn.Parameter | None:
    if isinstance(layer, nn.MultiheadAttention):
        return layer.in_proj_weight
    if isinstance(layer, nn.Linear | nn.Conv1d | nn.Conv2d | nn.Embedding):
        weight = layer.weight
        return weight if isinstance(weight, nn.Parameter) else None
    return None


def _pre_hook(hook: Hook, name: str) -> Any:
    def run(layer: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        if isinstance(layer, nn.MultiheadAttention):
            return _attention_inputs(hook, name, layer, args, kwargs)
        if args:
            return (hook(name, layer, args[0]), *args[1:]), kwargs
        key = "input"
        return args, {**kwargs, key: hook(name, layer, kwargs[key])} if key in kwargs else kwargs

    return run


def _attention_inputs(
    hook: Hook,
    name: str,
    layer: nn.Module,
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Return the arguments of attention with its inputs passed through the hook.

    Queries, keys and values that are one tensor stay one tensor.
    """
    keys = ("query", "key", "value")
    given = {**dict(zip(keys, args, strict=False)), **{k: kwargs[k] for k in keys if k in kwargs}}
    passed = {id(one): hook(name, layer, one) for one in given.values()}
    args = tuple(passed.get(id(one), one) for one in args)
    return args, {k: passed.get(id(one), one) for k, one in kwargs.items()}
