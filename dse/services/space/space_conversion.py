"""Conversion of a space to and from other formats, and comparison of two spaces."""

from __future__ import annotations

from typing import Literal

from dse.core.inspection.diff import difference
from dse.core.inspection.fingerprint import fingerprint
from dse.core.space import DesignSpace
from dse.interop.configspace import configspace
from dse.interop.conversion import SpaceExport, SpaceImport
from dse.interop.optuna import distributions as optuna
from dse.interop.tuning_space import KEY, read_t1
from dse.report.schemas.space_schema import Differing
from dse.schema.space.export.space_writer import format_space
from dse.schema.space.parameters.number_text import spell_number

Target = Literal["yaml", "configspace", "optuna"]
Origin = Literal["configspace", "optuna", "kernel-tuner"]


def convert_space(
    space: DesignSpace,
    target: Target,
    *,
    name: str,
    description: str = "",
    drop_rules: bool = False,
) -> SpaceExport:
    """Return a space as one flat YAML file, or as JSON of ConfigSpace or Optuna.

    Args:
        space: the space to convert.
        target: the target format.
        name: name of the space in the text.
        description: description of the space in the YAML file.
        drop_rules: omit rules that the target cannot express, each with a warning; the result is
            a superset of the space.

    Raises:
        SpecError: the target cannot express a rule, and ``drop_rules`` is false.
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
    """Return the search space that a JSON file of another tool describes.

    Args:
        text: the JSON text.
        file: file name for error messages.
        origin: the tool that wrote the text, ``configspace``, ``optuna`` or ``kernel-tuner`` (its
            format T1); by default recognised by the keys of the JSON.

    Raises:
        SpecError: the text is not of that tool's format, or is inconsistent.
    """
    match origin or _recognize(text):
        case "configspace":
            return configspace.read_configspace(text, file)
        case "optuna":
            return optuna.read_distributions(text, file)
        case "kernel-tuner":
            return read_t1(text, file)


def _recognize(text: str) -> Origin:
    """Return the tool that wrote a text, by a key that only the format of this tool has."""
    if '"hyperparameters"' in text:
        return "configspace"
    return "kernel-tuner" if f'"{KEY}"' in text else "optuna"


def differing(old: DesignSpace, new: DesignSpace) -> Differing:
    """Return the differences between two spaces in parameters, domains, conditions and rules."""
    differences = difference(old, new, spell_number)
    return {
        "same": not differences,
        "fingerprints": {"old": fingerprint(old), "new": fingerprint(new)},
        "differences": list(differences),
    }
