"""A space in the words of a file or of another tool, and beside another space."""

from __future__ import annotations

from typing import Literal

from dse.core.inspection.diff import difference
from dse.core.inspection.fingerprint import fingerprint
from dse.core.space import Space
from dse.interop.configspace import configspace
from dse.interop.conversion import SpaceExport, SpaceImport
from dse.interop.optuna import distributions as optuna
from dse.report.schemas.space import Differing
from dse.schema.space.export.write import format_space
from dse.schema.space.parameters.number_text import spell_number

Target = Literal["yaml", "configspace", "optuna"]
Origin = Literal["configspace", "optuna"]


def convert_space(
    space: Space, target: Target, *, name: str, description: str = "", drop_rules: bool = False
) -> SpaceExport:
    """Return a space as one flat YAML file, or as JSON of ConfigSpace or Optuna.

    Args:
        space: ours.
        target: in which tool's words.
        name: what the text calls it.
        description: what the YAML says of it.
        drop_rules: leave out what the other tool cannot say, each with a warning: a superset.

    Raises:
        SpecError: the other tool cannot say a rule, and it is not to be dropped.
        DesignError: the space has no legal design.
    """
    match target:
        case "yaml":
            return SpaceExport(text=format_space(space, name, description), warnings=())
        case "configspace":
            return configspace.write(space, name, drop_rules=drop_rules)
        case "optuna":
            return optuna.write(space, drop_rules=drop_rules)


def taken(text: str, file: str, origin: Origin | None = None) -> SpaceImport:
    """The space that a text of ConfigSpace or Optuna describes.

    Args:
        text: JSON.
        file: how messages call it.
        origin: which tool wrote it; by default told by its keys.

    Raises:
        SpecError: the text is none of that tool's, or says something that cannot be.
    """
    listed = '"hyperparameters"' in text  # only ConfigSpace has that key
    match origin or ("configspace" if listed else "optuna"):
        case "configspace":
            return configspace.read_configspace(text, file)
        case "optuna":
            return optuna.read_distributions(text, file)


def differing(old: Space, new: Space) -> Differing:
    """Return the differences of two spaces: parameters, domains, conditions and rules."""
    told = difference(old, new, spell_number)
    return {
        "same": not told,
        "fingerprints": {"old": fingerprint(old), "new": fingerprint(new)},
        "differences": list(told),
    }
