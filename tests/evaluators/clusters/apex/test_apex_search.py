"""A search over plans and clocks finds what a look at all of them finds."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest
from typer.testing import CliRunner

from dse.cli.app import app

SPACE = Path(__file__).parents[4] / "spaces" / "reproductions" / "apex_clocks.yaml"
STUDY = """\
study: found
question: Which plan of eight H100 behind a slow bus, and at which clock?
space: {space}
evaluators:
  plan: {{use: clusters.apex, workload: creation, requests: 16, rate: 1e9, memory: 80 GiB, link_bandwidth: 20 GB/s}}
objectives:
  - minimize: plan.makespan
  - minimize: plan.energy
  - minimize: plan.ttft_p95
{how}
"""
ASKED = ("plan.dp", "plan.pp", "plan.attn_replicas", "plan.ffn_replicas", "clock [Hz]")


def front(folder: Path, how: str) -> set[tuple[str, ...]]:
    """The designs that are best in some way, as an optimizer finds them."""
    folder.mkdir()
    (folder / "study.yaml").write_text(STUDY.format(space=SPACE, how=how), encoding="utf-8")
    storage = ["--storage", f"sqlite:///{folder}/trials.db"]
    ran = CliRunner().invoke(app, ["run", str(folder / "study.yaml"), *storage])
    assert ran.exit_code == 0
    told = CliRunner().invoke(app, ["front", "found", *storage, "--format", "csv"])
    return {tuple(row[name] for name in ASKED) for row in csv.DictReader(told.stdout.splitlines())}


@pytest.fixture(scope="module")
def exact(tmp_path_factory: pytest.TempPathFactory) -> set[tuple[str, ...]]:
    """The front of all 104 designs."""
    return front(tmp_path_factory.mktemp("exact") / "study", "optimizer: exhaustive\nseed: 1")


@pytest.mark.proof
def test_nsga2_that_may_ask_all_designs_ends_with_the_exact_front(tmp_path: Path, exact: set):
    how = "optimizer: nsga2\nbudget: {trials: 104}\nseed: 1"
    assert front(tmp_path / "found", how) == exact


@pytest.mark.proof
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_nsga2_finds_nine_tenths_of_the_front_in_four_fifths_of_the_designs(
    tmp_path: Path, exact: set, seed: int
):
    how = f"optimizer: nsga2\nbudget: {{trials: 80}}\nseed: {seed}"
    assert len(front(tmp_path / "found", how) & exact) >= 0.9 * len(exact)
