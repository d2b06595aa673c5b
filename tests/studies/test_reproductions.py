"""Every published claim of ``studies/reproductions`` comes out as its study says.

That each is a study with claims is in ``tests/test_library``.
Studies of seconds run with all tests, the others behind the mark ``proof``. One that needs an asset
which is not there is skipped by its name.
"""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from dse.cli.app import app
from dse.schema.models import StudySpec
from dse.schema.study.assumption_ends import impossible_ends
from dse.schema.study.plan import plan_of
from dse.schema.yaml.files import Files
from dse.schema.yaml.validation import model_of

FOLDER = Path(__file__).parents[2] / "studies" / "reproductions"
FILES = sorted(FOLDER.glob("*.yaml"))


def load_benchmark():
    """The module of benchmarks that records outcomes."""
    path = FOLDER.parents[1] / "benchmarks" / "reproductions.py"
    spec = importlib.util.spec_from_file_location("reproductions_bench", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


BENCH = load_benchmark()
OUTCOMES = BENCH.read_record()
FAST = frozenset(
    {
        "adabatch",
        "algoperf",
        "apex",
        "apex_clocks",
        "apex_experts",
        "autopilot",
        "autopilot_speeds",
        "camel",
        "carbon_connect",
        "checkfree",
        "condensa_memory",
        "codemonkeys",
        "datastates",
        "delta",
        "diffusion_hours",
        "draco",
        "e2gc",
        "e2gc_layers",
        "elastic_precision",
        "fast_scaling",
        "fastgen",
        "flash_attention_stability",
        "cbnet",
        "flexsa",
        "image_models",
        "fp8_versus_int8",
        "fuyou",
        "frontier",
        "frontier_175b",
        "gnnpipe",
        "gradient_coding",
        "kernel_launches",
        "kinetics",
        "kinetics_measured",
        "mad_max",
        "mad_max_hardware",
        "marlin",
        "mcu_fp16",
        "marlin_llama",
        "mini_batch_serialization",
        "mixed_precision",
        "mlperf_training",
        "neural_graphics",
        "paradnn",
        "paradnn_tpu",
        "polca",
        "prism",
        "prism_placement",
        "qat_split",
        "recpipe",
        "recommender_operators",
        "recssd",
        "resnet_bits",
        "s3",
        "scale_rl",
        "smaug",
        "snell",
        "energy_of_reasoning",
        "ssd_train",
        "superpipeline",
        "ttspm",
        "xpu_athalon",
        "young_daly",
        "zero_infinity",
        "zo2",
        "tempi",
        "tilus",
        "twill",
        "cheetah",
        "artemis",
        "tabula",
        "gradient_disaggregation",
    }
)
"""Studies that take less than twenty seconds."""

REPRODUCED = [
    pytest.param(path, id=path.stem, marks=() if path.stem in FAST else pytest.mark.proof)
    for path in FILES
]


def reproduced(path: Path):
    """The exit code and the claims of one study; it is skipped where an asset is absent."""
    result = CliRunner().invoke(app, ["check", "--reproduce", str(path), "--format", "json"])
    told = f"{result.stdout}{result.exception or ''}"
    if " the asset " in told:
        pytest.skip(f"needs the asset {told.partition(' the asset ')[2][:80]}")
    (study,) = json.loads(result.stdout)
    return result.exit_code, study["claims"]


@pytest.mark.proof
@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_a_reproduction_can_be_run_at_both_ends_of_each_assumption(path):
    assert list(impossible_ends(plan_of(path))) == []


@pytest.mark.slow
@pytest.mark.parametrize("path", REPRODUCED)
def test_what_a_reproduction_claims_comes_out(path):
    exit_code, claims = reproduced(path)
    off = [one for one in claims if one["verdict"] in ("fell short", "no answer")]
    assert off == []
    assert exit_code == 0
    recorded = [row["counts_as"] for row in OUTCOMES if row["study"] == path.stem]
    assert recorded in ([], [one["counts_as"] for one in claims])


def test_recorded_outcomes_are_of_the_claims_that_the_studies_state():
    """After a study's claims change: python benchmarks/reproductions.py STUDY."""
    specs = {path.stem: model_of(StudySpec, Files().source(path)) for path in FILES}
    stated = {
        name: [(one.claim, one.proof) for one in (*spec.reproduces, *spec.finds)]
        for name, spec in specs.items()
    }
    recorded: dict[str, list[tuple[str, str]]] = {name: [] for name in stated}
    for row in OUTCOMES:
        recorded[row["study"]].append((row["claim"], row["proof"]))
    assert [name for name, own in recorded.items() if own and own != stated[name]] == []


@pytest.mark.parametrize("page", BENCH.PAGES, ids=lambda page: page.name)
def test_pages_quote_the_line_that_the_recorded_outcomes_come_to(page):
    text = page.read_text()
    assert BENCH.LINE.findall(text) == [BENCH.recorded_line(OUTCOMES)]
    assert BENCH.HOW_MANY.findall(text) == [BENCH.how_many(OUTCOMES)]
    assert f"{len(FILES)} studies" in text


def test_fast_reproductions_are_there():
    assert {path.stem for path in FILES} >= FAST
