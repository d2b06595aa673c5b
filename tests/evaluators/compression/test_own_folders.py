"""Folders of images or texts as the data of a user's model."""

from __future__ import annotations

from zlib import crc32

import numpy as np
import pytest

from dse import Study
from dse.errors import SpecError
from dse_evaluators.workloads.own.own_data import data_source
from tests.evaluators.compression.own_models import write_study

image_library = pytest.importorskip("PIL.Image", reason="needs the extra 'images'")


def _draw(path, colours, size=(6, 4), mode="L"):
    """Write an image of random pixels, (width, height)."""
    path.parent.mkdir(parents=True, exist_ok=True)
    rng = np.random.default_rng(crc32(path.name.encode()))
    shape = (size[1], size[0]) if mode == "L" else (size[1], size[0], 3)
    array = rng.integers(0, colours, shape).astype(np.uint8)
    image_library.fromarray(array, mode=None).save(path)
    return array


@pytest.fixture
def photos(tmp_path):
    """Ten grey images of each of two classes, 6 x 4."""
    for label in ("cat", "dog"):
        for place in range(10):
            _draw(tmp_path / "photos" / label / f"{label}{place}.png", 256)
    return tmp_path / "photos"


def _load(folder, **settings):
    return data_source({"file": str(folder), **settings}).load()


def test_folders_of_images_are_classes_in_the_order_of_their_names(photos):
    array = _draw(photos / "cat" / "cat0.png", 256)
    data = _load(photos)
    assert data.inputs.shape == (20, 1, 4, 6)
    assert data.inputs.dtype == np.float32
    assert data.targets.tolist() == [0] * 10 + [1] * 10
    assert np.array_equal(data.inputs[0, 0], array.astype(np.float32) / np.float32(255))
    assert [int((data.parts == part).sum()) for part in range(3)] == [4, 8, 8]


def test_a_colour_image_among_grey_ones_gives_three_channels_to_all(photos):
    array = _draw(photos / "dog" / "a.png", 256, mode="RGB")
    data = _load(photos)
    assert data.inputs.shape == (21, 3, 4, 6)
    assert np.array_equal(data.inputs[10], array.transpose(2, 0, 1) / np.float32(255))
    assert np.array_equal(data.inputs[0, 0], data.inputs[0, 2])


def test_images_of_other_sizes_are_scaled_if_a_size_is_given(photos):
    _draw(photos / "dog" / "wide.png", 256, size=(9, 4))
    with pytest.raises(
        SpecError, match=r"wide\.png has the size \(4, 9\), but cat0\.png"
    ) as caught:
        _load(photos)
    assert caught.value.hint == "size: [4, 6] scales all images"
    assert _load(photos, size=[4, 6]).inputs.shape == (21, 1, 4, 6)


def test_folders_named_as_splits_are_the_splits(tmp_path):
    for place, split in enumerate(["calibration", "search", "search", "test"]):
        _draw(tmp_path / "all" / split / "cat" / f"{place}.png", 256)
    data = _load(tmp_path / "all")
    assert data.parts.tolist() == [0, 1, 1, 2]
    assert data.targets.tolist() == [0] * 4


def test_texts_are_bytes_cut_to_a_length(tmp_path):
    for label, text in (("spam", "buy now"), ("mail", "hello, how are you?")):
        for place in range(10):
            file = tmp_path / "texts" / label / f"{place}.txt"
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(f"{place} {text}")
    data = _load(tmp_path / "texts", length=12)
    assert bytes(data.inputs[0].tolist()).decode() == "0 hello, how"
    assert bytes(data.inputs[-1].tolist()) == b"9 buy now\0\0\0"
    assert data.targets.tolist() == [0] * 10 + [1] * 10


def test_texts_without_classes_are_cut_into_examples(tmp_path):
    (tmp_path / "plays").mkdir()
    (tmp_path / "plays" / "a.txt").write_bytes(bytes(range(100)))
    (tmp_path / "plays" / "b.txt").write_bytes(bytes(range(100, 115)))
    data = _load(tmp_path / "plays", length=10)
    assert data.inputs.shape == (11, 10)
    assert data.inputs[-1].tolist() == list(range(100, 110))
    assert data.targets is None


def test_identity_is_that_of_names_and_contents(photos):
    first = data_source(str(photos)).edition
    assert data_source(str(photos)).edition == first
    (photos / "cat" / "cat0.png").rename(photos / "dog" / "cat0.png")
    moved = data_source(str(photos)).edition
    assert moved != first
    _draw(photos / "dog" / "cat0.png", 7)
    assert data_source(str(photos)).edition not in (first, moved)


def _damage(photos, name, content=b"not an image"):
    (photos / "cat" / name).write_bytes(content)
    return photos


EPS = b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 4 4\n"


@pytest.mark.parametrize(
    ("change", "settings", "wanted"),
    [
        (lambda one: _damage(one, "z.png"), {}, "z.png cannot be read as an image"),
        (lambda one: _damage(one, "z.png", EPS), {}, "z.png cannot be read as an image"),
        (lambda one: _damage(one, "z.eps", EPS), {}, "neither an image nor a text"),
        (lambda one: _damage(one, "z.txt"), {}, "has images and texts"),
        (lambda one: one, {"size": [4]}, "size is [4]"),
        (lambda one: one, {"length": 3}, "length has no meaning for images"),
        (lambda one: one, {"targets": "y"}, "targets has no meaning for a folder"),
    ],
)
def test_mistakes_in_a_folder_are_named(photos, change, settings, wanted):
    with pytest.raises(SpecError) as caught:
        _load(change(photos), **settings)
    assert wanted in str(caught.value)
    assert caught.value.hint


def test_folders_of_another_depth_and_links_outside_are_refused(photos, tmp_path):
    (tmp_path / "secret.png").write_bytes(b"")
    (photos / "cat" / "link.png").symlink_to(tmp_path / "secret.png")
    with pytest.raises(SpecError, match="a link to a file outside"):
        _load(photos)
    (photos / "cat" / "link.png").unlink()
    _draw(photos / "cat" / "deep" / "1.png", 256)
    with pytest.raises(SpecError, match="folders of another depth"):
        _load(photos)
    (tmp_path / "empty").mkdir()
    with pytest.raises(SpecError, match="has no files"):
        _load(tmp_path / "empty")


def test_size_without_a_folder_is_refused():
    with pytest.raises(SpecError, match="size scales images of a folder"):
        data_source({"arrays": np.ones((9, 3)), "size": [3, 3]}).load()


NET = """
import torch
from torch import nn

def make():
    torch.manual_seed(0)
    return nn.Sequential(nn.Flatten(), nn.Linear(24, 2))
"""


def test_study_of_a_folder_of_images_runs(photos, tmp_path):
    (tmp_path / "net.py").write_text(NET)
    text = 'model: {python: "net.py:make"}, data: ./photos, quality: accuracy'
    study = Study.open(write_study(tmp_path, text), storage="memory://")
    study.run()
    assert {one.failure for one in study.engine.finished} == {None}
