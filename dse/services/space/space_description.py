"""Description of a space as JSON: parameters, rules, what each rule excludes, and the size."""

from __future__ import annotations

from dse.core.inspection.rule_check import obstacle
from dse.core.inspection.rule_effects import Portion, Portions
from dse.core.parameter import describe
from dse.core.space import DesignSpace
from dse.report.schemas.space_schema import Described, ShareFacts
from dse.services.space.size import estimate_json


def space_json(space: DesignSpace, file: str, *, name: str, description: str) -> Described:
    """Return a complete description of a space as JSON.

    The fractions of designs that the rules leave are counted exactly where possible and otherwise
    estimated from random draws, whose number is included.

    Args:
        space: the space.
        file: name of its file, as the user gave it; empty for a space made in Python.
        name: name of the space.
        description: description of the space by its author.
    """
    portions = Portions(space)
    extent = portions.extent
    return {
        "file": file,
        "name": name,
        "description": description,
        "designs": extent.designs,
        "estimate": None if extent.estimate is None else estimate_json(extent.estimate),
        "reason": obstacle(space),
        "combinations": extent.combinations,
        "without_rules": extent.unruled,
        "share": _share_json(extent.share),
        "parameters": [
            {
                "parameter": p.name,
                "domain": describe(p),
                "unit": p.unit,
                "when": space.conditions[p.name].text if p.name in space.conditions else "",
                "active": _share_json(portions.activity.get(p.name, Portion(share=1.0))),
                "where": space.places.get(p.name),
            }
            for p in space.parameters
        ],
        "rules": [
            {
                "rule": one.rule.text,
                "where": one.rule.where or None,
                "parameters": sorted(one.rule.names),
                "forbids": _share_json(one.forbidden),
                "alone": _share_json(one.alone),
                "removes": one.removed,
            }
            for one in portions.removals
        ],
        "groups": [
            {
                "parameters": list(group.component.names),
                "combinations": group.component.count,
                "without_rules": group.unruled,
            }
            for group in portions.groups
        ],
    }


def _share_json(portion: Portion) -> ShareFacts:
    return {"share": portion.share, "draws": portion.draws or None}
