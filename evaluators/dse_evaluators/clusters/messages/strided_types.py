"""MPI datatypes as nested mappings, and their canonical form: strided blocks of bytes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from dse.errors import SpecError, nearest
from dse_evaluators.amounts import amount

_NAMED = {"byte": 1, "char": 1, "int32": 4, "float": 4, "float32": 4, "int64": 8, "double": 8}
_NAMED |= {"float16": 2, "bfloat16": 2, "float64": 8}
_FIELDS = {
    "contiguous": ("count",),
    "vector": ("count", "block_length", "stride"),
    "hvector": ("count", "block_length", "stride"),
    "subarray": ("sizes", "subsizes"),
}
_EXAMPLE = "{vector: {count: 64, block_length: 16, stride: 128, of: float32}}"


@dataclass(frozen=True, slots=True, kw_only=True)
class StridedBlocks:
    """Blocks of contiguous bytes at regular distances.

    Args:
        start: bytes before the first block.
        block: bytes of a block.
        streams: (count, stride in bytes) of each level of repetition, the largest stride first.
        extent: bytes from one instance of the type to the next.
    """

    start: int
    block: int
    streams: tuple[tuple[int, int], ...]
    extent: int

    @property
    def blocks(self) -> int:
        """Number of blocks of contiguous bytes."""
        found = 1
        for count, _ in self.streams:
            found *= count
        return found

    @property
    def size(self) -> int:
        """Bytes of data."""
        return self.blocks * self.block

    def repeat(self, count: int) -> StridedBlocks:
        """Return several instances of the type, one extent apart, in canonical form."""
        streams = ((count, self.extent), *self.streams)
        return canonical(self.start, self.block, streams, count * self.extent)


def canonical(
    start: int, block: int, streams: tuple[tuple[int, int], ...], extent: int
) -> StridedBlocks:
    """Return the one form of all equivalent nestings of strided types.

    Levels of a single repetition are dropped, levels are sorted by their strides, a level whose
    stride is the block below it makes the block longer, and two levels without a gap are one.

    Source:
        Pearson et al.: TEMPI, HPDC 2021, section 3 (by its code, cwpearson/tempi@9e623f0).
    """
    levels = sorted((one for one in streams if one[0] > 1), key=lambda one: one[1])
    kept: list[tuple[int, int]] = []
    for count, stride in levels:
        if not kept and stride == block:
            block *= count
        elif kept and stride == kept[-1][0] * kept[-1][1]:
            kept[-1] = kept[-1][0] * count, kept[-1][1]
        else:
            kept.append((count, stride))
    return StridedBlocks(start=start, block=block, streams=tuple(reversed(kept)), extent=extent)


def datatype_of(value: object) -> StridedBlocks:
    """Return the canonical form of a datatype as a study states it.

    Args:
        value: a name such as ``float32``, an amount such as ``12 B``, or a mapping of one
            constructor: ``contiguous``, ``vector``, ``hvector`` (``stride`` in bytes) or
            ``subarray`` (``sizes``, ``subsizes``, ``starts``; the last axis is contiguous), each
            with the type ``of`` its elements.

    Raises:
        SpecError: a constructor or key is unknown, a number is out of range, or blocks overlap.
    """
    if not isinstance(value, Mapping):
        return _named(value)
    if len(value) != 1:
        raise SpecError(f"a datatype has one constructor, not {len(value)}", hint=_EXAMPLE)
    ((name, fields),) = value.items()
    if name not in _FIELDS:
        hint = nearest(str(name), _FIELDS)
        raise SpecError(f"there is no datatype constructor {name!r}", hint=hint)
    _check_fields(name, fields)
    inner = datatype_of(fields.get("of", "byte"))
    return _subarray(fields, inner) if name == "subarray" else _repeat_blocks(name, fields, inner)


def _check_fields(name: str, fields: object) -> None:
    if not isinstance(fields, Mapping):
        raise SpecError(f"{name} has no keys", hint=_EXAMPLE)
    known = (*_FIELDS[name], "of", *(("starts",) if name == "subarray" else ()))
    for key in fields:
        if key not in known:
            raise SpecError(f"{name} has no key {key!r}", hint=nearest(str(key), known))
    for key in _FIELDS[name]:
        if key not in fields:
            raise SpecError(f"{name} has no {key}", hint=_EXAMPLE)


def _named(value: object) -> StridedBlocks:
    if isinstance(value, str) and value in _NAMED:
        size = _NAMED[value]
    elif isinstance(value, str) and value[:1].isdigit():
        size = int(amount("datatype", value, "B", least=1.0))
    else:
        hint = f"{nearest(str(value), _NAMED)}; or {_EXAMPLE}"
        raise SpecError(f"there is no datatype {value!r}", hint=hint)
    return StridedBlocks(start=0, block=size, streams=(), extent=size)


def _repeat_blocks(name: str, fields: Mapping[str, Any], inner: StridedBlocks) -> StridedBlocks:
    count = _whole(name, "count", fields["count"])
    if name == "contiguous":
        return inner.repeat(count)
    length = _whole(name, "block_length", fields["block_length"])
    unit = 1 if name == "hvector" else inner.extent
    stride = _whole(name, "stride", fields["stride"]) * unit
    if stride < length * inner.extent:
        raise SpecError(
            f"blocks of {name} overlap: a stride of {stride} B, and blocks of "
            f"{length * inner.extent} B",
            hint=f"stride: {length * inner.extent // unit} or more",
        )
    streams = ((count, stride), (length, inner.extent), *inner.streams)
    extent = (count - 1) * stride + length * inner.extent
    return canonical(inner.start, inner.block, streams, extent)


def _subarray(fields: Mapping[str, Any], inner: StridedBlocks) -> StridedBlocks:
    sizes, subsizes = fields["sizes"], fields["subsizes"]
    starts = fields.get("starts", [0] * len(sizes) if isinstance(sizes, list) else None)
    lists = [each for each in (sizes, subsizes, starts) if isinstance(each, list)]
    if len(lists) < 3 or not sizes or len({len(each) for each in lists}) > 1:
        raise SpecError(
            "sizes, subsizes and starts of subarray differ in length",
            hint="three lists of equal length",
        )
    start, pitch = inner.start, inner.extent
    streams: list[tuple[int, int]] = list(inner.streams)
    for axis in reversed(range(len(sizes))):
        size = _whole("subarray", "size", sizes[axis])
        taken = _whole("subarray", "subsize", subsizes[axis])
        first = _whole("subarray", "start", starts[axis], least=0)
        if first + taken > size:
            raise SpecError(
                f"subarray takes {taken} from {first} on of an axis of {size}",
                hint=f"at most {size - taken if size >= taken else 0} as its start",
            )
        streams.append((taken, pitch))
        start += first * pitch
        pitch *= size
    return canonical(start, inner.block, tuple(streams), pitch)


def _whole(name: str, key: str, value: object, least: int = 1) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or value < least:
        raise SpecError(f"{key} of {name} is {value!r}", hint=f"a whole number from {least}")
    return value
