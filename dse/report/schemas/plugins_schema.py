"""JSON schemas of ``dse plugins``: the plug-ins with their options, inputs and metrics."""

from __future__ import annotations

from typing import Literal

from dse.report.schemas.base import Goal, Shape

Kind = Literal[
    "evaluators",
    "optimizers",
    "executors",
    "storages",
    "functions",
    "models",
    "assets",
    "environments",
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
    about: str
    """Its meaning, in Markdown; empty where the documentation of the plug-in does not state it."""


class ReadFacts(Shape):
    """Parameter or metric that an evaluator reads as input."""

    name: str
    """The parameter, or the metric of another evaluator."""
    unit: str
    """The unit in which it is read; empty where it has none."""
    required: bool
    """Whether a space must provide it."""
    values: str
    """The values that it can take; empty where the evaluator does not declare them."""
    default: str | None
    """The value of a design without it, as in a study file; null where none is declared."""
    about: str
    """Its meaning, in Markdown; empty where the documentation does not state it."""


class ProvidedFacts(Shape):
    """Metric that an evaluator provides."""

    name: str
    """Its name after the evaluator's name in the study: `energy` in `chip.energy`."""
    unit: str
    """Its unit; empty where it has none."""
    goal: Goal | None
    """Which values are better; null where neither is."""
    part_of: str
    """The metric to whose total it contributes; may be empty."""
    words: list[str]
    """The labels of its values 0, 1, 2 ...; empty for a numeric metric."""


class HeldOutFacts(Shape):
    """Error of fitted constants on measured points that were held out of the fit."""

    name: str
    """The name of the fit."""
    fitted: int
    """The number of points that the constants were fitted to."""
    held_out: int
    """The number of points held out."""
    mean: float
    """The mean relative error on the points held out: 0.1 is 10 %."""
    largest: float
    """The largest relative error on them."""
    source: str
    """The source of the measured points."""


class PluginFacts(Shape):
    """Full description of a plug-in."""

    kind: Kind
    """Its kind."""
    name: str
    """Its name in study files."""
    about: str
    """A description in one sentence, in Markdown."""
    details: str
    """Further description, in Markdown; may be empty."""
    options: list[OptionFacts]
    """Its options."""
    origin: Literal["modelled", "measured"] | None
    """Whether an evaluator computes its metrics or measures them; null for other kinds, and where
    it depends on the options."""
    reads: list[ReadFacts] | None
    """Its inputs, with the options of the example; null where they depend on other options, and
    for kinds other than evaluators."""
    provides: list[ProvidedFacts] | None
    """Its metrics; null likewise."""
    limits: str
    """What it does not model, and where its results are not valid, in Markdown; may be empty."""
    error: str
    """Its error against published or measured values, in Markdown; may be empty."""
    held_out: list[HeldOutFacts]
    """The errors of its fitted constants; empty where it has none."""
    source: str
    """The publications that it follows, in Markdown; may be empty."""
    example: dict[str, str]
    """The text of each file of an example, such as `space.yaml` and `study.yaml`; may be empty."""
