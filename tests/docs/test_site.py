"""The documentation is built without a warning, is whole, and asks nothing of the network."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from pydantic import BaseModel

import dse
from dse.cli.json_schemas import PUBLISHED, schema
from dse.registry import names
from dse.schema.models import StudySpec
from dse.schema.space.file import SpaceSpec

ROOT = Path(__file__).parents[2]
DECISIONS = sorted(path.stem for path in (ROOT / "docs" / "decisions").glob("[0-9]*.md"))
MEANINGS = yaml.safe_load((ROOT / "docs" / "generated" / "meanings.yaml").read_text())
LOADED = re.compile(r'<(?:script|img|iframe|source)[^>]* src="(?:https?:)?//|<link[^>]*//|@import')

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """The folder with the built site; that it is built at all means: not one warning.

    Never with --quiet, which lets warnings pass.
    """
    folder = tmp_path_factory.mktemp("site")
    done = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "-d", str(folder)],
        cwd=ROOT,
        env={**os.environ, "NO_MKDOCS_2_WARNING": "1", "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return folder


def page(site, name):
    return (site / name).read_text()


def headings(site, name):
    """The anchors of a page's sections."""
    return set(re.findall(r'<h[23] id="([^"]+)"', page(site, name)))


def fields(model):
    return {field.alias or name for name, field in model.model_fields.items()}


def every(model):
    """The models that stand on one."""
    return [one for below in model.__subclasses__() for one in (below, *every(below))]


def test_no_page_loads_anything_from_elsewhere(site):
    pages = [path for path in site.rglob("*.html") if LOADED.search(path.read_text())]
    styles = [path for path in site.rglob("*.css") if "url(http" in path.read_text()]
    assert pages + styles == []


def test_the_catalogue_has_every_plug_in(site):
    families = [path.name for path in (site / "reference" / "evaluators").glob("*.html")]
    entries = set().union(*(headings(site, f"reference/evaluators/{name}") for name in families))
    missing = [
        (group, name)
        for group in ("optimizers", "executors", "storages")
        for name in names(group)
        if name.replace(".", "-") not in headings(site, f"reference/{group}.html")
    ]
    missing += [name for name in names("evaluators") if name.replace(".", "-") not in entries]
    assert missing == []


def test_a_page_that_names_an_evaluator_links_to_it_and_back(site):
    there = 'href="reference/evaluators/serving.html#clusters-serving"'
    assert there in page(site, "serving.html")
    assert 'href="../../serving.html"' in page(site, "reference/evaluators/serving.html")


def test_every_decision_is_listed_and_has_a_page(site):
    listed = page(site, "decisions/index.html")
    assert [name for name in DECISIONS if f'href="{name}.html"' not in listed] == []
    assert [name for name in DECISIONS if not (site / f"decisions/{name}.html").exists()] == []


def test_the_reference_of_yaml_has_every_key_of_a_file(site):
    rows = set(re.findall(r"<td><code>(\w+)</code></td>", page(site, "reference/yaml.html")))
    assert fields(StudySpec) | fields(SpaceSpec) <= rows


@pytest.mark.parametrize("name", MEANINGS)
def test_a_model_of_yaml_has_a_meaning_for_each_key_and_for_no_other(name):
    ours = [one for one in every(BaseModel) if one.__module__.startswith("dse.schema.")]
    models = {one.__name__: one for one in ours}
    assert set(MEANINGS[name]) == fields(models[name])


def test_the_command_line_is_there_with_its_options(site):
    told = page(site, "reference/command-line.html")
    assert {"dse-run", "dse-space-count", "dse-studies-import"} <= headings(
        site, "reference/command-line.html"
    )
    assert "--fail-if-worse" in told
    assert "--measurements" in told


def test_all_that_commands_print_as_json_has_its_keys_and_its_schema_there(site):
    anchors = headings(site, "reference/json.html")
    links = re.findall(r'href="(schemas/[\w-]+\.json)"', page(site, "reference/json.html"))
    assert {
        f"dse-{command.replace(' --', '-').replace(' ', '-')}" for command in PUBLISHED
    } < anchors
    told = [json.loads((site / "reference" / link).read_text()) for link in links]
    assert told == [schema(command) for command in PUBLISHED]


def test_the_reference_of_python_has_every_name_and_every_method(site):
    anchors = headings(site, "reference/python.html")
    assert {name.lower() for name in dse.__all__} <= anchors
    methods = [name for name in vars(dse.Study) if not name.startswith("_")]
    assert {f"study-{name}" for name in methods} <= anchors


def test_no_fence_and_no_link_is_left_as_text(site):
    pages = [site / "index.html", *(site / "how-to").glob("*.html"), *(site / "theory").glob("*")]
    assert [path for path in pages if re.search(r"<p>[^<]*```|\]\(", path.read_text())] == []
