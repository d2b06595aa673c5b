"""Context manager that seeds torch, numpy and Python and restores their state on exit."""

from __future__ import annotations

import random
import warnings
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np


@contextmanager
def seed_generators(seed: int) -> Iterator[None]:
    """Seed torch, numpy and Python, run torch on one thread and silence warnings in the block.

    The libraries draw from global generators that cannot be passed as arguments, and two threads
    round differently from one, so that a replay would diverge from the record. Import torch,
    BoTorch and Ax in the block: their imports raise warnings that only their developers can fix.
    """
    with warnings.catch_warnings(), _numpy_and_python(seed):
        warnings.simplefilter("ignore")
        import torch
        from botorch.acquisition.multi_objective import logei

        # the fused kernel would be compiled at first use, for minutes, and differ by machine
        logei._load_attempted = True  # noqa: SLF001 - the one switch there is
        threads = torch.get_num_threads()
        torch.set_num_threads(1)
        try:
            with torch.random.fork_rng(devices=[]):
                torch.manual_seed(seed)
                yield
        finally:
            torch.set_num_threads(threads)


@contextmanager
def _numpy_and_python(seed: int) -> Iterator[None]:
    python, numpy = random.getstate(), np.random.get_state()  # noqa: NPY002 - to restore it
    random.seed(seed)
    np.random.seed(seed)  # noqa: NPY002 - the libraries draw from it
    try:
        yield
    finally:
        random.setstate(python)
        np.random.set_state(numpy)  # noqa: NPY002 - as it was
