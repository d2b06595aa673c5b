"""Statistical claims of a comparison as sentences."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import count

from dse.analysis.comparison import ComparisonResult
from dse.analysis.conclusions import Conclusion
from dse.analysis.references import Indicator
from dse.analysis.runs import Currency
from dse.analysis.significance import LEVEL, least_p
from dse.report.words import number_text, seconds_text, share_text

INDICATOR_WORDS: dict[Indicator, str] = {
    "hypervolume": "hypervolume",
    "igd+": "IGD+",
    "epsilon": "epsilon",
    "r2": "R2",
}


def indicator_text(comparison: ComparisonResult, indicator: Indicator, value: float) -> str:
    """Return the value of an indicator as text; the hypervolume in percent.

    The percentage is of the volume between the reference point and the ideal point of all studies.
    """
    if indicator == "hypervolume":
        return share_text(comparison.yardstick.share(value))
    return number_text(value)


def amount_text(amount: float, currency: Currency) -> str:
    """Return a budget amount without the currency's name: ``50``, ``4 min 10 s``, ``12 $``."""
    match currency:
        case "seconds":
            return seconds_text(amount)
        case "cost":
            return f"{amount:.4g} $"
        case "measurements" | "trials":
            return f"{amount:.10g}"


def budget_text(amount: float, currency: Currency) -> str:
    """Return a budget with its currency: ``50 measurements``, ``4 min 10 s of evaluation``."""
    words = amount_text(amount, currency)
    match currency:
        case "seconds":
            return f"{words} of evaluation"
        case "cost":
            return words
        case "measurements" | "trials":
            return f"{words} {currency if amount != 1 else currency[:-1]}"


def budget_sentence(comparison: ComparisonResult) -> str:
    """Return a sentence on the budget at which groups are compared, and why it was chosen."""
    at = budget_text(comparison.at, comparison.over)
    totals = [r.totals[comparison.over] for group in comparison.groups for r in group.results]
    if comparison.at_given:
        short = sum(total < comparison.at for total in totals)
        ended = f"; {short} of {len(totals)} studies ended before, with what they had"
        return f"compared at {at}{ended if short else ''}"
    if max(totals) == comparison.at:
        return f"compared at {at}, which every study spent"
    most = budget_text(max(totals), comparison.over)
    return f"compared at {at}, the least that any study spent (the most: {most})"


def verdicts(comparison: ComparisonResult) -> list[str]:
    """Return the conclusions as sentences: for each pair of groups, significant differences.

    Each significant difference has its own sentence; one sentence lists all other indicators of a
    pair.
    """
    at = budget_text(comparison.at, comparison.over)
    sentences = []
    pairs = dict.fromkeys((claim.first, claim.second) for claim in comparison.claims)
    for pair in pairs:
        claims = [claim for claim in comparison.claims if (claim.first, claim.second) == pair]
        sentences += [_format_claim(comparison, claim, at) for claim in claims if claim.made]
        sentences += _open(comparison, [claim for claim in claims if not claim.made], at)
    return sentences + _too_few(comparison.claims)


def _format_claim(comparison: ComparisonResult, claim: Conclusion, at: str) -> str:
    turned = claim.better != claim.first
    worse = claim.first if turned else claim.second
    what = f"{claim.better} better than {worse} in {INDICATOR_WORDS[claim.indicator]} at {at}"
    return f"{what}: {_numbers(comparison, claim, turned=turned)}"


def _open(comparison: ComparisonResult, claims: Sequence[Conclusion], at: str) -> list[str]:
    if not claims:
        return []
    pair = f"{claims[0].first} and {claims[0].second}"
    each = "; ".join(
        f"{INDICATOR_WORDS[claim.indicator]} {_numbers(comparison, claim)}" for claim in claims
    )
    return [f"no difference between {pair} can be claimed at {at}: {each}"]


def _numbers(comparison: ComparisonResult, claim: Conclusion, *, turned: bool = False) -> str:
    superiority = 1 - claim.superiority if turned else claim.superiority
    words = [_difference(comparison, claim, turned=turned), f"A12 {superiority:.2f}"]
    if claim.least < 1:
        words.append(f"p {_chance(claim.corrected)} after Holm")
    return ", ".join(words)


def _difference(comparison: ComparisonResult, claim: Conclusion, *, turned: bool) -> str:
    """Return the difference of two medians with its interval, in percent for hypervolumes."""
    if claim.difference is None:
        return "one has no front"
    sign, unit = -1.0 if turned else 1.0, ""
    if claim.indicator == "hypervolume":
        sign, unit = sign * comparison.yardstick.percent, " percentage points"
    middle = f"{sign * claim.difference:+.3g}{unit}"
    if claim.interval is None:
        return middle
    low, high = sorted(sign * end for end in claim.interval)
    return f"{middle} [{low:.3g}, {high:.3g}]"


def _chance(value: float) -> str:
    return f"{value:.1g}" if value < 0.001 else f"{value:.2g}"


def _too_few(claims: Sequence[Conclusion]) -> list[str]:
    """Return warnings about numbers of studies that are too small for any significant result."""
    lost = {claim.runs: claim for claim in claims if claim.least * len(claims) > LEVEL}
    return [_lost(claim, len(claims)) for claim in lost.values()]


def _lost(claim: Conclusion, family: int) -> str:
    if claim.runs == (1, 1):
        return "one study each: nothing can be claimed without more seeds (dse sweep)"
    after = ""
    if family > 1:
        least = min(1.0, claim.least * family)
        after = f", {_chance(least)} after Holm over {family} claims"
    enough = next(n for n in count(2) if least_p(n, n, paired=claim.paired) * family <= LEVEL)
    return (
        f"with {_seeds(claim.runs)} the smallest p possible is {_chance(claim.least)}{after}: "
        f"no result could support a claim; {enough} seeds each would be enough"
    )


def _seeds(runs: tuple[int, int]) -> str:
    if runs[0] != runs[1]:
        return f"{runs[0]} and {runs[1]} seeds"
    return f"{runs[0]} seed{'s' if runs[0] > 1 else ''} each"
