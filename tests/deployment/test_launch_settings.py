"""Settings of a trial as flags of a program: what is written, what is read back, what is missing."""

from __future__ import annotations

import json
import shlex
from pathlib import Path

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner

from dse import Study
from dse.cli.app import app
from dse.errors import SpecError, StudyError
from dse.interop.launch.flag_rules import (
    decode_settings,
    encode_settings,
    program_rules,
    read_rules,
)
from dse.interop.launch.launch_files import LAUNCHERS, decode_flags, encode_flags, literal_of

SPACE = """
space: server
parameters:
  engine.tp: {ordinal: [1, 2]}
  engine.batch: {ordinal: [64]}
  engine.graphs: {boolean: true}
  engine.kv_format: {choice: [fp8]}
  engine.replicas: {ordinal: [2]}
"""
STUDY = """
study: server
space: space.yaml
evaluators:
  model: {use: expression, metrics: {time: {formula: engine.tp * engine.batch * engine.replicas * 1 s, unit: s}}}
unread: [engine.graphs, engine.kv_format]
objectives:
  - minimize: model.time
optimizer: exhaustive
"""
VLLM = {
    "tp": 4,
    "attention_dp": 2,
    "ep": 8,
    "max_sequences": 256,
    "chunked_prefill": False,
    "graphs": False,
    "memory_share": 0.9,
    "kv_format": "fp8_e4m3",
    "weight_format": "awq_int4",
}


@pytest.fixture(scope="module")
def world(tmp_path_factory):
    folder = tmp_path_factory.mktemp("launch")
    space = SPACE.replace("  engine.", "  ").replace("space: server", "space: engine")
    (folder / "engine.yaml").write_text(space)
    (folder / "space.yaml").write_text("space: server\ninclude:\n  engine: engine.yaml\n")
    (folder / "study.yaml").write_text(STUDY)
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        done = CliRunner().invoke(app, ["run", "study.yaml", "-q"])
        assert done.exit_code == 0, (done.stdout, done.exception)
    return folder


@pytest.fixture
def here(world, monkeypatch):
    monkeypatch.chdir(world)


def deploy(*words):
    return CliRunner().invoke(app, ["deploy", "server", "--trial", "0", *words])


def round_trip(program, settings, extension):
    rules, launcher = program_rules(program), LAUNCHERS[program]
    made = encode_settings(rules, settings, program)
    content = encode_flags(made.flags, launcher, extension)
    flags = decode_flags(content, extension, launcher.manifest)
    return made, decode_settings(rules, flags, list(made.expressed))


def test_vllm_gets_its_flags():
    made, back = round_trip("vllm", VLLM, ".yaml")
    assert made.flags == {
        "tensor-parallel-size": 4,
        "data-parallel-size": 2,
        "enable-expert-parallel": True,
        "max-num-seqs": 256,
        "enable-chunked-prefill": False,
        "enforce-eager": True,
        "gpu-memory-utilization": 0.9,
        "kv-cache-dtype": "fp8_e4m3",
        "quantization": "awq",
    }
    assert back == VLLM


@st.composite
def settings_of(draw, program):
    """Return settings of a program that the table can express, at most one for each flag."""
    rules = program_rules(program)
    flags = {one.setting: {r.flag for r in rules if r.setting == one.setting} for one in rules}
    found, taken = {}, set()
    for rule in draw(st.permutations(rules)):
        if rule.setting in found or taken & flags[rule.setting] - {""}:
            continue
        taken |= flags[rule.setting]
        match rule.kind:
            case "number":
                found[rule.setting] = draw(st.integers(1, 4096))
            case "switch" | "inverse":
                found[rule.setting] = draw(st.booleans())
            case "choice" | "only":
                found[rule.setting] = literal_of(draw(st.sampled_from(sorted(rule.values))))
            case "absent":
                found[rule.setting] = literal_of(next(iter(rule.values)))
            case "all-or-one":
                found[rule.setting] = 1
    return found | draw(_prefill(program, found))


def _prefill(program, found):
    """Return a strategy of the replicas that settings of prefill are for."""
    needed = program == "dynamo" and any(name.startswith("prefill_") for name in found)
    replicas = st.fixed_dictionaries({"prefill_replicas": st.integers(1, 9)})
    return replicas if needed else st.just({})


FORMATS = [(name, one) for name, launcher in LAUNCHERS.items() for one in launcher.extensions]


@pytest.mark.parametrize(("program", "extension"), FORMATS)
@given(data=st.data())
def test_a_file_gives_back_the_settings(program, extension, data):
    settings = data.draw(settings_of(program))
    made, back = round_trip(program, settings, extension)
    assert made.missing == {}
    assert back == settings


def test_accelerate_gets_the_keys_that_its_configurations_need():
    settings = {"devices": 8, "zero": 3, "number_format": "bf16", "compile": False}
    made = encode_settings(program_rules("accelerate"), settings, "accelerate")
    file = yaml.safe_load(encode_flags(made.flags, LAUNCHERS["accelerate"], ".yaml"))
    assert file == {
        "compute_environment": "LOCAL_MACHINE",
        "distributed_type": "DEEPSPEED",
        "mixed_precision": "bf16",
        "use_cpu": False,
        "debug": False,
        "num_processes": 8,
        "deepspeed_config": {"zero_stage": 3},
        "dynamo_config": {"dynamo_backend": "NO"},
    }


def test_a_deployment_has_the_flags_the_replicas_and_the_accelerators():
    made = encode_settings(program_rules("kubernetes"), {**VLLM, "replicas": 3}, "kubernetes")
    file = yaml.safe_load(encode_flags(made.flags, LAUNCHERS["kubernetes"], ".yaml"))
    (container,) = file["spec"]["template"]["spec"]["containers"]
    assert file["spec"]["replicas"] == 3
    assert container["resources"]["limits"] == {"nvidia.com/gpu": "8"}
    assert container["args"][:6] == [
        *("--tensor-parallel-size", "4", "--data-parallel-size", "2"),
        *("--enable-expert-parallel", "--max-num-seqs"),
    ]
    assert file["spec"]["selector"]["matchLabels"] == file["spec"]["template"]["metadata"]["labels"]


def test_prefill_workers_have_the_flags_of_decode_and_their_own():
    settings = {"tp": 8, "replicas": 2, "prefill_replicas": 3, "prefill_tp": 2, "prefill_pp": 0}
    made, back = round_trip("dynamo", settings, ".yaml")
    file = yaml.safe_load(encode_flags(made.flags, LAUNCHERS["dynamo"], ".yaml"))
    assert b"&id" not in encode_flags(made.flags, LAUNCHERS["dynamo"], ".yaml")  # no YAML anchors
    _, decode, prefill = file["spec"]["components"]
    (own,) = prefill["podTemplate"]["spec"]["containers"]
    (other,) = decode["podTemplate"]["spec"]["containers"]
    assert back == settings
    assert (decode["type"], prefill["type"], prefill["replicas"]) == ("decode", "prefill", 3)
    assert own["resources"]["limits"] == {"nvidia.com/gpu": "2"}
    assert own["args"][-4:] == ["--tensor-parallel-size", "8", "--tensor-parallel-size", "2"]
    assert other["resources"]["limits"] == {"nvidia.com/gpu": "8"}


def test_a_graph_without_prefill_replicas_has_one_kind_of_worker():
    settings = {"tp": 2, "replicas": 4, "prefill_replicas": 0, "prefill_tp": 0}
    made, back = round_trip("dynamo", settings, ".yaml")
    content = encode_flags(made.flags, LAUNCHERS["dynamo"], ".yaml")
    assert back == settings
    components = yaml.safe_load(content)["spec"]["components"]
    assert [one["type"] for one in components] == ["frontend", "worker"]


def test_a_script_quotes_its_words():
    content = encode_flags({"kv": "a b'c", "on": True}, LAUNCHERS["vllm"], ".sh").decode()
    words = shlex.split(content, comments=True)
    assert words == ["exec", "vllm", "serve", "\n", "--kv", "a b'c", "\n", "--on", "\n", "$@"] or (
        [one for one in words if one.strip()]
        == ["exec", "vllm", "serve", "--kv", "a b'c", "--on", "$@"]
    )


def test_expert_parallelism_of_other_sizes_is_missing():
    made = encode_settings(program_rules("vllm"), {"tp": 4, "ep": 2}, "vllm")
    assert made.missing == {"ep": "2: enable-expert-parallel cannot express it"}


def test_two_settings_of_one_flag_must_agree():
    with pytest.raises(StudyError, match=r"max_sequences = 8 needs max-num-seqs = 8"):
        encode_settings(program_rules("vllm"), {"batch": 4, "max_sequences": 8}, "vllm")


def test_a_trial_becomes_a_configuration(here, tmp_path):
    file = tmp_path / "new" / "serve.yaml"
    done = deploy("--to", "vllm", "-o", str(file))
    assert done.exit_code == 0
    assert yaml.safe_load(file.read_text())["kv-cache-dtype"] == "fp8"
    assert "not expressed: replicas = 2: no flag of vllm in the table" in done.stdout


def test_check_writes_nothing_and_fails_where_a_setting_has_no_flag(here):
    before = {one for one in Path().iterdir() if not one.name.startswith("dse.db")}
    done = deploy("--to", "vllm", "--check", "--format", "json")
    assert done.exit_code == 1
    assert json.loads(done.stdout)["missing"] == {"replicas": "2: no flag of vllm in the table"}
    assert {one for one in Path().iterdir() if not one.name.startswith("dse.db")} == before


def test_a_table_of_the_user_names_the_flags_of_his_program(here, tmp_path):
    table = tmp_path / "mine.csv"
    table.write_text("setting,flag,kind,values\ntp,shards,number,\nreplicas,copies,number,\n")
    file = tmp_path / "run.sh"
    deployed = Study.load("server").deploy(str(table), file, trial=0)
    assert deployed.flags["copies"] == 2
    assert file.read_text().startswith('#!/bin/sh\nexec "$@"')
    assert file.stat().st_mode & 0o100


def test_files_that_a_program_does_not_read_are_refused(here, tmp_path):
    with pytest.raises(StudyError, match=r"no launch settings are written as \.json") as caught:
        Study.load("server").deploy("vllm", tmp_path / "a.json", trial=0)
    assert caught.value.hint == "-o FILE.yaml or -o FILE.sh"


def test_check_and_a_file_exclude_each_other(here):
    assert deploy("--to", "vllm", "--check", "-o", "a.yaml").exception.hint == "leave -o out"
    assert "-o FILE" in deploy("--to", "vllm").exception.hint


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("setting,flag\ntp,x\n", "no column 'kind'"),
        ("setting,flag,kind,values\ntp,x,numbr,\n", "no kind of flag 'numbr'"),
        ("setting,flag,kind,values\ntp,x,choice,\n", "the choice of 'tp' has no values"),
        ("setting,flag,kind,values\n", "no rows"),
        ("\x00\xff", "cannot be read|no column"),
    ],
)
def test_tables_with_mistakes_are_refused(tmp_path, text, message):
    table = tmp_path / "mine.csv"
    table.write_bytes(text.encode("latin-1"))
    with pytest.raises(SpecError, match=message):
        read_rules(table)


def test_weights_need_a_file(here):
    assert deploy("--to", "torch", "--check").exception.hint == "-o model.pt"
