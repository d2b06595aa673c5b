"""Latency of unseen networks on this machine's CPU, predicted from 60 others of other families.

Run: python benchmarks/learned_networks.py [--folder FOLDER] [--runs 9]

Networks of eight families are drawn, written as ONNX files, and run by onnxruntime on one thread;
latency is the median processor time of a run. Each family is held out as a whole: 60 networks of
the others are drawn, and the family's latency is predicted from their ONNX graphs. The folder keeps
the files and the table of measurements.
"""

from __future__ import annotations

import argparse
import csv
import statistics
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import nn

from dse_evaluators.learned.held_out_report import rank_correlation, relative_errors
from dse_evaluators.learned.operator_features import operator_features
from dse_evaluators.learned.operator_sum import fit_operator_sum

EACH = 12
RUNS = 60


class Block(nn.Module):
    """A transformer block, causal or not, of plain operators."""

    def __init__(self, width: int, heads: int, ratio: int, *, causal: bool) -> None:
        super().__init__()
        self.first, self.second = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, ratio * width), nn.Linear(ratio * width, width)
        self.heads, self.causal = heads, causal

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        size, width = x.shape[1], x.shape[2]
        q, k, v = self.qkv(self.first(x)).split(width, dim=2)
        shape = 1, size, self.heads, width // self.heads
        q, k, v = (one.reshape(shape).transpose(1, 2) for one in (q, k, v))
        scores = q @ k.transpose(2, 3) * (width // self.heads) ** -0.5
        if self.causal:
            scores = scores + torch.full((size, size), -1e9).triu(1)
        mixed = (scores.softmax(-1) @ v).transpose(1, 2).reshape(1, size, width)
        x = x + self.out(mixed)
        return x + self.down(nn.functional.gelu(self.up(self.second(x))))


class Residual(nn.Module):
    """A sum of a body and its input, if the shapes agree."""

    def __init__(self, body: nn.Module, *, add: bool = True) -> None:
        super().__init__()
        self.body, self.add = body, add

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.body(x) + x if self.add else self.body(x)


class Patches(nn.Module):
    """Flattened patches of an image as tokens."""

    def __init__(self, width: int, patch: int) -> None:
        super().__init__()
        self.conv = nn.Conv2d(3, width, patch, patch)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.conv(x).flatten(2).transpose(1, 2)


class Mixer(nn.Module):
    """A block that mixes tokens, then channels."""

    def __init__(self, tokens: int, width: int) -> None:
        super().__init__()
        self.norm, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.tokens = nn.Sequential(
            nn.Linear(tokens, 2 * tokens), nn.GELU(), nn.Linear(2 * tokens, tokens)
        )
        self.channels = nn.Sequential(
            nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width)
        )

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = x + self.tokens(self.norm(x).transpose(1, 2)).transpose(1, 2)
        return x + self.channels(self.norm2(x))


def conv(inputs: int, outputs: int, kernel: int = 3, stride: int = 1, groups: int = 1) -> nn.Module:
    """Return a convolution with batch normalisation and ReLU."""
    return nn.Sequential(
        nn.Conv2d(inputs, outputs, kernel, stride, kernel // 2, groups=groups, bias=False),
        nn.BatchNorm2d(outputs),
        nn.ReLU(),
    )


Drawn = tuple[nn.Module, tuple[int, ...]]


def draw_mlp(rng: np.random.Generator) -> Drawn:
    """Draw a multilayer perceptron on a batch."""
    width, depth = int(rng.choice([256, 384, 512, 768, 1024, 1536])), int(rng.integers(3, 9))
    layers = [one for _ in range(depth) for one in (nn.Linear(width, width), nn.ReLU())]
    return nn.Sequential(*layers), (int(rng.choice([1, 4, 16, 64])), width)


def draw_plain(rng: np.random.Generator) -> Drawn:
    """Draw a plain convolutional network."""
    width, side = int(rng.choice([16, 24, 32, 48, 64])), int(rng.choice([32, 48, 64, 96]))
    layers, now = list[nn.Module](), 3
    for stage in range(int(rng.integers(2, 5))):
        for _ in range(int(rng.integers(1, 4))):
            layers.append(conv(now, width * 2**stage))
            now = width * 2**stage
        layers.append(nn.MaxPool2d(2))
    return _classify(layers, now), (1, 3, side, side)


def draw_residual(rng: np.random.Generator) -> Drawn:
    """Draw a residual network, basic or bottleneck."""
    width, side = int(rng.choice([16, 32, 48, 64])), int(rng.choice([48, 64, 96, 128]))
    thin = bool(rng.integers(2))
    layers, now = [conv(3, width, 7, 2)], width
    for stage in range(int(rng.integers(2, 5))):
        out = width * 2**stage
        layers.append(conv(now, out, 3, 1 + (stage > 0)))
        for _ in range(int(rng.integers(1, 4))):
            body = [conv(out, out // 4, 1), conv(out // 4, out // 4), conv(out // 4, out, 1)]
            layers.append(Residual(nn.Sequential(*(body if thin else [conv(out, out)] * 2))))
        now = out
    return _classify(layers, now), (1, 3, side, side)


def draw_mobile(rng: np.random.Generator) -> Drawn:
    """Draw a network of inverted residuals with depthwise convolutions."""
    width, side = int(rng.choice([16, 24, 32, 40])), int(rng.choice([64, 96, 128, 160]))
    ratio, kernel = int(rng.choice([3, 4, 6])), int(rng.choice([3, 5]))
    layers, now = [conv(3, width, 3, 2)], width
    for stage in range(int(rng.integers(3, 6))):
        for place in range(int(rng.integers(1, 4))):
            out, stride = width * (1 + stage), 2 if place == 0 and stage else 1
            wide = now * ratio
            body = nn.Sequential(
                conv(now, wide, 1), conv(wide, wide, kernel, stride, wide), nn.Conv2d(wide, out, 1)
            )
            layers.append(Residual(body, add=stride == 1 and now == out))
            now = out
    return _classify(layers, now), (1, 3, side, side)


def draw_vision(rng: np.random.Generator) -> Drawn:
    """Draw a vision transformer."""
    width, side = int(rng.choice([96, 128, 192, 256, 384])), int(rng.choice([64, 96, 128, 160]))
    blocks = [Block(width, width // 32, 4, causal=False) for _ in range(int(rng.integers(2, 9)))]
    return nn.Sequential(Patches(width, int(rng.choice([8, 16]))), *blocks), (1, 3, side, side)


def draw_decoder(rng: np.random.Generator) -> Drawn:
    """Draw a decoder-only language model over hidden states."""
    width, size = int(rng.choice([128, 256, 384, 512])), int(rng.choice([16, 32, 64, 128, 256]))
    blocks = [
        Block(width, width // 64, int(rng.choice([2, 4])), causal=True)
        for _ in range(int(rng.integers(2, 7)))
    ]
    return nn.Sequential(*blocks, nn.Linear(width, int(rng.choice([1000, 4000])))), (1, size, width)


def draw_mixer(rng: np.random.Generator) -> Drawn:
    """Draw an MLP-Mixer."""
    width, side = int(rng.choice([96, 128, 192, 256])), int(rng.choice([64, 96, 128]))
    tokens = (side // 8) ** 2
    blocks = [Mixer(tokens, width) for _ in range(int(rng.integers(2, 7)))]
    return nn.Sequential(Patches(width, 8), *blocks), (1, 3, side, side)


def draw_segmenter(rng: np.random.Generator) -> Drawn:
    """Draw a convolutional encoder and decoder with resizing."""
    width, side = int(rng.choice([8, 12, 16, 24, 32])), int(rng.choice([64, 96, 128]))
    depth, now = int(rng.integers(2, 4)), 3
    layers = list[nn.Module]()
    for stage in range(depth):
        layers += [conv(now, width * 2**stage), nn.MaxPool2d(2)]
        now = width * 2**stage
    for stage in reversed(range(depth)):
        layers += [nn.Upsample(scale_factor=2), conv(now, width * 2**stage)]
        now = width * 2**stage
    return nn.Sequential(*layers, nn.Conv2d(now, 4, 1)), (1, 3, side, side)


def _classify(layers: list[Any], width: int) -> nn.Module:
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(width, 100))


FAMILIES: dict[str, Callable[[np.random.Generator], Drawn]] = {
    "mlp": draw_mlp,
    "plain": draw_plain,
    "residual": draw_residual,
    "mobile": draw_mobile,
    "vision": draw_vision,
    "decoder": draw_decoder,
    "mixer": draw_mixer,
    "segmenter": draw_segmenter,
}


def main() -> None:
    """Print the errors of each held-out family, and of all."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--folder", type=Path, default=Path("learned-networks"))
    parser.add_argument("--runs", type=int, default=9)
    asked = parser.parse_args()
    asked.folder.mkdir(exist_ok=True)
    table = asked.folder / "networks.csv"
    if not table.exists():
        with table.open("w", newline="", encoding="utf-8") as stream:
            writer = csv.writer(stream)
            writer.writerow(["network", "family", "latency"])
            for row in measure_networks(asked.folder, asked.runs):
                writer.writerow(row)
                stream.flush()
    with table.open(encoding="utf-8") as stream:
        judge_families([*csv.DictReader(stream)])


def measure_networks(folder: Path, runs: int) -> Iterator[tuple[str, str, float]]:
    """Yield the file, the family and the latency [s] of each network."""
    rng = np.random.default_rng(0)
    for family, draw in FAMILIES.items():
        for number in range(EACH):
            torch.manual_seed(number)
            module, shape = draw(rng)
            path = folder / f"{family}{number}.onnx"
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                torch.onnx.export(module.eval(), (torch.rand(shape),), str(path), dynamo=False)
            yield str(path), family, measure_latency(path, shape, runs)


def measure_latency(path: Path, shape: tuple[int, ...], runs: int) -> float:
    """Return the median processor time of a run of an ONNX file on one thread [s]."""
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    session = onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    feed = {session.get_inputs()[0].name: np.random.default_rng(0).random(shape, np.float32)}
    found = list[float]()
    session.run(None, feed)
    for _ in range(runs):
        start, count = time.process_time(), 0
        while time.process_time() - start < 0.02 or count < 2:
            session.run(None, feed)
            count += 1
        found.append((time.process_time() - start) / count)
    return statistics.median(found)


def judge_families(rows: list[dict[str, str]]) -> None:
    """Print the errors on each family, from 60 networks of the others."""
    features = np.stack([operator_features(Path(row["network"])) for row in rows])
    latency = np.array([float(row["latency"]) for row in rows])
    family = np.array([row["family"] for row in rows])
    predicted = np.zeros(len(rows))
    for name in FAMILIES:
        out = family == name
        others = np.random.default_rng(0).permutation(np.flatnonzero(~out))[:RUNS]
        model = fit_operator_sum(features[others], latency[others])
        predicted[out] = model.predict(features[out])
        errors = relative_errors(latency[out], predicted[out])
        print(
            f"{name}: median error {np.median(errors):.1%}, largest {errors.max():.0%}, "
            f"rank correlation {rank_correlation(latency[out], predicted[out]):.3f}"
        )
    errors = relative_errors(latency, predicted)
    print(
        f"all: median error {np.median(errors):.1%}, mean {errors.mean():.1%}, "
        f"rank correlation {rank_correlation(latency, predicted):.3f}"
    )


if __name__ == "__main__":
    main()
