"""The shapes of the study file; what a key means stands beside it."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, model_validator

NAME = r"\w[\w.\- ]*"
"""A study's name: it becomes a file's name, and a word on the command line."""

Scalar = bool | int | float | str
Quantity = int | float | str
"""A number, or a number with its unit: ``20``, ``64 KiB``."""


class Model(BaseModel):
    """A mapping with these keys and no others."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True, defer_build=True)


def default_to_list(value: Any) -> Any:
    """Return an empty list where the file leaves the key empty."""
    return [] if value is None else value


Rules = Annotated[list[str], BeforeValidator(default_to_list)]


class ObjectiveSpec(Model):
    """``minimize:`` or ``maximize:`` an expression over metrics, shown ``as`` a name of its own."""

    minimize: str | None = None
    maximize: str | None = None
    label: str | None = Field(default=None, alias="as", min_length=1, max_length=40)

    @model_validator(mode="after")
    def _one_goal(self) -> ObjectiveSpec:
        if (self.minimize is None) == (self.maximize is None):
            raise ValueError("an objective is either 'minimize: ...' or 'maximize: ...'")
        return self


class PluginSpec(BaseModel):
    """``use:`` names a plug-in; all other keys are its options."""

    model_config = ConfigDict(extra="allow", strict=True, frozen=True, defer_build=True)

    use: str

    @property
    def options(self) -> dict[str, Any]:
        return dict(self.model_extra or {})


class ReplicatesSpec(Model):
    """Runs of a stochastic evaluator; the input that ``as`` names receives the run's number."""

    count: int = Field(ge=2, le=100_000)
    reading: str = Field(default="seed", alias="as")
    quantiles: list[Annotated[float, Field(gt=0, lt=1)]] = []


class ResourcesSpec(Model):
    """Resources that an evaluator needs; ``custom`` names resources of cluster nodes."""

    cpu: float | None = Field(default=None, gt=0, le=100_000)
    gpu: float | None = Field(default=None, ge=0, le=100_000)
    memory: Quantity | None = None
    custom: dict[str, Annotated[float, Field(gt=0, le=100_000)]] = {}


class EvaluatorSpec(PluginSpec):
    """An evaluator; ``bind`` maps its inputs to parameters where the names differ.

    One that is ``exclusive`` has its machine for itself while it runs.
    """

    bind: dict[str, str] = {}
    replicates: ReplicatesSpec | None = None
    resources: ResourcesSpec = ResourcesSpec()
    exclusive: bool = False


class ScenarioSpec(BaseModel):
    """Circumstances: other options of evaluators by name, and ``values`` of readings."""

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
    gain: Quantity | None = None


class RetriesSpec(Model):
    """Number of times that a trial is issued again, for each kind of failure."""

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
    at: list[int] = []
    worsens: list[str] = []
    best: dict[str, Quantity] = {}


class PriorSpec(Model):
    """An earlier study, in this storage or another one."""

    study: str
    storage: str | None = None


def _study(value: Any) -> Any:
    return {"study": value} if isinstance(value, str) else value


Proof = Literal["exact", "held-out", "free", "direction", "not reproduced", "identity"]
Published = Quantity | list[Quantity] | None


class ClaimSpec(Model):
    """Claim of a paper, and ``ours``: the number of this study that is compared with it.

    ``published`` is the figure of print, an interval of two, a bound such as ``< 2 %``, or the
    words of print where it has no figure. ``accept`` says of ``ours`` what is to hold; what did not
    come out may do without.
    """

    claim: str = Field(min_length=1)
    source: str = Field(min_length=1)
    published: Published = None
    proof: Proof
    ours: str
    accept: str | None = None
    note: str = ""

    @model_validator(mode="after")
    def _judged(self) -> ClaimSpec:
        if self.accept is None and self.proof != "not reproduced":
            raise ValueError("a claim says what is accepted: 'accept: ours < 1'")
        return self


class FindingSpec(Model):
    """Finding of this study that is in no paper; ``source`` may name what it rests on."""

    claim: str = Field(min_length=1)
    ours: str
    accept: str
    source: str = ""
    note: str = ""

    @property
    def published(self) -> Published:
        """Return nothing: print has no figure."""
        return None

    @property
    def proof(self) -> Literal["finding"]:
        """Return the label that findings have where claims have their kind of proof."""
        return "finding"


class AssumptionSpec(Model):
    """A value that print does not give, the ``interval`` that it may lie in, and where it stands.

    ``turns`` names the place, or the places, as a path of keys: ``job.storage_bandwidth`` is an
    option of the evaluator ``job``, ``baselines.tuned.penalty`` a value of a baseline,
    ``space.data.peak`` a value of the space's file; ``*`` stands for every key that has the value.
    """

    name: str = Field(min_length=1, max_length=80)
    value: Scalar
    interval: list[Scalar] = Field(min_length=2, max_length=2)
    turns: str | list[str]
    source: str = Field(min_length=1)
    note: str = ""

    @property
    def targets(self) -> list[str]:
        """Return the paths that the assumption stands at."""
        return [self.turns] if isinstance(self.turns, str) else list(self.turns)


class StudySpec(Model):
    """A study file; ``unread`` lists parameters that nothing is meant to read.

    ``storage_patience`` is how long a run waits for a storage that is away.
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
    prior: list[Annotated[PriorSpec, BeforeValidator(_study)]] = []
    optimizer: Annotated[PluginSpec, BeforeValidator(_plugin)] = PluginSpec(use="auto")
    executor: Annotated[PluginSpec, BeforeValidator(_plugin)] = PluginSpec(use="auto")
    storage: str | None = None
    storage_patience: Quantity | None = None
    budget: BudgetSpec = BudgetSpec()
    retries: RetriesSpec = RetriesSpec()
    early: EarlySpec | None = None
    reproduces: list[ClaimSpec] = []
    finds: list[FindingSpec] = []
    assumes: list[AssumptionSpec] = []
    seed: int = Field(default=0, ge=0, lt=2**63)


class PartialStudySpec(StudySpec):
    """Remainder of a study file without its mistakes."""

    study: str = "study"
    space: str = ""
    evaluators: dict[str, EvaluatorSpec] = {}
    objectives: list[ObjectiveSpec] = []
