"""A device of the user: its constants are fitted to measured GEMMs, or it is refused and why."""

from __future__ import annotations

import importlib
from itertools import product
from pathlib import Path

import numpy as np
import pytest
import yaml
from typer.testing import CliRunner

import dse
from dse.cli.app import app
from dse.core.batch import Batch
from dse.errors import SpecError
from dse_evaluators.accelerators.devices.calibrations import calibration_of, calibration_on
from dse_evaluators.accelerators.devices.devices import device_of
from dse_evaluators.accelerators.devices.gemm import Gemm
from dse_evaluators.accelerators.devices.gpu import Gpu
from dse_evaluators.accelerators.devices.platforms import read_device
from dse_evaluators.clusters.chips import chips_of
from dse_evaluators.clusters.own_system import system_edition, system_from
from dse_evaluators.clusters.serving.serving import Serving
from tests import tables
from tests.evaluators.accelerators.modelled_products import (
    CONSTANTS,
    FIELDS,
    SHAPES,
    products,
    write_products,
)

LONG = (2048, 4096, 8192)
BENCHMARKS = Path(__file__).parents[3] / "benchmarks"


@pytest.fixture
def own(tmp_path, monkeypatch):
    """The path of a calibrated device, relative to the working folder."""
    monkeypatch.chdir(tmp_path)
    write_products(tmp_path / "products.csv")
    dse.calibrate_devices("products.csv", "my-h100.yaml", like="h100-sxm")
    return "./my-h100.yaml"


@pytest.fixture
def fit_third(monkeypatch):
    """The benchmark, whose folder is no package."""
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    return importlib.import_module("calibrate_third")


def calibrate(tmp_path, rows, fields=FIELDS):
    path = tmp_path / "products.csv"
    write_products(path, rows, fields)
    return Gemm.calibrate(path, "h100-sxm")


def test_known_constants_are_recovered_and_the_held_out_error_is_that_of_the_noise(tmp_path):
    found = calibrate(tmp_path, products())
    (row,) = found.contents["calibrations"]
    for name in ("compute_share", "memory_share", "launch_s"):
        assert row[name] == pytest.approx(getattr(CONSTANTS, name), rel=0.1), name
    assert [error.split for error in found.errors] == ["shape", "model"]
    assert all(0.01 < error.mean < 0.06 < error.naive_mean for error in found.errors)
    assert found.refused == found.notes == ()


def test_the_command_writes_a_device_that_a_study_uses(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write_products(tmp_path / "products.csv")
    words = ["calibrate", "devices", "products.csv", "--like", "h100-sxm", "-o", "my-h100.yaml"]
    done = CliRunner().invoke(app, words)
    assert done.exit_code == 0, done.output
    assert "bf16, by shape" in done.output
    batch = Batch.of([dict.fromkeys("mnk", 4096)])
    ours, shipped = (
        Gemm(device=name).evaluate(batch).columns["latency"][0]
        for name in ("./my-h100.yaml", "h100-sxm")
    )
    (measured,) = [
        float(row["time_us"]) * 1e-6
        for row in products()
        if (row["m"], row["n"], row["k"]) == ("4096",) * 3
    ]
    assert ours == pytest.approx(measured, rel=0.1)
    assert abs(shipped / measured - 1) > 0.1


def test_networks_and_services_use_the_calibrated_constants(own):
    batch = Batch.of([{"device": name, "batch": 1} for name in ("mine", "h100-sxm")])
    network = Gpu(workload="resnet18", format="bf16", platforms={"mine": own})
    slow, fast = network.evaluate(batch).columns["latency"]
    assert slow > 1.2 * fast
    plan = Batch.of([{"tp": 1, "batch": 8, "weight_format": "bf16", "kv_format": "bf16"}])
    mine, shipped = (Serving(model="llama3-8b", device=name) for name in (own, "h100-sxm"))
    assert mine.version != shipped.version
    assert mine.evaluate(plan).columns["tpot"][0] != shipped.evaluate(plan).columns["tpot"][0]
    trained = chips_of(read_device(Path(own)))["bf16"]
    assert trained.measured
    assert trained.constants.compute_share == pytest.approx(CONSTANTS.compute_share, rel=0.1)


def test_a_system_of_calibrated_devices_is_hashed_with_them(own):
    system = {"like": "h100-dgx", "device": own}
    before = system_edition(system)
    assert system_from(system).sheet.calibrations
    text = Path(own).read_text().replace("compute_share: 0.", "compute_share: 0.1")
    Path(own).write_text(text)
    assert system_edition(system) != before


def test_formats_that_were_not_measured_keep_the_shipped_constants(own):
    mine = read_device(Path(own))
    assert calibration_on(mine, "fp8") == calibration_of("h100-sxm", "fp8")
    assert calibration_on(mine, "fp16") == calibration_on(mine, "bf16")


def change(place, **cells):
    rows = products()
    rows[place] |= cells
    return rows


BAD = {
    "no rows": ([], FIELDS, "products.csv:2: there are no rows"),
    "text": (change(3, time_us="fast"), FIELDS, "products.csv:5: time_us is 'fast'"),
    "negative": (change(0, time_us="-1"), FIELDS, "products.csv:2: time_us is '-1'"),
    "nan": (change(0, time_us="nan"), FIELDS, "products.csv:2: time_us is 'nan'"),
    "size": (change(1, m="0"), FIELDS, "products.csv:3: m is '0'"),
    "dtype": (change(2, dtype="bf17"), FIELDS, "products.csv:4: dtype cannot be 'bf17'"),
    "no units": (change(2, dtype="nvfp4"), FIELDS, "products.csv:4: h100-sxm has no units"),
    "no unit": ([], ("m", "n", "k", "dtype", "time"), "products.csv:1: the unit of column 'time'"),
    "odd unit": ([], ("m", "n", "k", "dtype", "time_min"), "products.csv:1: the unit of column"),
    "no time": ([], ("m", "n", "k", "dtype"), "products.csv:1: there is no time"),
    "no column": ([], ("m", "n", "dtype", "time_us"), "products.csv:1: there is no column 'k'"),
}


@pytest.mark.parametrize("case", BAD.values(), ids=list(BAD))
def test_a_bad_file_is_one_error_with_its_line(tmp_path, case):
    rows, fields, text = case
    with pytest.raises(SpecError) as error:
        calibrate(tmp_path, rows, fields)
    assert text in str(error.value)
    assert error.value.hint


@pytest.mark.parametrize(
    ("factor", "text"), [(1e-3, "times the peak bf16 rate"), (1e3, "times the data sheet's")]
)
def test_times_in_another_unit_are_an_error(tmp_path, factor, text):
    rows = [{**row, "time_us": str(float(row["time_us"]) * factor)} for row in products()]
    with pytest.raises(SpecError, match=text):
        calibrate(tmp_path, rows)


@pytest.mark.parametrize(
    ("kept", "text"),
    [
        (lambda m, n, k: m < 256, "bound by compute.*measure m, n and k from"),
        (lambda m, n, k: m >= 256, "bound by memory.*measure m up to 16"),
        (lambda m, n, k: n == k, "12 distinct shapes, of at least 20"),
    ],
)
def test_measurements_that_do_not_determine_the_constants_are_refused(tmp_path, kept, text):
    with pytest.raises(SpecError, match=text):
        calibrate(tmp_path, products([shape for shape in SHAPES if kept(*shape)]))


def test_without_short_products_the_launch_time_is_stated_to_stay_near_its_prior(tmp_path):
    found = calibrate(tmp_path, products(list(product((1, 16, 4096), LONG, LONG))))
    assert found.contents["calibrations"]
    (note,) = found.notes
    assert "launch, whose time stays near its prior: measure m up to 16, n and k up to" in note


def test_a_format_with_few_measurements_is_left_out_and_named(tmp_path):
    found = calibrate(tmp_path, [*products(), *products(SHAPES[:5], "fp8")])
    assert {row["format"] for row in found.contents["calibrations"]} == {"bf16"}
    assert any(text.startswith("fp8: 5 distinct shapes") for text in found.refused)


def test_a_device_file_with_an_impossible_constant_is_an_error(own):
    contents = yaml.safe_load(Path(own).read_text())
    contents["calibrations"][0]["compute_share"] = 7.0
    Path(own).write_text(yaml.safe_dump(contents))
    with pytest.raises(SpecError, match=r"my-h100\.yaml: compute_share of a calibration is 7\.0"):
        Gemm(device=own)


@tables.needs("gemm_kernels_measured_vidur.csv")
@pytest.mark.parametrize("device", ["a40", "a100-sxm-80gb", "h100-sxm"])
def test_a_third_of_the_products_of_one_stack_predicts_the_rest_as_well_as_ours(fit_third, device):
    parts = [part for part in fit_third.vidur(tables.ELSEWHERE) if part.device == device]
    errors = fit_third.judge(parts)
    third = np.concatenate(errors["fp16", "third"])
    assert len(third) == 2 * len(parts[0].m)
    assert third.mean() <= calibration_of(device, "fp16", "vidur").heldout_mape + 0.002


@tables.needs("gemm_measured.csv")
@pytest.mark.proof
def test_few_products_of_each_of_many_versions_predict_the_rest_worse_than_two_thirds(fit_third):
    parts = [
        part for part in fit_third.aiconfigurator(tables.ELSEWHERE) if part.device == "h100-sxm"
    ]
    errors = fit_third.judge(parts)
    third, most = (
        np.concatenate([one for key, some in errors.items() if key[1] == side for one in some])
        for side in ("third", "two thirds")
    )
    assert len(third) > 1000
    assert np.median(third) <= np.median(most) + 0.02
    assert third.mean() <= most.mean() + 0.04


def test_the_device_of_a_calibration_must_be_known():
    assert device_of("h100-sxm").calibrations == ()
    with pytest.raises(SpecError, match="h100-sxn"):
        Gemm.calibrate(Path("products.csv"), "h100-sxn")
