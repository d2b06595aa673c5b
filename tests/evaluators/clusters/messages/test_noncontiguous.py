"""Messages of strided data: canonical datatypes against numpy, fits, tables and choices."""

import json
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dse.core.batch import Batch
from dse.errors import SpecError
from dse_evaluators.clusters.messages.message_fit import (
    fit_machine,
    measured_times,
    modelled_times,
    split_points,
)
from dse_evaluators.clusters.messages.message_machine import fits, machine_of
from dse_evaluators.clusters.messages.noncontiguous import Noncontiguous
from dse_evaluators.clusters.messages.strided_types import datatype_of

sizes = st.integers(1, 4)


def taken_bytes(form) -> list[int]:
    """Return the offsets of all bytes of strided blocks."""
    steps = [[stride * i for i in range(count)] for count, stride in form.streams]
    starts = [form.start + sum(one) for one in product(*steps)]
    return sorted(start + byte for start in starts for byte in range(form.block))


@given(shape=st.tuples(sizes, sizes, sizes), data=st.data(), item=st.sampled_from([1, 4]))
def test_a_subarray_takes_the_bytes_that_numpy_slices(shape, data, item):
    starts = [data.draw(st.integers(0, size - 1)) for size in shape]
    taken = [data.draw(st.integers(1, s - f)) for s, f in zip(shape, starts, strict=True)]
    fields = {"sizes": list(shape), "subsizes": taken, "starts": starts, "of": f"{item} B"}
    form = datatype_of({"subarray": fields})
    places = np.arange(np.prod(shape) * item).reshape(*shape, item)
    slices = tuple(slice(f, f + t) for f, t in zip(starts, taken, strict=True))
    assert taken_bytes(form) == sorted(places[slices].ravel().tolist())
    assert form.extent == places.size


@given(count=sizes, length=sizes, gap=st.integers(0, 3), outer=sizes)
def test_nestings_of_one_layout_have_one_form(count, length, gap, outer):
    """Vectors, byte vectors and subarrays that take the same bytes, several of them in a row."""
    stride = length + gap
    vector = {"count": count, "block_length": length, "stride": stride, "of": "float32"}
    raw = {"count": count, "block_length": 4 * length, "stride": 4 * stride}
    part = {"sizes": [count, stride], "subsizes": [count, length], "of": "float32"}
    forms = [
        datatype_of({"vector": vector}),
        datatype_of({"hvector": raw}),
        datatype_of({"contiguous": {"count": 1, "of": {"subarray": part}}}),
    ]
    assert len({(one.start, one.block, one.streams) for one in forms}) == 1
    apart = datatype_of({"contiguous": {"count": outer, "of": {"subarray": part}}})
    assert len(taken_bytes(apart)) == apart.size == outer * count * length * 4
    assert apart.blocks == (1 if gap == 0 or count * outer == 1 else count * outer)


def test_the_fit_is_that_of_the_table_and_its_errors_are_those_of_held_out_sizes():
    fit = fits()["summit"]
    machine, times = fit_machine("summit"), measured_times("summit")
    fitted, held_out = split_points(times)
    assert (len(fitted), len(held_out)) == (len(fit.fitted_on), len(fit.judged_on))
    assert {size for _, size, _ in held_out} == {4 * 2**20}
    names = ("launch", "sector_time", "block_time", "host_latency")
    assert [getattr(machine, n) for n in names] == pytest.approx(
        [fit.constants[n] for n in names], rel=0.02
    )
    shipped = machine_of("summit", "nodes")
    off = np.abs(modelled_times(shipped, held_out) / [times[p] for p in held_out] - 1)
    assert off.mean() == pytest.approx(fit.judged_mean, abs=0.002)
    assert off.max() == pytest.approx(fit.judged_max, abs=0.005)


def test_the_modelled_choice_is_the_measured_one_in_nine_of_ten_shapes():
    """A choice is right if its measured time is within a pixel, 9.5 %, of the better one."""
    times = measured_times("summit")
    shapes = sorted({(size, block) for _, size, block in times if block < 512})
    made = Noncontiguous(stride=512)
    right = 0
    for size, block in shapes:
        designs = [{"method": m, "size": size, "block": block} for m in ("one-shot", "device")]
        found = made.evaluate(Batch.of(designs)).columns["time"]
        chosen = ("one-shot", "device")[int(np.argmin(found))]
        best = min(times[m, size, block] for m in ("one-shot", "device"))
        right += times[chosen, size, block] <= 1.095 * best
    assert (right, len(shapes)) == (26, 27)


def tempi_file(tmp_path, **changes):
    """Write a ``perf.json`` as TEMPI's ``measure-system`` does."""
    series = [{"time": 1e-6 + 2**i * 1e-10, "iid": True} for i in range(24)]
    grid = [[{"time": 1e-6 * (4**i) / 2**j, "iid": True} for j in range(9)] for i in range(9)]
    kinds = ("CpuCpu", "GpuGpu")
    contents = {
        f"{place}Node{kind}Pingpong": series for place in ("intra", "inter") for kind in kinds
    }
    contents |= {"d2h": series, "h2d": series}
    contents |= dict.fromkeys(("packDevice", "unpackDevice", "packHost", "unpackHost"), grid)
    file = tmp_path / "perf.json"
    file.write_text(json.dumps({**contents, **changes}))
    return str(file)


def test_tables_of_tempi_are_interpolated(tmp_path):
    """At measured sizes the step is the table's; between them a mean; beyond them it scales."""
    machine = machine_of(tempi_file(tmp_path), "node")
    size, block = np.array([64.0, 256.0, 160.0, 4.0**8 * 256]), np.array([1.0, 8, 1, 1])
    wanted = [1e-6, 4e-6 / 8, 2.5e-6, 4.0**9 * 1e-6]
    assert machine.pack_s(size, block, to_host=False) == pytest.approx(wanted)
    assert machine.send_s(np.array([1024.0, 1536]), from_host=True) == pytest.approx(
        [1e-6 + 1.024e-7, 1e-6 + 1.536e-7]
    )
    made = Noncontiguous(machine=tempi_file(tmp_path), place="node", size=4096, stride=512)
    found = made.evaluate(Batch.of([{"method": "device", "block": 8}]))
    assert found.columns["pack_time"][0] == pytest.approx(64e-6 / 8)


def test_a_datatype_states_size_block_and_stride():
    """64 rows of 16 numbers in rows of 128: 64 blocks of 64 B; two types are 128 blocks."""
    vector = {"count": 64, "block_length": 16, "stride": 128, "of": "float32"}
    made = Noncontiguous(datatype={"vector": vector})
    assert "size" not in made.reads | made.optional
    found = made.evaluate(Batch.of([{"method": "device", "count": n} for n in (1, 2)]))
    assert found.columns["blocks"].tolist() == [64, 128]
    assert found.columns["device_buffer"].tolist() == [4096, 8192]


def test_contiguous_data_is_not_packed():
    made = Noncontiguous(size="1 MiB", block=512, stride=512)
    found = made.evaluate(Batch.of([{"method": "one-shot"}, {"method": "per-block"}]))
    assert found.columns["time"].tolist() == [8.05e-05, 8.05e-05]
    assert found.columns["pack_time"].tolist() == [0, 0]


def test_overlapping_and_broken_blocks_are_infeasible():
    made = Noncontiguous(method="device")
    designs = [{"size": 100, "block": 20, "stride": 10}, {"size": 100, "block": 30}]
    failures = made.evaluate(Batch.of(designs)).failures
    assert [failures[i].kind for i in (0, 1)] == ["infeasible", "infeasible"]
    assert "overlap" in failures[0].reason
    assert "no whole number of blocks" in failures[1].reason


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"machine": "sumit"}, "no machine 'sumit'"),
        ({"machine": {"like": "summit", "lunch": "3 us"}}, "no key 'lunch'"),
        ({"machine": {"launch": "3 us"}}, "the machine has no sector_time"),
        ({"machine": {"like": "summit", "host_link": 0}}, "host_link is 0"),
        ({"machine": {"like": "summit", "device_messages": [1]}}, "device_messages is"),
        ({"place": "node"}, "between nodes only"),
        ({"place": "rack"}, "place is 'rack'"),
        ({"datatype": "flaot"}, "no datatype 'flaot'"),
        ({"datatype": {"vecor": {}}}, "no datatype constructor 'vecor'"),
        ({"datatype": {"vector": {"count": 2}}}, "vector has no block_length"),
        ({"datatype": {"contiguous": {"count": 2, "off": 1}}}, "contiguous has no key 'off'"),
        ({"datatype": {"contiguous": {"count": 0}}}, "count of contiguous is 0"),
        ({"datatype": {"hvector": {"count": 2, "block_length": 9, "stride": 4}}}, "overlap"),
        ({"datatype": {"subarray": {"sizes": [4], "subsizes": [2, 1]}}}, "differ in length"),
        (
            {"datatype": {"subarray": {"sizes": [4], "subsizes": [2], "starts": [3]}}},
            "takes 2 from 3 on",
        ),
        ({"datatype": "float32", "size": 8}, "size has no effect"),
        ({"count": 2}, "count has no effect"),
    ],
)
def test_wrong_options_are_refused(options, message):
    with pytest.raises(SpecError, match=message):
        Noncontiguous(**options)


def test_wrong_files_of_tempi_are_refused(tmp_path):
    with pytest.raises(SpecError, match="lacks 'time'"):
        machine_of(tempi_file(tmp_path, d2h=[{}]), "node")
    with pytest.raises(SpecError, match="empty or not positive"):
        machine_of(tempi_file(tmp_path, interNodeCpuCpuPingpong=[]), "nodes")
    file = tmp_path / "other.json"
    file.write_text("{,")
    with pytest.raises(SpecError, match="the file is no JSON"):
        machine_of(str(file), "nodes")
