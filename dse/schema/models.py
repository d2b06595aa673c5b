"""The shapes of the YAML files; what a key means stands beside it."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, model_validator

NAME = r"\w[\w.\- ]*"
"""A study's name: it becomes a file's name, and a word on the command line."""

Scalar = bool | int | float | str
Quantity = int | float | str
"""A number, or a number with its unit: ``20``, ``64 KiB``."""


class _Model(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


def _listed(value: Any) -> Any:
    return [] if value is None else value


def _mapped(value: Any) -> Any:
    return {} if value is None else value


Rules = Annotated[list[str], BeforeValidator(_listed)]


class ParameterSpec(_Model):
    """One parameter: exactly one domain, and when it is active."""

    real: list[Quantity] | None = Field(default=None, min_length=2, max_length=2)
    integer: list[Quantity] | None = Field(default=None, min_length=2, max_length=2)
    ordinal: list[Quantity] | str | None = None
    choice: list[Scalar] | None = None
    boolean: Literal[True] | None = None
    step: int | None = Field(default=None, ge=1)
    scale: Literal["linear", "log"] = "linear"
    unit: str = ""
    when: str | None = None

    @model_validator(mode="after")
    def _one_domain(self) -> ParameterSpec:
        given = [k for k in DOMAINS if getattr(self, k) is not None]
        if len(given) != 1:
            told = " and ".join(given) or "none"
            raise ValueError(f"a parameter has one of {', '.join(DOMAINS)}; this has {told}")
        if self.step is not None and self.integer is None:
            raise ValueError("'step' goes with 'integer' only")
        if self.scale == "log" and self.real is None and self.integer is None:
            raise ValueError("'scale: log' goes with 'real' and 'integer' only")
        return self


DOMAINS = ("real", "integer", "ordinal", "choice", "boolean")


class SpaceSpec(_Model):
    """A space file."""

    space: str = Field(min_length=1)
    description: str = ""
    include: Annotated[dict[str, str], BeforeValidator(_mapped)] = {}
    parameters: Annotated[dict[str, ParameterSpec], BeforeValidator(_mapped)] = {}
    constraints: Rules = []


class ObjectiveSpec(_Model):
    """``minimize:`` or ``maximize:`` an expression over metrics."""

    minimize: str | None = None
    maximize: str | None = None

    @model_validator(mode="after")
    def _one_goal(self) -> ObjectiveSpec:
        if (self.minimize is None) == (self.maximize is None):
            raise ValueError("an objective is either 'minimize: ...' or 'maximize: ...'")
        return self


class PluginSpec(BaseModel):
    """``use:`` names a plug-in; all other keys are its options."""

    model_config = ConfigDict(extra="allow", strict=True, frozen=True)

    use: str

    @property
    def options(self) -> dict[str, Any]:
        return dict(self.model_extra or {})


class EvaluatorSpec(PluginSpec):
    """An evaluator; ``bind`` maps its readings to parameters where the names do not tell."""

    bind: dict[str, str] = {}


def _plugin(value: Any) -> Any:
    return {"use": value} if isinstance(value, str) else value


class BudgetSpec(_Model):
    """When to stop: whichever comes first."""

    measurements: int | None = Field(default=None, ge=1)
    trials: int | None = Field(default=None, ge=1)
    time: Quantity | None = None


class StudySpec(_Model):
    """A study file."""

    study: str = Field(min_length=1, max_length=200, pattern=f"^{NAME}$")
    question: str = ""
    space: str
    evaluators: dict[str, EvaluatorSpec] = Field(min_length=1)
    objectives: list[ObjectiveSpec] = Field(min_length=1)
    constraints: Rules = []
    reference: dict[str, Quantity] | None = None
    baselines: list[dict[str, Scalar]] = []
    optimizer: Annotated[PluginSpec, BeforeValidator(_plugin)] = PluginSpec(use="auto")
    executor: Annotated[PluginSpec, BeforeValidator(_plugin)] = PluginSpec(use="auto")
    storage: str | None = None
    budget: BudgetSpec = BudgetSpec()
    seed: int = Field(default=0, ge=0, lt=2**63)
