"""Blocks of networks as texts, such as ``mbconv inputs=16 outputs=24 side=32``, and their work."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from dse.errors import SpecError, nearest

SKIP_BLOCK = "skip"
"""Block that passes its input on, and takes no time."""

Sizes = Mapping[str, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class BlockKind:
    """Kind of network block: its sizes with defaults, shapes of input and output, and its work.

    A shape is (channels, side, side) of an image, or (tokens, width) of a sequence. ``work`` is
    multiply-accumulates and stored weights of one example.
    """

    sizes: Mapping[str, int | None]
    takes: Callable[[Sizes], tuple[int, ...]]
    gives: Callable[[Sizes], tuple[int, ...]]
    work: Callable[[Sizes], tuple[int, int]]


@dataclass(frozen=True, slots=True)
class NetworkBlock:
    """Network block, described by its kind and its sizes."""

    kind: str
    sizes: Sizes

    @property
    def text(self) -> str:
        """Text of the block with all its sizes in their order, the key of a latency table."""
        return " ".join([self.kind, *(f"{name}={size}" for name, size in self.sizes.items())])

    @property
    def takes(self) -> tuple[int, ...]:
        """Shape of the block's input."""
        return KINDS[self.kind].takes(self.sizes)

    @property
    def gives(self) -> tuple[int, ...]:
        """Shape of the block's output."""
        return KINDS[self.kind].gives(self.sizes)

    @property
    def work(self) -> tuple[int, int]:
        """Multiply-accumulates and stored weights of the block."""
        return KINDS[self.kind].work(self.sizes)


def _side(sizes: Sizes) -> int:
    return -(-sizes["side"] // sizes["stride"])


def _image(sizes: Sizes) -> tuple[int, ...]:
    return sizes["inputs"], sizes["side"], sizes["side"]


def _map_shape(sizes: Sizes) -> tuple[int, ...]:
    return sizes["outputs"], _side(sizes), _side(sizes)


def _sequence(sizes: Sizes) -> tuple[int, ...]:
    return sizes["tokens"], sizes["width"]


def _convolution(sizes: Sizes) -> tuple[int, int]:
    weights = sizes["inputs"] * sizes["outputs"] * sizes["kernel"] ** 2
    return weights * _side(sizes) ** 2, weights + 2 * sizes["outputs"]


def _inverted_residual(sizes: Sizes) -> tuple[int, int]:
    wide = sizes["inputs"] * sizes["ratio"]
    expanding, depthwise = sizes["inputs"] * wide, wide * sizes["kernel"] ** 2
    projecting = wide * sizes["outputs"]
    macs = expanding * sizes["side"] ** 2 + (depthwise + projecting) * _side(sizes) ** 2
    norms = 2 * (2 * wide + sizes["outputs"])
    return macs, expanding + depthwise + projecting + norms


def _attention(sizes: Sizes) -> tuple[int, int]:
    width, tokens = sizes["width"], sizes["tokens"]
    projections = 4 * width * width
    return tokens * projections + 2 * tokens * tokens * width, projections + 6 * width


def _feed_forward(sizes: Sizes) -> tuple[int, int]:
    weights = 2 * sizes["ratio"] * sizes["width"] ** 2
    return sizes["tokens"] * weights, weights + (sizes["ratio"] + 3) * sizes["width"]


def _mixture(sizes: Sizes) -> tuple[int, int]:
    width, expert = sizes["width"], 2 * sizes["ratio"] * sizes["width"] ** 2
    router = width * sizes["experts"]
    biases = sizes["experts"] * (sizes["ratio"] + 1) * width
    macs = sizes["tokens"] * (router + sizes["active"] * expert)
    return macs, router + sizes["experts"] * expert + biases + 2 * width


def _patches(sizes: Sizes) -> tuple[int, int]:
    weights = sizes["inputs"] * sizes["patch"] ** 2 * sizes["width"]
    return weights * (sizes["side"] // sizes["patch"]) ** 2, weights + sizes["width"]


KINDS: Mapping[str, BlockKind] = {
    "conv": BlockKind(
        sizes={"inputs": None, "outputs": None, "side": None, "kernel": 3, "stride": 1},
        takes=_image,
        gives=_map_shape,
        work=_convolution,
    ),
    "mbconv": BlockKind(
        sizes={"inputs": None, "outputs": None, "side": None, "kernel": 3, "stride": 1, "ratio": 4},
        takes=_image,
        gives=_map_shape,
        work=_inverted_residual,
    ),
    "attention": BlockKind(
        sizes={"width": None, "tokens": None, "heads": 4},
        takes=_sequence,
        gives=_sequence,
        work=_attention,
    ),
    "ffn": BlockKind(
        sizes={"width": None, "tokens": None, "ratio": 4},
        takes=_sequence,
        gives=_sequence,
        work=_feed_forward,
    ),
    "moe": BlockKind(
        sizes={"width": None, "tokens": None, "ratio": 4, "experts": 8, "active": 2},
        takes=_sequence,
        gives=_sequence,
        work=_mixture,
    ),
    "patches": BlockKind(
        sizes={"inputs": None, "side": None, "patch": None, "width": None},
        takes=_image,
        gives=lambda sizes: ((sizes["side"] // sizes["patch"]) ** 2, sizes["width"]),
        work=_patches,
    ),
    "classifier": BlockKind(
        sizes={"inputs": None, "side": None, "outputs": None},
        takes=_image,
        gives=lambda sizes: (sizes["outputs"],),
        work=lambda sizes: (
            sizes["inputs"] * sizes["outputs"],
            (sizes["inputs"] + 1) * sizes["outputs"],
        ),
    ),
}


def parse_block(text: str) -> NetworkBlock:
    """Return the network block that a text such as ``conv inputs=1 outputs=16 side=8`` names.

    Raises:
        SpecError: the kind is unknown, or a size is unknown, missing or no whole number above 0.
    """
    kind, *pairs = text.split()
    if kind not in KINDS:
        raise SpecError(f"there is no block {kind!r}", hint=nearest(kind, [*KINDS, SKIP_BLOCK]))
    known = KINDS[kind].sizes
    given = dict[str, int]()
    for pair in pairs:
        name, _, number = pair.partition("=")
        if name not in known:
            raise SpecError(f"{kind} has no size {name!r}", hint=nearest(name, known))
        if not (number.isdecimal() and int(number) > 0):
            raise SpecError(f"{pair!r} is no whole number above 0", hint=f"as in {name}=16")
        given[name] = int(number)
    sizes = {name: given.get(name, usual) for name, usual in known.items()}
    missing = [name for name, size in sizes.items() if size is None]
    if missing:
        raise SpecError(f"{text!r} has no {missing[0]}", hint=f"add {missing[0]}=16")
    return _check(NetworkBlock(kind, {name: size for name, size in sizes.items() if size}), text)


def _check(block: NetworkBlock, text: str) -> NetworkBlock:
    sizes = block.sizes
    for part, whole in (("heads", "width"), ("patch", "side"), ("active", "experts")):
        divides = part == "active" or sizes.get(whole, 0) % sizes.get(part, 1) == 0
        if part in sizes and not (divides and sizes[part] <= sizes[whole]):
            raise SpecError(f"in {text!r} {part} does not fit {whole}")
    return block


def find_misfit(blocks: Sequence[NetworkBlock]) -> str:
    """Return why blocks cannot follow one another; empty if they can."""
    for one, after in pairwise(blocks):
        if one.gives != after.takes:
            return f"{one.text!r} gives {one.gives}, and {after.text!r} takes {after.takes}"
    return ""
