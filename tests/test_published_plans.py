"""Plans of measured services, read from versions of a published configuration file."""

import csv
import os
import subprocess
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "benchmarks"))
from published_plans import FILE, find_plans, read_published
from serving_coverage import main, read_services

sys.path.pop(0)  # modules of the folder would hide others, such as coverage

CONFIGURATION = """\
dsr1-fp8-b200-dynamo-trt:
  image: nvcr.io#runtime:0.8
  model-prefix: dsr1
  precision: fp8
  framework: dynamo-trt
  seq-len-configs:
  - isl: 1024
    osl: 1024
    search-space:
    - conc-list: [128]
      prefill: {num-worker: 1, tp: 4, ep: 4, dp-attn: true}
      decode: {num-worker: 2, tp: 8, ep: 8, dp-attn: true}
"""
GUESSING = """\
    - conc-list: [128]
      spec-decoding: mtp
      prefill: {num-worker: 1, tp: 4, ep: 4, dp-attn: true, additional-settings: [c_mtp3.yaml]}
      decode: {num-worker: 2, tp: 8, ep: 8, dp-attn: true}
"""
ROW = {
    "id": "dsr1_b200_disagg",
    "silicon_data_source": "silicon_concurrency=128; measured=2026-01-20; image=nvcr.io/runtime:0.8",
    "backend": "trtllm",
    "backend_version": "0.8",
    "model_path": "deepseek-ai/DeepSeek-R1",
    "system": "b200_sxm",
    "precision": "fp8",
    "mode": "disagg",
    "isl": "1024",
    "osl": "1024",
    "gemm_quant_mode": "fp8",
    "moe_quant_mode": "fp8",
    "prefill_tp_size": "4",
    "prefill_moe_ep_size": "4",
    "prefill_num_workers": "",
    "decode_tp_size": "8",
    "decode_moe_tp_size": "2",
    "decode_moe_ep_size": "4",
    "decode_num_workers": "",
    "decode_batch_size": "",
    **dict.fromkeys(["prefill_pp_size", "decode_pp_size"], "1"),
    **dict.fromkeys(["prefill_attention_dp_size", "decode_attention_dp_size"], "1"),
    "silicon_ttft_ms": "250.5",
    "silicon_tpot_ms": "12.25",
}


@pytest.fixture
def clone(tmp_path):
    """A repository with a version of January and one of March, which guesses tokens, too."""
    file = tmp_path / FILE
    file.parent.mkdir(parents=True)
    git = ["git", "-C", str(tmp_path), "-c", "user.name=a", "-c", "user.email=a@b"]
    subprocess.run([*git, "init", "-q"], check=True)
    versions = ("2026-01-10", CONFIGURATION), ("2026-03-10", CONFIGURATION + GUESSING)
    for day, text in versions:
        file.write_text(text)
        days = {"GIT_AUTHOR_DATE": f"{day}T12:00:00Z", "GIT_COMMITTER_DATE": f"{day}T12:00:00Z"}
        subprocess.run([*git, "add", "."], check=True)
        subprocess.run([*git, "commit", "-qm", "x"], check=True, env={**os.environ, **days})
    return tmp_path


def plans(clone, **changes):
    return find_plans(read_published(clone), {**ROW, **changes}, "deepseek-v3")


def test_the_only_plan_of_the_day_gives_groups_replicas_and_sequences(clone):
    (plan,) = plans(clone)
    assert plan.guesses == 0
    found = plan.design(128, "deepseek-v3")
    wanted = {"tp": 1, "attention_dp": 8, "ep": 8, "replicas": 2, "batch": 8}
    assert found.items() >= wanted.items()
    assert found.items() >= {"prefill_tp": 1, "prefill_attention_dp": 4}.items()


def test_a_later_day_leaves_two_plans_of_which_one_guesses(clone):
    day = ROW["silicon_data_source"].replace("2026-01-20", "2026-03-20")
    found = plans(clone, silicon_data_source=day)
    assert sorted(plan.guesses for plan in found) == [0, 3]


@pytest.mark.parametrize(
    "change",
    [
        {"silicon_data_source": ROW["silicon_data_source"].replace(":0.8", ":0.9")},
        {"silicon_data_source": ROW["silicon_data_source"].replace("=128", "=64")},
        {"decode_tp_size": "4"},
        {"system": "h200_sxm"},
        {"decode_num_workers": "3"},
    ],
)
def test_another_image_load_or_number_of_devices_has_no_plan(clone, change):
    assert plans(clone, **change) == []


def write(path, *rows):
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, ROW)
        writer.writeheader()
        writer.writerows(rows)
    return path


def test_rows_take_their_plan_from_the_row_of_the_same_measurement(tmp_path):
    stated = {"decode_num_workers": "2", "decode_batch_size": "64", "prefill_num_workers": "1"}
    whole = {**ROW, **stated, "decode_moe_tp_size": "1", "decode_moe_ep_size": "8"}
    other = {**ROW, "silicon_tpot_ms": "12.26"}
    services = read_services(write(tmp_path / "rows.csv", whole, ROW, other))
    assert [one.kind for one in services] == ["stated", "listed twice", "assumed"]
    assert services[1].design == services[0].design


def test_published_plans_replace_what_a_row_assumes(clone):
    (service,) = read_services(write(clone / "rows.csv", ROW), read_published(clone))
    assert service.kind == "published"
    assert service.design["replicas"] == 2


def test_a_folder_without_the_file_is_refused_with_its_source(tmp_path):
    with pytest.raises(SystemExit, match="SemiAnalysisAI/InferenceX"):
        read_published(tmp_path)


def test_a_missing_table_is_named_with_its_source(monkeypatch, tmp_path, capsys):
    monkeypatch.setattr(sys, "argv", ["serving_coverage.py", str(tmp_path / "rows.csv")])
    with pytest.raises(SystemExit, match="2"):
        main()
    assert "silicon_sample.csv" in capsys.readouterr().err
