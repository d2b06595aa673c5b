"""Rank agreement of inherited weights and of proxies with weights trained alone, in int8.

Run: python benchmarks/supernet.py [--networks 20] [--seeds 2] [--format int8] [--data digits]

Each network is measured with the weights that it inherits from the supernet, and with its own. The
agreement of own weights with own weights of another seed is the most that can be expected.
"""

from __future__ import annotations

import argparse
from itertools import combinations

import numpy as np

from dse.core.batch import Batch
from dse.core.values import Floats, Value
from dse_evaluators.architectures.image_files import read_images
from dse_evaluators.architectures.proxies import Proxies
from dse_evaluators.architectures.shared_networks import STAGES, SharedNetwork, draw_network
from dse_evaluators.architectures.supernet import Supernet


def main() -> None:
    """Print the metrics of each network, and Kendall's rank correlations."""
    from scipy.stats import kendalltau

    parser = argparse.ArgumentParser()
    parser.add_argument("--networks", type=int, default=20)
    parser.add_argument("--seeds", type=int, default=2)
    parser.add_argument("--format", default="int8")
    parser.add_argument("--data", default="digits")
    asked = parser.parse_args()
    rng, side = np.random.default_rng(0), read_images(asked.data).side
    designs = [_design(draw_network(side, rng)) for _ in range(asked.networks)]
    found = {
        (weights, seed): _measure(designs, weights, seed, asked.format, asked.data)
        for weights in ("inherited", "own")
        for seed in range(asked.seeds)
    }
    for place, design in enumerate(designs):
        each = (f"{w} {s}: {one['accuracy'][place]:.3f}" for (w, s), one in found.items())
        print(" ".join(str(one) for one in design.values()), "|", ", ".join(each))
    for metric in ("accuracy", "loss"):
        for one, other in combinations(found, 2):
            tau = kendalltau(found[one][metric], found[other][metric]).statistic
            print(f"{metric}: {one[0]} {one[1]} with {other[0]} {other[1]}: tau {tau:.3f}")
    for name, scores in _score(designs, asked.data).items():
        tau = kendalltau(scores, found["own", 0]["loss"]).statistic
        print(f"loss: proxy {name} with own 0: tau {tau:.3f}")
    best = {key: int(np.argmin(one["loss"])) for key, one in found.items()}
    for (weights, seed), place in best.items():
        if weights == "inherited":
            own = found["own", seed]["accuracy"]
            print(
                f"least inherited loss, seed {seed}: own accuracy {own[place]:.3f}, best "
                f"{own.max():.3f}"
            )


def _design(net: SharedNetwork) -> dict[str, Value]:
    sizes: dict[str, Value] = {"resolution": net.resolution}
    for stage in STAGES:
        sizes[f"width_{stage}"] = net.widths[stage - 1]
        sizes[f"depth_{stage}"] = len(net.kernels[stage - 1])
    return sizes | {f"kernel_{stage}_{place}": kernel for stage, place, kernel in net.places()}


def _score(designs: list[dict[str, Value]], data: str) -> dict[str, Floats]:
    """Return the proxies of each network; those that are to be large are negated."""
    found = Proxies(data=data).evaluate(Batch.of(designs)).columns
    return {name: one if name == "step_loss" else -one for name, one in found.items()}


def _measure(
    designs: list[dict[str, Value]], weights: str, seed: int, number_format: str, data: str
) -> dict[str, Floats]:
    evaluator = Supernet(
        data=data,
        weights=weights,
        seed=seed,
        weight_format=number_format,
        activation_format=number_format,
        clock="processor",
        limit="0.05 s",
    )
    return dict(evaluator.evaluate(Batch.of(designs)).columns)


if __name__ == "__main__":
    main()
