"""What every operator stores is what it counts, and comes back from nothing but its bytes."""

from __future__ import annotations

import numpy as np
import pytest

from dse.errors import EvaluationError
from dse_evaluators.compression.operators import (
    binary_index,
    bloomier,
    corrected,
    cp,
    gptq,
    masked_codes,
    masks,
    prune,
    sliced,
    structured,
    svd,
    tucker,
    xor,
)
from dse_evaluators.compression.operators.bundle import bundle_layers, unbundle_layers
from dse_evaluators.compression.operators.dense import FP16, FP32, Dense
from dse_evaluators.compression.operators.huffman import Entropy
from dse_evaluators.compression.operators.input_scaling import Awq, smooth_layer
from dse_evaluators.compression.operators.reading import READERS, restore_tensor
from dse_evaluators.compression.operators.record import Record
from dse_evaluators.compression.operators.sparse import SparseStore, mask_weights

INT4 = Dense("int4:tensor")
INT2 = Dense("int2:group=4,asym")


def _given(table):
    """Inputs for a table of weights, one of them never used."""
    seen = np.random.default_rng(5).standard_normal((40, table.shape[1])).astype(np.float32)
    seen[:, 0] = 0
    return seen


def _thin(table):
    return prune.by_layer(table, 0.2)


def _half(table):
    return structured.strongest(table, 0.5)


def _of_table(table):
    """A record by each operator on matrices."""
    seen = _given(table)
    every = np.ones(table.shape[1], dtype=np.bool_)
    short = INT2(table)
    index = binary_index.BinaryIndex(rank=2, density=0.3)
    return {
        "dense": INT4(table),
        "entropy": Entropy("kmeans:3")(table),
        "bitmap": SparseStore(FP16, masks.bitmap)(_thin(table)),
        "rows": SparseStore(FP32, masks.rows)(_thin(table)),
        "gaps": SparseStore(Entropy("kmeans:2"), masks.gaps)(_thin(table)),
        "smallest": SparseStore(Dense("kmeans:2"))(_thin(table)),
        "two-of-four": SparseStore(INT4, masks.of_m(2, 4))(prune.n_of_m(table, 2, 4)),
        "masked": masked_codes.round_kept(prune.n_of_m(table, 2, 4), "int4:group=4", masks.of_m(2, 4)),
        "blocks": SparseStore(FP16, masks.of_blocks((1, 4)))(prune.blocks(table, 0.5, (1, 4))),
        "binary-index": mask_weights(table, index(table), FP16),
        "narrowed": structured.narrow_layer(table, _half(table), every, FP16),
        "svd": svd.plain(table, 1, FP16),
        "whitened": svd.whiten_weights(table, seen, 1),
        "corrected": corrected.correct_layer(table, short, restore_tensor(short), 1, inputs=seen),
        "xor": xor.Xor(seed_bits=6, spread=20, planes=2)(_thin(table), masks.bitmap(_thin(table) != 0)),
        "bloomier": bloomier.Bloomier(value_bits=2, cell_bits=9)(_thin(table)),
        "gptq": gptq.Gptq("int4:group=4,asym")(table, seen),
        "awq": Awq("int4:group=4")(table, seen),
        "smooth": smooth_layer(table, seen, Dense("int8")),
        "sliced-reading": sliced.reading(table, sliced.basis(seen, 3)),
        "sliced-writing": sliced.writing(table.T.copy(), sliced.basis(seen, 3), FP16),
    }  # fmt: skip


def _of_filters(filters):
    """A record by each operator on convolutions; those on matrices take filters as rows."""
    every = np.ones(filters.shape[1], dtype=np.bool_)
    return {
        "dense": INT4(filters),
        "entropy": Entropy("kmeans:3")(filters),
        "smallest": SparseStore(FP16)(_thin(filters)),
        "narrowed": structured.narrow_layer(filters, _half(filters), every, FP16),
        "svd": svd.plain(filters, 2),
        "tucker": tucker.tucker_2(filters, 2, 2, FP16),
        "cp": cp.cp(filters, 3),
        "bloomier": bloomier.Bloomier(value_bits=2, cell_bits=9)(_thin(filters)),
        "gptq": gptq.Gptq("int4:channel")(filters, _given(filters.reshape(len(filters), -1))),
    }


def _all_records():
    rng = np.random.default_rng(3)
    table = rng.standard_normal((12, 16)).astype(np.float32)
    filters = rng.standard_normal((6, 4, 3, 3)).astype(np.float32)
    cases = {
        "table": _of_table(table),
        "row": _of_table(table[:1]),
        "zeros": _of_table(np.zeros_like(table)),
        "filters": _of_filters(filters),
        "zero-filters": _of_filters(np.zeros_like(filters)),
    }
    return {f"{case}-{name}": record for case, each in cases.items() for name, record in each.items()}  # fmt: skip


RECORDS = _all_records()


@pytest.mark.parametrize("name", RECORDS)
def test_the_bytes_of_a_record_are_as_many_as_its_cost_says(name):
    record = RECORDS[name]
    assert 8 * len(record.to_bytes()) == record.cost.total


@pytest.mark.parametrize("name", RECORDS)
def test_a_record_comes_back_from_its_bytes_and_stands_for_the_same_numbers(name):
    record = RECORDS[name]
    back = Record.from_bytes(record.to_bytes())
    assert back == record
    assert restore_tensor(back).dtype == np.float32
    assert restore_tensor(back).tobytes() == restore_tensor(record).tobytes()


@pytest.mark.parametrize("name", [name for name in RECORDS if "sliced" not in name])
def test_what_a_record_stands_for_has_the_shape_of_the_weights(name):
    assert restore_tensor(RECORDS[name]).shape == RECORDS[name].shape


@pytest.mark.parametrize("name", [name for name in RECORDS if name.startswith("zero")])
def test_weights_of_zero_stay_zero(name):
    assert not restore_tensor(RECORDS[name]).any()


def test_every_kind_of_record_was_proven():
    proven = {
        kind
        for record in RECORDS.values()
        for kind in (record.kind, *(part.kind for part in record.parts))
    }
    assert proven == set(READERS)


@pytest.mark.parametrize("cut", [1, 5, 40])
def test_bytes_that_end_early_are_refused(cut):
    with pytest.raises(EvaluationError, match="too early"):
        Record.from_bytes(RECORDS["table-svd"].to_bytes()[:-cut])


def test_bytes_that_are_left_over_are_refused():
    with pytest.raises(EvaluationError, match="1 bytes are left over"):
        Record.from_bytes(RECORDS["table-svd"].to_bytes() + b"\0")


def test_a_kind_that_nobody_reads_is_refused():
    with pytest.raises(EvaluationError, match="'bloomer'"):
        restore_tensor(Record(kind="bloomer", shape=(1,)))


@pytest.mark.parametrize("store", [FP32, FP16, Dense("int8"), Entropy("kmeans:4")])
def test_weights_that_are_no_numbers_are_refused(store):
    weight = np.array([[np.nan, 1.0]], dtype=np.float32)
    with pytest.raises(EvaluationError, match="not a number"):
        SparseStore(store)(weight)


def test_a_table_without_weights_is_refused():
    with pytest.raises(EvaluationError, match="not a table of outputs and inputs"):
        svd.plain(np.zeros((0, 4), dtype=np.float32), 1)


def test_a_network_read_back_from_bytes_says_what_the_compressed_one_says(network):
    thin = prune.globally(network.layers, 0.4)
    deep = SparseStore(Entropy("kmeans:5"))
    record = bundle_layers(
        network.layers | network.biases_by_name, {n: deep(w) for n, w in thin.items()}
    )
    back = unbundle_layers(Record.from_bytes(record.to_bytes()))
    weights = {name: back[name] for name in network.layers}
    here = {name: restore_tensor(deep(weight)) for name, weight in thin.items()}
    assert np.array_equal(network.outputs(weights), network.outputs(here))
    assert record.cost.fp32 == 32 * (128 + 64 + 10)


def test_a_record_of_an_unknown_layer_is_refused(layer):
    with pytest.raises(EvaluationError, match="'thrid'"):
        bundle_layers({"third": layer}, {"thrid": FP16(layer)})
