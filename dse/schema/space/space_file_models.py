"""Pydantic schema of the space file."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, model_validator

from dse.schema.models import Model, Quantity, Scalar, default_to_list

SCALARS = ("real", "integer", "ordinal", "choice", "boolean")
"""Domain keys of a scalar parameter."""

STRUCTURED = ("permutation", "subset", "partition", "simplex")
"""Domain keys of a compound parameter, whose members are constrained jointly."""

_GOES_WITH = {
    "each": SCALARS,
    "step": ("integer", "simplex"),
    "scale": ("real", "integer", "ordinal"),
    "unit": ("real", "integer", "ordinal", "choice"),
    "size": ("subset",),
    "parts": ("partition",),
}


class DomainSpec(Model):
    """Domain of a scalar parameter, under exactly one of the keys ``real``, ``integer``, ...

    ``step``, ``scale`` and ``unit`` refine it where the kind of domain allows.
    """

    real: list[Quantity] | None = Field(default=None, min_length=2, max_length=2)
    integer: list[Quantity] | None = Field(default=None, min_length=2, max_length=2)
    ordinal: list[Quantity] | str | None = None
    choice: list[Scalar] | None = None
    boolean: bool | None = None
    step: Quantity | None = None
    scale: Literal["linear", "log"] | None = None
    unit: str | None = None

    @property
    def kinds(self) -> list[str]:
        """Domain keys that the entry contains; a valid parameter has exactly one."""
        return [kind for kind in (*SCALARS, *STRUCTURED) if getattr(self, kind, None) is not None]

    def check_companions(self) -> None:
        """Raise ValueError if a key such as ``step`` does not suit the kind of domain."""
        (kind,) = self.kinds
        for key, partners in _GOES_WITH.items():
            if getattr(self, key, None) is not None and kind not in partners:
                listed = ", ".join(repr(partner) for partner in partners)
                raise ValueError(f"{key!r} goes with {listed} only, not with {kind!r}")
        if self.boolean is False:
            raise ValueError("'boolean: false' is not a domain; write 'boolean: true'")


class ParameterSpec(DomainSpec):
    """Declaration of a parameter: its domain, and the condition ``when`` it is active."""

    each: int | str | None = None
    permutation: list[Scalar] | int | str | None = None
    subset: list[Scalar] | int | str | None = None
    size: int | list[int | str] | str | None = None
    partition: int | str | None = None
    parts: int | list[int | str] | str | None = None
    simplex: list[Scalar] | int | str | None = None
    when: str | None = None

    @model_validator(mode="after")
    def _one_domain(self) -> ParameterSpec:
        if len(self.kinds) != 1:
            listed = " and ".join(self.kinds) or "none"
            every = ", ".join((*SCALARS, *STRUCTURED))
            raise ValueError(f"a parameter has one of {every}; this has {listed}")
        self.check_companions()
        if self.partition is not None and self.parts is None:
            raise ValueError("a partition needs 'parts': how many, or [least, most]")
        return self


class NarrowSpec(DomainSpec):
    """Value of a ``narrow`` entry: a list of values to keep, or a subdomain."""

    values: list[Scalar] | None = Field(default=None, min_length=1)

    @model_validator(mode="after")
    def _one_part(self) -> NarrowSpec:
        if self.values is None and len(self.kinds) != 1:
            listed = " and ".join(self.kinds) or "neither"
            raise ValueError(f"'narrow' takes a list of values or one domain; this has {listed}")
        if self.values is None:
            self.check_companions()
        return self


def _values(value: Any) -> Any:
    return {"values": value} if isinstance(value, list) else value


def _file(value: Any) -> Any:
    return {"file": value} if isinstance(value, str) else value


def _default_to_mapping(value: Any) -> Any:
    return {} if value is None else value


class IncludeSpec(Model):
    """Include of another space file: its arguments, ``fix``, ``narrow`` and ``rename`` entries."""

    file: str
    given: Annotated[dict[str, Scalar], BeforeValidator(_default_to_mapping)] = Field(
        default={}, alias="with"
    )
    fix: Annotated[dict[str, Scalar | list[Scalar]], BeforeValidator(_default_to_mapping)] = Field(
        default={}
    )
    narrow: Annotated[
        dict[str, Annotated[NarrowSpec, BeforeValidator(_values)]],
        BeforeValidator(_default_to_mapping),
    ] = Field(default={})
    rename: Annotated[dict[str, str], BeforeValidator(_default_to_mapping)] = Field(default={})


class TableSpec(Model):
    """Table of allowed or forbidden combinations: columns, and rows given inline or in a file."""

    allow: list[str] | None = Field(default=None, min_length=1)
    forbid: list[str] | None = Field(default=None, min_length=1)
    rows: list[list[Scalar | None]] | None = None
    file: str | None = None

    @model_validator(mode="after")
    def _one_of_each(self) -> TableSpec:
        if (self.allow is None) == (self.forbid is None):
            raise ValueError("a table has either 'allow: [names]' or 'forbid: [names]'")
        if (self.rows is None) == (self.file is None):
            raise ValueError("a table has either 'rows: [[...], ...]' or 'file: rows.csv'")
        return self


class SpaceSpec(Model):
    """Content of a space file; entries of ``data``, ``constraints`` and ``tables`` are unchecked.

    They are validated individually later, so that one error does not hide the others.
    """

    space: str = Field(default="", min_length=1)
    description: str = ""
    extends: str | None = None
    drop: Annotated[list[str], BeforeValidator(default_to_list)] = Field(default=[])
    arguments: Annotated[dict[str, Scalar | None], BeforeValidator(_default_to_mapping)] = Field(
        default={}
    )
    data: Annotated[dict[str, Any], BeforeValidator(_default_to_mapping)] = Field(default={})
    include: Annotated[
        dict[str, Annotated[IncludeSpec, BeforeValidator(_file)]],
        BeforeValidator(_default_to_mapping),
    ] = Field(default={})
    parameters: Annotated[dict[str, ParameterSpec], BeforeValidator(_default_to_mapping)] = Field(
        default={}
    )
    table: str | None = None
    constraints: Annotated[list[Any], BeforeValidator(default_to_list)] = Field(default=[])
    tables: Annotated[list[Any], BeforeValidator(default_to_list)] = Field(default=[])
