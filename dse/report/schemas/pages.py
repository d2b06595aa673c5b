"""JSON schemas of commands that write files or check an installation."""

from __future__ import annotations

from typing import Literal

from dse.report.schemas.base import Shape


class WrittenReport(Shape):
    """Report page that a command wrote to a file."""

    file: str
    """The file."""
    studies: list[str]
    """The studies that it covers, as they were named in the command."""
    size_bytes: int
    """Its size in bytes."""


class DeployedBytes(Shape):
    """Bytes for one purpose: as the study counts them, and in the file."""

    purpose: str
    """`codes`, `scales` (with zero points), `unquantized`, `headers` or `total`."""
    study_bytes: float | None
    """As the study's metric counts them; null if the evaluator has no such metric."""
    file_bytes: int
    """In the file."""


class DeployedTrial(Shape):
    """Compressed model or settings of a trial that `dse deploy` wrote to files."""

    study: str
    """The study's name."""
    trial: int
    """The trial."""
    target: str
    """The file format."""
    files: list[str]
    """The written files; the first one holds the weights."""
    sizes: list[DeployedBytes]
    """Bytes by purpose, the total last."""
    notes: list[str]
    """How the files differ from what the study measured."""
    flags: dict[str, int | float | str | bool]
    """Flags of the program, if settings were written."""
    missing: dict[str, str]
    """The value of each setting that no flag expresses, and why."""


class TensorBytes(Shape):
    """Bytes of a compressed folder's tensors that serve one purpose."""

    purpose: str
    """The purpose, such as weights or scales."""
    bytes: int
    """The bytes in the files."""


class CompressedFolder(Shape):
    """Compressed model that `dse compress` wrote to a folder."""

    folder: str
    """The folder that was written."""
    recipe: str
    """The recipe of the blocks' layers."""
    files: list[str]
    """The written files."""
    tensors: list[TensorBytes]
    """Bytes of the tensors by purpose."""


class ImportanceFacts(Shape):
    """Permutation importance of an input."""

    input: str
    """The input."""
    rise: float
    """Increase of the mean relative error on held-out runs: 0.1 is 10 points."""
    stderr: float
    """Standard error of the increase."""


class LearnedMetricFacts(Shape):
    """Regression of a metric, with its errors on held-out runs."""

    metric: str
    """Name of the metric."""
    unit: str
    """Unit of the metric."""
    model: str
    """The regression that was chosen."""
    runs: int
    """Different designs that have the metric."""
    held_out: int
    """Held-out runs."""
    mean: float
    """Mean relative error."""
    largest: float
    """Largest relative error."""
    spearman: float
    """Rank correlation of predictions and runs."""
    coverage: float
    """Share of held-out runs inside the 90 % band."""
    group: str | None
    """Column whose groups were held out as a whole; null without one."""
    importances: list[ImportanceFacts]
    """Permutation importance of the inputs, largest first."""


class LearnedFile(Shape):
    """Regressions that `dse learn` fitted to runs."""

    file: str | None
    """The written file; null without one."""
    metrics: list[LearnedMetricFacts]
    """The learned metrics."""
    notes: list[str]
    """What was done with the runs."""


class CalibrationAccuracy(Shape):
    """Relative errors of the calibrated constants on points held out from the fit."""

    group: str
    """Number format and software stack."""
    split: str
    """What was held out together: shape or model."""
    points: int
    """Held-out points."""
    mean: float
    """Mean relative error."""
    median: float
    """Median relative error."""
    naive_mean: float
    """Mean relative error of the data sheet alone on the same points."""


class CalibratedDevice(Shape):
    """Device that `dse calibrate devices` fitted to measurements."""

    file: str
    """The YAML file that was written."""
    errors: list[CalibrationAccuracy]
    """Held-out errors by group."""
    refused: list[str]
    """Groups that were not fitted, with the reason and what to measure next."""
    notes: list[str]
    """Constants of fitted groups that stay near their prior, and what to measure."""


class BegunFolder(Shape):
    """Folder that `dse init` wrote, with the files of a first study."""

    study: str
    """Its name."""
    folder: str
    """Where it was written."""
    files: list[str]
    """The files in that folder."""


class FindingFacts(Shape):
    """Result of checking one part of an installation."""

    part: str
    """The part that was checked."""
    verdict: Literal["fine", "absent", "broken"]
    """`absent`: some studies need it, all others run without it; `broken`: it must be fixed."""
    told: str
    """What was found."""
    mend: str
    """How to fix it; empty where it is fine."""
    study: str
    """The study with damaged rows; empty for other findings."""
