"""Verdicts on the published claims that a study reproduces, as text and HTML."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from dse.report.html.render import render
from dse.report.schemas.reproduction import (
    AssumedValue,
    CountedClaims,
    CountsAs,
    JudgedClaim,
    JudgedStudy,
)
from dse.units.units import converted, shown

_EXACT_END = 2**53
"""Whole numbers below this value are shown with all their digits."""

FINDING, IDENTITY = "finding", "identity"


def count_claims(claims: Iterable[JudgedClaim]) -> CountedClaims:
    """Return the number of claims with each outcome, by outcome."""
    return count_kinds(one["counts_as"] for one in claims)


def count_kinds(kinds: Iterable[CountsAs]) -> CountedClaims:
    """Return how often each outcome occurs in a sequence of outcomes, by outcome."""
    counts = Counter(kinds)
    return {
        "exact": counts["exact"],
        "held_out": counts["held-out"],
        "free": counts["free"],
        "direction_only": counts["direction only"],
        "size_differs": counts["size differs"],
        "not_reproduced": counts["not reproduced"],
        "findings": counts["finding"],
        "identities": counts["identity"],
        "failed": counts["failed"],
    }


def summary_line(counts: CountedClaims) -> str:
    """Return the number of claims per outcome in one line.

    A study's own findings, and identities that cannot fail, do not count as reproduced.
    """
    kinds = {
        "exact": counts["exact"],
        "held out": counts["held_out"],
        "free": counts["free"],
    }
    reproduced = sum(kinds.values())
    split = ", ".join(f"{count} {kind}" for kind, count in kinds.items() if count)
    line = (
        f"{reproduced} reproduced{f' ({split})' if split else ''}, "
        f"{counts['direction_only']} direction only, {counts['size_differs']} size differs, "
        f"{counts['not_reproduced']} not reproduced; "
        f"{counts['findings']} finding{'' if counts['findings'] == 1 else 's'}, "
        f"{counts['identities']} identit{'y' if counts['identities'] == 1 else 'ies'}"
    )
    return f"{line}; {counts['failed']} not as labelled" if counts["failed"] else line


def ours_text(one: JudgedClaim) -> str:
    """Return a claim's result in the study, in the publication's unit; a dash without a result."""
    return _number_text(one["ours"], one)


def print_text(one: JudgedClaim) -> str:
    """Return the published figure of a claim as text, in the form in which it was published."""
    published = one["published"]
    if isinstance(published, list):
        return " to ".join(map(str, published))
    return "" if published is None else str(published)


def verdict_text(one: JudgedClaim) -> str:
    """Return the verdict on a claim (published result) as text, with any explanation."""
    if one["verdict"] == "size differs":
        return f"direction holds, size differs (ours {ours_text(one)}, print {print_text(one)})"
    if one["verdict"] == "now holds":
        return "now holds: change the label"
    return one["verdict"]


def turned_text(one: JudgedClaim) -> str:
    """Return as text under how many changed assumptions a claim keeps its outcome.

    An assumption is a value that the reproduced paper does not state; the study was run at both
    ends of its interval.
    """
    turned = one["turned"]
    if not turned:
        return ""
    lost = [own for own in turned if not own["passes"]]
    if not lost:
        return f"over all {len(turned)} ends"
    kept = len(turned) - len(lost)
    word = "most" if kept > len(lost) else "some" if kept else "none"
    where = "; ".join(
        f"{own['name']} = {own['value']}: {_number_text(own['ours'], one)}" for own in lost
    )
    return f"over {word} of the ends ({kept} of {len(turned)}), not where {where}"


def claims_html(study: JudgedStudy) -> str:
    """Return a study's verdicts as HTML: published claims, findings, identities, assumptions."""
    claims = study["claims"]
    if not claims:
        return ""
    tables = [
        ("", *_table([one for one in claims if one["proof"] not in (FINDING, IDENTITY)])),
        ("Findings of this study, of which print has no figure", *_table(_of(claims, FINDING))),
        ("Identities, which cannot fail and reproduce nothing", *_table(_of(claims, IDENTITY))),
        (
            "Assumptions where the publication gives no value",
            ["assumption", "value", "interval", "stated at", "source"],
            [_assumption_row(one) for one in study["assumes"]],
        ),
    ]
    return render("report/claims.html", summary=summary_line(study["summary"]), tables=tables)


def _of(claims: Sequence[JudgedClaim], proof: str) -> list[JudgedClaim]:
    return [one for one in claims if one["proof"] == proof]


def _table(claims: Sequence[JudgedClaim]) -> tuple[list[str], list[list[str]]]:
    turned = any(one["turned"] for one in claims)
    heads = ["claim", "print", "ours", "kind", "verdict", *(["assumptions"] if turned else [])]
    rows = [
        [
            one["claim"],
            print_text(one),
            ours_text(one),
            one["proof"],
            verdict_text(one),
            *([turned_text(one)] if turned else []),
        ]
        for one in claims
    ]
    return heads, rows


def _assumption_row(one: AssumedValue) -> list[str]:
    return [
        one["name"],
        str(one["value"]),
        " to ".join(map(str, one["interval"])),
        ", ".join(one["turns"]),
        one["source"],
    ]


def _number_text(ours: float | None, one: JudgedClaim) -> str:
    if ours is None:
        return "-"
    value = converted(ours, one["unit"], one["print_unit"])
    whole = not one["print_unit"] and value.is_integer() and abs(value) < _EXACT_END
    return f"{value:.0f}" if whole else shown(value, one["print_unit"])
