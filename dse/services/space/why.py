"""Explanation of why given parameter values are legal or not, as text and as JSON."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from dse.core.inspection.rule_check import Why, obstacle, sides, why
from dse.core.inspection.rule_conflicts import Rule, narrow_space
from dse.core.space import DesignSpace
from dse.core.values import Value
from dse.report.schemas.space_schema import Explained
from dse.report.text.space_words import design_text, entries, format_count, rule_text, setting_text


@dataclass(frozen=True, slots=True, repr=False)
class DesignExplanation:
    """Explanation of whether a space has a legal design with given values of some parameters.

    ``setting`` is how messages refer to a given value, such as the option ``--set``.
    """

    space: DesignSpace
    given: Mapping[str, Value]
    why: Why
    setting: str = "--set"

    @staticmethod
    def of(
        space: DesignSpace, given: Mapping[str, Value], setting: str = "--set"
    ) -> DesignExplanation:
        """Check whether a space has a legal design with the given values; return the explanation.

        Raises:
            DesignError: there is no such parameter, or it cannot have this value.
        """
        return DesignExplanation(space, given, why(space, given), setting)

    @property
    def legal(self) -> bool | None:
        """Whether some legal design has the given values; ``None`` if it could not be decided."""
        return True if self.why.example is not None else False if self.why.left == 0 else None

    @property
    def _obstacle(self) -> str | None:
        if self.why.left is not None:
            return None
        return obstacle(narrow_space(self.space, self.given))

    @property
    def _these(self) -> str:
        return "with these values" if self.given else "in the space"

    def json(self) -> Explained:
        """Return the explanation as JSON; ``legal`` is null if it could not be decided."""
        explanation = self.why
        return {
            "set": dict(self.given),
            "whole": explanation.whole,
            "legal": self.legal,
            "designs": explanation.left,
            "reason": self._obstacle,
            "example": None if explanation.example is None else dict(explanation.example),
            "against": [
                {
                    "kind": rule.kind,
                    "rule": rule.text,
                    "where": rule.where or None,
                    "parameters": sorted(rule.names),
                }
                for rule in explanation.against
            ],
        }

    def __str__(self) -> str:
        return "\n".join(self.lines())

    def __repr__(self) -> str:  # for notebooks; the default would print the complete space
        return str(self)

    def lines(self) -> list[str]:
        """Return the explanation as lines of text for the terminal."""
        if self.why.whole:
            return self._list_broken_rules()
        if self.why.example is None:
            return self._explain_conflict()
        example = f"for example {design_text(entries(self.space), self.why.example)}"
        if self.why.left is None:
            text = f"there are legal designs {self._these}; not countable: {self._obstacle}"
        else:
            text = f"{format_count(self.why.left, 'legal design')} {self._these}"
        return [text, example]

    def _explain_conflict(self) -> list[str]:
        against = self.why.against
        rules = [f"  {rule_text(self.space, rule, self.setting)}" for rule in against]
        none = f"no legal design {self._these}"
        if self.why.left is None:
            verb = "these may rule all out, or leave very little:"
            return [f"{none} was found, but that proves nothing: {self._obstacle}", verb, *rules]
        if len(against) == 1:
            return [f"{none}: this rules all out", *rules]
        last = "leave out any one of them, and nothing contradicts the rest"
        return [f"{none}: these contradict one another", *rules, last]

    def _list_broken_rules(self) -> list[str]:
        """List the rules that a complete design violates, with the values that each rule uses."""
        against = self.why.against
        if not against:
            return ["legal: the design keeps every rule"]
        lines = [f"illegal: the design breaks {format_count(len(against), 'rule')}"]
        for rule in against:
            lines += [f"  {rule_text(self.space, rule, self.setting)}", f"    {self._read(rule)}"]
        return lines

    def _read(self, rule: Rule) -> str:
        parameters = [p for p in self.space.parameters if p.name in rule.names]
        values = [setting_text(p, self.given[p.name]) for p in parameters if p.name in self.given]
        come = sides(rule, self.given)
        return ", ".join(values) + (f": comes to {come}" if come else "")
