"""Weights on disk: whole or not there, and never trusted blindly."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest

from dse_evaluators.workloads.weight_cache import folder, load_or_make

SHAPES = {"weight": (2, 3)}
ONES = {"weight": np.ones((2, 3), dtype=np.float32)}
TWOS = {"weight": np.full((2, 3), 2.0, dtype=np.float32)}

WRITER = """
import sys
import numpy as np
from dse_evaluators.workloads.weight_cache import _read_arrays, _write, folder
shapes = {"weight": (300, 300)}
path = folder() / "raced.npz"
for turn in range(40):
    _write(path, {"weight": np.full((300, 300), float(sys.argv[1]), dtype=np.float32)})
    found = _read_arrays(path, shapes)
    assert found is not None and len(np.unique(found["weight"])) == 1
"""


@pytest.fixture(autouse=True)
def own_folder(tmp_path, monkeypatch):
    monkeypatch.setenv("DSE_CACHE", str(tmp_path / "deep" / "cache"))


def never():
    raise AssertionError("made again")


def test_what_was_made_once_is_read_after():
    load_or_make("w", SHAPES, lambda: ONES)
    assert np.array_equal(load_or_make("w", SHAPES, never)["weight"], ONES["weight"])


@pytest.mark.parametrize("keep_bytes", [0, 1, 60, 200])
def test_a_file_that_was_cut_is_made_again(keep_bytes):
    load_or_make("w", SHAPES, lambda: ONES)
    path = folder() / "w.npz"
    path.write_bytes(path.read_bytes()[:keep_bytes])
    assert np.array_equal(load_or_make("w", SHAPES, lambda: TWOS)["weight"], TWOS["weight"])
    assert np.array_equal(load_or_make("w", SHAPES, never)["weight"], TWOS["weight"])


def test_a_file_with_a_flipped_bit_is_made_again():
    load_or_make("w", SHAPES, lambda: ONES)
    path = folder() / "w.npz"
    data = bytearray(path.read_bytes())
    place = data.index(ONES["weight"].tobytes())
    data[place] ^= 1
    path.write_bytes(bytes(data))
    assert np.array_equal(load_or_make("w", SHAPES, lambda: TWOS)["weight"], TWOS["weight"])


def test_a_file_with_a_pickle_in_it_is_not_loaded():
    folder().mkdir(parents=True)
    np.savez(folder() / "w.npz", weight=np.array([{"a": 1}], dtype=object))
    assert np.array_equal(load_or_make("w", SHAPES, lambda: TWOS)["weight"], TWOS["weight"])


@pytest.mark.parametrize(
    "wrong",
    [
        {"weight": np.ones((3, 2), dtype=np.float32)},
        {"weight": np.ones((2, 3))},
        {"weight": np.full((2, 3), np.nan, dtype=np.float32)},
        {"other": np.ones((2, 3), dtype=np.float32)},
    ],
)
def test_arrays_that_are_not_what_was_asked_are_made_again(wrong):
    folder().mkdir(parents=True)
    np.savez(folder() / "w.npz", **wrong)
    assert np.array_equal(load_or_make("w", SHAPES, lambda: TWOS)["weight"], TWOS["weight"])


def test_a_file_that_is_no_archive_is_made_again():
    folder().mkdir(parents=True)
    with (folder() / "w.npz").open("wb") as file:
        np.save(file, ONES["weight"])
    assert np.array_equal(load_or_make("w", SHAPES, lambda: TWOS)["weight"], TWOS["weight"])


def test_no_draft_is_left():
    load_or_make("w", SHAPES, lambda: ONES)
    assert [path.name for path in folder().iterdir()] == ["w.npz"]


def test_a_write_that_fails_leaves_neither_file_nor_draft():
    broken = np.ones((2, 3), dtype=object)
    with pytest.raises(ValueError, match="allow_pickle"):
        load_or_make("w", SHAPES, lambda: {"weight": broken})
    assert list(folder().iterdir()) == []


def test_a_folder_that_cannot_be_written_costs_nothing_but_the_cache(tmp_path, monkeypatch):
    (tmp_path / "file").write_text("in the way")
    monkeypatch.setenv("DSE_CACHE", str(tmp_path / "file"))
    assert np.array_equal(load_or_make("w", SHAPES, lambda: ONES)["weight"], ONES["weight"])


def test_without_a_chosen_folder_the_users_cache_is_taken(monkeypatch, tmp_path):
    monkeypatch.delenv("DSE_CACHE")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert folder() == tmp_path / ".cache" / "dse-engine"


def test_two_processes_that_write_at_once_never_show_a_torn_file():
    first, second = (
        subprocess.Popen([sys.executable, "-c", WRITER, number], stderr=subprocess.PIPE)
        for number in ("1", "2")
    )
    assert (first.communicate()[1], first.returncode) == (b"", 0)
    assert (second.communicate()[1], second.returncode) == (b"", 0)
    assert [path.name for path in folder().iterdir()] == ["raced.npz"]
