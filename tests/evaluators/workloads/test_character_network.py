"""The transformer of characters: its definition, and what may be cut off it."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from dse_evaluators.workloads.character_lm import CHECKPOINT, checkpoint
from dse_evaluators.workloads.character_network import BLOCKS, HEAD, WIDTH, logits
from dse_evaluators.workloads.taps import pass_through
from dse_evaluators.workloads.torch_scope import deterministic

RNG = np.random.default_rng(3)
CODES = RNG.integers(0, 84, (3, 40))
WEIGHTS = checkpoint(CHECKPOINT)
PARTS = [f"blocks.{block}.{part}" for block in range(BLOCKS) for part in ("attention", "ffn")]
READERS = {"attention": "qkv", "ffn": "up"}
WRITERS = {"attention": "out", "ffn": "down"}


def run(weights, codes=CODES):
    tensors = {name: torch.tensor(array) for name, array in weights.items()}
    with deterministic(), torch.inference_mode():
        return logits(tensors, torch.tensor(codes), pass_through()).numpy()


def close(given, wanted):
    return np.abs(given - wanted).max() < 2e-3 * np.abs(wanted).max()


def part_names(part):
    kind = part.rpartition(".")[2]
    return f"{part}.norm", f"{part}.{READERS[kind]}", f"{part}.{WRITERS[kind]}"


def folded():
    """The same network with its gains in the matrices that read the stream after them."""
    weights = dict(WEIGHTS)
    for norm, reader in [*(part_names(part)[:2] for part in PARTS), ("norm", "head")]:
        weights[reader] = weights[reader] * weights[norm]
        weights[norm] = np.ones_like(weights[norm])
    return weights


def rotation():
    return np.linalg.qr(RNG.normal(size=(WIDTH, WIDTH)))[0].astype(np.float32)


def normed(stream, gain):
    return stream / np.sqrt((stream**2).mean(-1, keepdims=True) + 1e-5) * gain


def turned(head):
    """One head's queries or keys as complex numbers times e^(i place rate)."""
    rates = 10_000.0 ** (-np.arange(HEAD // 2) / (HEAD // 2))
    angles = np.arange(len(head))[:, None] * rates
    return (head[:, : HEAD // 2] + 1j * head[:, HEAD // 2 :]) * np.exp(1j * angles)


def attended(mixed):
    """Attention of one text, head by head and place by place, in double precision."""
    out = np.zeros((len(mixed), WIDTH))
    for head in range(WIDTH // HEAD):
        places = slice(head * HEAD, (head + 1) * HEAD)
        queries, keys, values = (part[:, places] for part in np.split(mixed, 3, axis=1))
        scores = (turned(queries) @ turned(keys).conj().T).real / np.sqrt(HEAD)
        for place in range(len(mixed)):
            shares = np.exp(scores[place, : place + 1] - scores[place, : place + 1].max())
            out[place, places] = shares @ values[: place + 1] / shares.sum()
    return out


def by_definition(codes):
    """The logits of one text as the papers write them, in double precision."""
    weights = {name: array.astype(np.float64) for name, array in WEIGHTS.items()}
    gelu = torch.nn.GELU()
    stream = weights["embed"][codes]
    for block in range(BLOCKS):
        attention, ffn = f"blocks.{block}.attention", f"blocks.{block}.ffn"
        mixed = normed(stream, weights[f"{attention}.norm"]) @ weights[f"{attention}.qkv"].T
        stream = stream + attended(mixed) @ weights[f"{attention}.out"].T
        inner = normed(stream, weights[f"{ffn}.norm"]) @ weights[f"{ffn}.up"].T
        stream = stream + gelu(torch.tensor(inner)).numpy() @ weights[f"{ffn}.down"].T
    return normed(stream, weights["norm"]) @ weights["head"].T


def test_logits_are_those_of_the_definition_in_double_precision():
    assert close(run(WEIGHTS)[0], by_definition(CODES[0]))


def test_what_comes_later_does_not_change_a_characters_logits():
    other = CODES.copy()
    other[:, 25:] = (other[:, 25:] + 1) % 84
    assert np.array_equal(run(WEIGHTS)[:, :25], run(WEIGHTS, other)[:, :25])


def test_a_network_whose_gains_are_folded_into_its_matrices_says_the_same():
    assert close(run(folded()), run(WEIGHTS))


def test_a_rotation_of_the_stream_changes_nothing():
    turn = rotation()
    weights = folded()
    for part in PARTS:
        _, reader, writer = part_names(part)
        weights[reader], weights[writer] = weights[reader] @ turn, turn.T @ weights[writer]
    weights["embed"], weights["head"] = weights["embed"] @ turn, weights["head"] @ turn
    assert close(run(weights), run(WEIGHTS))


def test_each_part_may_have_a_rotation_of_its_own_where_the_stream_crosses_to_it():
    weights = folded()
    before = rotation()
    weights["embed"] = weights["embed"] @ before
    for part in PARTS:
        _, reader, writer = part_names(part)
        after = rotation()
        weights[reader], weights[writer] = weights[reader] @ before, after.T @ weights[writer]
        weights[f"{part}.crossing"] = after.T @ before
        before = after
    weights["head"] = weights["head"] @ before
    assert close(run(weights), run(WEIGHTS))


def test_a_number_of_the_stream_that_is_cut_off_is_one_that_is_zero():
    kept = np.arange(WIDTH) >= 16
    zeroed, cut = dict(WEIGHTS), dict(WEIGHTS)
    for norm, reader, writer in [*map(part_names, PARTS), ("norm", "head", None)]:
        cut[norm], cut[reader] = cut[norm][kept], cut[reader][:, kept]
        if writer:
            zeroed[writer], cut[writer] = zeroed[writer] * kept[:, None], cut[writer][kept]
    zeroed["embed"], cut["embed"] = zeroed["embed"] * kept, cut["embed"][:, kept]
    assert close(run(cut), run(zeroed))


def test_a_neuron_that_is_cut_off_is_one_that_nobody_reads():
    kept = np.arange(4 * WIDTH) % 3 > 0
    zeroed, cut = dict(WEIGHTS), dict(WEIGHTS)
    zeroed["blocks.1.ffn.down"] = zeroed["blocks.1.ffn.down"] * kept
    cut["blocks.1.ffn.down"] = cut["blocks.1.ffn.down"][:, kept]
    cut["blocks.1.ffn.up"] = cut["blocks.1.ffn.up"][kept]
    assert close(run(cut), run(zeroed))


def test_a_head_that_is_cut_off_is_one_that_nobody_reads():
    kept = np.arange(WIDTH) // HEAD != 1
    zeroed, cut = dict(WEIGHTS), dict(WEIGHTS)
    zeroed["blocks.2.attention.out"] = zeroed["blocks.2.attention.out"] * kept
    cut["blocks.2.attention.out"] = cut["blocks.2.attention.out"][:, kept]
    cut["blocks.2.attention.qkv"] = cut["blocks.2.attention.qkv"][np.tile(kept, 3)]
    assert close(run(cut), run(zeroed))


@pytest.mark.parametrize("part", PARTS)
def test_a_part_that_is_absent_is_one_that_adds_nothing(part):
    silent = {**WEIGHTS, part_names(part)[2]: np.zeros_like(WEIGHTS[part_names(part)[2]])}
    absent = {name: array for name, array in WEIGHTS.items() if not name.startswith(part)}
    assert np.array_equal(run(absent), run(silent))
