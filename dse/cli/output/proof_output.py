"""Result of verifying a study by replay of its optimizer, as text and as JSON."""

from __future__ import annotations

from dse.core.design import Design
from dse.report.schemas.evaluation import MismatchFacts, ProofFacts, SampleFacts
from dse.study.replay import Mismatch, ReplayResult


def words(proof: ReplayResult) -> str:
    """Return the result of a replay (see ``dse verify``) as sentences for the terminal."""
    wrong = proof.mismatch
    carried = f", besides {proof.carried} from another study" if proof.carried else ""
    carried += f", besides {proof.attached} whose results were attached" if proof.attached else ""
    skipped = f"; {proof.skipped_asks} asks were not checked" if proof.skipped_asks else ""
    if wrong is not None:
        lines = [
            f"trial {wrong.trial} does not follow from the record: {wrong.reason}",
            *(_designs(wrong.expected, wrong.found)),
            f"  before it {proof.asks} asks and {proof.trials} trials are proved{carried}{skipped}",
        ]
        lines += [f"  {n}: {a} when recorded, {b} here" for n, (a, b) in wrong.versions.items()]
        return "\n".join(lines)
    proved = f"proved: {proof.asks} asks, {proof.trials} trials{carried}"
    lines = [proved]
    if proof.seed is not None:
        lines[0] = f"{proved} (a sample, drawn with seed {proof.seed})"
    if proof.skipped_asks:
        missed = f"{100 * proof.miss_probability:.3g} %"
        lines.append(
            f"not checked: {proof.skipped_asks} asks, {proof.skipped_trials} trials; a single "
            f"changed ask among all would be missed with probability {missed}"
        )
    if proof.salvaged:
        why = "they may depend on rows that a damaged storage has lost"
        lines.append(f"not proved: {proof.salvaged} trials of a salvaged study; {why}")
    if proof.unknown:
        others = "they were added by hand, or written by another program or an older version"
        lines.append(f"not proved: {proof.unknown} trials, of which no ask is kept; {others}")
    return "\n".join(lines)


def json(study: str, proof: ReplayResult) -> ProofFacts:
    """Return the result of a replay (see ``dse verify``) as JSON."""
    wrong = proof.mismatch
    return {
        "study": study,
        "proved": proof.whole,
        "asks": proof.asks,
        "trials": proof.trials,
        "carried": proof.carried,
        "attached": proof.attached,
        "unknown": proof.unknown,
        "salvaged": proof.salvaged,
        "sample": None if proof.seed is None else _sample(proof, proof.seed),
        "mismatch": None if wrong is None else _mismatch(wrong),
    }


def _sample(proof: ReplayResult, seed: int) -> SampleFacts:
    return {
        "seed": seed,
        "skipped_asks": proof.skipped_asks,
        "skipped_trials": proof.skipped_trials,
        "miss_probability": proof.miss_probability,
    }


def _designs(expected: Design | None, found: Design | None) -> list[str]:
    if expected is None and found is None:
        return []
    return [f"  expected: {_design(expected)}", f"  found:    {_design(found)}"]


def _design(design: Design | None) -> str:
    return "nothing" if design is None else ", ".join(f"{k}={v}" for k, v in design.items())


def _mismatch(wrong: Mismatch) -> MismatchFacts:
    return {
        "trial": wrong.trial,
        "reason": wrong.reason,
        "expected": None if wrong.expected is None else dict(wrong.expected),
        "found": None if wrong.found is None else dict(wrong.found),
        "versions": dict(wrong.versions),
    }
