"""Gap of a study, as JSON and as short texts: the hypervolume that its front may still miss."""

from __future__ import annotations

from collections.abc import Sequence

from dse.core.proof import Proof
from dse.core.recorded_gap import RecordedGap
from dse.core.trial import Event
from dse.report.schemas.front_schema import GapFacts


def known_gap(proof: Proof, events: Sequence[Event]) -> RecordedGap | None:
    """Return the hypervolume gap of a study: 0 if its front is exact, else the last recorded one.

    Args:
        proof: what is proved about the front.
        events: the study's recorded events.
    """
    if proof.exact:
        return RecordedGap(
            share=0.0, confidence=1.0, measurements=0, undecided=0, designs=proof.over or 0
        )
    return RecordedGap.of(events)


def gap_json(gap: RecordedGap | None) -> GapFacts | None:
    """Return a hypervolume gap as JSON; ``None`` while it is unknown."""
    if gap is None:
        return None
    return {
        "share": gap.share,
        "confidence": gap.confidence,
        "measurements": gap.measurements,
        "undecided": gap.undecided,
        "designs": gap.designs,
        "sampled": gap.is_sampled,
        "points": [list(point) for point in gap.points],
        "found": gap.found,
        "optimistic": gap.optimistic,
    }


def gap_text(gap: RecordedGap) -> str:
    """Return a hypervolume gap as a short text: ``at most 0.54 % (90 % confidence)``."""
    return f"at most {100 * gap.share:.2g} % ({100 * gap.confidence:.4g} % confidence)"


def gap_words(gap: RecordedGap | None) -> str:
    """Return a hypervolume gap as one line, with the number of undecided designs.

    The line is empty if the gap is unknown.
    """
    return "" if gap is None else f"gap: {gap_text(gap)}, {_undecided_text(gap)}{_volumes(gap)}"


def gap_tiles(gap: RecordedGap | None) -> list[tuple[str, str, str]]:
    """Return a page's tile for a hypervolume gap, as (name, value, note); empty if unknown."""
    return [] if gap is None else [("gap", gap_text(gap), _undecided_text(gap))]


def _volumes(gap: RecordedGap) -> str:
    """Return the two hypervolume shares that determine a gap, as text; empty if unknown."""
    if gap.found is None or gap.optimistic is None:
        return ""
    return f"; hypervolume {100 * gap.found:.4g} %, optimistic {100 * gap.optimistic:.4g} %"


def _undecided_text(gap: RecordedGap) -> str:
    sampled = "sampled " if gap.is_sampled else ""
    after = f"after {gap.measurements:,} measurements"
    return f"{gap.undecided:,} of {gap.designs:,} {sampled}designs undecided {after}"
