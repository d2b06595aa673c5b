"""Error of the sum of block latencies on drawn networks that are then timed as a whole.

Run: python benchmarks/block_latency.py [--table blocks.csv] [--networks 20] [--limit 3]

Networks of inverted residuals, of transformer blocks, and of mixtures of experts are drawn. Their
blocks are timed first, each once, by processor time; then each network is timed as a whole. No
constant is fitted.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable

import numpy as np

from dse.core.batch import Batch
from dse_evaluators.architectures.block_latency import BlockLatency

Texts = list[str]


def draw_mobile(rng: np.random.Generator) -> Texts:
    """Draw a network of inverted residuals for images of 64 x 64."""
    widths, side = (16, 24, 40, 80), 64
    texts, now = ["conv inputs=3 outputs=16 side=64 stride=2"], 16
    for stage, width in enumerate(widths):
        for place in range(int(rng.integers(1, 4))):
            stride = 2 if place == 0 and stage else 1
            here = side // 2 ** (stage + 1 if place or not stage else stage)
            kernel, ratio = rng.choice([3, 5]), rng.choice([3, 6])
            sizes = f"inputs={now} outputs={width} side={here} stride={stride}"
            texts.append(f"mbconv {sizes} kernel={kernel} ratio={ratio}")
            now = width
    return [*texts, f"classifier inputs={now} side=4 outputs=100"]


def draw_transformer(rng: np.random.Generator, *, sparse: bool = False) -> Texts:
    """Draw a vision transformer, with a mixture of experts in some blocks if it is sparse."""
    width = int(rng.choice([96, 192]))
    texts = [f"patches inputs=3 side=96 patch=8 width={width}"]
    for _ in range(int(rng.integers(2, 7))):
        texts.append(f"attention width={width} tokens=144 heads={rng.choice([2, 4])}")
        if sparse and rng.random() < 0.5:
            texts.append(f"moe width={width} tokens=144 experts={rng.choice([4, 8])} active=2")
        else:
            texts.append(f"ffn width={width} tokens=144 ratio={rng.choice([2, 4])}")
    return texts


def draw_sparse(rng: np.random.Generator) -> Texts:
    """Draw a vision transformer with mixtures of experts."""
    return draw_transformer(rng, sparse=True)


FAMILIES: dict[str, Callable[[np.random.Generator], Texts]] = {
    "inverted residuals": draw_mobile,
    "transformer": draw_transformer,
    "mixture of experts": draw_sparse,
}


def main() -> None:
    """Print the error of each network, and of each family."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--table", default="block-latency.csv")
    parser.add_argument("--networks", type=int, default=20)
    parser.add_argument("--limit", type=float, default=3.0)
    asked = parser.parse_args()
    rng = np.random.default_rng(0)
    names = [*FAMILIES]
    drawn = [(name, FAMILIES[name](rng)) for name in (names * asked.networks)[: asked.networks]]
    found: dict[str, list[tuple[float, float]]] = {name: [] for name in names}
    times = {
        measure: [_time(texts, asked.table, measure, asked.limit) for _, texts in drawn]
        for measure in ("missing", "network")
    }
    for (name, texts), ours, whole in zip(drawn, times["missing"], times["network"], strict=True):
        found[name].append((ours, whole))
        print(
            f"{name}, {len(texts)} blocks: {ours * 1e3:.3f} ms, whole {whole * 1e3:.3f} ms, "
            f"error {ours / whole - 1:+.1%}"
        )
    found["all"] = [pair for pairs in found.values() for pair in pairs]
    for name, pairs in found.items():
        ours, whole = np.array(pairs).T
        errors = np.abs(ours / whole - 1)
        print(
            f"{name}: median {np.median(errors):.1%}, mean {errors.mean():.1%}, largest "
            f"{errors.max():.1%}, within 10 %: {(errors <= 0.1).sum()} of {len(errors)}"
        )


def _time(texts: Texts, table: str, measure: str, limit: float) -> float:
    evaluator = BlockLatency(
        blocks=texts, table=table, measure=measure, limit=limit, clock="processor", precision=0.01
    )
    return float(evaluator.evaluate(Batch.of([{}])).columns["latency"][0])


if __name__ == "__main__":
    main()
