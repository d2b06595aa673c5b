"""Energy counters and clocks, read from files as Linux has them."""

from pathlib import Path

import pytest

from dse.evaluation.timing.energy_counters import EnergyCounter, find_counters
from dse.evaluation.timing.processor_clocks import (
    ClockSample,
    clock_ends,
    sample_clocks,
    throttling_between,
)


def put(folder: Path, **files: object) -> None:
    folder.mkdir(parents=True)
    for name, text in files.items():
        (folder / name).write_text(f"{text}\n")


def test_a_package_has_a_counter_and_its_parts_have_none(tmp_path: Path):
    put(tmp_path / "intel-rapl:0", name="package-0", max_energy_range_uj=9_000_000, energy_uj=5_000)
    put(tmp_path / "intel-rapl:0:0", name="core", max_energy_range_uj=9_000_000, energy_uj=4_000)
    put(tmp_path / "intel-rapl:1", name="psys", max_energy_range_uj=9_000_000, energy_uj=4_000)
    found = [one for one in find_counters(tmp_path) if one.name.startswith("package")]
    assert [(one.name, one.range_j, one.read_j()) for one in found] == [("package-0", 9.0, 0.005)]


def test_a_counter_that_may_not_be_read_is_left_out(tmp_path: Path):
    put(tmp_path / "intel-rapl:0", name="package-0", max_energy_range_uj=9_000_000)
    assert [one.name for one in find_counters(tmp_path) if one.name.startswith("package")] == []


def test_a_counter_that_restarts_loses_no_energy():
    counter = EnergyCounter(name="package-0", read_j=lambda: 0.0, range_j=10.0)
    assert counter.used_j(9.5, 0.25) == 0.75
    assert counter.used_j(1.0, 4.0) == 3.0


def test_the_clock_is_the_mean_of_the_processors(tmp_path: Path):
    for cpu, khz in ((0, 2_000_000), (1, 3_000_000)):
        put(tmp_path / f"cpu{cpu}" / "cpufreq", scaling_cur_freq=khz)
        put(tmp_path / f"cpu{cpu}" / "thermal_throttle", core_throttle_count=cpu + 1)
    found = sample_clocks(tmp_path, tmp_path / "none")
    assert found.clock_hz["cpu"] == 2.5e9
    assert found.events == 3


def test_without_a_frequency_driver_the_clock_is_that_of_cpuinfo(tmp_path: Path):
    (tmp_path / "cpuinfo").write_text("cpu MHz\t\t: 2000.5\nflags : fpu\ncpu MHz\t\t: 1999.5\n")
    found = sample_clocks(tmp_path / "none", tmp_path / "cpuinfo")
    assert found.clock_hz["cpu"] == pytest.approx(2e9)
    assert found.events is None


def test_throttling_is_counted_between_the_ends_and_unknown_where_it_is_not_reported():
    samples = [
        ClockSample(clock_hz={"cpu": 3e9}, events=5, throttled_devices=0),
        ClockSample(clock_hz={"cpu": 2e9, "gpu-0": 1e9}, events=6, throttled_devices=1),
        ClockSample(clock_hz={"cpu": 4e9}, events=7, throttled_devices=0),
    ]
    assert throttling_between(samples) == 3
    assert clock_ends(samples) == {"cpu": (2e9, 4e9), "gpu-0": (1e9, 1e9)}
    none = ClockSample(clock_hz={}, events=None, throttled_devices=None)
    assert throttling_between([none, none]) is None
