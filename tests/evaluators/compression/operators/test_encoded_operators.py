"""Weights behind XOR gates and in Bloomier filters: what they cost by theory and in fact."""

from __future__ import annotations

import math

import numpy as np
import pytest

from dse.errors import EvaluationError
from dse_evaluators.compression.operators import masks, prune
from dse_evaluators.compression.operators.binary_index import BinaryIndex
from dse_evaluators.compression.operators.bits import width_of
from dse_evaluators.compression.operators.bloomier import Bloomier
from dse_evaluators.compression.operators.huffman import Entropy
from dse_evaluators.compression.operators.reading import restore_tensor
from dse_evaluators.compression.operators.sparse import SparseStore
from dse_evaluators.compression.operators.xor import Xor


def _thin(density, shape=(256, 256)):
    weight = np.random.default_rng(4).standard_normal(shape).astype(np.float32)
    return prune.by_layer(weight, density)


def _encrypted(weight, **how):
    return Xor(**how)(weight, masks.bitmap(weight != 0))


def _plane_bits(record):
    """Bits of the signs and their patches, without the mask and the scales, a weight."""
    return sum(section.bits for section in record.sections[1:]) / np.prod(record.shape)


@pytest.mark.parametrize("planes", [1, 2, 3])
def test_signs_of_all_kept_weights_come_back(layer, planes):
    thin = prune.by_layer(layer, 0.2)
    given = restore_tensor(_encrypted(thin, seed_bits=12, spread=60, planes=planes))
    scale = np.abs(thin[thin != 0]).mean()
    first = given if planes == 1 else np.sign(thin) * scale
    assert np.array_equal(given != 0, thin != 0)
    assert np.allclose(first, np.sign(thin) * scale, rtol=1e-5)


@pytest.mark.parametrize(("seed_bits", "spread"), [(1, 1), (1, 7), (32, 3)])
def test_signs_come_back_from_the_narrowest_and_the_widest_seeds(layer, seed_bits, spread):
    thin = prune.by_layer(layer, 0.2)
    given = restore_tensor(_encrypted(thin, seed_bits=seed_bits, spread=spread))
    assert np.array_equal(np.sign(given), np.sign(thin))


def test_more_planes_come_nearer(layer):
    thin = prune.by_layer(layer, 0.2)
    errors = [
        float(
            (
                (restore_tensor(_encrypted(thin, seed_bits=12, spread=50, planes=p)) - thin) ** 2
            ).sum()
        )
        for p in (1, 2, 3, 4)
    ]
    assert errors == sorted(errors, reverse=True)


def test_a_sign_of_nine_in_a_hundred_costs_a_sixth_of_a_bit():
    # Published with the mask: 0.28 bits a weight for AlexNet's layers, 91 % pruned.
    record = _encrypted(_thin(0.09), seed_bits=24, spread=240)
    assert 0.09 < _plane_bits(record) < 0.16


def test_wider_seeds_cost_no_more():
    thin = _thin(0.09)
    bits = [_plane_bits(_encrypted(thin, seed_bits=n, spread=9 * n)) for n in (8, 16, 24)]
    assert bits == sorted(bits, reverse=True)


def test_a_longer_spread_needs_more_patches():
    thin = _thin(0.09)
    shares = [patched_share(_encrypted(thin, seed_bits=16, spread=n)) for n in (100, 200, 400)]
    assert shares[0] < shares[1] < shares[2]


@pytest.mark.slow
def test_signs_and_a_binary_index_cost_what_was_published():
    weight = np.random.default_rng(4).standard_normal((512, 512)).astype(np.float32)
    record = Xor(seed_bits=24, spread=240)(weight, BinaryIndex(rank=16, density=0.09)(weight))
    assert record.cost.stored / weight.size < 0.28


@pytest.mark.parametrize(
    "how", [{"seed_bits": 0}, {"seed_bits": 33}, {"seed_bits": 8, "planes": 0}]
)
def test_seeds_that_cannot_be_are_refused(how):
    with pytest.raises(EvaluationError, match="1 to 32 bits"):
        _encrypted(_thin(0.1), spread=20, **how)


@pytest.mark.parametrize("cell_bits", [5, 6, 8, 10])
def test_false_weights_are_as_frequent_as_theory_says(cell_bits):
    thin = _thin(0.05, (512, 512))
    given = restore_tensor(Bloomier(value_bits=4, cell_bits=cell_bits)(thin))
    share = 2.0 ** (4 - cell_bits)
    spread = np.sqrt(share * (1 - share) / (thin == 0).sum())
    assert false_positives(thin, given) == pytest.approx(share, abs=4 * spread)


def test_kept_weights_come_back_as_their_clusters():
    thin = _thin(0.05)
    kept = thin[thin != 0]
    given = restore_tensor(Bloomier(value_bits=4, cell_bits=8)(thin))[thin != 0]
    centres = np.unique(given)
    nearest = centres[np.abs(kept[:, None] - centres).argmin(axis=1)]
    assert len(centres) <= 16
    assert np.array_equal(given, nearest)


def test_a_kept_weight_costs_its_cells():
    thin = _thin(0.05)
    cost = Bloomier(value_bits=4, cell_bits=8)(thin).cost
    assert cost.payload / np.count_nonzero(thin) == pytest.approx(1.25 * 8, rel=0.001)
    assert cost.metadata == 32 * 16


def test_fewer_cells_than_the_threshold_are_made_more():
    # Three cells a key cannot be told apart below 1.222 cells for each.
    thin = _thin(0.05)
    payload = Bloomier(value_bits=4, cell_bits=8, cells=1.1)(thin).cost.payload
    assert payload / np.count_nonzero(thin) / 8 > 1.22


def test_a_filter_is_smaller_than_a_huffman_coded_index_where_false_weights_are_borne():
    # Weightless against Deep Compression before retraining, at four clusters' bits each.
    thin = _thin(0.05)
    filtered = Bloomier(value_bits=4, cell_bits=6)(thin).cost.stored
    deep = SparseStore(Entropy("kmeans:4"), masks.gaps)(thin).cost.stored
    assert filtered < deep


@pytest.mark.parametrize("cell_bits", [4, 33])
def test_cells_that_cannot_tell_values_from_zero_are_refused(cell_bits):
    with pytest.raises(EvaluationError, match="cannot distinguish values of 4"):
        Bloomier(value_bits=4, cell_bits=cell_bits)(_thin(0.1))


def test_less_than_a_cell_for_a_weight_is_refused():
    with pytest.raises(EvaluationError, match=r"0\.5 cells per weight are too few"):
        Bloomier(value_bits=4, cell_bits=8, cells=0.5)(_thin(0.1))


def patched_share(record):
    """Return the number of patched signs over the number of all signs, kept or not."""
    spread = record.settings[1]
    spots = sum(section.bits for section in record.sections[3::3])
    slices = -(-math.prod(record.shape) // spread)
    return spots / max(1, width_of(spread - 1)) / (slices * spread * (len(record.settings) - 3))


def false_positives(weight, given):
    """Return the fraction of zero weights that are restored as non-zero."""
    zeros = weight == 0
    return float((given[zeros] != 0).mean()) if zeros.any() else 0.0
