"""One layer of drawn integers on SEAL: packed, multiplied, rotated, decrypted and compared."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from time import process_time
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dse_evaluators.private_inference.packed_layer import LayerShape, Packing
from dse_evaluators.private_inference.seal_session import BfvParameters, SealSession

Integers = NDArray[np.int64]


@dataclass(frozen=True, slots=True, kw_only=True)
class EncryptedRun:
    """Result of the run of one encrypted layer.

    Attributes:
        seconds: CPU seconds of the server's operations, without encoding weights and making keys.
        budget: least noise budget of the outputs, in bits; rounded down to whole bits below 2.
        wrong: outputs that differ from the plain result.
        rotations: key switches that were run.
        products: products that were run.
        additions: additions that were run.
    """

    seconds: float
    budget: float
    wrong: int
    rotations: int
    products: int
    additions: int


@dataclass(frozen=True, slots=True, kw_only=True)
class DrawnLayer:
    """Integer weights and inputs of a layer, drawn at random.

    Attributes:
        shape: the layer.
        weights: (filters, channels of a group, window height, window width).
        image: (channels, height, width).
    """

    shape: LayerShape
    weights: Integers
    image: Integers

    @staticmethod
    def draw(shape: LayerShape, weight_bits: int, activation_bits: int, seed: int) -> DrawnLayer:
        """Draw integer weights and inputs of given signed widths uniformly; no weight is 0."""
        rng = np.random.default_rng(seed)
        most, wide = 2 ** (weight_bits - 1) - 1, 2 ** (activation_bits - 1) - 1
        size = (shape.filters, shape.channels // shape.groups)
        window = (shape.window_height, shape.window_width)
        weights = rng.integers(1, most + 1, (*size, *window)) * rng.choice(
            [-1, 1], (*size, *window)
        )
        image = rng.integers(-wide, wide + 1, (shape.channels, shape.height, shape.width))
        return DrawnLayer(shape=shape, weights=weights, image=image)

    def plain_result(self) -> Integers:
        """Return the layer's outputs at all pixels, computed without encryption.

        The shape is (filters, height, width).
        """
        shape, total = self.shape, None
        for down, right in shape.offsets:
            taps = self._taps(down, right)  # (filters, channels)
            term = np.einsum("fc,chw->fhw", taps, _shift(self.image, down, right))
            total = term if total is None else total + term
        assert total is not None
        return total

    def _taps(self, down: int, right: int) -> Integers:
        """Return the weights of one window position, (filters, channels); 0 across groups."""
        shape = self.shape
        row, column = down + (shape.window_height - 1) // 2, right + (shape.window_width - 1) // 2
        own = self.weights[:, :, row, column]
        taps = np.zeros((shape.filters, shape.channels), dtype=np.int64)
        for group in range(shape.groups):
            made = slice(*(shape.filters // shape.groups * (group + k) for k in (0, 1)))
            read = slice(*(shape.channels // shape.groups * (group + k) for k in (0, 1)))
            taps[made, read] = own[made]
        return taps


def run_layer(
    layer: DrawnLayer,
    parameters: BfvParameters,
    schedule: str,
    *,
    in_ntt: bool,
    between: Sequence[Callable[[], object]] = (),
) -> EncryptedRun:
    """Run a layer on SEAL, and compare its decrypted outputs with the plain ones at every pixel.

    An image of the layer must fit into a row of slots. The server's operations run once more after
    each call of ``between``; the time is the sum of the median times of the operations.

    Raises:
        InfeasibleError: SEAL refuses the parameters.
    """
    packing = Packing(shape=layer.shape, ring=parameters.ring)
    terms = _terms(layer, packing)
    before, after = _turns(schedule, packing)
    turns = {key for term in terms for key in (before(term), after(term))}
    session = SealSession(
        parameters,
        sorted({turn for turn, _ in turns} - {0}),
        swap=any(swap for _, swap in turns),
    )
    sources = [session.encrypt(slots.tolist()) for slots in _pack(layer.image, packing)]
    weights = []
    for term in terms:
        slots = _slots(layer, packing, term, schedule)
        weights.append(session.encode(slots.tolist(), in_ntt=in_ntt))
    run = _Runner(session, in_ntt=in_ntt)
    results = run.multiply_rotate(sources, terms, weights, before, after)
    laps = [np.diff(run.laps)]
    for call in between:
        call()
        again = _Runner(session, in_ntt=in_ntt)
        again.multiply_rotate(sources, terms, weights, before, after)
        laps.append(np.diff(again.laps))
    expected = _pack(layer.plain_result(), packing)
    found = [session.decrypt(results[output]) for output in range(packing.outputs)]
    half = session.plain_modulus // 2
    centred = (expected + half) % session.plain_modulus - half
    used = _pack(np.ones((layer.shape.filters, *layer.image.shape[1:]), dtype=np.int64), packing)
    return EncryptedRun(
        seconds=float(np.median(laps, axis=0).sum()),
        budget=min(session.measure_budget(results[output]) for output in range(packing.outputs)),
        wrong=int(((np.array(found) != centred) & (used != 0)).sum()),
        rotations=run.rotations,
        products=run.products,
        additions=run.additions,
    )


@dataclass(frozen=True, slots=True)
class _Term:
    """Product of an input ciphertext by the weights of one diagonal and window position."""

    output: int
    source: int
    swap: int
    shift: int
    down: int
    right: int


def _terms(layer: DrawnLayer, packing: Packing) -> list[_Term]:
    return [
        _Term(output, source, swap, shift, down, right)
        for output, source, swap, shift in packing.diagonals.tolist()
        for down, right in layer.shape.offsets
    ]


def _turns(schedule: str, packing: Packing) -> tuple[Any, Any]:
    """Return two functions of a term, which return its rotations before and after the product.

    A rotation is a number of slots to the left, and whether the two rows are exchanged.
    """
    width, pitch = packing.shape.width, packing.pitch

    def nothing(_: _Term) -> tuple[int, bool]:
        return 0, False

    def whole(term: _Term) -> tuple[int, bool]:
        turn = term.shift * pitch + term.down * width + term.right
        return turn % packing.row, bool(term.swap)

    def offset(term: _Term) -> tuple[int, bool]:
        return (term.down * width + term.right) % packing.row, False

    def diagonal(term: _Term) -> tuple[int, bool]:
        return term.shift * pitch, bool(term.swap)

    return {
        "rotate-then-multiply": (whole, nothing),
        "multiply-then-rotate": (nothing, whole),
        "mixed": (offset, diagonal),
    }[schedule]


class _Runner:
    """Server's side of a layer, with the time and the number of its operations."""

    def __init__(self, session: SealSession, *, in_ntt: bool) -> None:
        self._session, self._in_ntt = session, in_ntt
        self.rotations = self.products = self.additions = 0
        self.laps: list[float] = []

    def multiply_rotate(
        self, sources: list[Any], terms: list[_Term], weights: list[Any], before: Any, after: Any
    ) -> dict[int, Any]:
        """Return the output ciphertexts: rotated inputs, products, sums and rotated sums."""
        self._lap()
        copies = self._rotate(sources, {(term.source, before(term)) for term in terms})
        partial: dict[Any, Any] = {}
        for term, weight in zip(terms, weights, strict=True):
            product = self._session.multiply(copies[term.source, before(term)], weight)
            self.products += 1
            self._add(partial, (term.output, after(term)), product)
            self._lap()
        return self._sum_turns(partial)

    def _lap(self) -> None:
        """Append the CPU time of the process to ``laps``."""
        self.laps.append(process_time())

    def _rotate(self, sources: list[Any], wanted: set[Any]) -> dict[Any, Any]:
        """Return the rotated copies of inputs, in the NTT domain if the weights are in it."""
        session, copies, swapped = self._session, {}, {}
        for source, (turn, swap) in sorted(wanted):
            start = sources[source]
            if swap:
                if source not in swapped:
                    swapped[source] = session.rotate(start, 0, swap=True)
                    self.rotations += 1
                start = swapped[source]
            copy = session.rotate(start, turn)
            self.rotations += turn != 0
            copies[source, (turn, swap)] = session.to_ntt(copy) if self._in_ntt else copy
            self._lap()
        return copies

    def _sum_turns(self, partial: dict[Any, Any]) -> dict[int, Any]:
        """Return each output's sum of rotated partial sums, with at most one exchange of rows."""
        session = self._session
        totals: dict[Any, Any] = {}
        for (output, (turn, swap)), total in partial.items():
            plain = session.from_ntt(total) if self._in_ntt else total
            self.rotations += turn != 0
            self._add(totals, (output, swap), session.rotate(plain, turn))
            self._lap()
        results: dict[Any, Any] = {}
        for (output, swap), total in totals.items():
            self.rotations += swap
            self._add(results, output, session.rotate(total, 0, swap=swap))
            self._lap()
        return results

    def _add(self, into: dict[Any, Any], key: Any, term: Any) -> None:
        if key in into:
            self._session.add(into[key], term)
            self.additions += 1
        else:
            into[key] = term


def _pack(images: Integers, packing: Packing) -> Integers:
    """Return the slots of all channels, (ciphertexts, ring); images are (channels, height, width).

    Slots that hold no pixel are 0.
    """
    channels, pixels = images.shape[0], packing.shape.pixels
    ciphertexts = -(-channels // (2 * packing.blocks))
    slots = np.zeros((ciphertexts, 2, packing.blocks, packing.pitch), dtype=np.int64)
    for channel in range(channels):
        ciphertext, row, block = packing.place(channel)
        slots[ciphertext, row, block, :pixels] = images[channel].ravel()
    return slots.reshape(ciphertexts, packing.ring)


def _slots(layer: DrawnLayer, packing: Packing, term: _Term, schedule: str) -> Integers:
    """Return the weights of a term, in the slots of the inputs that they multiply, (ring,).

    Weights are 0 where the window leaves the image.
    """
    shape, blocks = layer.shape, packing.blocks
    taps = layer._taps(term.down, term.right)  # noqa: SLF001 - of this module
    inside = _shift(np.ones((1, shape.height, shape.width), dtype=np.int64), term.down, term.right)
    slots = np.zeros((2, blocks, packing.pitch), dtype=np.int64)
    for row in range(2):
        for block in range(blocks):
            filter_ = (term.output * 2 + row) * blocks + block
            source = (row ^ term.swap, (block + term.shift) % blocks)
            channel = (term.source * 2 + source[0]) * blocks + source[1]
            if filter_ >= shape.filters or channel >= shape.channels:
                continue
            mask = taps[filter_, channel] * inside[0].ravel()
            at = (row, block) if schedule == "rotate-then-multiply" else source
            slots[at][: shape.pixels] = mask
    if schedule != "multiply-then-rotate":
        return slots.reshape(-1)
    moved = term.down * shape.width + term.right
    return np.roll(slots.reshape(2, -1), moved, axis=1).reshape(-1)


def _shift(images: Integers, down: int, right: int) -> Integers:
    """Return shifted images: a pixel has the value ``down`` and ``right`` of it, or 0 outside."""
    moved = np.zeros_like(images)
    height, width = images.shape[-2:]
    rows = slice(max(-down, 0), min(height, height - down))
    columns = slice(max(-right, 0), min(width, width - right))
    seen_rows = slice(max(down, 0), min(height, height + down))
    seen_columns = slice(max(right, 0), min(width, width + right))
    moved[..., rows, columns] = images[..., seen_rows, seen_columns]
    return moved
