"""Parser of one space file: its entries with their locations, merged with the file it extends."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Annotated, Any, Generic, Literal, TypeVar

from pydantic import BeforeValidator, Field, model_validator

from dse.errors import DseError, SpecError, nearest
from dse.schema.models import Model, Quantity, Scalar, default_to_list
from dse.schema.yaml.files import Files, resolve_path
from dse.schema.yaml.source import Path_, SourceDocument, shown
from dse.schema.yaml.validation import ErrorCollector, validate_leniently

_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class Stated(Generic[_T]):
    """Value read from a YAML file, with its source document and key path."""

    value: _T
    source: SourceDocument
    path: Path_

    @property
    def where(self) -> str:
        """Location in the space file that states the value, as ``file:line``."""
        return self.source.place(self.path)

    def at(self, *inner: str | int) -> str:
        """Return the location, ``file:line``, of the value under further keys of this mapping."""
        return self.source.place((*self.path, *inner))


@dataclass(frozen=True, slots=True, kw_only=True)
class Fragment:
    """Entries of one space file before includes are resolved, each with its location.

    ``lost`` are the parameters that could not be read. In a ``partial`` fragment, at least one
    section could not be read, so an unknown name may have been declared there. ``dropped`` maps
    each name dropped from the extended file to the location of its ``drop:`` entry; ``replaced``
    maps a parameter to the definitions that this file replaced.
    """

    path: Path
    top: Stated[str]
    arguments: dict[str, Stated[Scalar | None]] = field(default_factory=dict)
    data: dict[str, Stated[Any]] = field(default_factory=dict)
    include: dict[str, Stated[IncludeSpec]] = field(default_factory=dict)
    parameters: dict[str, Stated[ParameterSpec]] = field(default_factory=dict)
    constraints: tuple[Stated[Any], ...] = ()
    tables: tuple[Stated[Any], ...] = ()
    table: Stated[str] | None = None
    lost: frozenset[str] = frozenset()
    partial: bool = False
    dropped: dict[str, str] = field(default_factory=dict)
    replaced: dict[str, tuple[ParameterSpec, ...]] = field(default_factory=dict)


SECTIONS = ("arguments", "data", "include", "parameters")
"""Sections of a space file whose keys declare names."""


MAX_DEPTH = 20
"""Maximum length of a chain of files in which each extends the next."""


class Fragments:
    """Cache of the parsed space files by path; each is parsed, and its errors reported, once."""

    def __init__(self, files: Files, mistakes: ErrorCollector) -> None:
        self.files = files
        self.mistakes = mistakes
        self._known: dict[Path, Fragment | None] = {}

    def at(self, path: Path, named_at: str = "") -> Fragment | None:
        """Return the entries of the space file at ``path``, with those of the file it extends.

        If the file cannot be read, the error is recorded and the result is ``None``.

        Args:
            path: the space file.
            named_at: the location that refers to the file, for error messages.
        """
        return self._read(path, named_at, ())

    def of(self, source: SourceDocument) -> Fragment | None:
        """Return the entries of a parsed space file; ``None``, with errors recorded, if invalid."""
        return self._extend_base(source, ())

    def _read(
        self, path: Path, named_at: str, chain: tuple[tuple[Path, str], ...]
    ) -> Fragment | None:
        if path not in self._known:
            try:
                source = self.files.source(path, named_at=named_at)
            except DseError as error:
                self.mistakes.add(error, named_at)
                self._known[path] = None
            else:
                self._known[path] = self._extend_base(source, chain)
        return self._known[path]

    def _extend_base(
        self, source: SourceDocument, chain: tuple[tuple[Path, str], ...]
    ) -> Fragment | None:
        spec, lost = validate_leniently(SpaceSpec, source, self.mistakes)
        if spec is None:
            return None
        own = _fragment(spec, source, lost)
        if not spec.space and ("space",) not in lost:
            error = SpecError("the key 'space' is missing", hint="name it: 'space: ...'")
            self.mistakes.add(error, source.place())
        if spec.extends is None:
            if spec.drop:
                error = SpecError(
                    "there is nothing to drop from", hint="'drop' goes with 'extends'"
                )
                self.mistakes.add(error, source.place(["drop"]))
            return own
        where = source.place(["extends"])
        base = self._base(spec.extends, where, source, chain)
        if base is None:
            return replace(own, partial=True)
        return _merge_fragments(self._drop_entries(base, spec.drop, source), own)

    def _base(
        self, name: str, where: str, source: SourceDocument, chain: tuple[tuple[Path, str], ...]
    ) -> Fragment | None:
        try:
            path = resolve_path(name, source.path)
        except SpecError as error:
            self.mistakes.add(error, where)
            return None
        above = (*chain, (source.path, where))
        circle = next((place for seen, place in above if seen == path), None)
        if circle is not None:
            hint = f"{shown(path)} extends another at {circle}" if circle != where else ""
            self.mistakes.add(SpecError(f"{shown(path)} extends itself", hint=hint), where)
            return None
        if len(above) > MAX_DEPTH:
            self.mistakes.add(SpecError(f"more than {MAX_DEPTH} files extend one another"), where)
            return None
        return self._read(path, where, above)

    def _drop_entries(self, base: Fragment, drop: list[str], source: SourceDocument) -> Fragment:
        kept = base
        for place, text in enumerate(drop):
            fewer = _without(kept, text)
            if fewer is None and base.partial:
                continue
            if fewer is None:
                names = [name for key in SECTIONS for name in getattr(base, key)]
                rules = [rule.value for rule in base.constraints if isinstance(rule.value, str)]
                error = SpecError(
                    f"{shown(base.path)} has no {text!r} to drop",
                    hint=nearest(text, [*names, *rules]),
                )
                self.mistakes.add(error, source.place(["drop", place]))
            else:
                dropped = {**fewer.dropped, text: source.place(["drop", place])}
                kept = replace(fewer, dropped=dropped)
        return kept


def _fragment(spec: SpaceSpec, source: SourceDocument, lost: frozenset[Path_]) -> Fragment:
    sections: dict[str, Any] = {
        key: {name: Stated(v, source, (key, name)) for name, v in getattr(spec, key).items()}
        for key in SECTIONS
    }
    return Fragment(
        path=source.path,
        top=Stated(spec.space, source, ()),
        constraints=_entries(spec.constraints, source, "constraints"),
        tables=_entries(spec.tables, source, "tables"),
        table=None if spec.table is None else Stated(spec.table, source, ("table",)),
        lost=frozenset(str(path[1]) for path in lost if len(path) == 2),
        partial=any(len(path) == 1 and _declares(str(path[0]), source) for path in lost),
        **sections,
    )


def _declares(key: str, source: SourceDocument) -> bool:
    """Return whether the section ``key``, which could not be read, may have declared names."""
    return key in (*SECTIONS, "table", "extends") or isinstance(source.value[key], dict)


def _entries(values: list[Any], source: SourceDocument, key: str) -> tuple[Stated[Any], ...]:
    return tuple(Stated(value, source, (key, place)) for place, value in enumerate(values))


def _merge_fragments(base: Fragment, own: Fragment) -> Fragment:
    """Merge the extending file ``own`` into ``base``; its entries replace those of equal name."""
    sections: dict[str, Any] = {k: {**getattr(base, k), **getattr(own, k)} for k in SECTIONS}
    return replace(
        own,
        constraints=(*base.constraints, *own.constraints),
        tables=(*base.tables, *own.tables),
        table=own.table or base.table,
        lost=(base.lost - own.parameters.keys()) | own.lost,
        partial=base.partial or own.partial,
        dropped=base.dropped,
        replaced={
            name: (*base.replaced.get(name, ()), one.value)
            for name, one in base.parameters.items()
            if name in own.parameters or name in base.replaced
        },
        **sections,
    )


def _without(fragment: Fragment, text: str) -> Fragment | None:
    """Return the fragment without one entry or constraint; ``None`` if it does not have it.

    ``text`` is the entry's name or the constraint's text.
    """
    for key in SECTIONS:
        section = getattr(fragment, key)
        if text in section:
            rest: Any = {name: one for name, one in section.items() if name != text}
            return replace(fragment, **{key: rest})
    if text in fragment.lost:
        return replace(fragment, lost=fragment.lost - {text})
    wanted = "".join(text.split())
    kept = tuple(rule for rule in fragment.constraints if _plain(rule.value) != wanted)
    if len(kept) == len(fragment.constraints):
        return None
    return replace(fragment, constraints=kept)


def _plain(value: Any) -> str:
    return "".join(value.split()) if isinstance(value, str) else ""


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
