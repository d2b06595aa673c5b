"""The catalogue of evaluators: what each declares, and the pages that are made of it."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest

from dse.errors import PluginError
from dse.registry import load, names
from dse.report.json.plugin_docstring import read_docstring
from dse.report.json.plugins_json import facts_of
from dse.schema.study.plan import plan_of

ROOT = Path(__file__).parents[2]
OURS = [
    name for name, point in names("evaluators").items() if point.value.startswith("dse_evaluators.")
]
WITH_EXAMPLE = [name for name in OURS if name != "python"]
"""All but the one that calls a function, which a package has to register."""


@pytest.fixture(scope="module")
def pages():
    """The generated pages, by their paths below ``reference/``."""
    sys.path.insert(0, str(ROOT / "docs" / "generated"))
    try:
        from catalogue_pages import catalogue

        yield catalogue()
    finally:
        sys.path.remove(str(ROOT / "docs" / "generated"))


@pytest.mark.parametrize("name", WITH_EXAMPLE)
def test_the_example_of_an_evaluator_is_a_study_without_a_mistake(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    files = facts_of("evaluators", name)["example"]
    for file, text in files.items():
        Path(file).write_text(text)
    plan = plan_of(Path("study.yaml"))
    assert plan.problem.space.count() > 1
    assert name in Path("study.yaml").read_text()


@pytest.mark.parametrize("name", OURS)
def test_a_modelled_evaluator_states_its_error(name):
    facts = facts_of("evaluators", name)
    if facts["origin"] == "modelled" and name != "expression":
        assert facts["error"]


@pytest.mark.parametrize("name", OURS)
def test_what_a_docstring_describes_is_an_option_or_an_input(name):
    """A name that was changed in the code alone is found."""
    plugin = load("evaluators", name)
    text, facts = read_docstring(plugin), facts_of("evaluators", name)
    inputs = {read["name"] for read in facts["reads"] or ()}
    options = {option["name"] for option in facts["options"]}
    assert set(text.inputs) <= inputs | options
    assert set(text.options) <= options


@pytest.mark.parametrize("name", OURS)
def test_a_page_has_what_the_command_shows(name, pages):
    from catalogue_pages import family_of, family_path

    facts, page = facts_of("evaluators", name), pages[family_path(family_of(name))]
    (entry,) = re.findall(rf"^## `{re.escape(name)}`.*?(?=^## |\Z)", page, re.DOTALL | re.MULTILINE)
    rows = {*re.findall(r"^\| `(\w+)` \|", entry, re.MULTILINE)}
    assert {one["name"] for one in [*(facts["reads"] or ()), *(facts["provides"] or ())]} <= rows
    assert all(f"`{option['name']}`" in entry for option in facts["options"])
    assert all(text.rstrip() in entry for text in facts["example"].values())
    assert all(fit["name"] in entry for fit in facts["held_out"])
    assert [t for t in ("limits", "error", "source") if facts[t]] == [
        t.lower() for t in re.findall(r"^\*\*(Limits|Error|Source)\.\*\*", entry, re.MULTILINE)
    ]


def test_every_family_is_in_the_short_catalogue_and_titled(pages):
    from catalogue_pages import FAMILIES

    readme = (ROOT / "evaluators" / "README.md").read_text()
    families = {name.partition(".")[0] for name in OURS if "." in name}
    assert families == FAMILIES.keys() - {""}
    assert [family for family in families if f"`{family}.*`" not in readme] == []
    assert [name for name in OURS if "." not in name and f"`{name}`" not in readme] == []


def test_every_file_of_fits_is_in_the_catalogue():
    files = {path.name for path in (ROOT / "evaluators").rglob("*.fits.json")}
    used = set()
    for name in OURS:
        used |= {Path(one).name for one in getattr(load("evaluators", name), "fits", ())}
    assert used == files


def test_a_cell_of_a_table_stays_short(pages):
    rows = [row for text in pages.values() for row in text.splitlines() if row.startswith("|")]
    assert [row[:60] for row in rows for cell in row.split("|") if len(cell) > 800] == []


class Muddled:
    """Evaluator whose example is a list.

    Example:
        - options
    """


def test_an_example_that_is_no_mapping_is_refused():
    with pytest.raises(PluginError, match="the example in the docstring of Muddled"):
        read_docstring(Muddled)
