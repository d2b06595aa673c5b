"""Context managers that run PyTorch on one thread, with deterministic kernels, on a device."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager

import torch

from dse.errors import PluginError


@contextmanager
def one_thread() -> Iterator[None]:
    """Run torch on one thread within the block, and restore the number of threads after it."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(threads)


@contextmanager
def deterministic() -> Iterator[None]:
    """Run torch on one thread with deterministic kernels: equal inputs give equal bits."""
    mode = torch.get_deterministic_debug_mode()
    with one_thread():
        # ``use_deterministic_algorithms`` sets the same, and imports torch's compiler for a second
        torch.set_deterministic_debug_mode("error")
        try:
            yield
        finally:
            torch.set_deterministic_debug_mode(mode)


def find_device(name: str) -> str:
    """Return the device of a name: ``auto`` is ``cuda`` where there is one, else ``cpu``.

    Raises:
        PluginError: PyTorch finds no CUDA device, and ``cuda`` is named.
    """
    has_cuda = torch.cuda.is_available()
    if name == "cuda" and not has_cuda:
        raise PluginError(
            "device: cuda, but PyTorch finds no CUDA device here",
            hint="device: auto uses one where there is one, device: cpu none",
        )
    return "cuda" if has_cuda and name != "cpu" else "cpu"


@contextmanager
def on_device(device: str) -> Iterator[None]:
    """Create tensors on a device within the block; compute in full single precision there.

    Args:
        device: ``cpu``, which changes nothing, or ``cuda``.
    """
    if device == "cpu":
        yield
        return
    # Deterministic matrix products need a fixed workspace, which CUDA reads on first use.
    os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")
    narrow = torch.backends.cudnn.allow_tf32, torch.backends.cuda.matmul.allow_tf32
    torch.backends.cudnn.allow_tf32 = torch.backends.cuda.matmul.allow_tf32 = False
    try:
        with torch.device(device):
            yield
    finally:
        torch.backends.cudnn.allow_tf32, torch.backends.cuda.matmul.allow_tf32 = narrow
