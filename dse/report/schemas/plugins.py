"""JSON schemas of ``dse plugins``: the plug-ins with their options, inputs and metrics."""

from __future__ import annotations

from typing import Literal

from dse.report.schemas.base import Shape

Kind = Literal[
    "evaluators", "optimizers", "executors", "storages", "functions", "assets", "environments"
]


class PluginRow(Shape):
    """Name, kind and origin of a plug-in."""

    kind: Kind
    """Its kind."""
    name: str
    """Its name in study files."""
    distribution: str
    """The package that provides it."""


class OptionFacts(Shape):
    """Option of a plug-in."""

    name: str
    """Its name in study files."""
    type: str
    """Its type in Python notation."""
    required: bool
    """Whether it must be given."""
    default: str | None
    """The default in Python notation; null if it is required or is created for each use."""


class ReadFacts(Shape):
    """Parameter or metric that an evaluator reads as input."""

    name: str
    """The parameter, or the metric of another evaluator."""
    unit: str
    """The unit in which it is read; empty where it has none."""
    required: bool
    """Whether a space must provide it."""


class ProvidedFacts(Shape):
    """Metric that an evaluator provides."""

    name: str
    """Its name after the evaluator's name in the study: `energy` in `chip.energy`."""
    unit: str
    """Its unit; empty where it has none."""
    words: list[str]
    """The labels of its values 0, 1, 2 ...; empty for a numeric metric."""


class PluginFacts(Shape):
    """Full description of a plug-in."""

    kind: Kind
    """Its kind."""
    name: str
    """Its name in study files."""
    about: str
    """A description in one sentence."""
    details: str
    """Further description; may be empty."""
    options: list[OptionFacts]
    """Its options."""
    reads: list[ReadFacts] | None
    """Its inputs; null where they depend on its options, and for kinds other than evaluators."""
    provides: list[ProvidedFacts] | None
    """Its metrics; null likewise."""
