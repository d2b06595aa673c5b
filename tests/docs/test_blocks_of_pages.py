"""The blocks of the reference pages: commands are run, code is executed, YAML is read and made.

The first front and the how-tos are followed by ``test_how_to``, the tour by ``test_readme``, the language page by
``test_language_page``, the live view's by ``tests/serve``.
"""

import re
import shlex
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from dse.cli.app import app
from dse.core.batch import Batch
from dse.errors import DseError
from dse.registry import check_options, load
from dse.schema.models import StudySpec
from dse.schema.study.binding import evaluator_of
from dse.schema.yaml.source import SourceDocument, parse_yaml
from dse.schema.yaml.validation import model_of
from tests import tables

ROOT = Path(__file__).parents[2]
FOLLOWED = {"index.md", "language.md", "serve.md", "tour.md"}
PAGES = [
    page
    for page in sorted((ROOT / "docs").rglob("*.md"))
    if page.name not in FOLLOWED and page.parent.name != "how-to"
]
BLOCK = re.compile(r"^```(\w*)[^\n]*\n(.*?)^```$", re.DOTALL | re.MULTILINE)

ELSEWHERE = {
    r"pip install|createdb|scp |ray |mkdir|export ": "needs other machines or an index",
    r"dse run study\.yaml|RAY_ADDRESS=": "test_two_nodes and test_ray_command run it",
    r"dse environments (install|where|remove) ": "needs an index; tests/cli has it",
    r"dse check --reproduce (STUDY|studies/reproductions/)": "test_reproductions runs each",
}
"""What is not typed here, and who does."""

SLOW = r"dse sweep|dse compare|python benchmarks/"
"""What takes minutes: `make proof` types it."""


def blocks(page, *kinds):
    return [text for kind, text in BLOCK.findall(page.read_text()) if kind in kinds]


def lines(page):
    """The commands of a page that can be typed here."""
    typed = "\n".join(blocks(page, "console", "sh")).splitlines()
    return [line for line in typed if line and not any(re.match(one, line) for one in ELSEWHERE)]


def having(*kinds):
    return [pytest.param(page, id=page.stem) for page in PAGES if blocks(page, *kinds)]


@pytest.fixture
def folder(tmp_path, monkeypatch):
    for name in ("studies", "spaces", "benchmarks"):
        (tmp_path / name).symlink_to(ROOT / name)
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("DSE_STORAGE", raising=False)
    return tmp_path


def run(line):
    words = shlex.split(line, comments=True)
    if words[0] == "dse":
        done = CliRunner().invoke(app, words[1:])
        if done.exception and not isinstance(done.exception, SystemExit):
            raise done.exception
        return done.exit_code, done.output
    assert words[0] == "python"
    ended = subprocess.run(
        [sys.executable, *words[1:]], capture_output=True, text=True, check=False
    )
    return ended.returncode, ended.stdout + ended.stderr


@pytest.mark.slow
@pytest.mark.parametrize("page", [p for p in having("console", "sh") if lines(*p.values)])
def test_the_commands_of_a_page_work_as_written(page, folder):
    for line in lines(page):
        if not re.match(SLOW, line):
            code, told = run(line)
            assert code == 0, f"{line}\n{told}"
            assert told.strip()


@pytest.mark.proof
@pytest.mark.parametrize(
    "page", [p for p in having("console") if any(re.match(SLOW, x) for x in lines(*p.values))]
)
def test_the_long_commands_of_a_page_work_as_written(page, folder):
    """The gate of `compare` has its baseline; it may find the study worse, and says so by 1."""
    for line in lines(page):
        if "baseline.jsonl" in line:
            assert run("dse run studies/quickstart.yaml --quiet")[0] == 0
            assert run("dse studies export quickstart -o baseline.jsonl")[0] == 0
        if line.startswith("python benchmarks/") and not tables.ELSEWHERE.exists():
            pytest.skip("needs ../shared/data; how to obtain its tables: tests/data/README.md")
        code, told = run(line)
        assert code == 0, f"{line}\n{told}"


def whole(fragment: SourceDocument) -> StudySpec:
    """The study that a fragment is a part of: what the page leaves out is filled in."""
    value = fragment.value
    sections = StudySpec.model_fields.keys() | {"space"}
    if not value.keys() & sections:
        value = {"evaluators": value}
    filled = {
        "study": "page",
        "space": "library:spaces/edge_codesign.yaml",
        "evaluators": {"one": {"use": "expression"}},
        "objectives": [{"minimize": "one.thing"}],
        **value,
    }
    return model_of(StudySpec, SourceDocument(fragment.path, filled, None))


@pytest.mark.parametrize("page", having("yaml"))
def test_the_yaml_of_a_page_is_one_that_studies_take(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for code in blocks(page, "python"):
        Path(re.match(r"# (\S+)\n", code).group(1)).write_text(code)
    for text in blocks(page, "yaml"):
        fragment = parse_yaml(page, text)
        study = whole(fragment)
        for name, spec in study.evaluators.items():
            if name in fragment.value.get("evaluators", fragment.value):
                evaluator_of(spec, {**spec.options, **paths(spec.options, tmp_path)})
        for group in ("optimizer", "executor"):
            plugin = getattr(study, group)
            if plugin.use != "auto":
                check_options(
                    f"{group}s", plugin.use, load(f"{group}s", plugin.use), plugin.options
                )


def paths(options, folder):
    """The files that a page speaks of, where the test can have them."""
    return {
        key: str(folder / value) if key == "worker" else sys.executable
        for key, value in options.items()
        if key in ("worker", "python")
    }


def test_a_fragment_with_a_key_that_nothing_takes_is_refused(tmp_path):
    with pytest.raises(DseError, match="there is no key 'baseline' here"):
        whole(parse_yaml(tmp_path / "page.md", "baseline: {one: {a: 1}}\nbudget: {trials: 3}\n"))


@pytest.mark.parametrize("page", [p for p in having("python") if p.id != "outside"])
def test_the_code_of_a_page_runs_as_written(page):
    scope = {"weights": np.random.default_rng(0).normal(size=(8, 64)).astype(np.float32)}
    for code in blocks(page, "python"):
        exec(code, scope)
    if "encoded" in scope:
        back = scope["chosen"].decode(scope["encoded"])
        assert np.array_equal(back, scope["chosen"].quantize(scope["weights"]))


PLANT = """
class Found:
    def __init__(self, flow, stages):
        self.stages, self.power_w = 3, 10.0 * flow
        self.possible = stages >= self.stages

class Plant:
    def solve(self, flow, stages):
        return Found(flow, stages)

def load(file):
    assert file == "north.json"
    return Plant()
"""
"""The program that the page of outside models speaks of."""


def test_the_worker_of_the_page_measures(tmp_path, monkeypatch):
    page = ROOT / "docs/outside.md"
    (code,) = blocks(page, "python")
    (text,) = blocks(page, "yaml")
    (tmp_path / "pump_worker.py").write_text(code)
    (tmp_path / "pump.py").write_text(PLANT)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    spec = whole(parse_yaml(page, text)).evaluators["pump"]
    options = {**spec.options, "worker": str(tmp_path / "pump_worker.py"), "python": sys.executable}
    pump = evaluator_of(spec, options)
    got = pump.evaluate(Batch.of([{"flow": 2.0, "stages": 4}, {"flow": 2.0, "stages": 2}]))
    assert got.columns["power"][0] == 20.0
    assert got.failures[1].kind == "infeasible"
    assert got.failures[1].reason == "needs 3 stages, has 2"


@pytest.mark.parametrize("page", [pytest.param(page, id=page.stem) for page in PAGES])
def test_a_page_has_no_block_that_nothing_judges(page):
    kinds = {kind for kind, _ in BLOCK.findall(page.read_text())}
    assert kinds <= {"console", "sh", "yaml", "python", "text", ""}
    assert len(re.findall(r"^```", page.read_text(), re.MULTILINE)) == 2 * len(
        BLOCK.findall(page.read_text())
    )
