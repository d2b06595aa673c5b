"""Number formats on real models: quality on both splits, bits, and seconds an evaluation.

    python benchmarks/real_formats.py -o real_formats.csv --readme evaluators/README.md

Models whose assets are not installed are left out, and named. What is in the file already is
skipped, so the command can be ended and started again; the table is of all that is in the file,
and is written between the markers of the README. Seconds are of the processor, in one thread.
"""

from __future__ import annotations

import argparse
import csv
import statistics
import sys
import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path

from dse.core.batch import Batch
from dse.errors import PluginError
from dse_evaluators.compression.recipe_evaluator import SIZES, ByRecipe
from dse_evaluators.workloads.judging import METRICS as QUALITY
from dse_evaluators.workloads.models import MODELS, workload_of
from dse_evaluators.workloads.workload import SPLITS

KEEP = "keep"
METRICS = (*QUALITY, *SIZES)
FORMATS = (
    "int8",
    "int8:channel",
    "adaptivfloat:8,3",
    "posit:8,1,rms",
    "fp:e4m3,channel",
    "mx:e4m3",
    "int6:channel",
    "mx:e2m3",
    "nf4",
    "int4:group=32,asym",
    "nvfp4",
    "nxfp:4",
    "mx:e2m1",
    "int4:channel",
    "int4:channel,mse",
    "int4",
    "adaptivfloat:4,2",
    "adaptivfloat:4,3",
    "fp:e2m1,channel",
    "log:4",
    "kmeans:4",
    "int3:group=32,asym",
    "bfp:m2,b16",
    "kmeans:3",
    "int2:group=32,asym",
    "kmeans:2",
    "ternary",
    "binary",
)
"""Short blocks at the ends of rows are allowed: not all layers are as wide as a block."""

SHOWN: Mapping[str, tuple[tuple[str, str], ...]] = {
    "digits-cnn": (("accuracy", "digits accuracy"),),
    "mnist-cnn": (("accuracy", "MNIST accuracy"),),
    "shakespeare-lm": (("bits_per_character", "LM bits a character"),),
    "minilm": (("spearman", "MiniLM WordSim"), ("cosine", "MiniLM cosine")),
    "movielens-dlrm": (("auc", "DLRM AUC"),),
    "magika": (("accuracy", "magika accuracy"), ("mismatch", "magika mismatch")),
}
"""What the table shows of each model, and as what."""

BEGIN, END = "<!-- real models: begin -->", "<!-- real models: end -->"
Row = dict[str, str | float]
Key = tuple[str, str, str]  # model, split, format
DESIGN = Batch.of([{"nothing": 0}])  # the recipe stands in the evaluator's options


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure all, write the file, and the table where a README is given."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("-o", "--out", type=Path, default=Path("real_formats.csv"))
    parser.add_argument("--readme", type=Path, help="where the table goes")
    parser.add_argument("--model", action="append", choices=MODELS, help="only these")
    options = parser.parse_args(arguments)
    for model in options.model or MODELS:
        for row in measured(model, {key(row) for row in read(options.out)}):
            append(options.out, row)
    rows = read(options.out)
    table = "\n".join(lines(rows))
    print(table)
    if options.readme:
        text = options.readme.read_text()
        before, _, rest = text.partition(BEGIN)
        after = rest.partition(END)[2]
        options.readme.write_text(f"{before}{BEGIN}\n{table}\n{END}{after}")


def measured(model: str, done: Collection[Key]) -> Iterator[Row]:
    """Each format on each split that is not done, the first time and once it is kept."""
    left = [(split, text) for split in SPLITS for text in (KEEP, *FORMATS)]
    left = [one for one in left if (model, *one) not in done]
    try:
        workload_of(model)
    except PluginError as error:
        print(f"left out: {error}", file=sys.stderr)
        return
    for split, text in left:
        evaluator = ByRecipe(model=model, recipe=recipe(text), split=split)
        begun_s = time.process_time()
        found = evaluator.evaluate(DESIGN)
        again_s = time.process_time()
        evaluator.evaluate(DESIGN)
        done_s = time.process_time()
        if found.failures:
            print(f"{model}, {text}: {found.failures[0].reason}", file=sys.stderr)
            continue
        told = {name: float(column[0]) for name, column in found.columns.items()}
        row: Row = {"model": model, "split": split, "format": text, **dict.fromkeys(METRICS, "")}
        yield {**row, **told, "first_s": again_s - begun_s, "again_s": done_s - again_s}


def recipe(text: str) -> str:
    """The recipe of a format, with short blocks allowed at the ends of rows."""
    if text == KEEP:
        return KEEP
    return f"format {text}{',' if ':' in text else ':'}tail=short"


def key(row: Row) -> Key:
    """Which measurement a row is."""
    return str(row["model"]), str(row["split"]), str(row["format"])


def read(path: Path) -> list[Row]:
    """The rows of the file, if there is one."""
    if not path.exists():
        return []
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def append(path: Path, row: Row) -> None:
    """One more row; what a model does not tell is blank."""
    new = not path.exists()
    with path.open("a", newline="") as file:
        writer = csv.DictWriter(file, list(row))
        if new:
            writer.writeheader()
        writer.writerow(row)


def lines(rows: Sequence[Row]) -> Iterator[str]:
    """The table: a line for each format, search / test in each cell, and the seconds."""
    by_place = {key(row): row for row in rows}
    models = [model for model in SHOWN if any(row["model"] == model for row in rows)]
    shown = [(model, metric, head) for model in models for metric, head in SHOWN[model]]
    yield "| format | bits a weight | " + " | ".join(head for *_, head in shown) + " |"
    yield "|---" * (len(shown) + 2) + "|"
    for text in (KEEP, *FORMATS):
        bits = [float(row["bits_per_weight"]) for row in rows if row["format"] == text]
        if not bits:
            continue
        low, high = (f"{end:.2f}" for end in (min(bits), max(bits)))
        cells = [_cell(by_place, model, metric, text) for model, metric, _ in shown]
        span = low if low == high else f"{low} to {high}"
        yield f"| {'fp32' if text == KEEP else f'`{text}`'} | {span} | {' | '.join(cells)} |"
    seconds = {model: [r for r in rows if r["model"] == model] for model in models}
    times = [f"{_median(seconds[m], 'first_s')} / {_median(seconds[m], 'again_s')}" for m in models]
    yield ""
    yield (
        "Processor seconds of an evaluation (median), compressing / layers kept: "
        + "; ".join(f"{model} {time_s}" for model, time_s in zip(models, times, strict=True))
    )


def _cell(rows: Mapping[tuple[str | float, ...], Row], model: str, metric: str, text: str) -> str:
    found = [rows.get((model, split, text)) for split in SPLITS]
    return " / ".join("-" if row is None else f"{float(row[metric]):.3f}" for row in found)


def _median(rows: Sequence[Row], name: str) -> str:
    return f"{statistics.median(float(row[name]) for row in rows):.2f}"


if __name__ == "__main__":
    main()
