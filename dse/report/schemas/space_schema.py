"""JSON schemas of ``dse space``: size, rules, explanations, neighbours and differences."""

from __future__ import annotations

from typing import Literal

from dse.report.schemas.base import Design, Shape


class EstimateFacts(Shape):
    """Number of legal designs in a space, estimated from uniform draws from a larger set."""

    designs: int
    """The estimated number of legal designs."""
    low: int
    """The lower end of the confidence interval."""
    high: int
    """The upper end of the confidence interval."""
    confidence: float
    """The confidence level of the interval: 0.95."""
    at_most: int
    """The size of the larger set: a certain upper bound."""
    draws: int
    """How many were drawn from the larger set."""
    legal: int
    """How many of the draws were legal."""


class Counted(Shape):
    """Number of legal designs in a space, exact or estimated."""

    file: str
    """The space file as it was named."""
    designs: int | None
    """How many, a whole number of any length; null where that cannot be counted."""
    exact: bool
    """Whether they were counted; the estimate is then null."""
    estimate: EstimateFacts | None
    """An estimate from random draws if they were not counted; null with real parameters."""
    reason: str | None
    """Why it cannot be counted; null where it was."""


class ShareFacts(Shape):
    """Fraction of designs, exact or estimated from random draws."""

    share: float
    """The share, from 0 to 1."""
    draws: int | None
    """How many draws it is estimated from; null where it is exact."""


class ParameterFacts(Shape):
    """Description of a parameter; each member of a list is a parameter of its own."""

    parameter: str
    """Its name."""
    domain: str
    """Its domain as text."""
    unit: str
    """Its unit; empty where it has none."""
    when: str
    """The condition under which it is active; empty where it always is."""
    active: ShareFacts
    """The share of designs in which it is active."""
    where: str | None
    """The file and the line that state it."""


class RuleFacts(Shape):
    """Constraint of a space, with the share of designs that it removes."""

    rule: str
    """The rule as written in the file."""
    where: str | None
    """The file and the line that state it."""
    parameters: list[str]
    """The parameters that it reads."""
    forbids: ShareFacts
    """The share of the designs without any rule that it forbids."""
    alone: ShareFacts
    """The share of these designs that only this rule forbids."""
    removes: int | None
    """How many designs that is; null where it cannot be counted."""


class GroupFacts(Shape):
    """Group of parameters that constraints couple, directly or indirectly."""

    parameters: list[str]
    """The parameters."""
    combinations: int | None
    """How many combinations of their values are legal; null where that cannot be counted."""
    without_rules: int | None
    """How many there would be without rules; null likewise."""


class Described(Shape):
    """Summary of a design space: its size, parameters, rules and groups."""

    file: str
    """The space file as it was named."""
    name: str
    """Its name in the file."""
    description: str
    """Its description in the file; may be empty."""
    designs: int | None
    """How many legal designs there are; null where that cannot be counted."""
    estimate: EstimateFacts | None
    """An estimate from draws if they were not counted; null with real parameters."""
    reason: str | None
    """Why it cannot be counted; null where it was."""
    combinations: int | None
    """The product of the sizes of all domains; null where a domain is infinite."""
    without_rules: int | None
    """How many designs there would be without rules; null where that cannot be counted."""
    share: ShareFacts
    """The share of these that is legal."""
    parameters: list[ParameterFacts]
    """The parameters, in the order of the file."""
    rules: list[RuleFacts]
    """The rules."""
    groups: list[GroupFacts]
    """The groups of parameters that are coupled by rules."""


class AgainstFacts(Shape):
    """Rule or set value that makes a design illegal."""

    kind: Literal["constraint", "condition", "setting"]
    """A rule, a parameter's condition, or a value that was set."""
    rule: str
    """Its text."""
    where: str | None
    """The file and the line that state it; null for a value that was set."""
    parameters: list[str]
    """The parameters that it reads."""


class Explained(Shape):
    """Explanation of whether any legal design has the given values, and why not."""

    set: Design
    """The values that were set."""
    whole: bool
    """Whether these values are a complete design."""
    legal: bool | None
    """Whether any legal design has them; null where that is not known."""
    designs: int | None
    """How many legal designs have them; null where that cannot be counted."""
    reason: str | None
    """Why it cannot be counted; null where it was."""
    example: Design | None
    """A legal design that has them; null where none was found."""
    against: list[AgainstFacts]
    """The rules and values that conflict with them."""


class Neighbours(Shape):
    """Legal designs one small move (neighbouring value) away from a design."""

    design: Design
    """The design."""
    neighbours: list[Design]
    """Its legal neighbours."""


class Fingerprints(Shape):
    """Hashes of two spaces' content, independent of the layout of their files."""

    old: str
    """The fingerprint of the first space."""
    new: str
    """The fingerprint of the second space."""


class Differing(Shape):
    """JSON result of the comparison of two spaces."""

    same: bool
    """Whether they are the same space."""
    fingerprints: Fingerprints
    """Their fingerprints, which are equal if the spaces are."""
    differences: list[str]
    """The differences, each as a text."""


class Translated(Shape):
    """Space converted to a file format of this or another program."""

    text: str
    """The complete file."""
    file: str | None
    """The file that was written; null where none was."""
    notes: list[str]
    """What the format cannot express."""
