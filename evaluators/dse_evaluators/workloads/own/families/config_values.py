"""Values of a model's ``config.json``, checked when they are read."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from torch import Tensor
from torch.nn import functional

from dse.errors import SpecError, nearest

Activation = Callable[[Tensor], Tensor]

ACTIVATIONS: Mapping[str, Activation] = {
    "silu": functional.silu,
    "swish": functional.silu,
    "relu": functional.relu,
    "gelu": functional.gelu,
    "gelu_new": partial(functional.gelu, approximate="tanh"),
    "gelu_pytorch_tanh": partial(functional.gelu, approximate="tanh"),
}
"""Activation functions by their names in ``config.json``."""

_LARGEST = 2**24


@dataclass(frozen=True, slots=True)
class ConfigValues:
    """Content of ``config.json``; each method checks one value, and raises SpecError if it is bad.

    Args:
        values: the content of the file.
        tensors: the number of tensors in the files of weights, which bounds that of the layers.
    """

    values: Mapping[str, Any]
    tensors: int = 2**16

    def size(self, key: str, usual: int | None = None, most: int = _LARGEST, least: int = 1) -> int:
        """Return the integer under a key of config.json, checked to be within bounds.

        Args:
            key: the key in ``config.json``.
            usual: the value if the file has none or null; ``None`` if it is required.
            most: the largest valid value.
            least: the smallest valid value.
        """
        found = self._value(key, usual)
        if isinstance(found, bool) or not isinstance(found, int) or not least <= found <= most:
            known = key in self.values
            hint = f"a whole number from {least} to {most}" if known else nearest(key, self.values)
            raise SpecError(f"config.json: {key} is {found!r}", hint=hint or "add the key")
        return found

    def count(self, key: str, usual: int | None = None) -> int:
        """Return a number of layers or experts, which cannot exceed the number of stored tensors.

        Args:
            key: the key in ``config.json``.
            usual: the value if the file has none or null; ``None`` if it is required.
        """
        found = self.size(key, usual)
        if found > self.tensors:
            raise SpecError(
                f"config.json: {key} is {found}, but the weights have {self.tensors} tensors",
                hint="config.json and the weights must be of one model",
            )
        return found

    def divisor(self, key: str, whole: str) -> int:
        """Return the integer under a key of config.json, checked to divide another one.

        Args:
            key: the key in ``config.json``.
            whole: the key of the other number.
        """
        found = self.size(key)
        if self.size(whole) % found:
            problem = f"config.json: {key} is {found}, but {whole} is {self.size(whole)}"
            raise SpecError(problem, hint=f"{key} divides {whole}")
        return found

    def window(self, key: str, usual: int | None) -> int | None:
        """Return the integer under a key of config.json; ``None`` if it is null or not limited.

        Args:
            key: the key in ``config.json``.
            usual: the value if the file has no such key.
        """
        found = self.values.get(key, usual)
        return None if found is None else self.size(key, usual, most=2**40)

    def number(self, key: str, usual: float | None = None) -> float:
        """Return the number under a key of config.json, checked to be positive and finite.

        Args:
            key: the key in ``config.json``.
            usual: the value if the file has none or null; ``None`` if it is required.
        """
        found = self._value(key, usual)
        if isinstance(found, bool) or not isinstance(found, int | float):
            raise SpecError(f"config.json: {key} is {found!r}", hint="a positive number")
        if not (math.isfinite(found) and 0 < found < 1e30):
            raise SpecError(f"config.json: {key} is {found!r}", hint="a positive number")
        return float(found)

    def optional_number(self, key: str, usual: float | None) -> float | None:
        """Return the positive number under a key of config.json; ``None`` if it is null.

        Args:
            key: the key in ``config.json``.
            usual: the value if the file has no such key.
        """
        found = self.values.get(key, usual)
        return None if found is None else self.number(key, usual)

    def flag(self, key: str, *, usual: bool) -> bool:
        """Return the Boolean under a key of config.json.

        Args:
            key: the key in ``config.json``.
            usual: the value if the file has none or null.
        """
        found = self._value(key, usual)
        if not isinstance(found, bool):
            raise SpecError(f"config.json: {key} is {found!r}", hint="true or false")
        return found

    def activation(self, key: str, usual: str) -> Activation:
        """Return the activation function that a key of config.json names.

        Args:
            key: the key in ``config.json``.
            usual: its name if the file has none or null.
        """
        return ACTIVATIONS[self.word(key, usual, tuple(ACTIVATIONS))]

    def word(self, key: str, usual: str, known: Sequence[str]) -> str:
        """Return the word under a key of config.json, checked to be one of the supported words.

        Args:
            key: the key in ``config.json``.
            usual: the word if the file has none or null.
            known: the words that are supported.
        """
        found = self._value(key, usual)
        if found not in known:
            hint = f"supported: {', '.join(known)}; other models: {{python: net.py:make}} or ONNX"
            raise SpecError(f"config.json: {key} {found!r} is not supported", hint=hint)
        return str(found)

    def refuse(self, key: str, *plain: object) -> None:
        """Raise SpecError unless a feature of config.json that is not implemented is off.

        Args:
            key: the key in ``config.json``.
            *plain: values besides null and false that mean that it is off.
        """
        found = self.values.get(key)
        if found not in (None, False, *plain):
            hint = "write the model as {python: net.py:make}, or export it to ONNX"
            raise SpecError(f"config.json: {key} {found!r} is not supported", hint=hint)

    def mapping(self, key: str) -> Mapping[str, Any]:
        """Return the mapping under a key of config.json; empty if it is absent or null.

        Args:
            key: the key in ``config.json``.
        """
        found = self.values.get(key)
        if found is not None and not isinstance(found, Mapping):
            raise SpecError(f"config.json: {key} is {found!r}", hint="a mapping")
        return found or {}

    def _value(self, key: str, usual: object) -> Any:
        found = self.values.get(key)
        return usual if found is None else found
