"""The whole mission in one study: measured compression, carried to the cost of serving."""

from __future__ import annotations

import math
import shutil
from pathlib import Path

import pytest

from dse.core.batch import Batch
from dse.schema.study.plan import plan_of
from dse.study.study_engine import StudyEngine
from dse_evaluators.compression.recipe_size import Size
from dse_evaluators.workloads.shapes import shapes_of

ROOT = Path(__file__).parents[4]
STUDY = ROOT / "studies" / "compress_and_serve.yaml"
COMPRESSIONS = {"compression", "layer_format", "products", "cache_format"}


@pytest.fixture
def short(tmp_path):
    """The shipped study with a budget of four measurements."""
    shutil.copytree(ROOT / "spaces", tmp_path / "spaces")
    (tmp_path / "studies").mkdir()
    text = STUDY.read_text().replace("measurements: 40", "measurements: 4")
    path = tmp_path / "studies" / STUDY.name
    path.write_text(text)
    return path


def compressed(design):
    return tuple(design[name] for name in sorted(COMPRESSIONS))


def test_the_weights_that_are_carried_over_are_those_of_the_small_models_blocks():
    counts = {
        name: math.prod(shape)
        for name, shape in shapes_of("shakespeare-lm").items()
        if len(shape) == 2
    }
    blocks = sum(count for name, count in counts.items() if name.startswith("blocks"))
    ends = counts["embed"] + counts["head"]
    formula = f"(small.bits_per_weight * {blocks + ends} - 16 * {ends}) / {blocks}"
    assert formula in STUDY.read_text()


def test_four_bits_with_a_scale_for_32_are_carried_over_as_four_and_a_half():
    small = Size(
        model="shakespeare-lm",
        recipe="format int4:group=32",
        layers=dict.fromkeys(("embed", "head"), "format bf16"),
    )
    bits = small.evaluate(Batch.of([{}])).columns["bits_per_weight"][0]
    assert (bits * 347_904 - 16 * 16_128) / 331_776 == pytest.approx(4.5)


def test_what_is_measured_hangs_on_the_compression_alone():
    problem = plan_of(STUDY).problem
    assert problem.reads("quality.bits_per_character") == COMPRESSIONS


@pytest.mark.proof
def test_few_measurements_yield_servers_for_each_compression(short):
    study = StudyEngine.open(short, storage="memory://")
    study.run()
    fronts = study.front.trials
    measured = {compressed(trial.design) for trial in study.finished}
    assert len(measured) <= 4
    assert len(fronts) >= 1
    assert {compressed(trial.design) for trial in fronts} <= measured
    assert all(trial.metrics["server.cost_per_token"] > 0 for trial in fronts)
    assert all(trial.metrics["server.tpot"] <= 0.05 for trial in fronts)
