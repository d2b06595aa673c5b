"""Damaged archives of ``torch.export.save``, made from a sound one."""

from __future__ import annotations

import io
import json
import zipfile
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import nn

ABSURD = (0, -1, 2**31, 2**70, 1e30, "16", True, [16], {}, float("nan"))


class Damage(NamedTuple):
    """A damaged model: what is wrong, and how it is written; it may still be sound by chance."""

    name: str
    write: Callable[[Path], tuple[Any, Any]]
    may_run: bool = False


def images() -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    return rng.normal(size=(24, 1, 4, 4)).astype(np.float32), np.arange(24) % 2


@cache
def exported_network() -> bytes:
    """Return the bytes of a small sound archive of ``torch.export.save``."""
    torch.manual_seed(0)
    net = nn.Sequential(nn.Conv2d(1, 3, 3), nn.ReLU(), nn.Flatten(), nn.Linear(12, 2)).eval()
    axes = ({0: torch.export.Dim("n")},)
    program = torch.export.export(net, (torch.zeros(3, 1, 4, 4),), dynamic_shapes=axes)
    file = io.BytesIO()
    torch.export.save(program, file)
    return file.getvalue()


def exported_damages(rng: np.random.Generator) -> Iterator[Damage]:
    """Yield archives that are cut, have other bytes, or absurd values in their texts."""

    def written(content: bytes) -> Callable[[Path], tuple[Any, Any]]:
        def write(folder: Path) -> tuple[Any, Any]:
            (folder / "net.pt2").write_bytes(content)
            return str(folder / "net.pt2"), images()

        return write

    sound = exported_network()
    for share in rng.random(8):
        yield Damage(f"exported cut {share:.3f}", written(sound[: int(share * len(sound))]))
    for place in rng.integers(len(sound), size=8):
        flipped = bytes([*sound[:place], sound[place] ^ 0x55, *sound[place + 1 :]])
        yield Damage(f"exported byte {place}", written(flipped), may_run=True)
    for number in range(60):
        name, content = _changed_archive(sound, rng)
        yield Damage(f"exported {number} {name}", written(content), may_run=True)


def _changed_archive(sound: bytes, rng: np.random.Generator) -> tuple[str, bytes]:
    """Return an archive with one value of its texts replaced by an absurd one, and its name."""
    target = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(sound)) as archive, zipfile.ZipFile(target, "w") as copy:
        names = [name for name in archive.namelist() if name.endswith(".json")]
        chosen = names[int(rng.integers(len(names)))]
        tree = json.loads(archive.read(chosen))
        changed = _change_value(tree, rng)
        for name in archive.namelist():
            text = json.dumps(tree).encode() if name == chosen else archive.read(name)
            copy.writestr(name, text)
    return changed, target.getvalue()


def _change_value(tree: Any, rng: np.random.Generator) -> str:
    """Replace a value somewhere in a tree, or remove it; return where and by what."""
    path: list[Any] = []
    while True:
        keys = list(tree) if isinstance(tree, dict) else list(range(len(tree)))
        if not keys:
            return "nothing"
        key = keys[int(rng.integers(len(keys)))]
        path.append(key)
        inner = tree[key]
        if isinstance(inner, dict | list) and inner and rng.random() < 0.85:
            tree = inner
            continue
        absurd = ABSURD[int(rng.integers(len(ABSURD)))]
        if rng.random() < 0.3:
            del tree[key]
            return f"{path} removed"
        tree[key] = absurd
        return f"{path} is {absurd!r}"
