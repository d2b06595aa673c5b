"""A seeded scope leaves no trace."""

import random

import numpy as np
import pytest

from dse.optimizers.support.seeded_scope import seed_generators

pytestmark = pytest.mark.slow  # torch takes a second to import


def _draws():
    import torch

    return random.random(), np.random.random(), torch.rand(1).item()  # noqa: NPY002


def test_the_same_seed_draws_the_same():
    with seed_generators(4):
        first = _draws()
    with seed_generators(4):
        assert _draws() == first
    with seed_generators(5):
        assert _draws() != first


def test_afterwards_all_is_as_before():
    with seed_generators(0):
        import torch
    threads = torch.get_num_threads()
    random.seed(1)
    np.random.seed(1)  # noqa: NPY002 - the scope is about these
    torch.manual_seed(1)
    with seed_generators(2):
        _draws()
    after = _draws()
    random.seed(1)
    np.random.seed(1)  # noqa: NPY002 - the scope is about these
    torch.manual_seed(1)
    assert after == _draws()
    assert torch.get_num_threads() == threads


def test_inside_there_is_one_thread_and_nothing_is_compiled():
    with seed_generators(0):
        import torch
        from botorch.acquisition.multi_objective import logei

        assert torch.get_num_threads() == 1
        logei._try_load_fused_kernel()
    assert logei._C is None
