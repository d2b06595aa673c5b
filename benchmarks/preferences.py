"""Questions that `dse choose` needs until its favourite is within 1 % of a simulated user's best.

Run: python benchmarks/preferences.py [--users 20] [--designs 4000] [--csv FILE]

The fronts are those of shipped studies whose metrics are modelled, among a sample of legal designs.
A user has a weighted sum, a weighted maximum (Chebyshev), thresholds with a weighted sum below
them, or a Cobb-Douglas product, which no sampled function of the model is; each with truthful
answers, and with 5 % of the answers reversed. A loss is the user's utility of the best design minus
that of the favourite, as a share of the range over the front (with thresholds: over the acceptable
designs). "Needed" is the number of questions from which on the loss stays at most 1 %, of eight at
most; "stop" is where the program stops by itself.
"""

from __future__ import annotations

import argparse
import csv
import os
import zlib
from dataclasses import dataclass
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np

from dse.core.pareto import ParetoSet
from dse.core.trial import State, Trial
from dse.core.trials import Trials
from dse.core.utility_posterior import NEAR, UtilityPosterior
from dse.schema.study.plan import plan_of
from dse.services.studies.recorded_preferences import QUESTIONS, SURE

STUDIES = (
    "llm_training",
    "llm_serving",
    "expert_serving",
    "diffusion_training",
    "offload",
    "power_oversubscription",
    "systolic_exact",
    "carbon_aware",
)
KINDS = ("sum", "maximum", "thresholds", "product")
IN_MODEL = KINDS[:3]
NOISES = (0.0, 0.05)
NEVER = QUESTIONS + 1
FOLDER = Path(__file__).parents[1] / "studies"


@dataclass(frozen=True)
class Dialogue:
    """Loss of the favourite after 0, 1, ... questions, and how many the program asks itself."""

    losses: tuple[float, ...]
    stop: int

    @property
    def needed(self) -> int:
        """Number of questions from which on the loss is at most 1 %; `NEVER` if it never is."""
        near = [loss <= NEAR for loss in self.losses]
        return next((n for n in range(len(near)) if all(near[n:])), NEVER)


def sample_front(study: str, designs: int) -> np.ndarray:
    """Return the losses, (n, m), of the front of sampled designs of a shipped study."""
    problem = plan_of(FOLDER / f"{study}.yaml").problem
    batch = problem.space.sample(designs, np.random.default_rng(0))
    known = problem.known(batch)
    trials = [
        Trial(
            number=row,
            design=batch.design(row),
            state=State.DONE,
            metrics={name: float(values[row]) for name, values in known.columns.items()},
        )
        for row in range(designs)
        if row not in known.failures
    ]
    return ParetoSet.of(problem, Trials.of(trials)).losses


def draw_utility(kind: str, losses: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Return a simulated user's utility of each design, (n,); the best has 1."""
    span = np.ptp(losses, axis=0)
    shares = (losses - losses.min(axis=0)) / np.where(span > 0, span, 1.0)
    size = shares.shape[1]
    weights = rng.dirichlet(np.ones(size))
    if kind == "maximum":
        return _scale(-(shares * weights).max(axis=1))
    if kind == "product":
        return _scale(-np.log(shares + 0.1) @ weights)
    if kind == "sum":
        return _scale(-shares @ weights)
    limits = np.where(rng.random(size) < 0.5, rng.random(size), np.inf)
    if np.isinf(limits).all():
        limits[rng.integers(size)] = rng.random()
    over = np.maximum(shares - limits, 0.0).sum(axis=1)
    over -= over.min()  # nobody can have thresholds that no design satisfies
    return np.where(over <= 0, _scale(-shares @ weights, over <= 0), -0.2 - over)


def _scale(values: np.ndarray, among: np.ndarray | None = None) -> np.ndarray:
    some = values if among is None else values[among]
    return (values - some.max()) / max(np.ptp(some), 1e-12) + 1.0


def converse(
    posterior: UtilityPosterior, utility: np.ndarray, noise: float, rng: np.random.Generator
) -> Dialogue:
    """Return the course of eight questions to a user who reverses a share of the answers."""
    losses, asked, stop = [1.0 - utility[posterior.favourite]], [], 0
    sure = posterior.confidence >= SURE
    for _ in range(QUESTIONS):
        pair = posterior.question(asked)
        if pair is not None:
            asked.append(pair)
            gap = utility[pair[0]] - utility[pair[1]]
            turned = rng.random() < noise
            better = "first" if (gap > 0) != turned else "second"
            posterior = posterior.answered(*pair, "equal" if abs(gap) < 1e-12 else better)
        stop += not sure and pair is not None
        sure = sure or posterior.confidence >= SURE
        losses.append(1.0 - utility[posterior.favourite])
    return Dialogue(tuple(map(float, losses)), stop)


def simulate(losses: np.ndarray, kind: str, noise: float, users: int) -> list[Dialogue]:
    """Return the dialogues with some users of one kind over one front."""
    prior = UtilityPosterior.of(losses)
    told = []
    for user in range(users):
        rng = np.random.default_rng([user, zlib.crc32(kind.encode())])
        utility = draw_utility(kind, losses, rng)
        told.append(converse(prior, utility, noise, rng))
    return told


def quantile(values: list[float], share: float) -> float:
    """Return the least value that at least a share of the values does not exceed."""
    return float(np.quantile(values, share, method="inverted_cdf"))


def row_of(front: str, kind: str, noise: float, told: list[Dialogue]) -> dict[str, object]:
    """Return the summary of some dialogues as a row of the table."""
    needed = [one.needed for one in told]
    stops = [one.stop for one in told]
    words = {n: str(n) if n < NEVER else f">{QUESTIONS}" for n in range(NEVER + 1)}
    return {
        "front": front,
        "users": kind,
        "reversed": f"{noise:.0%}",
        "count": len(told),
        "needed 50 %": words[int(quantile(needed, 0.5))],
        "needed 90 %": words[int(quantile(needed, 0.9))],
        "within 1 % after 8": f"{np.mean([one.losses[-1] <= NEAR for one in told]):.1%}",
        "loss 90 % after 8": f"{quantile([one.losses[-1] for one in told], 0.9):.2%}",
        "stop 50 %": f"{quantile(stops, 0.5):.0f}",
        "within 1 % at stop": f"{np.mean([o.losses[o.stop] <= NEAR for o in told]):.1%}",
    }


def main() -> None:
    """Print a row for each front and noise, then one for each kind of user and noise."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--users", type=int, default=20, help="users of each kind and front")
    parser.add_argument("--designs", type=int, default=4_000, help="sampled designs of each study")
    parser.add_argument("--studies", nargs="*", default=STUDIES, help="names of shipped studies")
    parser.add_argument("--csv", type=Path, help="write the table to this file, too")
    args = parser.parse_args()
    told: dict[tuple[str, str, float], list[Dialogue]] = {}
    rows: list[dict[str, object]] = []
    for study in args.studies:
        losses = sample_front(study, args.designs)
        for noise in NOISES:
            for kind in KINDS:
                told[study, kind, noise] = simulate(losses, kind, noise, args.users)
            some = [one for kind in IN_MODEL for one in told[study, kind, noise]]
            front = f"{study} ({len(losses)} designs, {losses.shape[1]} objectives)"
            rows.append(row_of(front, "first three", noise, some))
            print(rows[-1], flush=True)
    for noise in NOISES:
        for kinds in (*((kind,) for kind in KINDS), IN_MODEL):
            some = [
                one
                for (_, kind, reversed_), dialogues in told.items()
                if reversed_ == noise and kind in kinds
                for one in dialogues
            ]
            rows.append(row_of("all", kinds[0] if len(kinds) == 1 else "first three", noise, some))
            print(rows[-1], flush=True)
    if args.csv:
        with args.csv.open("w", newline="") as file:
            writer = csv.DictWriter(file, list(rows[0]))
            writer.writeheader()
            writer.writerows(rows)


if __name__ == "__main__":
    main()
