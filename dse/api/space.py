"""Space in Python: the designs that exist, given by values and rules, or by a file."""

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
    from dse.report.schemas.space import Described, Differing, Translated
    from dse.services.space.convert import Origin, Target
    from dse.services.space.sample import Method
    from dse.services.space.why import DesignExplanation

UNNAMED = "space"
"""What a space is called that was given no name."""

Values = Mapping[str, Any]


class Space:
    """Set of legal designs; immutable, solved when it is first queried.

    ``document`` is what a file would say, ``file`` the one that it was read from, and ``notes``
    say what another tool told that a space file has no words for.

    Args:
        parameters: each by name, as :func:`dse.api.short_forms.domain` reads it:
            ``{"tile": [16, 32, 64], "stages": (1, 6), "format": ["int8", "int4"]}``.
        constraints: rules between them: ``"tile * stages <= 256"``.
        name: what it is called.
        more: what else a space file may say: ``include``, ``tables``, ``data``, ``description``.

    Raises:
        SpecErrors: with every mistake, when it is first asked about; places are keys.
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
            raise SpecError("parameters are given by their names, as a mapping", hint=hint)
        told = {name: domain(name, one) for name, one in parameters.items()}
        listed = [constraints] if isinstance(constraints, str) else list(constraints)
        document = {"space": name, **more, **({"parameters": told} if told else {})}
        document |= {"constraints": listed} if listed else {}
        self._keep(source_of(document).value)

    def _keep(self, document: Values, file: Path | None = None, notes: Sequence[str] = ()) -> None:
        self.document = document
        self.file = file
        self.notes = tuple(notes)

    @classmethod
    def read(cls, file: str | Path) -> Space:
        """The space of a file; ``library:spaces/...`` is a shipped one.

        Raises:
            SpecError: the file is a study.
            SpecErrors: with every mistake in it, each with its line.
        """
        from dse.schema.space.space import space_document
        from dse.schema.yaml.files import Files, resolve_path

        path = resolve_path(str(file), Path.cwd() / "space.yaml")
        space = cls.__new__(cls)
        space._keep(space_document(path, Files()), path)  # noqa: SLF001 - it is one of ours
        space.told.count()
        return space

    @classmethod
    def import_(cls, file: str | Path, origin: Origin | None = None) -> Space:
        """The space that a file of ConfigSpace or Optuna describes; see ``notes`` for the rest.

        Args:
            file: JSON.
            origin: which tool wrote it; told by its keys without.

        Raises:
            SpecError: the text is none of that tool's, or says something that cannot be.
        """
        from dse.schema.yaml.files import Files, resolve_path
        from dse.services.space.convert import taken

        path = resolve_path(str(file), Path.cwd() / "space.json")
        found = taken(Files().text(path), str(file), origin)
        return cls._from_engine_space(found.space, found.name or path.stem, notes=found.warnings)

    @classmethod
    def _from_engine_space(
        cls, solved: core.Space, name: str, description: str = "", notes: Sequence[str] = ()
    ) -> Space:
        from dse.schema.space.export.write import mapping_of

        space = cls.__new__(cls)
        space._keep(mapping_of(solved, name, description), notes=notes)  # noqa: SLF001 - one of ours
        space.__dict__["told"] = solved  # what the property would find by reading the document
        return space

    @classmethod
    def of(cls, document: Values) -> Space:
        """The space of a mapping of the shape of a space file."""
        rest = {key: one for key, one in document.items() if key not in ("space", "parameters")}
        return cls(document.get("parameters", {}), name=document.get("space", UNNAMED), **rest)

    @cached_property
    def told(self) -> core.Space:
        """Space of the engine, which may have no legal design: :meth:`why` gives the reason."""
        from dse.schema.space.space import space_from, space_of
        from dse.schema.yaml.files import Files

        if self.file is not None:
            return space_of(self.file, Files(), may_be_empty=True)
        return space_from(self.document, may_be_empty=True)

    @cached_property
    def solved(self) -> core.Space:
        """The engine's space: parameters as domains, rules as expressions."""
        from dse.schema.space.rules.satisfiable import check_satisfiable
        from dse.schema.yaml.source import shown

        where = "the space" if self.file is None else f"{shown(self.file)}:1"
        check_satisfiable(self.told, where)
        return self.told

    @property
    def name(self) -> str:
        """Name of the space."""
        return str(self.document.get("space", UNNAMED))

    @property
    def description(self) -> str:
        """Description that the author gave the space."""
        return str(self.document.get("description") or "")

    @property
    def parameters(self) -> tuple[str, ...]:
        """The names of all parameters; of a list, those of its members."""
        return tuple(one.name for one in self.told.parameters)

    def count(self) -> int | None:
        """Return the number of legal designs; ``None`` where they cannot be counted."""
        return self.told.count()

    def estimate(self) -> Estimate | None:
        """Estimate the number of legal designs, with an interval and an upper bound.

        A known count is its own estimate; ``None`` with real parameters.

        Example:
            ``space.estimate().low``
        """
        return self.told.estimate()

    def check(self, design: Mapping[str, Value]) -> Design:
        """The design, if it is legal; quantities may be texts with a unit.

        Example:
            ``space.check({"tile": 64, "clock": "1.2 GHz"})``

        Raises:
            DesignError: with the first rule that it breaks.
        """
        from dse.schema.study.designs import design_of

        return design_of(design, self.solved)

    def __contains__(self, design: object) -> bool:
        from dse.schema.study.designs import design_of

        if not isinstance(design, Mapping):
            return False
        space = self.solved  # whose own mistakes are told
        try:
            design_of(design, space)
        except DseError:
            return False
        return True

    def sample(self, count: int = 1, *, seed: int = 0, method: Method = "uniform") -> list[Design]:
        """Legal designs; fewer than ``count``, with a warning, where next to nothing is legal.

        Example:
            ``[design["tile"] for design in space.sample(8, seed=1)]``

        Args:
            count: how many.
            seed: the same seed gives the same designs.
            method: ``uniform``: each on its own; ``sobol``: evenly spread, in an order that can go
                on; ``stratified``: each parameter's range cut into as many parts as designs.

        Raises:
            DesignError: none was found, or there are too many parameters for the method.
            SpecError: the count is no whole number above zero.
        """
        from dse.api.tell import whole
        from dse.services.space.sample import draw, too_few

        if whole(count) is None or count < 1:
            hint = "a whole number of them: sample(8)"
            raise SpecError(f"{count!r} designs cannot be drawn", hint=hint)
        found = _designs(draw(self.solved, count, seed, method))
        if len(found) < count:
            warnings.warn(too_few(self.solved, len(found), count), stacklevel=2)
        return found

    def enumerate(self) -> Iterator[Design]:
        """All legal designs, in a fixed order.

        Raises:
            DesignError: they cannot be counted.
        """
        for batch in self.solved.enumerate():
            yield from _designs(batch)

    def neighbours(self, design: Mapping[str, Value]) -> list[Design]:
        """The legal designs one small move away.

        Raises:
            DesignError: the design is not legal.
        """
        return _designs(self.solved.neighbours(self.check(design)))

    def fixed(self, values: Values | None = None, **more: Value) -> Space:
        """The part of the space that has these values, which may be empty.

        Example:
            ``space.fixed({"chip.rows": 64}, tile=16).count()``

        Args:
            values: by parameter; quantities may be texts with a unit.
            more: the same, of parameters whose names are words of Python.

        Raises:
            DesignError: there is no such parameter, or it cannot have this value.
        """
        from dse.core.inspection.explain import narrow_space
        from dse.core.inspection.rule_check import check_values

        given = self._values({**(values or {}), **more})
        check_values(self.told, given)
        return self._from_engine_space(narrow_space(self.told, given), self.name, self.description)

    def why(self, values: Values | None = None, **more: Value) -> DesignExplanation:
        """Return whether designs with these values exist, and which rules forbid them.

        Of a whole design it tells each rule that the design breaks; of some values how many legal
        designs have them or, where none has, a smallest set of rules and values that contradict
        one another. Without values it is about the space as a whole. It is shown in words.

        Example:
            ``print(space.why(tile=128, stages=6))``

        Args:
            values: by parameter; quantities may be texts with a unit.
            more: the same, of parameters whose names are words of Python.

        Raises:
            DesignError: there is no such parameter, or it cannot have this value.
        """
        from dse.services.space.why import DesignExplanation

        return DesignExplanation.of(self.told, self._values({**(values or {}), **more}), "set")

    def describe(self) -> Described:
        """Parameters, rules and what each removes, and how much is left.

        What cannot be counted is estimated from 10,000 draws, and says so.
        """
        from dse.services.space.describe import space_json

        file = "" if self.file is None else str(self.file)
        return space_json(self.solved, file, name=self.name, description=self.description)

    def export(
        self, target: Target, file: str | Path | None = None, *, drop_rules: bool = False
    ) -> Translated:
        """The space in the words of another tool, or as one flat YAML file.

        Args:
            target: ``yaml``, ``configspace`` or ``optuna``.
            file: where to write the text; nowhere without.
            drop_rules: leave out what the other tool cannot say, and tell so in ``notes``.

        Raises:
            SpecError: the other tool cannot say a rule, and it is not to be dropped.
            StorageError: the file cannot be written.
        """
        from dse.report.json.atomic_file import write_whole
        from dse.services.space.convert import convert_space

        told = {"name": self.name, "description": self.description}
        found = convert_space(self.solved, target, drop_rules=drop_rules, **told)
        if file is not None:
            write_whole(Path(file), found.text)
        written = None if file is None else str(file)
        return {"text": found.text, "file": written, "notes": list(found.warnings)}

    def difference(self, other: Space) -> Differing:
        """Return the changes to another space: parameters, domains, conditions and rules."""
        from dse.services.space.convert import differing

        return differing(self.told, other.told)

    def _values(self, values: Values) -> dict[str, Value]:
        from dse.schema.study.designs import plain_values

        return plain_values(values, self.told)

    def to_yaml(self) -> str:
        """Return the text of a space file that describes the same space."""
        from dse.schema.yaml.writer import yaml_text

        if self.file is not None:
            return self.file.read_text(encoding="utf-8")
        return yaml_text(self.document)

    def _repr_html_(self) -> str:
        from dse.api.notebook.parts import or_message
        from dse.api.notebook.space import space_html

        return or_message(self.name, lambda: space_html(self.name, self.solved))

    def __repr__(self) -> str:
        try:
            return visible(self._words)
        except DseError as error:  # whoever looks at a space with mistakes is to see them
            return f"<Space that cannot be: {error}>"

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
