"""``dse space``: what a space is, how large, what is legal in it, and what leads to another."""

from __future__ import annotations

from typing import Literal

from dse.report.schemas.base import Design, Shape


class EstimateFacts(Shape):
    """The size of a legal set, estimated from uniform draws out of a larger one."""

    designs: int
    """How many legal designs there are about."""
    low: int
    """Where the interval begins."""
    high: int
    """Where the interval ends."""
    confidence: float
    """How often such an interval holds the true number: 0.95."""
    at_most: int
    """How many the larger set has: a bound for certain."""
    draws: int
    """How many were drawn from the larger set."""
    legal: int
    """How many of the draws were legal."""


class Counted(Shape):
    """Number of legal designs."""

    file: str
    """The space file as it was named."""
    designs: int | None
    """How many, a whole number of any length; null where that cannot be counted."""
    exact: bool
    """True where they were counted; the estimate is then null."""
    estimate: EstimateFacts | None
    """What draws tell where they were not; null with real parameters."""
    reason: str | None
    """Why it cannot be counted; null where it was."""


class ShareFacts(Shape):
    """A share of designs."""

    share: float
    """From 0 to 1."""
    draws: int | None
    """From how many draws it is estimated; null where it is exact."""


class ParameterFacts(Shape):
    """A parameter; of a list each member is one."""

    parameter: str
    """Its name."""
    domain: str
    """What it can be, in words."""
    unit: str
    """Its unit; empty where it has none."""
    when: str
    """The condition under which it is there; empty where it always is."""
    active: ShareFacts
    """The share of designs in which it is there."""
    where: str | None
    """The file and the line that state it."""


class RuleFacts(Shape):
    """A rule, and what it removes."""

    rule: str
    """The rule as the file has it."""
    where: str | None
    """The file and the line that state it."""
    parameters: list[str]
    """What it reads."""
    forbids: ShareFacts
    """The share of the designs without any rule that it forbids."""
    alone: ShareFacts
    """The share of these that it forbids and no other rule does."""
    removes: int | None
    """How many designs that is; null where it cannot be counted."""


class GroupFacts(Shape):
    """Parameters that rules tie together."""

    parameters: list[str]
    """The parameters."""
    combinations: int | None
    """How many combinations of their values are legal; null where that cannot be counted."""
    without_rules: int | None
    """How many there would be without rules; null likewise."""


class Described(Shape):
    """A space in one look."""

    file: str
    """The space file as it was named."""
    name: str
    """What the file calls it."""
    description: str
    """What the file says of it; may be empty."""
    designs: int | None
    """How many legal designs there are; null where that cannot be counted."""
    estimate: EstimateFacts | None
    """What draws tell where they were not counted; null with real parameters."""
    reason: str | None
    """Why it cannot be counted; null where it was."""
    combinations: int | None
    """The product of the sizes of all domains; null where one has no end."""
    without_rules: int | None
    """How many designs there would be without rules; null where that cannot be counted."""
    share: ShareFacts
    """The share of these that is legal."""
    parameters: list[ParameterFacts]
    """The parameters, in the order of the file."""
    rules: list[RuleFacts]
    """The rules."""
    groups: list[GroupFacts]
    """Which parameters rules tie together."""


class AgainstFacts(Shape):
    """A rule or value that stands against a design."""

    kind: Literal["constraint", "condition", "setting"]
    """A rule, a parameter's condition, or a value that was set."""
    rule: str
    """What it says."""
    where: str | None
    """The file and the line that state it; null for a value that was set."""
    parameters: list[str]
    """What it reads."""


class Explained(Shape):
    """Explanation of why designs are legal or not."""

    set: Design
    """The values that were set."""
    whole: bool
    """Whether these are a whole design."""
    legal: bool | None
    """Whether any legal design has them; null where that is not known."""
    designs: int | None
    """How many legal designs have them; null where that cannot be counted."""
    reason: str | None
    """Why it cannot be counted; null where it was."""
    example: Design | None
    """A legal design that has them; null where none was found."""
    against: list[AgainstFacts]
    """What contradicts them."""


class Neighbours(Shape):
    """The designs one small move away from another."""

    design: Design
    """The design."""
    neighbours: list[Design]
    """The legal designs beside it."""


class Fingerprints(Shape):
    """Fingerprints that distinguish two spaces, however their files are laid out."""

    old: str
    """Of the one."""
    new: str
    """Of the other."""


class Differing(Shape):
    """Differences that lead from one space to another."""

    same: bool
    """Whether they are one space."""
    fingerprints: Fingerprints
    """Equal where the spaces are."""
    differences: list[str]
    """Each difference, in words."""


class Translated(Shape):
    """A space in the words of a file, of this program or of another."""

    text: str
    """The whole file."""
    file: str | None
    """Where it was written; null where it was not."""
    notes: list[str]
    """What these words cannot say."""
