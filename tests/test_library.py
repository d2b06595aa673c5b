"""Every shipped YAML file is sound, and the counts that the catalogue tells are what comes out."""

import re
from pathlib import Path

import numpy as np
import pytest

from dse.report.text.space_words import estimate_text
from dse.schema.space.space_loader import space_of
from dse.schema.study.plan import plan_of
from dse.schema.yaml.files import Files

ROOT = Path(__file__).parent.parent
SPACES = sorted((ROOT / "spaces").rglob("*.yaml"))
STUDIES = sorted((ROOT / "studies").rglob("*.yaml"))


def size_of(space) -> str:
    """The exact count or, where there is none, the estimate as ``dse space count`` prints it."""
    count = space.count()
    if count is not None:
        return f"{count:,}"
    return re.match(r"about \S+", estimate_text(space.estimate())).group()


@pytest.mark.parametrize("path", SPACES, ids=lambda p: p.stem)
def test_a_shipped_space_has_the_count_that_its_catalogue_tells(path):
    space = space_of(path, Files())
    name = str(path.relative_to(ROOT / "spaces"))
    (row,) = [x for x in (ROOT / "spaces/README.md").read_text().splitlines() if f"`{name}`" in x]
    parameters, count = re.findall(r"\| ((?:about )?[\d,.e]+) (?=\|)", row)
    assert int(parameters) == len(space.parameters)
    assert count == size_of(space)
    for design in space.sample(3, np.random.default_rng(0)):
        space.check(design)


@pytest.mark.parametrize("path", SPACES, ids=lambda p: p.stem)
def test_a_shipped_space_says_where_its_domains_come_from(path):
    first, *rest = path.read_text().splitlines()
    assert first.startswith("# ")
    assert any(re.search(r"\b(Domains?|Figures|What it joins)\b", line) for line in rest[:6])


@pytest.mark.parametrize("path", STUDIES, ids=lambda p: p.stem)
def test_a_shipped_study_is_sound_and_in_the_catalogue(path):
    plan = plan_of(path)
    assert plan.question
    assert plan.claims or path.parent.name != "reproductions"
    assert f"`{path.name}`" in (ROOT / "studies/README.md").read_text()


def test_the_quickstart_asks_a_real_codesign_question():
    space = plan_of(ROOT / "studies/quickstart.yaml").problem.space
    assert len(space.parameters) >= 10
    assert space.conditions
    assert space.constraints
    assert space.count() > 10_000_000
