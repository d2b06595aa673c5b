"""An environment is there whole or not at all, and holds the files that were pinned."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from dse.errors import PluginError
from dse.resources.build import build, demolish
from dse.resources.environment import Environment

FILES = {"tiny/__init__.py": b"words = 7\n"}


@pytest.fixture
def make_environment(tmp_path, cache, make_wheel) -> Callable[..., Environment]:
    """An environment of the tiny package, pinned by this hash or by its own."""

    def make(sha256: str | None = None) -> Environment:
        asset = make_wheel(FILES)
        pins = tmp_path / "pins.txt"
        pins.write_text(f"tiny-data==1.0 --hash=sha256:{sha256 or asset.sha256}\n")
        return Environment(
            name="tiny",
            package="tiny-data",
            version="1.0",
            requirements=pins,
            size_bytes=1_000_000,
            licence="MIT",
            used_by=("a test",),
            purpose="seven words",
        )

    return make


def environments(cache: Path) -> list[str]:
    folder = cache.parent / "environments"
    return [path.name for path in folder.iterdir()] if folder.exists() else []


@pytest.mark.slow
def test_the_python_of_an_environment_has_its_packages_and_not_ours(make_environment):
    environment = make_environment()
    assert build(environment)
    told = subprocess.run(
        [environment.python, "-c", "import tiny; print(tiny.words); import numpy"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert told.stdout == "7\n"
    assert "No module named 'numpy'" in told.stderr


@pytest.mark.slow
def test_what_is_there_already_is_not_made_again(make_environment, index):
    environment = make_environment()
    build(environment)
    (index / "tiny_data-1.0-py3-none-any.whl").unlink()
    assert not build(environment)


@pytest.mark.slow
def test_what_pip_says_is_passed_on(make_environment):
    said: list[str] = []
    build(make_environment(), said.append)
    assert any("tiny-data-1.0" in line for line in said)


@pytest.mark.slow
def test_another_file_than_the_pinned_one_is_not_installed(make_environment, cache):
    with pytest.raises(PluginError, match=r"tiny-data 1\.0 cannot be installed: .*(?i:hash)"):
        build(make_environment(sha256="0" * 64))
    assert environments(cache) == []


@pytest.mark.slow
def test_a_package_that_the_index_lacks_is_told_and_nothing_is_kept(make_environment, index, cache):
    environment = make_environment()
    (index / "tiny_data-1.0-py3-none-any.whl").unlink()
    with pytest.raises(PluginError, match="No matching distribution found for tiny-data"):
        build(environment)
    assert environments(cache) == []


@pytest.mark.slow
def test_a_removed_environment_is_gone_and_can_be_made_again(make_environment, cache):
    environment = make_environment()
    build(environment)
    assert demolish(environment)
    assert environments(cache) == []
    assert build(environment)


def test_removing_an_environment_that_is_not_there_says_so(make_environment):
    assert not demolish(make_environment())


def test_other_pins_are_another_environment(make_environment, tmp_path):
    first = make_environment()
    other = tmp_path / "other.txt"
    other.write_text("tiny-data==1.0\n")
    assert replace(first, requirements=other).folder != first.folder


def test_a_missing_environment_says_how_to_get_it(make_environment):
    with pytest.raises(
        PluginError, match="a test needs the environment 'tiny': seven words"
    ) as told:
        make_environment().check_installed()
    assert told.value.hint == "dse environments install tiny"
