"""The pages for authors of plug-ins: each is followed as an author would, from an empty folder."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

HOW_TO = Path(__file__).parents[2] / "docs" / "how-to"
FILE = re.compile(r'^```\w+ title="([^"]+)"\n(.*?)^```$', re.DOTALL | re.MULTILINE)
CONSOLE = re.compile(r"^```console\n(.*?)^```$", re.DOTALL | re.MULTILINE)
OFFLINE = "--quiet --no-index --no-deps --no-build-isolation --disable-pip-version-check"
SITE = "installed"

MODULES = {
    "own-evaluator": "dse_stencil.py",
    "own-optimizer": "dse_annealing.py",
    "own-executor": "dse_threads.py",
    "own-storage": "dse_journal.py",
}
MISTAKES = {
    "own-evaluator": ("memory_s, compute_s = traffic /", "memory_s, compute_s = traffic.max() /"),
    "own-optimizer": ("if design not in excluded:", "if design not in asked:"),
    "own-executor": ("except (Exception, SystemExit)", "except SystemExit"),
    "own-storage": ("self._append(file, line)\n", "self._read += len(line)\n"),
}
"""A law that is broken: rows that depend on one another, designs asked twice, an exception that passes, a file without lines."""
REFUSALS = {
    "own-evaluator": "Stencil.compute",
    "own-optimizer": "Annealing.ask",
    "own-executor": "Threads.submit",
    "own-storage": "Journal.add",
}
REFUSING = """

def _refuse(*_, **__):
    raise PluginError("refused by the plug-in of the page")


{method} = _refuse
"""

LOOK = """
import json, sys
from pathlib import Path
from dse.report.json.plugins_json import facts_of
from dse.schema.study.plan import plan_of
sys.path.insert(0, sys.argv[1])
from catalogue_pages import catalogue
facts = facts_of("evaluators", "kernels.stencil")
for name, text in facts["example"].items():
    Path(name).write_text(text)
designs = plan_of(Path("study.yaml")).problem.space.count()
print(json.dumps([facts, designs, catalogue()["evaluators/kernels.md"]]))
"""
"""Prints what is declared, the designs of the example, and the page of the family."""

pytestmark = pytest.mark.slow


def words_of(command: str) -> list[str]:
    """The command with this interpreter; what is installed lands in the folder."""
    words = shlex.split(command, comments=True)
    if words[:2] == ["pip", "install"]:
        return [sys.executable, "-m", *words[:2], *OFFLINE.split(), "--target", SITE, *words[2:]]
    assert words[0] in ("dse", "python3"), command
    return [sys.executable, *(["-m", "dse"] if words[0] == "dse" else []), *words[1:]]


def environment(folder: Path) -> Mapping[str, str]:
    """Where what is installed in the folder is found, and no setting of whoever tests."""
    kept = {name: value for name, value in os.environ.items() if name != "DSE_STORAGE"}
    found = [str(folder / SITE), *filter(None, [kept.get("PYTHONPATH")])]
    path = [str(Path(sys.executable).parent), kept["PATH"]]
    return {**kept, "PYTHONPATH": os.pathsep.join(found), "PATH": os.pathsep.join(path)}


def typed(folder: Path, command: str, *more: str) -> tuple[int, str]:
    """The exit code of a command, and what it prints."""
    done = subprocess.run(
        [*words_of(command), *more],
        cwd=folder,
        env=environment(folder),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    return done.returncode, done.stdout


def commands_of(page: str) -> list[str]:
    text = (HOW_TO / f"{page}.md").read_text()
    return [line for block in CONSOLE.findall(text) for line in block.splitlines() if line]


def command_of(page: str, start: str) -> str:
    (found,) = (command for command in commands_of(page) if command.startswith(start))
    return found


@pytest.fixture(scope="module", params=MODULES)
def page(request: pytest.FixtureRequest) -> str:
    return request.param


@pytest.fixture(scope="module")
def written(page: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the files of the page, and the plug-in installed."""
    folder = tmp_path_factory.mktemp(page)
    for name, text in FILE.findall((HOW_TO / f"{page}.md").read_text()):
        (folder / name).write_text(text)
    code, told = typed(folder, command_of(page, "pip install"))
    assert code == 0, told
    return folder


@pytest.fixture
def folder(written: Path, tmp_path: Path) -> Path:
    """A copy of it, to run in or to change."""
    return Path(shutil.copytree(written, tmp_path / "copy"))


def rewrite(folder: Path, page: str, text: str) -> None:
    """Another text of the module, where it was written and where it was installed."""
    (folder / MODULES[page]).write_text(text)
    (folder / SITE / MODULES[page]).write_text(text)


def test_the_commands_of_a_page_work_as_written(page: str, folder: Path) -> None:
    told = {}
    for command in commands_of(page):
        if not command.startswith("pip"):
            code, told[command] = typed(folder, command)
            assert code == 0, f"{command}\n{told[command]}"
    tests = told[command_of(page, "python3 -m pytest")]
    assert re.search(r"\b\d\d+ passed in ", tests), tests
    assert "front" in told[command_of(page, "dse run")]


def test_the_catalogue_shows_what_the_evaluator_of_the_page_declares(
    tmp_path: Path,
) -> None:
    """Two files are enough: what is shown stands in the module alone."""
    files = dict(FILE.findall((HOW_TO / "own-evaluator.md").read_text()))
    for name in ("pyproject.toml", "dse_stencil.py"):
        (tmp_path / name).write_text(files[name])
    assert typed(tmp_path, "pip install .") == (0, "")
    code, listed = typed(tmp_path, "dse plugins list")
    assert ["evaluators", "kernels.stencil", "dse-stencil"] in map(str.split, listed.splitlines())
    (tmp_path / "look.py").write_text(LOOK)
    code, printed = typed(tmp_path, f"python3 look.py {HOW_TO.parent / 'generated'}")
    assert code == 0, printed
    facts, designs, page = json.loads(printed)
    assert facts["origin"] == "modelled"
    assert {one["name"]: one["unit"] for one in facts["reads"]}["bandwidth"] == "B/s"
    assert facts["limits"].startswith("Not modelled: caches")
    assert designs == 6
    assert "## `kernels.stencil`" in page
    assert facts["error"] in page


def test_a_mistake_in_the_code_of_a_page_breaks_a_contract(page: str, folder: Path) -> None:
    code = (folder / MODULES[page]).read_text()
    right, wrong = MISTAKES[page]
    assert code.count(right) == 1
    rewrite(folder, page, code.replace(right, wrong))
    code, told = typed(folder, command_of(page, "python3 -m pytest"), "-x")
    assert (code, "1 failed" in told) == (1, True), told


def test_the_study_of_a_page_runs_on_its_plug_in(page: str, folder: Path) -> None:
    code = (folder / MODULES[page]).read_text()
    imports = "\n\nfrom dse.errors import PluginError\n"
    rewrite(folder, page, code + imports + REFUSING.format(method=REFUSALS[page]))
    code, told = typed(folder, command_of(page, "dse run"))
    assert code != 0
    assert "refused by the plug-in of the page" in told


def test_a_page_is_short_and_its_code_fits_on_a_page(page: str) -> None:
    text = (HOW_TO / f"{page}.md").read_text()
    prose = CONSOLE.sub("", FILE.sub("", text))
    assert len(prose.split()) < 800
    assert [
        line for _, code in FILE.findall(text) for line in code.splitlines() if line[100:]
    ] == []
