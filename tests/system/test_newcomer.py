"""Who follows the README to the letter comes to a front of an evaluator of his own."""

import csv
import importlib
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
OWN_FRONT = re.compile(r"\d[\d.]* ms +0\.0\d+ +\d+ +int[48]")
"""A row of the front: its time, its loss, the workers and the format."""


@pytest.fixture
def newcomer(monkeypatch):
    """The script that plays the newcomer; its folder is no package."""
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))
    return importlib.import_module("newcomer")


@pytest.mark.proof  # test_readme types the section's commands in every run
def test_the_section_on_ones_own_evaluator_leads_to_its_front_in_an_empty_folder(
    newcomer, tmp_path, monkeypatch
):
    monkeypatch.delenv("DSE_STORAGE", raising=False)
    readme = (ROOT / "README.md").read_text()
    steps = [*newcomer.followed(readme, tmp_path, Path(sys.executable).parent)]
    assert steps[-1].words == "dse front mine"
    assert OWN_FRONT.search(steps[-1].shown)
    assert {step.words.split()[0] for step in steps} == {"dse"}


def test_a_step_that_fails_ends_the_way_with_its_words(newcomer, tmp_path):
    readme = f"{newcomer.SECTION}this as `a.txt`:\n\n```text\na\n```\n```console\ncat a.txt\nls b.txt\n```\n"
    steps = newcomer.followed(readme, tmp_path, tmp_path)
    assert next(steps).shown == "a\n"
    with pytest.raises(SystemExit, match=r"ls b\.txt failed"):
        next(steps)


@pytest.mark.proof
def test_from_a_fresh_clone_to_a_front_of_ones_own_takes_less_than_ten_minutes(capsys):
    words = [sys.executable, str(ROOT / "benchmarks" / "newcomer.py"), str(ROOT)]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    with capsys.disabled():
        sys.stdout.write(f"\n{done.stdout}")
    table, _, front = done.stdout.partition("\n\n")
    seconds = {step: float(taken) for step, taken in list(csv.reader(table.splitlines()))[1:]}
    assert {"git clone", "make demo", "dse run study.yaml", "dse front mine"} <= seconds.keys()
    assert seconds["all"] < 600
    assert OWN_FRONT.search(front)
