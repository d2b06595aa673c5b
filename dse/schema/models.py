"""Schema of the study file: one model for each of its sections."""

from __future__ import annotations

import re
from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, model_validator

from dse.core.expressions.parser import RESERVED

NAME = r"\w[\w.\- ]*"
"""Regular expression of a study's name, which must be valid in file names and as an argument."""

Scalar = bool | int | float | str
Quantity = int | float | str
"""Number with or without a unit: ``20``, ``64 KiB``."""


class Model(BaseModel):
    """Base model of the mappings in a study or space file; unknown keys are errors."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True, defer_build=True)


def default_to_list(value: Any) -> Any:
    """Return an empty list in place of ``None``, which YAML yields for a key without a value."""
    return [] if value is None else value


Rules = Annotated[list[str], BeforeValidator(default_to_list)]


class ObjectiveSpec(Model):
    """Objective: ``minimize:`` or ``maximize:`` an expression over metrics, with a ``label``.

    With ``scale: log`` the objective's logarithm is optimised, so that equal ratios of values are
    equal steps; values must be positive. ``display`` is the unit in which tables and figures show
    it.
    """

    minimize: str | None = None
    maximize: str | None = None
    label: str | None = Field(default=None, min_length=1, max_length=40)
    scale: Literal["linear", "log"] | None = None
    display: str | None = Field(default=None, min_length=1, max_length=40)

    @model_validator(mode="after")
    def _one_goal(self) -> ObjectiveSpec:
        if (self.minimize is None) == (self.maximize is None):
            raise ValueError("an objective is either 'minimize: ...' or 'maximize: ...'")
        return self


class PluginSpec(BaseModel):
    """Plug-in named by ``use:``; all other keys are its options."""

    model_config = ConfigDict(extra="allow", strict=True, frozen=True, defer_build=True)

    use: str

    @property
    def options(self) -> dict[str, Any]:
        return dict(self.model_extra or {})


class OptimizerSpec(PluginSpec):
    """Optimizer with its options; ``thinking`` is used by the study and not passed to the plug-in.

    ``thinking`` is the maximum cost of a suggestion, as a share of the cost of a measurement.
    """

    thinking: Quantity | None = None

    @staticmethod
    def of(spec: PluginSpec) -> OptimizerSpec:
        """Return the settings of a plug-in as those of an optimizer."""
        return spec if isinstance(spec, OptimizerSpec) else OptimizerSpec(**spec.model_dump())

    @property
    def entry(self) -> dict[str, Any]:
        """Settings of the optimizer as a study file has them: ``use`` and the options."""
        own = {} if self.thinking is None else {"thinking": self.thinking}
        return {"use": self.use, **self.options, **own}


class ReplicatesSpec(Model):
    """Replicates of a stochastic evaluator; its input ``seed_input`` gets the replicate's index."""

    count: int = Field(ge=2, le=100_000)
    seed_input: str = "seed"
    quantiles: list[Annotated[float, Field(gt=0, lt=1)]] = []


class ResourcesSpec(Model):
    """CPUs, GPUs, memory and ``custom`` resources that one run of an evaluator occupies.

    ``custom`` maps names of resources that cluster nodes offer to the required amounts.
    """

    cpu: float | None = Field(default=None, gt=0, le=100_000)
    gpu: float | None = Field(default=None, ge=0, le=100_000)
    memory: Quantity | None = None
    custom: dict[str, Annotated[float, Field(gt=0, le=100_000)]] = {}


EVERY_METRIC = "*"
"""Key of the declaration of parts that holds for all metrics of an evaluator."""


class PartsSpec(Model):
    """Declaration that a measured metric is approximately a sum of terms, one per group.

    ``over`` names the lists and parameters whose members are the groups; the names in an inner list
    form one group together. ``by`` is the feature of a term: a modelled metric, or a formula.
    """

    over: str | Annotated[list[str | list[str]], Field(min_length=1)]
    by: str | None = None
    monotone: bool = True


def _parts(value: Any) -> Any:
    whole = isinstance(value, dict) and value.keys() & PartsSpec.model_fields.keys()
    return {EVERY_METRIC: value} if whole else value


class EvaluatorSpec(PluginSpec):
    """Evaluator; ``bind`` maps its inputs to parameters or metrics where the names differ.

    An ``exclusive`` evaluator runs alone on its machine. ``parts`` declares that its metrics, or
    some of them by name, are sums over groups of parameters; an empty mapping revokes the
    declaration that the evaluator itself makes.
    """

    bind: dict[str, str] = {}
    parts: Annotated[dict[str, PartsSpec], BeforeValidator(_parts)] | None = None
    replicates: ReplicatesSpec | None = None
    resources: ResourcesSpec = ResourcesSpec()
    exclusive: bool = False


class ScenarioSpec(BaseModel):
    """Scenario: for each evaluator that it changes, by label, the options that differ.

    ``values`` fixes inputs of evaluators, by input name; ``weight`` is for means over scenarios.
    """

    model_config = ConfigDict(extra="allow", strict=True, frozen=True, defer_build=True)
    __pydantic_extra__: dict[str, dict[str, Any]] = Field(init=False)

    weight: float = Field(default=1.0, gt=0, allow_inf_nan=False)
    values: dict[str, Scalar] = {}

    @property
    def options(self) -> dict[str, dict[str, Any]]:
        return dict(self.model_extra or {})


def _plugin(value: Any) -> Any:
    return {"use": value} if isinstance(value, str) else value


Attempts = Annotated[int, Field(ge=0, le=1_000_000)]


class BudgetSpec(Model):
    """Stopping criteria of a study: the first that is met stops it."""

    measurements: int | None = Field(default=None, ge=1)
    trials: int | None = Field(default=None, ge=1)
    time: Quantity | None = None
    cost: Quantity | None = None
    price: Quantity | None = None
    min_improvement: Quantity | None = None
    gap: Quantity | None = None
    confidence: Quantity | None = None


class RetriesSpec(Model):
    """Maximum number of retries of a trial, for each kind of failure."""

    lost: Attempts | None = None
    crashed: Attempts | None = None
    memory: Attempts | None = None
    timeout: Attempts | None = None
    raised: Attempts | None = None
    invalid: Attempts | None = None

    @model_validator(mode="before")
    @classmethod
    def _never_infeasible(cls, value: Any) -> Any:
        if isinstance(value, dict) and "infeasible" in value:
            raise ValueError("a design that cannot exist is never tried again: no 'infeasible'")
        return value


class EarlySpec(Model):
    """Early stopping rule for trials that report intermediate results."""

    rule: Literal["successive-halving", "certain"]
    eta: int = Field(default=3, ge=2, le=1_000_000)
    rungs: list[int] = Field(default=[], serialization_alias="at")  # see Plan._identity
    worsens: list[str] = []
    best: dict[str, Quantity] = {}


class PriorSpec(Model):
    """Earlier study to transfer from, in this or another storage, or a library of studies.

    ``library`` is a folder of exported studies, whose results become prior means of surrogates.
    """

    study: str | None = None
    storage: str | None = None
    library: str | None = None

    @model_validator(mode="after")
    def _one_source(self) -> PriorSpec:
        if (self.study is None) == (self.library is None):
            raise ValueError("transfer is from a study, 'study: NAME', or from 'library: FOLDER'")
        if self.library is not None and self.storage is not None:
            raise ValueError("a library is a folder of exported studies: it has no 'storage'")
        return self


def _study(value: Any) -> Any:
    return {"study": value} if isinstance(value, str) else value


def _one_to_list(value: Any) -> Any:
    return [value] if isinstance(value, dict) else value


Proof = Literal["exact", "held-out", "free", "direction", "not reproduced", "identity"]
Published = Quantity | list[Quantity] | None


class ClaimSpec(Model):
    """Claim of a paper, with the formula ``ours`` that computes this study's number for it.

    ``published`` is the published figure, an interval of two numbers, a bound such as ``< 2 %``, or
    a statement in words where no figure is published. ``accept`` is the condition on the number
    under which the claim counts as reproduced; only a claim marked as not reproduced needs none.
    """

    claim: str = Field(min_length=1)
    source: str = Field(min_length=1)
    published: Published = None
    proof: Proof
    ours: str
    accept: str | None = None
    note: str = ""

    @model_validator(mode="after")
    def _check_accept(self) -> ClaimSpec:
        if self.accept is None and self.proof != "not reproduced":
            raise ValueError("a claim needs a condition on its number: 'accept: ours < 1'")
        return self


class FindingSpec(Model):
    """Finding of this study that is not in any paper; ``source`` may name what it is based on."""

    claim: str = Field(min_length=1)
    ours: str
    accept: str
    source: str = ""
    note: str = ""

    @property
    def published(self) -> Published:
        """Published figure of a finding: always ``None``, because no paper has it."""
        return None

    @property
    def proof(self) -> Literal["finding"]:
        """Kind of proof of a finding: always ``finding``, which needs no published figure."""
        return "finding"


class AssumptionSpec(Model):
    """Value that this study assumes because the paper does not state it.

    ``interval`` is its plausible range. ``turns`` locates the value in the study's files by one or
    more paths of keys: ``job.storage_bandwidth`` is an option of the evaluator ``job``,
    ``baselines.tuned.penalty`` a value of a baseline, ``space.data.peak`` a value in the space's
    file; ``*`` matches every key that has the value.
    """

    name: str = Field(min_length=1, max_length=80)
    value: Scalar
    interval: list[Scalar] = Field(min_length=2, max_length=2)
    turns: str | list[str]
    source: str = Field(min_length=1)
    note: str = ""

    @property
    def targets(self) -> list[str]:
        """Dotted paths of the values in the study's files that the assumption sets."""
        return [self.turns] if isinstance(self.turns, str) else list(self.turns)


class StudySpec(Model):
    """Content of a study file; ``unread`` lists parameters that are intentionally unused.

    ``storage_patience`` is how long a run waits for an unavailable storage. With ``judge: test``,
    the default where an evaluator has a test split, the front is measured on it after the search;
    with ``judge: none`` the front is not measured again.
    """

    study: str = Field(min_length=1, max_length=200, pattern=f"^{NAME}$")
    question: str = ""
    space: str
    evaluators: dict[str, EvaluatorSpec] = Field(min_length=1)
    scenarios: dict[str, ScenarioSpec] = {}
    objectives: list[ObjectiveSpec] = Field(min_length=1)
    constraints: Rules = []
    unread: Rules = []
    reference: dict[str, Quantity] | None = None
    baselines: list[dict[str, Scalar]] | dict[str, dict[str, Scalar]] = []
    fidelities: dict[str, list[str]] = {}
    transfer_from: Annotated[
        list[Annotated[PriorSpec, BeforeValidator(_study)]], BeforeValidator(_one_to_list)
    ] = []
    optimizer: Annotated[OptimizerSpec, BeforeValidator(_plugin)] = OptimizerSpec(use="auto")
    executor: Annotated[PluginSpec, BeforeValidator(_plugin)] = PluginSpec(use="auto")
    storage: str | None = None
    storage_patience: Quantity | None = None
    budget: BudgetSpec = BudgetSpec()
    retries: RetriesSpec = RetriesSpec()
    early_stopping: EarlySpec | None = None
    judge: Literal["test", "none"] | None = None
    reproduces: list[ClaimSpec] = []
    finds: list[FindingSpec] = []
    assumes: list[AssumptionSpec] = []
    seed: int = Field(default=0, ge=0, lt=2**63)


class PartialStudySpec(StudySpec):
    """Valid part of a study file with errors; required sections are optional here."""

    study: str = "study"
    space: str = ""
    evaluators: dict[str, EvaluatorSpec] = {}
    objectives: list[ObjectiveSpec] = []


NAME_HINT = "letters, digits and '_', a letter first, and no word of the expression language"

_LONGEST = 200
_WORD = re.compile(r"[^\W\d]\w*")


def is_name(text: str) -> bool:
    """Return whether the text is a valid name: identifiers joined by dots, none a reserved word."""
    return len(text) <= _LONGEST and all(
        _WORD.fullmatch(word) and word not in RESERVED for word in text.split(".")
    )
