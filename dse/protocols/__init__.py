"""Interfaces of the four kinds of plug-ins: evaluators, optimizers, executors and storages.

Each protocol lists laws: requirements that every implementation must meet. Each law has a contract
test in :mod:`dse.testing`.
"""

import warnings

from dse.protocols.calibration import CalibrationError, CalibrationResult, HasCalibration
from dse.protocols.deployment import (
    DeployedModel,
    DeployedTensor,
    HasDeployedModel,
    HasFolderCompression,
    Quantization,
)
from dse.protocols.evaluator import (
    COHERENT,
    EVERYTHING,
    ChecksProgram,
    ChecksValues,
    DeclaresParts,
    DeclaresPurity,
    DescribesInputs,
    Evaluator,
    ExpandsFormulas,
    ExplainsAbsentMetrics,
    HasFormerMetrics,
    HasFormulas,
    HasHeldOutErrors,
    HasNotes,
    HeldOutError,
    InputDescription,
    MayBeMissing,
    ReadsByMetric,
    StartsPrograms,
    absent_metrics,
    declared_parts,
    former_options,
    formulas_of,
    inputs_by_metric,
    is_pure,
    missing_reason,
    started_programs,
    user_options,
    written_formulas_of,
)
from dse.protocols.executor import (
    EndedByCaller,
    Executor,
    HasEvents,
    Needs,
    NeedsResources,
    ReportsBegin,
    ReportsIntermediate,
    Task,
    WaitsForTurn,
    Work,
)
from dse.protocols.held_out_split import RESAMPLE, HasTestSplit, find_test_evaluator
from dse.protocols.learning import (
    HasLearning,
    HasRegression,
    InputImportance,
    LearnedMetric,
    LearningResult,
    MetricPrediction,
    Regression,
)
from dse.protocols.model_error import ErrorOrigin, ModelError, StatesModelErrors
from dse.protocols.optimizer import (
    AdjustsEffort,
    ExpectsImprovement,
    Optimizer,
    OptimizerTraits,
    PredictsMetrics,
    ReportsProgress,
    SeeksFavourite,
    traits_of,
)
from dse.protocols.storage import (
    NEW,
    PLAIN,
    DriverStorage,
    EventStorage,
    Queueing,
    Storage,
    StudyReader,
    StudyStorage,
    SupportsReading,
    SupportsSummaries,
    TrialStorage,
)
from dse.protocols.trained_weights import HasTrainedWeights, weights_trained_for
from dse.system.deprecation import UNTIL

__all__ = [
    "COHERENT",
    "EVERYTHING",
    "NEW",
    "PLAIN",
    "RESAMPLE",
    "AdjustsEffort",
    "CalibrationError",
    "CalibrationResult",
    "ChecksProgram",
    "ChecksValues",
    "DeclaresParts",
    "DeclaresPurity",
    "DeployedModel",
    "DeployedTensor",
    "DescribesInputs",
    "DriverStorage",
    "EndedByCaller",
    "ErrorOrigin",
    "Evaluator",
    "EventStorage",
    "Executor",
    "ExpandsFormulas",
    "ExpectsImprovement",
    "ExplainsAbsentMetrics",
    "HasCalibration",
    "HasDeployedModel",
    "HasEvents",
    "HasFolderCompression",
    "HasFormerMetrics",
    "HasFormulas",
    "HasHeldOutErrors",
    "HasLearning",
    "HasNotes",
    "HasRegression",
    "HasTestSplit",
    "HasTrainedWeights",
    "HeldOutError",
    "InputDescription",
    "InputImportance",
    "LearnedMetric",
    "LearningResult",
    "MayBeMissing",
    "MetricPrediction",
    "ModelError",
    "Needs",
    "NeedsResources",
    "Optimizer",
    "OptimizerTraits",
    "PredictsMetrics",
    "Quantization",
    "Queueing",
    "ReadsByMetric",
    "Regression",
    "ReportsBegin",
    "ReportsIntermediate",
    "ReportsProgress",
    "SeeksFavourite",
    "StartsPrograms",
    "StatesModelErrors",
    "Storage",
    "StudyReader",
    "StudyStorage",
    "SupportsReading",
    "SupportsSummaries",
    "Task",
    "TrialStorage",
    "WaitsForTurn",
    "Work",
    "absent_metrics",
    "declared_parts",
    "find_test_evaluator",
    "former_options",
    "formulas_of",
    "inputs_by_metric",
    "is_pure",
    "missing_reason",
    "started_programs",
    "traits_of",
    "user_options",
    "weights_trained_for",
    "written_formulas_of",
]


def __getattr__(name: str) -> object:
    """Return a class by its former name, with a warning."""
    if name not in _FORMER:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    present = _FORMER[name]
    text = f"{__name__}.{name} is {present} now; it is found until {UNTIL}"
    warnings.warn(text, DeprecationWarning, stacklevel=2)
    return globals()[present]


_FORMER = {"MetricBelief": "MetricPrediction"}
