"""What published systems claim and what comes out: studies run, their outcomes recorded, the line.

    python benchmarks/reproductions.py                 # the line over all recorded outcomes
    python benchmarks/reproductions.py STUDY ...       # runs these studies, records what came out
    python benchmarks/reproductions.py --all           # runs all of studies/reproductions

docs/tour.md and docs/reproductions.md hold the line as ``dse check --reproduce`` prints it; both
are written anew. A claim whose label changed has to be run again before its outcome counts.
"""

from __future__ import annotations

import csv
import re
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TypedDict, cast

from dse.api.reproduce import reproduce
from dse.report.schemas.reproduction import CountsAs
from dse.report.text.claim_verdicts import count_kinds, summary_line
from dse.services.studies.claim_evaluation import ClaimVerdict

ROOT = Path(__file__).parents[1]
STUDIES = ROOT / "studies" / "reproductions"
RECORD = ROOT / "benchmarks" / "reproductions.csv"
PAGES = (ROOT / "docs" / "tour.md", ROOT / "docs" / "reproductions.md")

LINE = re.compile(r"\d+ reproduced(?: \(|, )[^\n`]*identit(?:y|ies)")
"""The line of the summary in a text."""
HOW_MANY = re.compile(r"\d+ of them, recorded by")
"""How many studies the line counts; the others measure for many minutes, and wait for a run."""


class Outcome(TypedDict):
    """What became of a claim when its study was last run."""

    study: str
    claim: str
    proof: str
    counts_as: str
    ours: str


def read_record() -> list[Outcome]:
    """Return the recorded outcomes in the order of the studies."""
    if not RECORD.exists():
        return []
    with RECORD.open(newline="") as file:
        return [cast("Outcome", row) for row in csv.DictReader(file)]


def recorded_line(outcomes: Iterable[Outcome]) -> str:
    """Return the line that counts the outcomes by kind."""
    return summary_line(count_kinds(cast("CountsAs", one["counts_as"]) for one in outcomes))


def how_many(outcomes: Iterable[Outcome]) -> str:
    """Return the words for the studies that are recorded."""
    return f"{len({one['study'] for one in outcomes})} of them, recorded by"


def write_pages(outcomes: Sequence[Outcome]) -> str:
    """Write the line and the number of studies into the pages; return the line."""
    line = recorded_line(outcomes)
    for page in PAGES:
        text = LINE.sub(line, page.read_text())
        page.write_text(HOW_MANY.sub(how_many(outcomes), text))
    return line


def main(words: list[str]) -> None:
    """Run the studies that are named, record what came out and write the pages' lines."""
    paths = sorted(STUDIES.glob("*.yaml")) if words == ["--all"] else [Path(one) for one in words]
    outcomes = read_record()
    for path in paths:
        own = [_outcome(path.stem, one) for one in reproduce(path)]
        lost = [one["claim"] for one in own if one["counts_as"] == "failed"]
        print(f"{path.stem}: {recorded_line(own)}", *lost, sep="\n  ", flush=True)
        if not lost:
            outcomes = [one for one in outcomes if one["study"] != path.stem] + own
            _write(outcomes)
    print(write_pages(outcomes))


def _outcome(study: str, judged: ClaimVerdict) -> Outcome:
    spec = judged.claim.spec
    return {
        "study": study,
        "claim": spec.claim,
        "proof": spec.proof,
        "counts_as": judged.counts_as,
        "ours": "" if judged.ours is None else f"{judged.ours:.6g} {judged.claim.unit}".strip(),
    }


def _write(outcomes: Iterable[Outcome]) -> None:
    rows = sorted(outcomes, key=lambda one: one["study"])  # stable: claims stay in their order
    with RECORD.open("w", newline="") as file:
        writer = csv.DictWriter(file, list(Outcome.__annotations__), lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)


if __name__ == "__main__":
    main(sys.argv[1:])
