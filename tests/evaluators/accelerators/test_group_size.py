"""Energy by group size: what it is made of, and what a group saves."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dse.core.batch import Batch
from dse.errors import SpecError
from dse_evaluators.accelerators.grouped.group_size import GroupSize

MODEL = GroupSize()
BASE = {"group": 4, "grouping": "size", "width": 1.0, "batch": 1, "number_format": "fp32"}

designs = st.fixed_dictionaries(
    {
        "group": st.integers(1, 256),
        "grouping": st.sampled_from(["size", "count"]),
        "width": st.sampled_from([0.0, 0.25, 0.5, 1.0]),
        "batch": st.integers(1, 64),
        "number_format": st.sampled_from(["fp32", "fp16", "int8", "int4"]),
    }
)


def metrics(rows, model=MODEL):
    return model.evaluate(Batch.of(rows)).columns


def test_multiplying_and_moving_cost_what_horowitz_printed():
    """3.7 pJ for an fp32 product and 0.9 pJ for a sum, 640 pJ for 32 bits of DRAM (ISSCC 2014)."""
    got = metrics([BASE])
    words = got["traffic"] / 4
    assert got["energy"] == pytest.approx(got["macs"] * 4.6e-12 + words * 640e-12)


@given(designs)
def test_energy_has_four_parts_that_sum_to_it(design):
    got = metrics([design])
    parts = [got[f"{name}_energy"][0] for name in ("mac", "input", "output", "weight")]
    assert min(parts) > 0
    assert sum(parts) == pytest.approx(got["energy"][0], rel=1e-12)


@given(designs)
def test_the_bottleneck_is_where_most_energy_goes(design):
    got = metrics([design])
    assert got["bottleneck"] == (got["energy"] > 2 * got["mac_energy"])


@given(designs)
def test_fewer_bits_never_mean_more_bytes_nor_more_energy(design):
    got = metrics([design | {"number_format": f"int{bits}"} for bits in range(2, 17)])
    assert (np.diff(got["traffic"]) >= 0).all()
    assert (np.diff(got["energy"]) >= 0).all()


@given(designs, st.integers(2, 64))
def test_more_images_at_once_never_cost_more_each(design, times):
    got = metrics([design, design | {"batch": design["batch"] * times}])
    assert got["energy"][1] <= got["energy"][0] * times * (1 + 1e-12)


@given(st.integers(1, 16), st.integers(2, 4))
def test_at_one_width_a_larger_group_costs_more_energy_and_less_for_each_product(group, times):
    got = metrics([BASE | {"group": group}, BASE | {"group": group * times}])
    assert got["energy"][1] >= got["energy"][0]
    assert got["efficiency"][1] >= got["efficiency"][0]


@pytest.mark.parametrize(
    "other",
    [
        {"group": 8},
        {"grouping": "count"},
        {"width": 0.5},
        {"batch": 8},
        {"number_format": "int8"},
    ],
    ids=lambda other: next(iter(other)),
)
def test_every_knob_moves_some_metric(other):
    got = metrics([BASE, BASE | other])
    assert any(values[0] != values[1] for values in got.values())


def test_a_network_without_depthwise_layers_is_left_as_it_is():
    got = metrics([BASE, BASE | {"group": 8}], GroupSize(workload="resnet18"))
    assert got["energy"][0] == got["energy"][1]
    assert (got["grouped_intensity"] == 0).all()


def test_a_memory_that_there_is_not_is_told_with_the_nearest():
    with pytest.raises(SpecError, match="hbm2x") as caught:
        GroupSize(dram="hbm2x")
    assert "hbm2" in caught.value.hint


def test_a_list_of_equal_groups_is_that_group_and_a_longer_list_is_told():
    listed = {"width": 0.0} | {f"group[{place}]": 8 for place in range(13)}
    alone, each = metrics([BASE | {"group": 8, "width": 0.0}]), metrics([listed])
    assert {name: values[0] for name, values in each.items()} == {
        name: values[0] for name, values in alone.items()
    }
    with pytest.raises(SpecError, match="14"):
        MODEL.check_values({f"group[{place}]": (8,) for place in range(14)})
