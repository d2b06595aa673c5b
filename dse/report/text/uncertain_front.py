"""Report on the designs whose membership in the Pareto front is uncertain."""

from __future__ import annotations

from collections.abc import Mapping

from dse.analysis.front_probability import DOUBT, in_doubt

_TOLD = 12


def doubt_words(chances: Mapping[int, float]) -> str:
    """Return a text on the trials that metric errors may put on or off the Pareto front.

    ``chances`` are the trials' probabilities to be on it. The text is empty if no metric has a
    standard error.
    """
    if not chances:
        return ""
    found = in_doubt(chances)
    low, high = (f"{100 * share:g} %" for share in DOUBT)
    if not found:
        return f"no trial's place on the front is in doubt (between {low} and {high})"
    each = [f"trial {number} ({100 * chance:.0f} %)" for number, chance in found.items()]
    more = f" and {len(each) - _TOLD} more" if len(each) > _TOLD else ""
    return f"in doubt, with the chance to be on the front: {', '.join(each[:_TOLD])}{more}"
