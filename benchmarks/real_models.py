"""Our front of six real models on the test split, beside uniform formats and torchao's recipes.

    python benchmarks/real_models.py [MODEL ...] [--measurements 40] [-o real_models.csv]

For each model, a study chooses a format for each layer on the split ``search``. Each row is one
format in all layers, or torchao's ``IntxWeightOnlyConfig`` applied by torchao itself, and beside it
the design of the front with at most as many bits that is best on ``search``. Both are measured on
the split ``test``; the standard error of their difference is paired. Convolutions, for which
torchao has no weight-only kernel, get its recipe as matrices. Needs the extras of the models:
``dse assets install``.
"""

from __future__ import annotations

import argparse
import csv
import os
import sys
import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path

import numpy as np
import torch
from threadpoolctl import threadpool_limits

from dse import Study
from dse.core.design import Design
from dse.core.values import Floats
from dse.errors import PluginError
from dse_evaluators.compression.model_layers import count
from dse_evaluators.compression.recipe_evaluator import ByRecipe
from dse_evaluators.compression.recipe_runner import outputs
from dse_evaluators.formats.arrays import Single
from dse_evaluators.workloads.models import model_of, workload_of
from dse_evaluators.workloads.resampling import resample_quality
from dse_evaluators.workloads.workload import Signals

SHOWN: Mapping[str, tuple[str, bool]] = {
    "digits-cnn": ("loss", False),
    "mnist-cnn": ("loss", False),
    "shakespeare-lm": ("bits_per_character", False),
    "minilm": ("cosine", True),
    "movielens-dlrm": ("auc", True),
    "magika": ("loss", False),
}
"""The metric of each model that the study improves, and whether larger is better."""

UNIFORM = ("int8:channel", "int6:channel", "int4:group=32,asym", "int4:channel", "kmeans:3")
MIXED = (
    "int2:group=32,asym",
    "int3:group=32,asym",
    "int4:channel",
    "int4:group=32,asym",
    "int6:channel",
    "int8:channel",
)
"""Formats from which the study chooses one for each layer; GPTQ rounds to them."""

TORCHAO = (("int8", "affine"), ("int4", "affine"), ("int4", "hqq_scale_only"), ("int3", "affine"))
GROUP = 32
TABLES = "*embed*"
"""Embedding tables, which are rounded to nearest: their inputs are no vectors."""


@dataclass(frozen=True, kw_only=True)
class Measured:
    """Bits of a weight and quality of compressed weights; ``resamples`` are those of ``test``."""

    bits: float
    search: float
    test: float
    resamples: Floats


@dataclass(frozen=True, kw_only=True)
class Row:
    """A comparator, and the design of our front with at most as many bits."""

    model: str
    metric: str
    weights: str
    bits: float
    search: float
    test: float
    stderr: float
    our_bits: float
    our_search: float
    our_test: float
    gain: float
    gain_stderr: float


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure each model, print its table, and write all rows where a file is given."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("models", nargs="*", metavar="MODEL", help=f"of {', '.join(SHOWN)}")
    parser.add_argument("--measurements", type=int, default=40, help="of each model's study")
    parser.add_argument("-o", "--out", type=Path, help="CSV file of all rows")
    options = parser.parse_args(arguments)
    unknown = sorted(set(options.models) - SHOWN.keys())
    if unknown:
        parser.error(f"there is no model {unknown[0]!r}; the models are {', '.join(SHOWN)}")
    rows = [
        row
        for model in options.models or SHOWN
        for row in measure_model(model, options.measurements)
    ]
    if options.out:
        with options.out.open("w", newline="") as file:
            writer = csv.DictWriter(file, list(Row.__dataclass_fields__))
            writer.writeheader()
            writer.writerows(asdict(row) for row in rows)


def measure_model(model: str, measurements: int) -> list[Row]:
    """Return the rows of a model, and print its table; none if its assets are not installed."""
    begun = os.times()
    try:
        workload_of(model)
    except PluginError as error:
        print(f"left out: {error}", file=sys.stderr)
        return []
    rows = list(compare(model, measurements))
    print("\n".join(table(rows)))
    spent = [after - before for after, before in zip(os.times(), begun, strict=True)]
    print(f"\n{model}: {spent[4]:.0f} s, of which processor {sum(spent[:4]):.0f} s\n", flush=True)
    return rows


def compare(model: str, measurements: int) -> Iterator[Row]:
    """Yield a row for single precision, each uniform format, and each recipe of torchao."""
    front = search_front(model, measurements)
    sign = 1 if SHOWN[model][1] else -1
    for name, comparator in comparators(model):
        affordable = [one for one in front if one[0] <= comparator.bits]
        ours = None
        if affordable:
            _, _, design = max(affordable, key=lambda one: sign * one[1])
            ours = measure_recipes(model, mixed(model)[0].recipes(design))
        gains = np.zeros(1) if ours is None else sign * (ours.resamples - comparator.resamples)
        yield Row(
            model=model,
            metric=SHOWN[model][0],
            weights=name,
            bits=comparator.bits,
            search=comparator.search,
            test=comparator.test,
            stderr=float(comparator.resamples.std()),
            our_bits=np.nan if ours is None else ours.bits,
            our_search=np.nan if ours is None else ours.search,
            our_test=np.nan if ours is None else ours.test,
            gain=np.nan if ours is None else sign * (ours.test - comparator.test),
            gain_stderr=float(gains.std()),
        )


def comparators(model: str) -> Iterator[tuple[str, Measured]]:
    """Yield the models that ours are compared with, by name."""
    layers = model_of(model).layers
    yield "fp32", measure_recipes(model, dict.fromkeys(layers, "keep"))
    for text in UNIFORM:
        yield text, measure_recipes(model, dict.fromkeys(layers, written("format", text)))
    gptq, _, space = mixed(model)
    for text in ("int4:group=32,asym", "int3:group=32,asym"):
        recipes = gptq.recipes(dict.fromkeys(space, text))
        yield f"gptq {text}", measure_recipes(model, recipes)
    for element, algorithm in TORCHAO:
        values, bits = quantize_with_torchao(model, element, algorithm)
        suffix = "" if algorithm == "affine" else f", {algorithm}"
        yield f"torchao {element}{suffix}", measure_weights(model, values, bits)


# --- our front -----------------------------------------------------------------------------------


def search_front(model: str, measurements: int) -> list[tuple[float, float, Design]]:
    """Return bits, quality on ``search`` and design of the front of a study of the model."""
    metric, is_gain = SHOWN[model]
    options, space = mixed(model)[1:]
    rounded = {key: _round_to_nearest(one) for key, one in options.items()}
    better = {"maximize" if is_gain else "minimize": [f"quality.{metric}"]}
    better["minimize"] = ["size.bits_per_weight", *better.get("minimize", [])]
    study = Study(
        f"mixed-{model}",
        space,
        evaluators={
            "size": {"use": "compression.size", "model": model, **rounded},
            "noise": {"use": "compression.noise", "model": model, **rounded},
            "quality": {"use": "compression.recipe", "model": model, **options},
        },
        **better,
        baselines={f"uniform{n}": dict.fromkeys(space, text) for n, text in enumerate(MIXED)},
        optimizer="auto",
        judge="none",
        seed=0,
        storage="memory://",
    )
    study.run(measurements=measurements)
    failed = [trial for trial in study.trials if trial.failure is not None]
    if failed:
        raise SystemExit(f"{model}: {len(failed)} designs failed: {failed[0].failure}")
    size, quality = "size.bits_per_weight", f"quality.{metric}"
    return [(one.metrics[size], one.metrics[quality], one.design) for one in study.front]


@cache
def mixed(model: str) -> tuple[ByRecipe, dict[str, object], dict[str, object]]:
    """Return the evaluator, its options, and the space of a format for each layer."""
    tables = [name for name in model_of(model).layers if "embed" in name]
    others = len(model_of(model).layers) - len(tables)
    options: dict[str, object] = {"recipe": written("gptq", "{format}")}
    space: dict[str, object] = {"format": {"each": others, "choice": list(MIXED)}}
    if tables:
        options["layers"] = {TABLES: written("format", "{table}")}
        space["table"] = {"each": len(tables), "choice": list(MIXED)}
    return ByRecipe(model=model, **options), options, space  # type: ignore[arg-type]


def _round_to_nearest(option: object) -> object:
    """Return a recipe, or recipes by pattern, without GPTQ, which has no other size."""
    if isinstance(option, str):
        return option.replace("gptq ", "format ")
    return {key: _round_to_nearest(one) for key, one in option.items()}  # type: ignore[attr-defined]


def written(operator: str, text: str) -> str:
    """Return a recipe whose last block of a row may be short."""
    return f"{operator} {text}{',' if ':' in text or '{' in text else ':'}tail=short"


# --- torchao -------------------------------------------------------------------------------------


def quantize_with_torchao(
    model: str, element: str, algorithm: str
) -> tuple[dict[str, Single], float]:
    """Return the layers' weights as torchao decodes them, and the bits of a weight.

    Groups of 32 have scales of 16 bits; rows of 8-bit numbers, and rows that 32 does not divide,
    have one scale each.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from torchao.quantization import IntxWeightOnlyConfig, PerAxis, PerGroup, quantize_
    weights = {name: workload_of(model).parameters[name] for name in model_of(model).layers}
    decoded, bits = {}, 0.0
    for name, weight in weights.items():
        matrix = torch.from_numpy(np.array(weight.reshape(len(weight), -1)))
        is_grouped = element != "int8" and matrix.shape[1] % GROUP == 0
        layer = torch.nn.Linear(matrix.shape[1], len(matrix), bias=False)
        layer.weight = torch.nn.Parameter(matrix)
        config = IntxWeightOnlyConfig(
            weight_dtype=getattr(torch, element),
            granularity=PerGroup(GROUP) if is_grouped else PerAxis(0),
            scale_dtype=torch.float16,
            intx_choose_qparams_algorithm=algorithm,
        )
        quantize_(layer, config)
        values = layer.weight.dequantize().detach().to(torch.float32).numpy()
        decoded[name] = values.reshape(weight.shape)
        scales = matrix.numel() // GROUP if is_grouped else len(matrix)
        bits += int(element[3:]) * weight.size + 16 * scales
    return decoded, bits / count(model)


# --- measurement ---------------------------------------------------------------------------------


def measure_recipes(model: str, recipes: Mapping[str, str]) -> Measured:
    """Return bits and quality of the model under a recipe for each layer."""
    evaluator = ByRecipe(model=model, layers=dict(recipes))
    bits = evaluator._measure_design({})["bits_per_weight"]  # noqa: SLF001 - of one design
    given = {split: outputs(model, recipes, split, Signals()) for split in ("search", "test")}
    return judge(model, given, bits)


def measure_weights(model: str, weights: Mapping[str, Single], bits: float) -> Measured:
    """Return bits and quality of the model with these weights in place of its own."""
    workload = workload_of(model)
    parameters = {**workload.parameters, **weights}
    with threadpool_limits(limits=1):
        given = {
            split: workload.outputs(parameters, split, Signals()) for split in ("search", "test")
        }
    return judge(model, given, bits)


def judge(model: str, given: Mapping[str, Single], bits: float) -> Measured:
    """Return the quality of outputs on both splits, and on resamples of the test split."""
    workload, metric = workload_of(model), SHOWN[model][0]
    recipes = dict.fromkeys(model_of(model).layers, "keep")
    found, resamples = {}, np.zeros(1)
    for split, one in given.items():
        whole = outputs(model, recipes, split, Signals())
        found[split] = workload.quality(one, whole, split)[metric]
        if split == "test":
            resamples = resample_quality(workload, one, whole, split)[metric]
    return Measured(bits=bits, search=found["search"], test=found["test"], resamples=resamples)


def table(rows: Sequence[Row]) -> Iterator[str]:
    """Yield the lines of a model's table."""
    metric = rows[0].metric
    better = "larger" if SHOWN[rows[0].model][1] else "smaller"
    yield f"### {rows[0].model}: {metric}, {better} is better\n"
    yield (
        "| weights | bits a weight | search | test | ours: bits | search | test | gain on test |\n"
        "|---|---|---|---|---|---|---|---|"
    )
    for row in rows:
        yield (
            f"| {row.weights} | {row.bits:.2f} | {row.search:.4f} "
            f"| {row.test:.4f} ± {row.stderr:.4f} | {row.our_bits:.2f} | {row.our_search:.4f} "
            f"| {row.our_test:.4f} | {row.gain:+.4f} ± {row.gain_stderr:.4f} |"
        )


if __name__ == "__main__":
    main()
