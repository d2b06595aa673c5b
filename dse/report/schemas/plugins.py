"""``dse plugins``: what there is, its options, what it reads and provides."""

from __future__ import annotations

from typing import Literal

from dse.report.schemas.base import Shape

Kind = Literal[
    "evaluators", "optimizers", "executors", "storages", "functions", "assets", "environments"
]


class PluginRow(Shape):
    """A plug-in."""

    kind: Kind
    """What it is one of."""
    name: str
    """What study files call it."""
    distribution: str
    """The package that it comes from."""


class OptionFacts(Shape):
    """An option of a plug-in."""

    name: str
    """What study files call it."""
    type: str
    """What it takes, as Python says it."""
    required: bool
    """Whether it must be given."""
    default: str | None
    """What is taken without it, as Python says it; null where it must be given or is made anew."""


class ReadFacts(Shape):
    """Something that an evaluator reads of a design."""

    name: str
    """The parameter, or the metric of another evaluator."""
    unit: str
    """In which unit it is read; empty where it has none."""
    required: bool
    """Whether a space must have it."""


class ProvidedFacts(Shape):
    """A metric that an evaluator provides."""

    name: str
    """Its name, behind that of the evaluator in the study: `chip.energy`."""
    unit: str
    """Its unit; empty where it has none."""
    words: list[str]
    """What its values 0, 1, 2 ... stand for, where it is a metric of words; else nothing."""


class PluginFacts(Shape):
    """All about a plug-in."""

    kind: Kind
    """What it is one of."""
    name: str
    """What study files call it."""
    about: str
    """What it is, in one sentence."""
    details: str
    """What else is to be said; may be empty."""
    options: list[OptionFacts]
    """What it takes."""
    reads: list[ReadFacts] | None
    """What it reads; null where its options decide, and for what is no evaluator."""
    provides: list[ProvidedFacts] | None
    """What it provides; null likewise."""
