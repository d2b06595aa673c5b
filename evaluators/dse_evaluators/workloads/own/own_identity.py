"""Hashes of Python objects, which make them part of a study's identity."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from typing import Any

import numpy as np

from dse_evaluators.workloads.own.own_function import digest


def object_edition(value: Any) -> str:  # an object of the user's program
    """Return a hash of an object: of a module's weights and code, an array, or a function's code.

    Args:
        value: a module, an array, a function, or a sequence or mapping of arrays.
    """
    return digest(*_contents(value))


def _contents(value: Any) -> list[bytes]:
    if hasattr(value, "state_dict"):
        state = value.state_dict()
        held = [part for name, one in state.items() for part in (name.encode(), *_contents(one))]
        return [repr(value).encode(), _source(type(value)), *held]
    if hasattr(value, "detach"):
        value = value.detach().cpu()
        value = value.float().numpy() if str(value.dtype) == "torch.bfloat16" else value.numpy()
    if isinstance(value, np.ndarray):
        return [f"{value.dtype}{value.shape}".encode(), np.ascontiguousarray(value).tobytes()]
    if isinstance(value, Mapping):
        return [part for key, one in value.items() for part in (str(key).encode(), *_contents(one))]
    if isinstance(value, tuple | list):
        return [part for one in value for part in _contents(one)]
    if callable(value):
        return [_source(value)]
    return [repr(value).encode()]


def _source(value: Any) -> bytes:
    """Return the source text of a class or function, or its name if there is no source file."""
    try:
        return inspect.getsource(value).encode()
    except (OSError, TypeError):
        code = getattr(value, "__code__", None)
        return code.co_code if code is not None else repr(type(value)).encode()
