"""Constants of devices and systems are recovered from services and steps of known constants."""

from __future__ import annotations

import json

import pytest
import yaml
from typer.testing import CliRunner

import dse
from dse.cli.app import app
from dse.core.batch import Batch
from dse.errors import SpecError
from dse_evaluators.accelerators.devices.calibrations import calibration_on
from dse_evaluators.accelerators.devices.devices import device_of
from dse_evaluators.clusters.chips import chips_of
from dse_evaluators.clusters.measured_rows import read_measured_rows
from dse_evaluators.clusters.scale_fit import SCALED
from dse_evaluators.clusters.serving.serving import Serving
from dse_evaluators.clusters.serving.serving_fit import FORM, predict_tpot
from dse_evaluators.clusters.training.training import Training
from tests.evaluators.clusters.modelled_rows import (
    TRUE,
    write,
    write_services,
    write_steps,
)

HEADER = "model,tp,batch,isl,osl,weight_format,tpot_ms"
ROW = "llama3-8b,1,16,1024,256,bf16,9.5"


@pytest.fixture(scope="module")
def services(tmp_path_factory):
    """Return a CSV file of 24 services of an H100 with other constants."""
    path = tmp_path_factory.mktemp("services") / "rows.csv"
    write_services(path)
    return path


def test_services_of_other_constants_are_recovered(services, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    found = dse.calibrate_serving(services, "mine.yaml", like="h100-sxm")
    (row,) = yaml.safe_load((tmp_path / "mine.yaml").read_text())["calibrations"]
    shipped = calibration_on(device_of("h100-sxm"), "bf16").constants
    factors = {name: row[name] / getattr(shipped, name) for name in SCALED}
    assert factors == pytest.approx(TRUE, rel=0.1)
    assert [(one.split, one.points) for one in found.errors] == [("shape", 24), ("model", 24)]
    assert max(one.mean for one in found.errors) < 0.05 < found.errors[0].naive_mean
    design = Batch.of([{"tp": 4, "batch": 16}])
    mine = Serving(model="llama3-70b", device="./mine.yaml").evaluate(design).columns["tpot"][0]
    ours = Serving(model="llama3-70b", device="h100-sxm").evaluate(design).columns["tpot"][0]
    assert mine > 1.05 * ours


def test_steps_of_other_constants_are_recovered_and_printed(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write_steps(tmp_path / "steps.csv")
    words = ["calibrate", "training", "steps.csv", "--like", "h100-dgx", "-o", "mine.yaml"]
    done = CliRunner().invoke(app, words)
    assert done.exit_code == 0, done.output
    assert "shipped constants" in done.output
    assert "step time, by model" in done.output
    contents = yaml.safe_load((tmp_path / "mine.yaml").read_text())
    (row,) = contents["device"]["calibrations"]
    share = row["compute_share"] / chips_of(device_of("h100-sxm"))["bf16"].constants.compute_share
    assert share == pytest.approx(TRUE["compute_share"], rel=0.1)
    plan = Batch.of([{"tp": 1, "pp": 1, "dp": 8, "microbatch": 1}])
    own, ours = (
        Training(model="llama2-7b", system=one, global_batch=64).evaluate(plan)
        for one in ("./mine.yaml", "h100-dgx")
    )
    assert own.columns["step_time"][0] > 1.1 * ours.columns["step_time"][0]


def test_the_shipped_constants_are_kept_where_they_are_as_good(services, tmp_path):
    rows = read_measured_rows(services, FORM)
    write(tmp_path / "same.csv", rows, predict_tpot(device_of("h100-sxm"), rows), "tpot_s")
    with pytest.raises(SpecError, match="are as good"):
        dse.calibrate_serving(tmp_path / "same.csv", tmp_path / "mine.yaml", like="h100-sxm")
    assert not (tmp_path / "mine.yaml").exists()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (f"{HEADER}\n{ROW}\n", "1 different rows, of at least 12"),
        (f"{HEADER}\n", "rows.csv:2: there are no rows"),
        (f"{HEADER.replace('tpot_ms', 'tpot')}\n{ROW}\n", "rows.csv:1: the unit of column 'tpot'"),
        (f"{HEADER.replace('tpot_ms', 'tpot_min')}\n{ROW}\n", "unknown: min"),
        (f"{HEADER.replace('batch', 'bacth')}\n{ROW}\n", "there is no column 'batch'"),
        (f"{HEADER}\n{ROW},7\n", "rows.csv:2: the row has another number of cells"),
        (f"{HEADER}\n{ROW.replace('9.5', '-1')}\n", "rows.csv:2: tpot is '-1'"),
        (f"{HEADER}\n{ROW.replace('bf16', 'bf17')}\n", "rows.csv:2: "),
        (f"{HEADER}\n{ROW.replace('8b', '9b')}\n", "llama3-9b"),
        (f"{HEADER}\n{ROW.replace('1,16', '3,16')}\n", "rows.csv:2: the service cannot exist"),
        ('{"mean_tpot_ms": 9.5}\n', "rows.csv:1: completed of the result is None"),
        ('{"mean_ttft_ms": 9.5}\n', "rows.csv:1: the result has no 'mean_tpot_ms'"),
        ("{oops", "rows.csv:1: it cannot be read as JSON"),
    ],
)
def test_a_bad_file_is_one_error_with_its_line(tmp_path, text, message):
    path = tmp_path / "rows.csv"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(SpecError) as caught:
        Serving.calibrate(path, "h100-sxm")
    assert message in str(caught.value)
    assert caught.value.hint


def test_a_time_in_another_unit_is_refused(services, tmp_path):
    text = services.read_text(encoding="utf-8").replace("tpot_s", "tpot_us")
    (tmp_path / "rows.csv").write_text(text, encoding="utf-8")
    with pytest.raises(SpecError, match="times the measured"):
        Serving.calibrate(tmp_path / "rows.csv", "h100-sxm")


def test_results_of_vllm_are_rows(tmp_path):
    """Keys as vllm-project/vllm, vllm/benchmarks/serve.py writes them with --save-result."""
    result = {
        "date": "20260101-120000",
        "backend": "vllm",
        "model_id": "meta-llama/Llama-3.1-8B-Instruct",
        "num_prompts": 200,
        "model": "llama3-8b",
        "tp": "2",
        "weight_format": "fp8",
        "request_rate": "inf",
        "max_concurrency": 32,
        "duration": 41.7,
        "completed": 200,
        "total_input_tokens": 204800,
        "total_output_tokens": 25600,
        "mean_ttft_ms": 210.4,
        "mean_tpot_ms": 11.25,
    }
    path = tmp_path / "results.json"
    path.write_text("\n".join(json.dumps(result | {"max_concurrency": n}) for n in (32, 64)))
    first, second = read_measured_rows(path, FORM)
    assert (first.model, first.options) == ("llama3-8b", {"isl": 1024, "osl": 128})
    assert (first.design["tp"], first.design["weight_format"]) == (2, "fp8")
    assert (first.design["batch"], second.design["batch"]) == (32, 64)
    assert first.seconds == pytest.approx(0.01125)
    assert second.where.endswith("results.json:2")
