"""Design space in Python: parameters and constraints, given as values or read from a file."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dse.errors import DseError, SpecError
from dse.system.terminal_text import visible

if TYPE_CHECKING:
    from dse.core import space as core
    from dse.core.batch import Batch
    from dse.core.design import Design
    from dse.core.legal_set.size_estimate import Estimate
    from dse.core.values import Value
    from dse.report.schemas.space_schema import Described, Differing, Translated
    from dse.services.space.sample import Method
    from dse.services.space.space_conversion import Origin, Target
    from dse.services.space.why import DesignExplanation

UNNAMED = "space"
"""Default name of a space."""

Values = Mapping[str, Any]


class Space:
    """Set of legal designs, given by parameters and constraints.

    The object is immutable and built when it is first queried. ``document`` is the content of the
    equivalent space file, ``file`` the path of the file that it was read from, and ``notes`` list
    the features of another tool's format that a space file cannot express.

    Args:
        parameters: domains by name, in the forms of :func:`dse.api.short_forms.domain`: ``{"tile":
            [16, 32, 64], "stages": (1, 6), "format": ["int8", "int4"]}``.
        constraints: constraints between the parameters: ``"tile * stages <= 256"``.
        name: the name of the space.
        more: other keys of a space file: ``include``, ``tables``, ``data``, ``description``.

    Raises:
        SpecErrors: with every mistake, located by key, when the space is first queried.
    """

    def __init__(
        self,
        parameters: Values,
        constraints: str | Sequence[str] = (),
        *,
        name: str = UNNAMED,
        **more: Any,
    ) -> None:
        from dse.api.short_forms import domain
        from dse.schema.yaml.python_source import source_of

        given: Any = parameters
        if not isinstance(given, Mapping):
            hint = 'write Space({"tile": [16, 32, 64]})'
            raise SpecError("parameters must be a mapping from names to domains", hint=hint)
        domains = {name: domain(name, one) for name, one in parameters.items()}
        listed = [constraints] if isinstance(constraints, str) else list(constraints)
        document = {"space": name, **more, **({"parameters": domains} if domains else {})}
        document |= {"constraints": listed} if listed else {}
        self._keep(source_of(document).value)

    def _keep(self, document: Values, file: Path | None = None, notes: Sequence[str] = ()) -> None:
        self.document = document
        self.file = file
        self.notes = tuple(notes)

    @classmethod
    def read(cls, file: str | Path) -> Space:
        """Return the search space of a YAML file; ``library:spaces/...`` is a shipped example.

        Raises:
            SpecError: the file is a study file.
            SpecErrors: with every mistake in the file, each with its line.
        """
        from dse.schema.space.space_loader import space_document
        from dse.schema.yaml.files import Files, resolve_path

        path = resolve_path(str(file), Path.cwd() / "space.yaml")
        space = cls.__new__(cls)
        space._keep(space_document(path, Files()), path)  # noqa: SLF001 - of this class
        space.engine_space.count()
        return space

    @classmethod
    def import_(cls, file: str | Path, origin: Origin | None = None) -> Space:
        """Return the space that a file of ConfigSpace, Optuna or Kernel Tuner (T1) describes.

        The attribute ``notes`` of the result lists the features of the file that a space cannot
        express.

        Args:
            file: the path of a JSON file.
            origin: the tool that wrote the file; default: recognized by its keys.

        Raises:
            SpecError: the file is not in that tool's format, or is contradictory.
        """
        from dse.schema.yaml.files import Files, resolve_path
        from dse.services.space.space_conversion import taken

        path = resolve_path(str(file), Path.cwd() / "space.json")
        found = taken(Files().text(path), str(file), origin)
        return cls._from_engine_space(found.space, found.name or path.stem, notes=found.warnings)

    @classmethod
    def _from_engine_space(
        cls, solved: core.DesignSpace, name: str, description: str = "", notes: Sequence[str] = ()
    ) -> Space:
        from dse.schema.space.export.space_writer import mapping_of

        space = cls.__new__(cls)
        space._keep(mapping_of(solved, name, description), notes=notes)  # noqa: SLF001 - this class
        space.__dict__["engine_space"] = solved  # the value that the cached property would compute
        return space

    @classmethod
    def of(cls, document: Values) -> Space:
        """Return the search space that a mapping describes, with the keys of a space file."""
        rest = {key: one for key, one in document.items() if key not in ("space", "parameters")}
        return cls(document.get("parameters", {}), name=document.get("space", UNNAMED), **rest)

    @cached_property
    def engine_space(self) -> core.DesignSpace:
        """Space as the engine uses it, possibly without a legal design; see :meth:`why`."""
        from dse.schema.space.space_loader import space_from, space_of
        from dse.schema.yaml.files import Files

        if self.file is not None:
            return space_of(self.file, Files(), may_be_empty=True)
        return space_from(self.document, may_be_empty=True)

    @property
    def told(self) -> core.DesignSpace:
        """Older name of :attr:`engine_space`."""
        return self.engine_space

    @cached_property
    def solved(self) -> core.DesignSpace:
        """Space as the engine uses it, checked to have a legal design; SpecError if it has none."""
        from dse.schema.space.space_loader import check_satisfiable
        from dse.schema.yaml.source import shown

        where = "the space" if self.file is None else f"{shown(self.file)}:1"
        check_satisfiable(self.engine_space, where)
        return self.engine_space

    @property
    def name(self) -> str:
        """Name of the space."""
        return str(self.document.get("space", UNNAMED))

    @property
    def description(self) -> str:
        """Description of the space; empty if there is none."""
        return str(self.document.get("description") or "")

    @property
    def parameters(self) -> tuple[str, ...]:
        """Names of all parameters; a list parameter contributes the names of its members."""
        return tuple(one.name for one in self.engine_space.parameters)

    def count(self) -> int | None:
        """Return the exact number of legal designs; ``None`` if they cannot be counted."""
        return self.engine_space.count()

    def estimate(self) -> Estimate | None:
        """Estimate the number of legal designs, with a 95 % interval and an upper bound.

        If the exact count is known, it is returned as the estimate. ``None`` if the space has real
        parameters.

        Example:
            ``space.estimate().low``
        """
        return self.engine_space.estimate()

    def check(self, design: Mapping[str, Value]) -> Design:
        """Return the given values as a design if it is legal.

        Example:
            ``space.check({"tile": 64, "clock": "1.2 GHz"})``

        Args:
            design: values by parameter; quantities may be strings with a unit.

        Raises:
            DesignError: with the first constraint that it violates.
        """
        from dse.schema.study.designs import design_of

        return design_of(design, self.solved)

    def __contains__(self, design: object) -> bool:
        from dse.schema.study.designs import design_of

        if not isinstance(design, Mapping):
            return False
        space = self.solved  # outside the try: mistakes of the space itself are raised
        try:
            design_of(design, space)
        except DseError:
            return False
        return True

    def sample(self, count: int = 1, *, seed: int = 0, method: Method = "uniform") -> list[Design]:
        """Draw random legal designs; fewer than ``count``, with a warning, if few are legal.

        Example:
            ``[design["tile"] for design in space.sample(8, seed=1)]``

        Args:
            count: the number of designs.
            seed: the random seed; equal seeds give equal designs.
            method: ``uniform``: independent draws; ``sobol``: an extensible low-discrepancy
                sequence; ``stratified``: each parameter's range is divided into ``count`` strata.

        Raises:
            DesignError: no legal design was found, or the method does not support that many
                parameters.
            SpecError: the count is not a positive integer.
        """
        from dse.api.tell import whole
        from dse.services.space.sample import draw, too_few

        if whole(count) is None or count < 1:
            hint = "give a positive integer: sample(8)"
            raise SpecError(f"{count!r} designs cannot be drawn", hint=hint)
        found = _designs(draw(self.solved, count, seed, method))
        if len(found) < count:
            warnings.warn(too_few(self.solved, len(found), count), stacklevel=2)
        return found

    def enumerate(self) -> Iterator[Design]:
        """Yield all legal designs in a fixed order.

        Raises:
            DesignError: the legal designs cannot be counted.
        """
        for batch in self.solved.enumerate():
            yield from _designs(batch)

    def neighbours(self, design: Mapping[str, Value]) -> list[Design]:
        """Return the legal designs one small move away from a design.

        A move changes one parameter to a nearby value, or several parameters together if a
        constraint couples them.

        Raises:
            DesignError: the design is not legal.
        """
        return _designs(self.solved.neighbours(self.check(design)))

    def fixed(self, values: Values | None = None, **more: Value) -> Space:
        """Return the subspace in which some parameters are fixed; it may be empty.

        Example:
            ``space.fixed({"chip.rows": 64}, tile=16).count()``

        Args:
            values: values by parameter; quantities may be strings with a unit.
            more: the same, for parameters whose names are Python identifiers.

        Raises:
            DesignError: there is no such parameter, or it cannot have this value.
        """
        from dse.core.inspection.rule_check import check_values
        from dse.core.inspection.rule_conflicts import narrow_space

        given = self._values({**(values or {}), **more})
        check_values(self.engine_space, given)
        return self._from_engine_space(
            narrow_space(self.engine_space, given), self.name, self.description
        )

    def why(self, values: Values | None = None, **more: Value) -> DesignExplanation:
        """Return whether designs with these values exist, and which constraints forbid them.

        For a complete design the explanation lists each constraint that it violates. For some
        values it gives the number of legal designs with them or, if there are none, a minimal set
        of contradicting constraints and values. Without values it covers the entire space.
        ``print`` shows the explanation as sentences.

        Example:
            ``print(space.why(tile=128, stages=6))``

        Args:
            values: values by parameter; quantities may be strings with a unit.
            more: the same, for parameters whose names are Python identifiers.

        Raises:
            DesignError: there is no such parameter, or it cannot have this value.
        """
        from dse.services.space.why import DesignExplanation

        return DesignExplanation.of(
            self.engine_space, self._values({**(values or {}), **more}), "set"
        )

    def describe(self) -> Described:
        """Return the parameters, what each constraint removes, and the number of legal designs.

        Numbers that cannot be counted are estimated from 10,000 random draws, and marked as
        estimates.
        """
        from dse.services.space.space_description import space_json

        file = "" if self.file is None else str(self.file)
        return space_json(self.solved, file, name=self.name, description=self.description)

    def export(
        self, target: Target, file: str | Path | None = None, *, drop_rules: bool = False
    ) -> Translated:
        """Convert the space to the format of another tool, or to one flat YAML file.

        Args:
            target: ``yaml``, ``configspace`` or ``optuna``.
            file: a file to write the text to; default: none.
            drop_rules: leave out constraints that the target cannot express; ``notes`` lists them.

        Raises:
            SpecError: the target cannot express a constraint, and ``drop_rules`` is false.
            StorageError: the file cannot be written.
        """
        from dse.report.json.atomic_file import write_whole
        from dse.services.space.space_conversion import convert_space

        about = {"name": self.name, "description": self.description}
        found = convert_space(self.solved, target, drop_rules=drop_rules, **about)
        if file is not None:
            write_whole(Path(file), found.text)
        written = None if file is None else str(file)
        return {"text": found.text, "file": written, "notes": list(found.warnings)}

    def difference(self, other: Space) -> Differing:
        """Return the differences to another space: parameters, domains, conditions, constraints."""
        from dse.services.space.space_conversion import differing

        return differing(self.engine_space, other.engine_space)

    def _values(self, values: Values) -> dict[str, Value]:
        from dse.schema.study.designs import plain_values

        return plain_values(values, self.engine_space)

    def to_yaml(self) -> str:
        """Return the space as the text of a space file."""
        from dse.schema.yaml.writer import yaml_text

        if self.file is not None:
            return self.file.read_text(encoding="utf-8")
        return yaml_text(self.document)

    def _repr_html_(self) -> str:
        from dse.api.notebook.parts import or_message
        from dse.api.notebook.space_view import space_html

        return or_message(self.name, lambda: space_html(self.name, self.solved))

    def __repr__(self) -> str:
        try:
            return visible(self._words)
        except DseError as error:  # show the mistakes of an invalid space
            return f"<invalid Space: {error}>"

    @property
    def _words(self) -> str:
        from dse.report.text.space_words import big

        names = self.parameters
        shown = ", ".join(names[:6]) + (", ..." if len(names) > 6 else "")
        count = self.count()
        total = "too many to count" if count is None else f"{big(count)} legal designs"
        return f"<Space of {shown}: {total}>"


def _designs(batch: Batch) -> list[Design]:
    return [batch.design(row) for row in range(len(batch))]
