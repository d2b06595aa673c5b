"""Result of a conversion from or to another tool: a space or text, with what was lost."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from dse.core.design import Design
from dse.core.expressions.expression import Expression
from dse.core.space import DesignSpace
from dse.errors import SpecError
from dse.interop.value_conversion import value_of


@dataclass(frozen=True, slots=True, kw_only=True)
class SpaceImport:
    """Space imported from another tool, with warnings on what could not be represented.

    ``names`` maps the other tool's names to those of the parameters.
    """

    space: DesignSpace
    name: str
    names: Mapping[str, str]
    warnings: tuple[str, ...]

    def design(self, values: Mapping[str, Any]) -> Design:
        """Convert a configuration of the other tool to a design of the space.

        Raises:
            SpecError: a value is not in the domain of its parameter.
        """
        return Design(
            {
                self.names[name]: value_of(self.space.by_name[self.names[name]], value)
                for name, value in values.items()
            }
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class SpaceExport:
    """Space in another tool's text format, with ``warnings`` about what is left out."""

    text: str
    warnings: tuple[str, ...]


class UnsupportedRules:
    """Collector of the conditions and rules that another tool cannot express."""

    def __init__(self, tool: str, space: DesignSpace) -> None:
        self._tool = tool
        self._space = space
        self._omissions: list[tuple[str, str]] = []

    @contextmanager
    def condition(self, name: str) -> Iterator[None]:
        """Collect a SpecError raised in the block as an error of a parameter's condition."""
        rule = self._space.conditions[name]
        what = f"that {name} exists only when {rule.text!r}"
        with self._collect_errors(what, self._space.places.get(name, "")):
            yield

    @contextmanager
    def rule(self, rule: Expression) -> Iterator[None]:
        """Collect a SpecError raised in the block as an error of a rule."""
        with self._collect_errors(f"the rule {rule.text!r}", self._space.places.get(rule.text, "")):
            yield

    @contextmanager
    def _collect_errors(self, what: str, where: str) -> Iterator[None]:
        try:
            yield
        except SpecError as error:
            place = f" ({where})" if where else ""
            self._omissions.append((where, f"{what}{place}: {error.problem}"))

    def warnings(self, *, drop: bool) -> list[str]:
        """Return a warning for each condition or rule that the export leaves out.

        Raises:
            SpecError: something is left out, and ``drop`` is false.
        """
        if self._omissions and not drop:
            problem = "; ".join(omission for _, omission in self._omissions)
            raise SpecError(
                f"{self._tool} cannot express {problem}",
                where=self._omissions[0][0],
                hint="--drop-rules leaves these out, and exports a superset of the space",
            )
        return [f"left out {omission}" for _, omission in self._omissions]
