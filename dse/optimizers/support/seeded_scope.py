"""A scope in which torch, numpy and Python draw from one seed, and after which all is as before."""

from __future__ import annotations

import random
import warnings
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np


@contextmanager
def seed_generators(seed: int) -> Iterator[None]:
    """Seed global generators, run torch on one thread and silence their warnings.

    Libraries draw from global generators that no argument reaches; and two threads give other
    roundings than one, so that a replay would part from the record. torch, BoTorch and Ax are to
    be imported inside: importing them warns of what only their developers can mend.
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
