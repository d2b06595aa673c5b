"""Integers of 4 to 2 bits by rounding, GPTQ and training, of a built-in and of an own network.

    python benchmarks/quantization_aware.py [training] [rotations] [--folder FOLDER] [-o FILE.csv]

The networks are digits-cnn and a decoder of Llama's shape with 103,000 weights, which this command
trains on characters first. Training takes 200 steps of digits-cnn and 150 of the decoder, on the
calibration split, with the default learning rate: no setting is selected. All figures are of the
split ``test``; those of training are means and standard deviations over three seeds of the order
of examples. ``rotations`` compares the decoder without a rotation and with random Hadamard and
learned rotations, rounded to nearest, over three seeds each.
"""

from __future__ import annotations

import argparse
import csv
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
from small_decoder import write_decoder

from dse_evaluators.compression.recipe_runner import measure_recipes
from dse_evaluators.workloads.models import ModelRef, model_of
from dse_evaluators.workloads.own.named_model import model_ref
from dse_evaluators.workloads.own.own_model import rotate_model
from dse_evaluators.workloads.workload import Signals

SEEDS = (0, 1, 2)
LM = ("bits_per_character", "divergence")
EMBEDDING = "format int8:channel"
FORMATS = ("int4:channel", "int3:channel", "int2:channel")
METHODS: Mapping[str, str] = {
    "rounding": "format {form}",
    "gptq": "gptq {form}",
    "straight-through": "straight-through {training}/{form}",
    "lsq": "lsq {training}/{form}",
    "lsq, distilled": "lsq {training},distill=0.5,temperature=2/{form}",
}


@dataclass(frozen=True, kw_only=True)
class NetworkCase:
    """A network, the metrics that are shown, and the number of training steps."""

    label: str
    model: ModelRef
    shown: tuple[str, ...]
    steps: int


@dataclass(frozen=True, kw_only=True)
class Row:
    """Metrics of one method on the split ``test``: mean, and standard deviation over seeds."""

    network: str
    format: str
    method: str
    metric: str
    mean: float
    deviation: float
    bits_per_weight: float


def main() -> int:
    """Print the rows, and write them as CSV where asked."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--folder", type=Path, help="keep the decoder in this folder")
    parser.add_argument("-o", "--output", type=Path, help="write the rows as CSV")
    parser.add_argument("parts", nargs="*", help=f"{' and '.join(PARTS)}; by default both")
    given = parser.parse_args()
    if odd := set(given.parts) - PARTS.keys():
        parser.error(f"there is no part {odd.pop()!r}: {', '.join(PARTS)}")
    with tempfile.TemporaryDirectory() as scratch:
        folder = given.folder or Path(scratch)
        rows = [row for part in given.parts or PARTS for row in PARTS[part](folder)]
    if given.output:
        with given.output.open("w", newline="") as file:
            table = csv.DictWriter(file, list(asdict(rows[0])))
            table.writeheader()
            table.writerows(asdict(row) for row in rows)
    return 0


def _own_decoder(folder: Path) -> ModelRef:
    model, data = write_decoder(folder)
    source = {"file": str(data), "inputs": "tokens", "split": "part"}
    return model_ref(str(model), source, ["bits_per_character", "divergence"], runs=True)


def _rotations(folder: Path) -> Iterator[Row]:
    """Yield the rows of the decoder without and with rotations."""
    own = _own_decoder(folder)
    for form in FORMATS[:2]:
        for method in ("none", "hadamard:{seed}", "learned 100,seed={seed}/{form}"):
            seeds = SEEDS if "seed" in method else SEEDS[:1]
            found = [
                _measure(rotate_model(own, method.format(seed=seed, form=form)), f"format {form}")
                for seed in seeds
            ]
            yield from _summarize(
                ("own decoder", form, f"rotation {method.split(':')[0].split(',')[0]}"), found, LM
            )


def _training(folder: Path) -> Iterator[Row]:
    """Yield the rows of both networks with each method."""
    own = _own_decoder(folder)
    cases = (
        NetworkCase(label="digits-cnn", model="digits-cnn", shown=("accuracy", "loss"), steps=200),
        NetworkCase(label="own decoder", model=own, shown=LM, steps=150),
    )
    for case in cases:
        yield from _report(case, "fp32", "kept", "keep")
        for form in FORMATS:
            for method, template in METHODS.items():
                yield from _report(case, form, method, template)


def _report(case: NetworkCase, form: str, method: str, template: str) -> Iterator[Row]:
    """Yield the rows of a method, and print them."""
    is_trained = "{training}" in template
    seeds = SEEDS if is_trained else SEEDS[:1]
    recipes = (template.format(training=f"{case.steps},seed={seed}", form=form) for seed in seeds)
    found = [_measure(case.model, recipe) for recipe in recipes]
    yield from _summarize((case.label, form, method), found, case.shown)


def _summarize(
    names: tuple[str, str, str], found: Sequence[Mapping[str, float]], shown: Sequence[str]
) -> Iterator[Row]:
    """Yield the mean and the standard deviation of each metric over seeds, and print them."""
    network, form, method = names
    for metric in shown:
        values = [one[metric] for one in found]
        row = Row(
            network=network,
            format=form,
            method=method,
            metric=metric,
            mean=float(np.mean(values)),
            deviation=float(np.std(values, ddof=1)) if len(values) > 1 else 0.0,
            bits_per_weight=found[0]["bits_per_weight"],
        )
        print(
            f"{row.network:12} {row.format:13} {row.method:17} {row.metric:19}"
            f"{row.mean:8.4f} +- {row.deviation:.4f} {row.bits_per_weight:6.2f} bits a weight",
            flush=True,
        )
        yield row


def _measure(model: ModelRef, recipe: str) -> dict[str, float]:
    """Return the metrics of a network with one recipe for all layers, on the split ``test``."""
    recipes = dict.fromkeys(model_of(model).layers, recipe)
    if recipe != "keep":  # an embedding has no inputs that could calibrate it
        recipes |= {name: EMBEDDING for name in recipes if "embed" in name}
    return measure_recipes(model, recipes, "test", Signals())


PARTS: Mapping[str, Callable[[Path], Iterator[Row]]] = {
    "training": _training,
    "rotations": _rotations,
}


if __name__ == "__main__":
    sys.exit(main())
