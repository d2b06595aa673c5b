"""Analog-to-digital converters at the columns of crossbars, in any PyTorch network."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional
from torch.overrides import TorchFunctionMode

_FINGERPRINT = 32
"""First weights that tell one layer's weight from another's."""

_OF_CONVOLUTION = ("stride", "padding", "dilation", "groups")
"""Further arguments of a convolution, in order."""


class Converters(TorchFunctionMode):
    """Analog-to-digital converters of a crossbar's column sums, active within a ``with`` block.

    A crossbar adds up the products of at most ``rows`` inputs; a layer with more inputs has several
    crossbars, whose sums are converted one by one and then added. A converter has 2^``bits`` evenly
    spaced levels from minus to plus the largest absolute sum of the layer for the batch; its
    gradient passes through unchanged. ``conversions`` counts them.

    Args:
        bits: bits of a converter.
        rows: rows of a crossbar.
    """

    def __init__(self, bits: int, rows: int) -> None:
        super().__init__()
        self._bits, self._rows = bits, rows
        self._watched: set[bytes] = set()
        self._seen: set[bytes] = set()
        self.conversions = 0

    def watch(self, weights: Iterable[Tensor]) -> None:
        """Convert the column sums of the layers with the given weights from now on.

        Other layers are computed without conversion.
        """
        self._watched = {_fingerprint(one) for one in weights}
        self._seen = set()

    def find_missed(self, weights: Mapping[str, Tensor]) -> list[str]:
        """Return the names of the watched layers that were not computed since :meth:`watch`."""
        return [name for name, one in weights.items() if _fingerprint(one) not in self._seen]

    def __torch_function__(
        self,
        function: Callable[..., Any],
        types: Any,
        args: tuple[Any, ...] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> Any:
        given = kwargs or {}
        if function is functional.linear:
            return self._linear(function, *args, **given)
        if function in {functional.conv2d, torch.conv2d}:
            return self._conv2d(function, *args, **given)
        return function(*args, **given)

    def _linear(
        self,
        function: Callable[..., Tensor],
        signal: Tensor,
        weight: Tensor,
        bias: Tensor | None = None,
    ) -> Tensor:
        if not self._is_watched(weight):
            return function(signal, weight, bias)
        return self._convert_columns(signal, weight, bias)

    def _conv2d(
        self,
        function: Callable[..., Tensor],
        signal: Tensor,
        weight: Tensor,
        bias: Tensor | None = None,
        *args: Any,
        **given: Any,
    ) -> Tensor:
        settings = dict(zip(_OF_CONVOLUTION, args, strict=False)) | given
        if isinstance(settings.get("padding"), str) or not self._is_watched(weight):
            return function(signal, weight, bias, **settings)
        shape = function(signal[:1], weight, None, **settings).shape
        groups = settings.pop("groups", 1)
        offsets = [None] * groups if bias is None else bias.chunk(groups)
        totals = []
        for part, kernels, offset in zip(
            signal.chunk(groups, 1), weight.chunk(groups, 0), offsets, strict=True
        ):
            windows = functional.unfold(part, weight.shape[2:], **settings)
            totals.append(self._convert_columns(windows.mT, kernels.flatten(1), offset).mT)
        return torch.cat(totals, 1).reshape(len(signal), *shape[1:])

    def _convert_columns(
        self,
        signal: Tensor,  # (..., inputs)
        weight: Tensor,  # (outputs, inputs)
        bias: Tensor | None,  # (outputs,)
    ) -> Tensor:
        """Return the products of signal and weight, (..., outputs), added up after conversion.

        The bias is a row of the first crossbar: a comparator needs it before the conversion.
        """
        pairs = zip(
            torch.split(signal, self._rows, -1), torch.split(weight, self._rows, 1), strict=True
        )
        parts = [left @ right.mT for left, right in pairs]
        if bias is not None:
            parts[0] = parts[0] + bias
        sums = torch.stack(parts)
        self.conversions += sums.numel()
        top = sums.detach().abs().max()
        if not top > 0:
            return sums.sum(0)
        half = 2 ** (self._bits - 1)
        place = (sums.detach() / top * half).floor().clamp(-half, half - 1)
        return ((place + 0.5) * top / half + (sums - sums.detach())).sum(0)

    def _is_watched(self, weight: Tensor) -> bool:
        mark = _fingerprint(weight)
        if mark in self._watched:
            self._seen.add(mark)
            return True
        return False


def _fingerprint(weight: Tensor) -> bytes:
    first = weight.detach().flatten()[:_FINGERPRINT].cpu().numpy()
    return bytes(str(tuple(weight.shape)), "ascii") + first.tobytes()
