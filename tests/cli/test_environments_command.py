"""The command that makes environments, as a user meets it, with a package that brings one."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

BRINGER = """
from pathlib import Path
from dse.resources.environment import Environment

OURS = {"tiny": Environment(
    name="tiny", package="tiny-tool", version="1.0", requirements=Path(__file__).parent / "pins.txt",
    size_bytes=1_000_000, licence="MIT", used_by=("a test",), purpose="a number",
)}
"""


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """A package that brings the environment `tiny`, and an index that has its wheel."""
    about = tmp_path / "bringer/bringer-1.0.dist-info"
    for folder in (tmp_path / "index", about):
        folder.mkdir(parents=True)
    wheel = tmp_path / "index/tiny_tool-1.0-py3-none-any.whl"
    with zipfile.ZipFile(wheel, "w") as archive:
        archive.writestr("tiny_tool.py", "number = 3\n")
        dist = "tiny_tool-1.0.dist-info"
        archive.writestr(f"{dist}/METADATA", "Metadata-Version: 2.1\nName: tiny-tool\nVersion: 1.0")
        archive.writestr(f"{dist}/WHEEL", "Wheel-Version: 1.0\nTag: py3-none-any\n")
        archive.writestr(f"{dist}/RECORD", "")
    sha256 = hashlib.sha256(wheel.read_bytes()).hexdigest()
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: bringer\nVersion: 1.0\n")
    (about / "entry_points.txt").write_text("[dse.environments]\nbringer = bringer:OURS\n")
    (tmp_path / "bringer/bringer.py").write_text(BRINGER)
    (tmp_path / "bringer/pins.txt").write_text(f"tiny-tool==1.0 --hash=sha256:{sha256}\n")
    return tmp_path


def environments(place: Path, *words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "dse", "environments", *words],
        check=False,
        env={
            **os.environ,
            "PYTHONPATH": str(place / "bringer"),
            "DSE_CACHE": str(place / "cache"),
            "PIP_CONFIG_FILE": "/dev/null",
            "PIP_NO_CACHE_DIR": "1",
            "PIP_NO_INDEX": "1",
            "PIP_FIND_LINKS": str(place / "index"),
        },
        capture_output=True,
        text=True,
        timeout=120,
    )


@pytest.mark.slow
def test_an_environment_of_somebody_elses_package_is_listed_made_found_and_removed(place):
    listed = environments(place, "list", "--format", "json")
    facts = {one["name"]: one for one in json.loads(listed.stdout)}
    assert facts["tiny"]["installed"] is False
    assert facts["scalesim"]["version"] == "3.0.0"
    assert "tiny 1.0 is installed" in environments(place, "install", "tiny").stderr
    assert "tiny 1.0 is already installed" in environments(place, "install", "tiny").stderr
    python = environments(place, "where", "tiny").stdout.strip()
    told = subprocess.run([python, "-c", "import tiny_tool"], check=False)
    assert told.returncode == 0
    assert "tiny is removed" in environments(place, "remove", "tiny").stderr


@pytest.mark.slow
def test_an_environment_that_is_none_gets_the_nearest_one(place):
    told = environments(place, "install", "scalesym")
    assert told.returncode == 2
    assert "there is no environment 'scalesym'" in told.stderr
    assert "did you mean 'scalesim'?" in told.stderr


@pytest.mark.slow
def test_where_no_environment_is_the_command_that_makes_it_is_named(place):
    told = environments(place, "where", "tiny")
    assert told.returncode == 2
    assert "hint: dse environments install tiny" in told.stderr


@pytest.mark.slow
def test_an_index_without_the_package_is_one_clear_error(place):
    (place / "index/tiny_tool-1.0-py3-none-any.whl").unlink()
    told = environments(place, "install", "tiny")
    assert told.returncode == 2
    assert "tiny-tool 1.0 cannot be installed: No matching distribution" in told.stderr
    assert "Traceback" not in told.stderr
