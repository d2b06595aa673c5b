"""The parts of the loss that a compressed network is trained again by."""

from __future__ import annotations

import pytest
import torch
from torch.nn import functional

from dse_evaluators.compression.retraining.distillation import (
    DistillationLoss,
    compare_logits,
    compute_divergence,
)


@pytest.fixture
def logits():
    return torch.randn(64, 10, generator=torch.Generator().manual_seed(1), dtype=torch.float64)


@pytest.fixture
def teacher_logits():
    return torch.randn(64, 10, generator=torch.Generator().manual_seed(2), dtype=torch.float64)


@pytest.fixture
def labels():
    return torch.randint(0, 10, (64,), generator=torch.Generator().manual_seed(3))


@pytest.mark.parametrize("temperature", [0.5, 1.0, 4.0])
def test_the_softened_part_is_torchs_divergence_times_the_square_of_the_temperature(
    logits, teacher_logits, temperature
):
    torchs = functional.kl_div(
        torch.log_softmax(logits / temperature, dim=1),
        torch.log_softmax(teacher_logits / temperature, dim=1),
        reduction="batchmean",
        log_target=True,
    )
    ours = compute_divergence(logits, teacher_logits, temperature)
    assert float(ours) == pytest.approx(temperature**2 * float(torchs), rel=1e-12)


def test_a_network_that_says_what_its_teacher_says_learns_nothing_from_it(teacher_logits, labels):
    said = teacher_logits.clone().requires_grad_()
    DistillationLoss(alpha=0.5, beta=0.5, temperature=3.0).loss(
        said, labels, teacher_logits
    ).backward()
    assert float(said.grad.abs().max()) < 1e-15


def test_at_a_high_temperature_the_divergence_pairs_the_centred_logits(logits, teacher_logits):
    # Hinton et al., 2015, eq. 4: the gradient goes to (z - v) / N; here for the mean over examples.
    said = (logits - logits.mean(dim=1, keepdim=True)).requires_grad_()
    told = teacher_logits - teacher_logits.mean(dim=1, keepdim=True)
    compute_divergence(said, told, 1e4).backward()
    expected = (said.detach() - told) / 10 / 64
    assert torch.allclose(said.grad, expected, rtol=1e-3, atol=1e-6)


def test_the_terms_of_the_loss_add_up_with_what_is_left_for_the_labels(
    logits, teacher_logits, labels
):
    parts = DistillationLoss(alpha=0.3, beta=0.2, temperature=2.0).loss(
        logits, labels, teacher_logits
    )
    hard = functional.cross_entropy(logits, labels)
    expected = (
        0.5 * hard
        + 0.3 * compute_divergence(logits, teacher_logits, 2.0)
        + 0.2 * compare_logits(logits, teacher_logits)
    )
    assert float(parts) == pytest.approx(float(expected), rel=1e-12)


def test_without_a_teacher_the_loss_is_cross_entropy(logits, labels):
    assert torch.equal(
        DistillationLoss().loss(logits, labels, None), functional.cross_entropy(logits, labels)
    )


def test_logits_that_are_off_by_their_own_spread_are_paired_at_one(teacher_logits):
    shifted = teacher_logits + teacher_logits.std(correction=0)
    assert float(compare_logits(shifted, teacher_logits)) == pytest.approx(1, rel=1e-12)
