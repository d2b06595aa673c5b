"""Which weights go, and what telling the places of the others takes."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dse.errors import EvaluationError
from dse_evaluators.compression.operators import huffman, masks, prune, structured
from dse_evaluators.compression.operators.binary_index import BinaryIndex
from dse_evaluators.compression.operators.dense import FP16, FP32, Dense
from dse_evaluators.compression.operators.huffman import Entropy
from dse_evaluators.compression.operators.reading import restore_tensor
from dse_evaluators.compression.operators.sparse import SparseStore

ROW = np.array([[0.1, -4.0, 0.3, 2.0, -0.2, 0.5, 1.0, -0.6]], dtype=np.float32)


def _mask(seed, share, shape=(32, 64)):
    return np.random.default_rng(seed).random(shape) < share


def test_globally_the_largest_of_all_layers_stay(network):
    thin = prune.globally(network.layers, 0.25)
    kept = np.concatenate([w[w != 0] for w in thin.values()])
    every = np.concatenate([w.ravel() for w in network.layers.values()])
    assert len(kept) == round(0.25 * every.size)
    assert np.abs(kept).min() >= np.sort(np.abs(every))[-len(kept)]


def test_by_layer_the_largest_of_the_layer_stay():
    assert prune.by_layer(ROW, 0.25).tolist() == [[0, -4, 0, 2, 0, 0, 0, 0]]


def test_two_of_four_stay_in_every_four():
    expected = np.array([[0, -4, 0, 2, 0, 0, 1, -0.6]], dtype=np.float32)
    assert np.array_equal(prune.n_of_m(ROW, 2, 4), expected)


def test_blocks_stay_whole_by_their_sums_of_squares():
    weight = np.array([[1, 1, 0, 3], [1, 1, 0, 0]], dtype=np.float32)
    assert prune.blocks(weight, 0.5, (2, 2)).tolist() == [[0, 0, 0, 3], [0, 0, 0, 0]]


@pytest.mark.parametrize("density", [-0.1, 1.1])
def test_a_share_that_cannot_stay_is_refused(density):
    with pytest.raises(EvaluationError, match="cannot stay"):
        prune.by_layer(ROW, density)


def test_groups_that_do_not_divide_the_inputs_are_refused():
    with pytest.raises(EvaluationError, match="8 inputs are no multiple of 3"):
        prune.n_of_m(ROW, 2, 3)


def test_more_than_all_of_a_group_is_refused():
    with pytest.raises(EvaluationError, match="5 of 4"):
        prune.n_of_m(ROW, 5, 4)


def test_blocks_that_do_not_divide_the_table_are_refused():
    with pytest.raises(EvaluationError, match="1 by 8 is no whole number of blocks of 2 by 4"):
        prune.blocks(ROW, 0.5, (2, 4))


def test_a_mask_of_too_many_is_not_told_as_n_of_m():
    with pytest.raises(EvaluationError, match="at most 2 of every 4"):
        SparseStore(FP16, masks.of_m(2, 4))(ROW)


@given(
    seed=st.integers(0, 1000),
    share=st.sampled_from([0.0, 0.02, 0.1, 0.5, 1.0]),
    shape=st.tuples(st.integers(1, 9), st.integers(1, 40)),
    code=st.sampled_from([masks.bitmap, masks.rows, masks.gaps, masks.smallest]),
)
def test_every_code_gives_back_every_mask(seed, share, shape, code):
    mask = _mask(seed, share, shape)
    assert np.array_equal(masks.mask_of(code(mask)), mask)


@pytest.mark.parametrize(
    ("share", "kind"), [(0.5, masks.BITMAP), (0.05, masks.GAPS), (0.001, masks.ROWS)]
)
def test_the_smallest_code_of_a_mask_is_taken(share, kind):
    mask = _mask(1, share, (128, 256))
    told = masks.smallest(mask)
    sizes = [code(mask).cost.total for code in (masks.bitmap, masks.rows, masks.gaps)]
    assert told.kind == kind
    assert told.cost.total == min(sizes)


def test_sparse_weights_cost_what_the_formulas_say():
    weight = np.zeros((4, 100), dtype=np.float32)
    weight[1, 3] = weight[1, 99] = weight[3, 0] = 1.0
    bitmap = SparseStore(FP16, masks.bitmap)(weight).cost
    rows = SparseStore(FP16, masks.rows)(weight).cost
    assert (bitmap.payload, bitmap.metadata) == (3 * 16, 400)
    assert (rows.payload, rows.metadata) == (3 * 16, 4 * 7 + 3 * 7)


def test_two_of_four_costs_nine_bits_a_weight_of_sixteen():
    weight = prune.n_of_m(np.tile(ROW, (4, 2)), 2, 4)
    assert SparseStore(FP16, masks.of_m(2, 4))(weight).cost.stored == 9 * weight.size


def test_gaps_cost_less_than_a_bitmap_and_more_than_their_entropy():
    mask = _mask(2, 0.1, (100, 300))
    gaps = np.diff(np.flatnonzero(mask), prepend=-1) - 1
    told = masks.gaps(mask).sections[1].bits
    least = entropy_bits(gaps.astype(np.uint32))
    assert least <= told < 1.03 * least
    assert masks.gaps(mask).cost.total < masks.bitmap(mask).cost.total


@given(
    symbols=st.lists(st.integers(0, 30), min_size=1, max_size=300),
)
def test_huffmans_codes_give_the_symbols_back_within_a_bit_of_their_entropy(symbols):
    words = np.array(symbols, dtype=np.uint32)
    table, codes = huffman.encode_symbols(words, 5)
    assert np.array_equal(huffman.decode_symbols(table, codes, 5), words)
    least = entropy_bits(words)
    assert least - 1e-6 <= codes.bits <= least + len(words)


def test_huffmans_codes_may_be_long():
    # Counts of Fibonacci's make the deepest tree: one more bit for each symbol.
    counts = [1, 1, 2, 3, 5, 8, 13, 21, 34, 55, 89, 144, 233, 377, 610, 987, 1597, 2584, 4181]
    words = np.repeat(np.arange(len(counts), dtype=np.uint32), counts)
    table, codes = huffman.encode_symbols(words, 5)
    assert table.words(1).size == 5 + 6 * len(counts)
    assert np.array_equal(huffman.decode_symbols(table, codes, 5), words)


def test_deep_compression_without_retraining_makes_the_network_thirteen_times_smaller(network):
    # The paper's LeNet-300-100 became 40 times smaller: with retraining, 8 % of weights suffice.
    thin = prune.globally(network.layers, 0.4)
    records = {n: SparseStore(Entropy("kmeans:3"), masks.gaps)(w) for n, w in thin.items()}
    bits = sum(record.cost.total for record in records.values())
    whole = sum(32 * weight.size for weight in network.layers.values())
    weights = {name: restore_tensor(record) for name, record in records.items()}
    assert whole / bits > 13
    assert network.accuracy(weights) > network.accuracy(network.layers) - 0.05


def test_huffmans_bits_make_clusters_smaller_and_change_nothing(layer):
    thin = prune.by_layer(layer, 0.2)
    plain, coded = (SparseStore(store)(thin) for store in (Dense("kmeans:5"), Entropy("kmeans:5")))
    assert coded.cost.total < plain.cost.total
    assert np.array_equal(restore_tensor(coded), restore_tensor(plain))


def test_narrowed_layers_compute_what_layers_with_zeros_do(network):
    stays = structured.chain(network.layers, 0.6)
    records = {
        name: structured.narrow_layer(weight, *stays[name], FP32)
        for name, weight in network.layers.items()
    }
    small = {name: restore_tensor(record.parts[0]) for name, record in records.items()}
    biases = {name: network.biases[name][stays[name][0]] for name in small}
    first = np.maximum(network.images @ small["first"].T + biases["first"], 0)
    second = np.maximum(first @ small["second"].T + biases["second"], 0)
    last = second @ small["last"].T + biases["last"]
    gone = {name: np.where(stays[name][0], network.biases[name], 0) for name in small}
    wide = {name: restore_tensor(record) for name, record in records.items()}
    whole = np.maximum(network.images @ wide["first"].T + gone["first"], 0)
    whole = np.maximum(whole @ wide["second"].T + gone["second"], 0)
    assert small["second"].shape == (38, 77)
    assert np.allclose(last, whole @ wide["last"].T + gone["last"], rtol=1e-4, atol=1e-4)


def test_a_layer_after_flattening_loses_all_numbers_of_a_filter():
    filters = np.ones((4, 1, 3, 3), dtype=np.float32)
    filters[2] = 0
    head = np.ones((5, 16), dtype=np.float32)
    _, inputs = structured.chain({"filters": filters, "head": head}, 0.75)["head"]
    assert np.flatnonzero(~inputs).tolist() == [8, 9, 10, 11]


def test_a_chain_that_does_not_fit_is_refused():
    layers = {"one": np.ones((4, 3), np.float32), "two": np.ones((5, 7), np.float32)}
    with pytest.raises(EvaluationError, match="7 inputs of 'two' are no multiple of the 4"):
        structured.chain(layers, 0.5)


@pytest.mark.parametrize(("keep", "multiple", "count"), [(0.5, 1, 32), (0.55, 8, 32), (0, 8, 8)])
def test_outputs_stay_in_multiples(layer, keep, multiple, count):
    assert structured.strongest(layer, keep, multiple=multiple).sum() == count


def test_heads_stay_or_go_whole(layer):
    stays = structured.strongest(layer, 0.5, group=16).reshape(4, 16)
    norms = (layer.reshape(4, -1) ** 2).sum(axis=1)
    assert stays.all(axis=1).tolist() == (norms >= np.sort(norms)[2]).tolist()
    assert stays.sum() == 32


@pytest.mark.parametrize("how", [{"group": 15}, {"multiple": 65}, {"keep": 1.5}])
def test_outputs_that_cannot_stay_are_refused(layer, how):
    with pytest.raises(EvaluationError, match="multiple"):
        structured.strongest(layer, **({"keep": 0.5} | how))


def test_a_layer_of_nothing_is_refused(layer):
    none = np.zeros(64, dtype=np.bool_)
    with pytest.raises(EvaluationError, match="without outputs or inputs"):
        structured.narrow_layer(layer, none, np.ones(128, dtype=np.bool_), FP32)


def test_a_binary_index_costs_its_rank_times_rows_and_columns(layer):
    told = BinaryIndex(rank=4, density=0.1, tile=(32, 64))(layer)
    assert told.cost.metadata == index_bits(told) == 4 * 4 * (32 + 64)


@pytest.mark.parametrize("rank", [4, 8, 16])
def test_a_binary_index_keeps_the_wanted_share(layer, rank):
    mask = masks.mask_of(BinaryIndex(rank=rank, density=0.1)(layer))
    assert mask.mean() == pytest.approx(0.1, abs=0.01)


def test_a_binary_index_keeps_more_magnitude_than_chance_and_more_with_its_rank(layer):
    size = np.abs(layer)
    shares = [
        size[masks.mask_of(BinaryIndex(rank=rank, density=0.2)(layer))].sum() / size.sum()
        for rank in (2, 8, 32)
    ]
    assert 0.2 < shares[0] < shares[1] < shares[2]


def test_a_binary_index_is_smaller_than_any_exact_one(layer):
    told = BinaryIndex(rank=4, density=0.1)(layer)
    exact = masks.smallest(prune.by_layer(layer, 0.1) != 0)
    assert told.cost.total < exact.cost.total / 3


def test_tiles_that_do_not_divide_are_refused(layer):
    with pytest.raises(EvaluationError, match=r"64 by 128 cannot be indexed .* 48 by 64"):
        BinaryIndex(rank=2, density=0.1, tile=(48, 64))(layer)


def entropy_bits(symbols):
    """Return the entropy of the symbols in bits, a lower bound for any code of single symbols.

    A Huffman code exceeds it by less than one bit per symbol.
    """
    counts = np.bincount(symbols)
    shares = counts[counts > 0] / len(symbols)
    return float(-len(symbols) * (shares * np.log2(shares)).sum())


def index_bits(record):
    """Return the index size in bits, as papers count: rank x (rows + columns) per tile."""
    rank, high, wide = record.settings
    return rank * (high + wide) * (math.prod(record.shape) // (high * wide))
