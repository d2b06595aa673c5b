"""Folder of safetensors shards in the layout of compressed-tensors, written tensor by tensor."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dse.errors import StorageError, StudyError
from dse.interop.deployment.compressed_tensors import Entry, StoredModules, safetensors_header
from dse.protocols import DeployedTensor

INDEX = "model.safetensors.index.json"
SHARD_BYTES = 512 * 2**20
_METADATA = {"format": "pt"}


@dataclass(frozen=True, slots=True, kw_only=True)
class WrittenShards:
    """Written files of a sharded model, and the bytes of their tensors by purpose."""

    files: tuple[Path, ...]
    tensor_bytes: dict[str, int]


def write_shards(
    tensors: Iterable[tuple[str, DeployedTensor]],
    folder: Path,
    config: dict[str, Any],
    *,
    shard_bytes: int = SHARD_BYTES,
) -> WrittenShards:
    """Write tensors to shards with their index and ``config.json``; hold one shard in memory.

    The index and ``config.json`` are written last, so that no program loads a folder whose writing
    was interrupted.

    Args:
        tensors: names and tensors; the next one is requested only when the last one is stored.
        folder: the folder, which must be empty or missing.
        config: content of the uncompressed model's ``config.json``.
        shard_bytes: a shard is closed as soon as its tensors have this many bytes.

    Raises:
        StudyError: the folder is not empty, or the layout cannot hold a tensor.
        StorageError: a file cannot be written.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        if any(folder.iterdir()):
            raise StudyError(f"the folder {folder} is not empty", hint="name a new folder")
        return _write_folder(tensors, folder, config, shard_bytes)
    except OSError as error:
        raise StorageError(f"{folder} cannot be written: {error}") from error


def _write_folder(
    tensors: Iterable[tuple[str, DeployedTensor]],
    folder: Path,
    config: dict[str, Any],
    shard_bytes: int,
) -> WrittenShards:
    stored = StoredModules()
    shards: list[list[str]] = []
    waiting: dict[str, Entry] = {}
    for name, tensor in tensors:
        waiting |= stored.store(name, tensor)
        if sum(len(data) for *_, data in waiting.values()) >= shard_bytes:
            shards.append(_write_shard(_partial(folder, len(shards)), waiting))
            waiting = {}
    if waiting:
        shards.append(_write_shard(_partial(folder, len(shards)), waiting))
    names = [f"model-{one + 1:05}-of-{len(shards):05}.safetensors" for one in range(len(shards))]
    for place, name in enumerate(names):
        _partial(folder, place).rename(folder / name)
    weight_map = {tensor: name for name, held in zip(names, shards, strict=True) for tensor in held}
    index = {"metadata": {"total_size": sum(stored.sizes.values())}, "weight_map": weight_map}
    (folder / INDEX).write_text(json.dumps(index, indent=2), encoding="utf-8")
    text = json.dumps({**config, **stored.settings}, indent=2)
    (folder / "config.json").write_text(text, encoding="utf-8")
    files = (*names, INDEX, "config.json")
    return WrittenShards(files=tuple(folder / one for one in files), tensor_bytes=stored.sizes)


def _write_shard(path: Path, entries: dict[str, Entry]) -> list[str]:
    """Write tensors as a safetensors file; return their names."""
    with path.open("wb") as stream:
        stream.write(safetensors_header(entries, _METADATA))
        for *_, data in entries.values():
            stream.write(data)
    return list(entries)


def _partial(folder: Path, place: int) -> Path:
    """Return the path of a shard (counted from 0) while the number of shards is unknown."""
    return folder / f"model-{place + 1:05}.safetensors.partial"
