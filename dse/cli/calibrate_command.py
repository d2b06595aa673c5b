"""``dse calibrate``: fit constants of models to the user's measurements."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dse.cli.options import JsonOrTableOption, OutputFormat, say, show, show_json

if TYPE_CHECKING:
    from dse.protocols import CalibrationResult
    from dse.report.schemas.pages import CalibratedDevice


def calibrate_devices(
    measurements: Annotated[
        Path, typer.Argument(help="CSV file: m, n, k, dtype and a time such as time_us.")
    ],
    *,
    like: Annotated[
        str, typer.Option(help="Built-in device with the same data sheet.", show_default=False)
    ],
    target: Annotated[
        Path, typer.Option("--output", "-o", help="YAML file to write.", show_default=False)
    ],
    output: JsonOrTableOption = OutputFormat.TABLE,
) -> None:
    """Fit the constants of a device to measured GEMMs.

    Studies name the file as `device: ./my-h100.yaml`. Constants that the measurements do not
    determine are left out; the output states what to measure for them.

    Example: dse calibrate devices products.csv --like h100-sxm -o my-h100.yaml
    """
    from dse.services.resources.calibrate_devices import calibrate_devices as calibrate

    found = calibrate(measurements, target, like=like)
    _show_result(found, target, output, "data sheet alone")


def calibrate_serving(
    measurements: Annotated[
        Path,
        typer.Argument(help="CSV file: model, tp, batch, isl, osl, tpot_ms; or vllm bench JSON."),
    ],
    *,
    like: Annotated[str, typer.Option(help="Built-in device that served.", show_default=False)],
    target: Annotated[
        Path, typer.Option("--output", "-o", help="YAML file to write.", show_default=False)
    ],
    output: JsonOrTableOption = OutputFormat.TABLE,
) -> None:
    """Fit the constants of a device to measurements of LLM serving.

    Studies name the file as `device: ./my-h100.yaml`. Three constants are fitted to the times per
    token: the achieved shares of the peak compute rate and of the memory bandwidth, and the launch
    time.

    Example: dse calibrate serving rows.csv --like h100-sxm -o my-h100.yaml
    """
    from dse.services.resources.calibrate_devices import calibrate_serving as calibrate

    found = calibrate(measurements, target, like=like)
    _show_result(found, target, output, "shipped constants")


def calibrate_training(
    measurements: Annotated[
        Path,
        typer.Argument(help="CSV file: model, tp, pp, dp, microbatch, global_batch, step_time_s."),
    ],
    *,
    like: Annotated[str, typer.Option(help="Built-in system that trained.", show_default=False)],
    target: Annotated[
        Path, typer.Option("--output", "-o", help="YAML file to write.", show_default=False)
    ],
    output: JsonOrTableOption = OutputFormat.TABLE,
) -> None:
    """Fit the constants of a system to measured training steps.

    Studies name the file as `system: ./my-cluster.yaml`. Three constants are fitted to the times
    per step: the achieved shares of the peak compute rate and of the memory bandwidth, and the
    launch time.

    Example: dse calibrate training steps.csv --like h100-dgx -o my-cluster.yaml
    """
    from dse.services.resources.calibrate_devices import calibrate_training as calibrate

    found = calibrate(measurements, target, like=like)
    _show_result(found, target, output, "shipped constants")


def calibrate_collectives(
    measurements: Annotated[
        Path,
        typer.Argument(help="Output of NCCL's tests, or CSV: collective, ranks, size_bytes, time."),
    ],
    *,
    like: Annotated[str, typer.Option(help="Built-in system of the node.", show_default=False)],
    target: Annotated[
        Path, typer.Option("--output", "-o", help="YAML file to write.", show_default=False)
    ],
    output: JsonOrTableOption = OutputFormat.TABLE,
) -> None:
    """Fit a system's collectives within a node to the output of NCCL's tests.

    Studies name the file as `system: ./my-node.yaml`. Latency, bandwidth and pipelining are fitted
    for each collective and number of ranks.

    Example: dse calibrate collectives nccl.txt --like h100-dgx -o my-node.yaml
    """
    from dse.services.resources.calibrate_devices import calibrate_collectives as calibrate

    found = calibrate(measurements, target, like=like)
    _show_result(found, target, output, "shipped constants")


def _show_result(found: CalibrationResult, target: Path, output: OutputFormat, naive: str) -> None:
    """Print the held-out errors of the fit, next to those of the baseline that ``naive`` names."""
    if output is OutputFormat.JSON:
        printed: CalibratedDevice = {
            "file": str(target),
            "errors": [
                {
                    "group": one.group,
                    "split": one.split,
                    "points": one.points,
                    "mean": one.mean,
                    "median": one.median,
                    "naive_mean": one.naive_mean,
                }
                for one in found.errors
            ],
            "refused": list(found.refused),
            "notes": list(found.notes),
        }
        show_json(printed)
        return
    show(f"held-out error                 points    mean  median  {naive}")
    for one in found.errors:
        group = f"{one.group}, by {one.split}"
        shares = f"{one.mean:7.1%} {one.median:7.1%} {one.naive_mean:{len(naive) + 1}.1%}"
        show(f"{group:<30} {one.points:>6} {shares}")
    for text in found.refused:
        say(f"left out: {text}")
    for text in found.notes:
        say(f"note: {text}")
    say(f"wrote {target}")
