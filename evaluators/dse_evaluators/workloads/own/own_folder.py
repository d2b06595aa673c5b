"""Examples in a folder: images or texts, in one folder for each class."""

from __future__ import annotations

import hashlib
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from dse.errors import PluginError, SpecError
from dse_evaluators.workloads.own.own_function import read_own_file
from dse_evaluators.workloads.own.own_splits import PARTS, Examples

IMAGES: Mapping[str, str] = {
    ".png": "PNG",
    ".jpg": "JPEG",
    ".jpeg": "JPEG",
    ".bmp": "BMP",
    ".gif": "GIF",
    ".webp": "WEBP",
    ".tif": "TIFF",
    ".tiff": "TIFF",
    ".pgm": "PPM",
    ".ppm": "PPM",
}
"""Formats of images by the ending of a file; others, such as EPS, would start programs."""

TEXTS = (".txt", ".md")

_LAYOUT = (
    "folders are photos/CLASS/1.png, or photos/search/CLASS/1.png with a folder for each split"
)
_COLOURS = 3
_MOST_SIDE = 2**14


@dataclass(frozen=True, slots=True, kw_only=True)
class FolderExample:
    """Example in a folder: its file, and the names of the folders of its class and split.

    A name is empty if there is no such folder.
    """

    path: Path
    label: str
    split: str


def folder_edition(folder: Path) -> str:
    """Return a hash of the names and contents of a folder's examples.

    Raises:
        SpecError: a file is no example, or cannot be read.
    """
    found = hashlib.sha256()
    for one in list_examples(folder):
        found.update(f"{one.path.relative_to(folder)}\n".encode())
        found.update(hashlib.sha256(read_own_file(one.path)).digest())
    return found.hexdigest()[:16]


def list_examples(folder: Path) -> list[FolderExample]:
    """Return the examples of a folder by the name of their files.

    Folders at the top that are all named as splits are the splits; the folders inside are classes.

    Args:
        folder: the folder.

    Raises:
        SpecError: there is no example, a file is neither an image nor a text, or the folders are
            nested in another way.
    """
    paths = [
        one for one in sorted(folder.rglob("*")) if one.is_file() and not _is_hidden(one, folder)
    ]
    if not paths:
        raise SpecError(f"{folder} has no files", hint=_LAYOUT)
    tops = {one.relative_to(folder).parts[0] for one in paths if one.parent != folder}
    has_splits = bool(tops) and tops <= set(PARTS)
    depths = {len(one.relative_to(folder).parts) for one in paths}
    if len(depths) > 1 or depths.pop() > (3 if has_splits else 2):
        raise SpecError(f"the files of {folder} are in folders of another depth", hint=_LAYOUT)
    kinds = {_kind_of(one, folder) for one in paths}
    if len(kinds) > 1:
        raise SpecError(f"{folder} has images and texts", hint="keep them in folders of their own")
    return [_example_of(one, folder, has_splits=has_splits) for one in paths]


def read_folder(
    folder: Path, settings: Mapping[str, Any]
) -> tuple[Examples, Examples | None, Examples | None]:
    """Return the inputs, the classes and the split names of a folder's examples.

    Images are (n, channels, height, width), from 0 to 1, with one channel if all are grey, else
    three. Texts are bytes, as token ids: with classes, each is cut or filled with zeros to
    ``length``; without, each is cut into examples of that length.

    Args:
        folder: the folder.
        settings: ``size`` is (height, width) to which images are scaled; ``length`` is the number
            of bytes of an example.

    Raises:
        SpecError: a file is damaged, or the images differ in size.
        PluginError: the package pillow is not installed.
    """
    for key in ("inputs", "targets", "split"):
        if key in settings:
            raise SpecError(f"{key} has no meaning for a folder", hint=_LAYOUT)
    found = list_examples(folder)
    is_image = found[0].path.suffix.lower() in IMAGES
    _check_keys(folder, settings, is_image=is_image)
    classes = sorted({one.label for one in found})
    if is_image:
        counts, inputs = [1] * len(found), _read_images(found, settings.get("size"))
    else:
        texts = [_cut_text(one, int(settings["length"])) for one in found]
        counts, inputs = [len(one) for one in texts], np.concatenate(texts)
    if not len(inputs):
        raise SpecError(f"the texts of {folder} are shorter than length: {settings['length']}")
    labels = np.repeat([classes.index(one.label) for one in found], counts)
    splits = np.repeat([one.split for one in found], counts)
    return inputs, labels if classes != [""] else None, splits if found[0].split else None


def _is_hidden(path: Path, folder: Path) -> bool:
    return any(part.startswith(".") for part in path.relative_to(folder).parts)


def _kind_of(path: Path, folder: Path) -> str:
    if not path.resolve().is_relative_to(folder.resolve()):
        raise SpecError(f"{path} is a link to a file outside of the folder", hint="copy the file")
    ending = path.suffix.lower()
    if ending not in IMAGES and ending not in TEXTS:
        hint = f"known endings: {', '.join((*IMAGES, *TEXTS))}"
        raise SpecError(f"{path} is neither an image nor a text", hint=hint)
    return "image" if ending in IMAGES else "text"


def _example_of(path: Path, folder: Path, *, has_splits: bool) -> FolderExample:
    folders = path.relative_to(folder).parts[:-1]
    split = folders[0] if has_splits else ""
    rest = folders[1:] if has_splits else folders
    return FolderExample(path=path, label=rest[0] if rest else "", split=split)


def _check_keys(folder: Path, settings: Mapping[str, Any], *, is_image: bool) -> None:
    if is_image and "length" in settings:
        raise SpecError("length has no meaning for images", hint="size: [32, 32] scales them")
    if not is_image and "size" in settings:
        raise SpecError("size has no meaning for texts", hint="length: 64 cuts them")
    if not is_image and "length" not in settings:
        hint = "length: 64, the number of bytes of an example"
        raise SpecError(f"the texts of {folder} need a length", hint=hint)


def _read_images(examples: Sequence[FolderExample], size: Any) -> Examples:
    """Return images as (n, channels, height, width), from 0 to 1.

    Raises:
        SpecError: an image is damaged or has another size than the first, or ``size`` is invalid.
        PluginError: the package pillow is not installed.
    """
    given = size if isinstance(size, list | tuple) else [] if size is None else [size]
    good = all(type(one) is int and 1 <= one <= _MOST_SIDE for one in given)
    if not good or len(given) not in (0, 2):
        raise SpecError(f"size is {size!r}", hint="height and width, as in size: [32, 32]")
    images = [_read_image(one.path, tuple(given)) for one in examples]
    first = images[0].shape[1:]
    odd = next((place for place, one in enumerate(images) if one.shape[1:] != first), None)
    if odd is not None:
        path, other = examples[odd].path, images[odd].shape[1:]
        raise SpecError(
            f"{path} has the size {other}, but {examples[0].path.name} has {first}",
            hint=f"size: [{first[0]}, {first[1]}] scales all images",
        )
    if len({len(one) for one in images}) > 1:
        images = [
            one if len(one) == _COLOURS else np.repeat(one, _COLOURS, axis=0) for one in images
        ]
    return np.stack(images).astype(np.float32) / np.float32(255)


def _read_image(path: Path, size: tuple[int, ...]) -> Examples:
    """Return an image as (channels, height, width), from 0 to 255."""
    try:
        from PIL import Image
    except ImportError as error:
        hint = "pip install 'dse-engine[images]'"
        raise PluginError("folders of images need the package 'pillow'", hint=hint) from error
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")  # of absurd sizes
            with Image.open(path, formats=[IMAGES[path.suffix.lower()]]) as image:
                is_grey = image.mode in ("1", "L", "I", "I;16", "F")
                plain: Any = image.convert("L" if is_grey else "RGB")
        scaled = plain.resize((size[1], size[0])) if size else plain
    except Exception as error:  # decoders raise errors of many classes
        first = str(error).partition("\n")[0]
        hint = "the content must be of the format that the ending names"
        raise SpecError(f"{path} cannot be read as an image: {first}", hint=hint) from error
    array = np.asarray(scaled)
    return array[None] if is_grey else array.transpose(2, 0, 1)


def _cut_text(example: FolderExample, length: int) -> Examples:
    """Return a text as rows of bytes, (m, length): one row if it has a class, else all of it."""
    content = np.frombuffer(read_own_file(example.path), dtype=np.uint8).astype(np.int64)
    if example.label:
        row = content[:length]
        return np.pad(row, (0, length - len(row)))[None]
    return content[: len(content) // length * length].reshape(-1, length)
