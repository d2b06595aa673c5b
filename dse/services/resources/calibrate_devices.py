"""Calibration of a user's device, as a file that studies name."""

from __future__ import annotations

from os import PathLike
from pathlib import Path

from dse.errors import PluginError, SpecError
from dse.protocols import CalibrationResult, HasCalibration
from dse.registry import load

EVALUATOR = "accelerators.gemm"

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
    import yaml  # slow to import

    from dse.report.json.atomic_file import write_whole

    target = Path(output)
    if target.suffix not in SUFFIXES:
        raise SpecError(f"the output {target} is no YAML file", hint=f"{target.stem}.yaml")
    evaluator = load("evaluators", EVALUATOR)
    if not isinstance(evaluator, HasCalibration):
        raise PluginError(f"the evaluator {EVALUATOR!r} installed here cannot be calibrated")
    found = evaluator.calibrate(Path(measurements), like)
    write_whole(target, yaml.safe_dump(dict(found.contents), sort_keys=False))
    return found
