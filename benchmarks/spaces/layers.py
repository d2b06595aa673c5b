"""Spaces with a choice in every layer of a network."""

from __future__ import annotations

import csv
from collections import Counter
from pathlib import Path

from statement import Statement

_TABLE = Path(__file__).resolve().parents[2] / "spaces/compression/resnet50_layers.csv"
_WIDTHS = (2, 4, 8)
_AVERAGE = 4


def _weights() -> list[int]:
    with _TABLE.open(newline="") as file:
        return [int(row["weights"]) for row in csv.DictReader(file)]


def _bit_widths() -> Statement:
    weights = _weights()
    last = len(weights) - 1
    budget = _AVERAGE * sum(weights)
    size = " + ".join(f"{weight} * bits_{place}" for place, weight in enumerate(weights))
    ends = {0: [8], last: [8]}
    return Statement(
        name="resnet50-bits",
        file="compression/resnet50_bits.yaml",
        source="54 layers of ResNet-50, first and last at 8 bits; counted by adding up sizes",
        domains={f"bits_{place}": ends.get(place, _WIDTHS) for place in range(len(weights))},
        rules=(f"{size} <= {budget}",),
        designs=lambda: _within(weights, budget),
    )


def _within(weights: list[int], budget: int) -> int:
    """How many choices of widths stay within the budget: a table of reachable sizes."""
    reached = Counter({8 * (weights[0] + weights[-1]): 1})
    for weight in weights[1:-1]:
        longer: Counter[int] = Counter()
        for size, ways in reached.items():
            for bits in _WIDTHS:
                longer[size + bits * weight] += ways
        reached = longer
    return sum(ways for size, ways in reached.items() if size <= budget)


def _supernet() -> Statement:
    ratios, heads = [2, 3, 4], [4, 8, 12]
    deep = {10: [11, 12], 11: [12]}
    return Statement(
        name="gpt-supernet",
        file="networks/gpt_supernet.yaml",
        source="HW-GPT-Bench, space s: 3 * 2 * (9^10 + 9^11 + 9^12)",
        domains={
            "embed_dim": [192, 384, 768],
            "n_layer": [10, 11, 12],
            "bias": [False, True],
            **{f"mlp_ratio_{layer}": ratios for layer in range(10)},
            **{f"n_head_{layer}": heads for layer in range(10)},
            **{
                f"{n}_{k}": v
                for k in (10, 11)
                for n, v in (("mlp_ratio", ratios), ("n_head", heads))
            },
        },
        guards={
            f"{name}_{layer}": {"n_layer": depths}
            for layer, depths in deep.items()
            for name in ("mlp_ratio", "n_head")
        },
        designs=lambda: 6 * (9**10 + 9**11 + 9**12),
    )


LAYERS = (_bit_widths(), _supernet())
