"""Constraints and tables of one file, added once every name of the complete space is declared."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from dse.errors import DseError, SpecError
from dse.schema.space.file import Fragment, Stated
from dse.schema.space.models import TableSpec
from dse.schema.space.scope import Scope
from dse.schema.space.tables.tables import rule_of
from dse.schema.yaml.files import Files
from dse.schema.yaml.validation import model_of


@dataclass(frozen=True, slots=True)
class Statements:
    """Constraints and tables of one space file, with the resolver of its names."""

    fragment: Fragment
    scope: Scope
    files: Files

    def add(self) -> None:
        """Add each valid constraint and table to the space; record the errors of the others."""
        mistakes = self.scope.whole.mistakes
        for stated in self.fragment.constraints:
            try:
                self._add_rule(stated)
            except DseError as error:
                mistakes.add(error, stated.where)
        for stated in self.fragment.tables:
            try:
                self._add_table(stated)
            except DseError as error:
                mistakes.add(error, stated.where)

    def _add_rule(self, stated: Stated[Any]) -> None:
        if not isinstance(stated.value, str):
            shown = repr(stated.value)[:60]
            hint = "put the rule in quotes" if isinstance(stated.value, dict) else ""
            raise SpecError(f"a rule is a text, not {shown}", hint=hint)
        self.scope.whole.constrain([self.scope.formula(stated.value)], stated.where)

    def _add_table(self, stated: Stated[Any]) -> None:
        spec = model_of(TableSpec, stated.source.inner(stated.path))
        typed = Stated(spec, stated.source, stated.path)
        rule = rule_of(typed, self.scope, self.files, self.scope.whole.mistakes)
        if rule is not None:
            self.scope.whole.constrain([rule], stated.where)
