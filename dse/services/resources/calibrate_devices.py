"""Calibration of a user's device or system, as a file that studies name."""

from __future__ import annotations

from os import PathLike
from pathlib import Path

from dse.errors import PluginError, SpecError
from dse.protocols import CalibrationResult, HasCalibration
from dse.registry import load

SUFFIXES = (".yaml", ".yml")


def calibrate_devices(
    measurements: str | PathLike[str], output: str | PathLike[str], *, like: str
) -> CalibrationResult:
    """Fit the constants of a device to measured GEMMs, and write them as a YAML file.

    Evaluators accept the path of the file as ``device``. Formats and stacks whose measurements do
    not determine the constants are left out; the result names what to measure next.

    Args:
        measurements: CSV file with the columns m, n, k, dtype and a time such as ``time_us``.
        output: YAML file to write.
        like: name of the built-in device with the data sheet of the measured one.

    Returns:
        The contents of the file, held-out errors, and what was left out.

    Raises:
        DseError: a row is invalid, no format can be fitted, or the file cannot be written.

    Example:
        ``dse.calibrate_devices("products.csv", "my-h100.yaml", like="h100-sxm")``
    """
    return _calibrate("accelerators.gemm", measurements, output, like)


def calibrate_serving(
    measurements: str | PathLike[str], output: str | PathLike[str], *, like: str
) -> CalibrationResult:
    """Fit the constants of a device to measurements of LLM serving; write them as a YAML file.

    Evaluators accept the path of the file as ``device``.

    Args:
        measurements: CSV file with the columns model, tp, batch, isl, osl and ``tpot_ms``, or
            results of ``vllm bench serve --save-result``.
        output: YAML file to write.
        like: name of the built-in device that was measured.

    Returns:
        The contents of the file, held-out errors, and the constants that stay near their prior.

    Raises:
        DseError: a row is invalid, the rows do not determine a fit, or the file cannot be written.

    Example:
        ``dse.calibrate_serving("rows.csv", "my-h100.yaml", like="h100-sxm")``
    """
    return _calibrate("clusters.serving", measurements, output, like)


def calibrate_training(
    measurements: str | PathLike[str], output: str | PathLike[str], *, like: str
) -> CalibrationResult:
    """Fit the constants of a system to measured training steps, and write them as a YAML file.

    Evaluators accept the path of the file as ``system``.

    Args:
        measurements: CSV file with the columns model, tp, pp, dp, microbatch, global_batch and
            ``step_time_s``.
        output: YAML file to write.
        like: name of the built-in system that was measured.

    Returns:
        The contents of the file, held-out errors, and the constants that stay near their prior.

    Raises:
        DseError: a row is invalid, the rows do not determine a fit, or the file cannot be written.

    Example:
        ``dse.calibrate_training("steps.csv", "my-cluster.yaml", like="h100-dgx")``
    """
    return _calibrate("clusters.training", measurements, output, like)


def calibrate_collectives(
    measurements: str | PathLike[str], output: str | PathLike[str], *, like: str
) -> CalibrationResult:
    """Fit a system's collectives within a node to measured ones, and write them as a YAML file.

    Evaluators accept the path of the file as ``system``.

    Args:
        measurements: output of NCCL's or RCCL's tests, such as ``all_reduce_perf``, or a CSV file
            with the columns collective, ranks, size_bytes and ``time_us``.
        output: YAML file to write.
        like: name of the built-in system that was measured.

    Returns:
        The contents of the file, errors on held-out sizes, and what was left out.

    Raises:
        DseError: a row is invalid, no collective can be fitted, or the file cannot be written.

    Example:
        ``dse.calibrate_collectives("nccl.txt", "my-node.yaml", like="h100-dgx")``
    """
    return _calibrate("clusters.collective", measurements, output, like)


def _calibrate(
    name: str, measurements: str | PathLike[str], output: str | PathLike[str], like: str
) -> CalibrationResult:
    import yaml  # slow to import

    from dse.report.json.atomic_file import write_whole

    target = Path(output)
    if target.suffix not in SUFFIXES:
        raise SpecError(f"the output {target} is no YAML file", hint=f"{target.stem}.yaml")
    evaluator = load("evaluators", name)
    if not isinstance(evaluator, HasCalibration):
        raise PluginError(f"the evaluator {name!r} installed here cannot be calibrated")
    found = evaluator.calibrate(Path(measurements), like)
    write_whole(target, yaml.safe_dump(dict(found.contents), sort_keys=False))
    return found
