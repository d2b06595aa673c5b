"""Products in tiles: whole waves, by hand, and what ``accelerators.gemm`` makes of them."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dse.core.batch import Batch
from dse.errors import SpecError
from dse_evaluators.accelerators.devices.gemm import LIBRARY, Gemm
from dse_evaluators.accelerators.devices.gemm_tiles import TILES, waves

A100_UNITS = 108
SQUARE = TILES["128x128"]


def cut(m, n, k=64.0, tile=SQUARE, units=A100_UNITS):
    return waves(np.array([float(m)]), np.array([float(n)]), np.array([float(k)]), tile, units)


def told(evaluator=None, **design):
    """The metrics of a product, 4096 each way where nothing else is said."""
    base = {"m": 4096, "n": 4096, "k": 4096}
    got = (evaluator or Gemm(device="a100-sxm-80gb")).evaluate(Batch.of([base | design]))
    assert not got.failures
    return {name: column.item() for name, column in got.columns.items()}


def test_as_many_tiles_as_units_are_one_full_wave():
    got = cut(128 * 12, 128 * 9)
    assert (got.tiles.item(), got.waves.item(), got.full.item()) == (108, 1, 1)


def test_one_tile_more_is_a_second_wave():
    got = cut(128 * 109, 128)
    assert (got.tiles.item(), got.waves.item()) == (109, 2)
    assert got.full.item() == pytest.approx(109 / 216)


def test_a_row_more_is_a_tile_more():
    assert cut(129, 128).tiles.item() == 2
    assert cut(129, 128).full.item() == pytest.approx(129 / 256 * 2 / 108)


def test_each_tile_fetches_its_own_rows_and_columns():
    assert cut(256, 256, k=64).fetched.item() == 4 * 64 * 256


@given(st.integers(1, 20_000), st.integers(1, 20_000), st.sampled_from(sorted(TILES)))
def test_waves_are_never_more_than_full(m, n, tile):
    got = cut(m, n, tile=TILES[tile])
    assert 0 < got.full.item() <= 1


@given(st.integers(1, 5000), st.integers(1, 5000), st.integers(1, 5000))
def test_a_stated_tile_is_never_faster_than_full_waves(m, n, k):
    free = told(m=m, n=n, k=k, tile=LIBRARY)["latency"]
    assert told(m=m, n=n, k=k, tile="128x128")["latency"] >= free * (1 - 1e-12)


def test_a_nearly_empty_second_wave_costs_time():
    one, two = (told(m=m, n=128 * 9, tile="128x128")["latency"] for m in (128 * 12, 128 * 12 + 1))
    assert two > 1.2 * one


@pytest.mark.parametrize(
    "changes",
    [
        {"m": 4000},
        {"n": 4000},
        {"k": 4000},
        {"device": "h100-sxm"},
        {"format": "int8"},
        {"tile": "64x64"},
    ],
    ids=lambda changes: next(iter(changes)),
)
def test_every_knob_moves_something(changes):
    before, after = told(), told(**changes)
    assert any(before[name] != pytest.approx(after[name], rel=1e-6) for name in before)


def test_library_tiles_within_the_calibration_are_not_extrapolated():
    assert told()["extrapolated"] == 0
    assert told(tile="128x128")["extrapolated"] == 1
    assert told(k=10**6)["extrapolated"] == 1
    assert told(device="mi300x")["extrapolated"] == 1


@pytest.mark.parametrize(
    ("design", "reason"),
    [
        ({"format": "fp8"}, "a100-sxm-80gb has no units for fp8"),
        ({"device": "gaudi3", "tile": "64x64"}, "the number of compute units of gaudi3"),
    ],
)
def test_what_cannot_be_says_why(design, reason):
    got = Gemm(device="a100-sxm-80gb").evaluate(Batch.of([{"m": 64, "n": 64, "k": 64} | design]))
    assert got.failures[0].kind == "infeasible"
    assert got.failures[0].reason.startswith(reason)


@pytest.mark.parametrize(
    "values",
    [{"device": ["h100"]}, {"format": ["bf61"]}, {"tile": ["96x96"]}, {"m": [0]}],
)
def test_what_it_cannot_be_run_on_is_refused_beforehand(values):
    with pytest.raises(SpecError):
        Gemm().check_values(values)


def test_a_device_whose_power_no_source_tells_is_refused():
    with pytest.raises(SpecError, match="power limit of tpu-v6e"):
        Gemm(device="tpu-v6e")


def test_devices_of_the_user_are_chosen_beside_ours(tmp_path):
    (tmp_path / "slow.yaml").write_text("{like: h100-sxm, bf16: 400 TFLOP/s}")
    platforms = {"capped": {"like": "h100-sxm", "bandwidth": "1 TB/s"}}
    own = Gemm(platforms={**platforms, "slow": str(tmp_path / "slow.yaml")})
    large = {"m": 8192, "n": 8192, "k": 8192}
    small = {"m": 1, "n": 8192, "k": 8192}
    designs = [{**one, "device": name} for one in (large, small) for name in ("h100-sxm", "capped")]
    latency = own.evaluate(Batch.of(designs)).columns["latency"]
    assert latency[1] == pytest.approx(latency[0], rel=0.1)
    assert latency[3] > 2.0 * latency[2]
    [slow] = own.evaluate(Batch.of([{**large, "device": "slow"}])).columns["latency"]
    assert slow > 1.8 * latency[0]
    assert own.version != Gemm(platforms=platforms).version
    with pytest.raises(SpecError, match="device cannot be 'caped'"):
        own.check_values({"device": ["caped"]})
