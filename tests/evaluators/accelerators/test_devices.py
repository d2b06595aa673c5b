"""The catalogue of devices: what it holds, whose figures they are, and where it is silent."""

from __future__ import annotations

import csv
import pickle

import numpy as np
import pytest

from dse.errors import SpecError
from dse_evaluators.accelerators.devices.devices import DEVICES, device_of
from dse_evaluators.accelerators.devices.platforms import devices_of
from tests import tables

SHEETS = tables.CARRIED / "accelerators.csv"


def test_it_has_twenty_eight_devices_and_more():
    assert len(DEVICES) >= 28


def test_no_device_is_without_a_source():
    assert all(device.source for device in DEVICES.values())


def test_what_was_read_is_told_from_what_was_recalled():
    assert device_of("a40").source.startswith("unverified (NVIDIA A40 data sheet")


@pytest.mark.parametrize(
    ("name", "number_format", "flops_per_s"),
    [
        ("h100-sxm", "bf16", 989e12),  # NVIDIA H100 data sheet, dense
        ("a100-sxm-80gb", "tf32", 156e12),  # NVIDIA A100 data sheet
        ("tpu-v4", "bf16", 275e12),  # Jouppi et al., ISCA 2023, table 4
        ("trainium2", "fp8", 1299e12),  # AWS, Trainium2 architecture
        ("mi250x", "fp16", 383e12),  # AMD MI250X page
    ],
)
def test_rates_are_those_of_the_sheets(name, number_format, flops_per_s):
    assert device_of(name).flops_per_s[number_format] == flops_per_s


def test_a_rate_that_no_source_tells_is_absent():
    assert "bf16" not in device_of("v100-sxm2").flops_per_s
    assert not device_of("cerebras-cs3").flops_per_s


def test_what_no_source_tells_is_blank():
    assert device_of("tpu-v5e").power_limit_w is None
    assert device_of("h100-sxm").idle_w is None


def test_a_wrong_name_is_told_the_nearest():
    with pytest.raises(SpecError, match="h100-smx") as error:
        device_of("h100-smx")
    assert "h100-sxm" in error.value.hint


def test_a_device_survives_pickling():
    assert pickle.loads(pickle.dumps(device_of("b200-sxm"))) == device_of("b200-sxm")


def test_memories_and_bandwidths_are_those_that_were_gathered():
    with SHEETS.open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    gathered = [(float(row["mem_GB"]), float(row["mem_bw_GBps"])) for row in rows]
    added = [(24 * 2**30 / 1e9, 456.0), (48.0, 696.0), (288.0, 8000.0)]  # arc-b60, a40, gb300
    added.append((64.0, 1600.0))  # half of mi250x, as software sees it
    added += [(96.0, 4000.0), (24.0, 300.0), (24.0, 600.0)]  # h20-sxm, l4, a10
    added += [(16.0, 320.0), (32.0, 1792.0)]  # t4, rtx-5090
    added += [(256.0, 6000.0), (288.0, 8000.0)]  # mi325x, mi355x
    ours = [(each.dram_bytes / 1e9, each.dram_bytes_per_s / 1e9) for each in DEVICES.values()]
    assert np.array(sorted(ours)) == pytest.approx(np.array(sorted([*gathered, *added])))


def test_a_study_states_a_platform_of_its_own():
    own = {"next": {"like": "h100-sxm", "bandwidth": "8 TB/s", "bf16": "2 PFLOP/s"}}
    device = devices_of(own)["next"]
    assert (device.dram_bytes_per_s, device.flops_per_s["bf16"]) == (8e12, 2e15)
    assert device.dram_bytes == device_of("h100-sxm").dram_bytes


@pytest.mark.parametrize(
    ("said", "told"),
    [
        ({"like": "h1000"}, "h1000"),
        ({"like": "h100-sxm", "bandwith": 1e12}, "bandwith"),
        ({"like": "h100-sxm", "memory": "80 W"}, "W is no B"),
        ({"like": "h100-sxm", "memory": -1.0}, "memory of platform"),
        ({"like": "h100-sxm", "idle": "much"}, "idle of platform"),
    ],
)
def test_a_platform_that_says_what_it_cannot_is_refused(said, told):
    with pytest.raises(SpecError, match=told):
        devices_of({"mine": said})
