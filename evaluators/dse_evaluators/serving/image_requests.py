"""Images as a server receives them: encoded files of the user, or photographs of scikit-learn."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from functools import lru_cache
from importlib.util import find_spec
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np

from dse.errors import EvaluationError, PluginError, SpecError, nearest

PHOTOS = "photos"
_NAMES = ("china.jpg", "flower.jpg")
_SUFFIXES = (".jpg", ".jpeg", ".png", ".webp", ".bmp", ".gif", ".tif", ".tiff")
_RATIO = (4, 3)


def pillow() -> Any:  # the module PIL.Image
    """Import Pillow.

    Raises:
        PluginError: it is not installed.
    """
    try:
        from PIL import Image
    except ImportError as error:
        raise PluginError(
            "images need the package pillow", hint="pip install 'dse-engine[images]'"
        ) from error
    return Image


def list_images(images: str, most: int) -> tuple[Path, ...]:
    """Return the first image files of a folder by name; none for the shipped photographs.

    Raises:
        SpecError: there is no such folder, or it has no image.
    """
    if images == PHOTOS:
        return ()
    folder = Path(images)
    if not folder.is_dir():
        beside = [one.name for one in folder.parent.iterdir()] if folder.parent.is_dir() else []
        hint = f"{nearest(folder.name, [*beside, PHOTOS])}; images is a folder, or {PHOTOS}"
        raise SpecError(f"there is no folder {images}", hint=hint, part=["images"])
    found = sorted(one for one in folder.iterdir() if one.suffix.lower() in _SUFFIXES)
    if not found:
        hint = f"known endings: {', '.join(_SUFFIXES)}"
        raise SpecError(f"the folder {images} has no image", hint=hint, part=["images"])
    return tuple(found[:most])


def digest_files(files: Sequence[Path]) -> str:
    """Return a hash of the bytes of some files; a fixed name for none."""
    if not files:
        return PHOTOS
    head = hashlib.sha256()
    for one in files:
        head.update(one.read_bytes())
    return head.hexdigest()[:16]


def read_images(files: Sequence[Path]) -> tuple[bytes, ...]:
    """Return the bytes of some image files, each of which can be decoded.

    Raises:
        EvaluationError: a file is no image.
    """
    image_module = pillow()
    found = []
    for path in files:
        content = path.read_bytes()
        try:
            with image_module.open(BytesIO(content)) as image:
                image.convert("RGB")
        except (OSError, ValueError, SyntaxError) as error:
            problem = f"{path} cannot be decoded: {error}"
            raise EvaluationError(problem, hint="remove it from the folder") from error
        found.append(content)
    return tuple(found)


@lru_cache(maxsize=8)
def encode_photos(width: int, quality: int) -> tuple[bytes, ...]:
    """Return the photographs of scikit-learn in a width, with the ratio 4:3, as JPEG files.

    Wider images are made of mirrored copies, so that they have as much detail for each pixel as
    the photographs, as an enlarged photograph would not.

    Raises:
        PluginError: Pillow or scikit-learn is not installed.
    """
    size = width, max(1, width * _RATIO[1] // _RATIO[0])
    return tuple(_encode(_fill(_photo(name), size), quality) for name in _NAMES)


def shrink(requests: Sequence[bytes], size: tuple[int, int], quality: int) -> tuple[bytes, ...]:
    """Return images resized and encoded as JPEG, as a client does that sends no pixel in vain."""
    image_module = pillow()
    found = []
    for content in requests:
        with image_module.open(BytesIO(content)) as image:
            small = image.convert("RGB").resize(size, image_module.Resampling.LANCZOS)
        found.append(_encode(small, quality))
    return tuple(found)


def _photo(name: str) -> Any:
    spec = find_spec("sklearn")
    if spec is None or spec.origin is None:
        raise PluginError("the photographs need scikit-learn", hint="pip install scikit-learn")
    path = Path(spec.origin).parent / "datasets" / "images" / name
    with pillow().open(path) as image:
        return image.convert("RGB")


def _fill(image: Any, size: tuple[int, int]) -> Any:
    """Return an image of a size, cropped and shrunk, or of mirrored copies at full resolution."""
    image_module = pillow()
    across = min(image.width, image.height * _RATIO[0] // _RATIO[1])
    down = across * _RATIO[1] // _RATIO[0]
    cropped = image.crop((0, 0, across, down))
    if size[0] <= across:
        return cropped.resize(size, image_module.Resampling.LANCZOS)
    pixels = np.asarray(cropped)
    doubled = np.concatenate([pixels, pixels[:, ::-1]], axis=1)
    doubled = np.concatenate([doubled, doubled[::-1]], axis=0)
    rows = np.arange(size[1]) % doubled.shape[0]
    columns = np.arange(size[0]) % doubled.shape[1]
    return image_module.fromarray(np.ascontiguousarray(doubled[rows][:, columns]))


def _encode(image: Any, quality: int) -> bytes:
    into = BytesIO()
    image.save(into, "JPEG", quality=quality)
    return into.getvalue()
