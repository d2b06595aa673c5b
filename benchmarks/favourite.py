"""Utility of the best design for a simulated user, with and without `--toward favourite`.

Run: python benchmarks/favourite.py [--seeds 6] [--before 12] [--after 24]

A study minimises two smooth functions of three parameters with `grey-box`. After some measurements
a user, whose utility is the negative weighted maximum of both, answers up to six questions. The
study then goes on, once toward the favourite and once toward the front. A row has the mean
utility of the best design, in how many studies it is better with steering, and the processor time
of a suggestion in both cases.
"""

from __future__ import annotations

import argparse
import os
import time

os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np

from dse import Metric, Study, Trial, evaluator
from dse.storage.memory import MemoryStorage

WEIGHTS = (0.2, 0.4, 0.6, 0.8)
QUESTIONS = 6


@evaluator(Metric("left", goal="minimize"), Metric("right", goal="minimize"))
def curve(x: float, y: float, z: float) -> dict[str, float]:
    """Return two losses with a curved front at y = 0.3 and z = 0.7, approximately."""
    away = 1 + 3 * ((y - 0.3) ** 2 + (z - 0.7) ** 2) + 0.3 * (y - 0.3) * x
    return {"left": x, "right": away * (1 - np.sqrt(x / away))}


def play(
    seed: int, weight: float, *, before: int, after: int, steered: bool
) -> tuple[float, float]:
    """Return the best utility after a study, and the processor seconds of its second part."""

    def utility(trial: Trial) -> float:
        left, right = trial.metrics["curve.left"], trial.metrics["curve.right"]
        return -max(weight * left, (1 - weight) * right)

    study = Study(
        "favourite",
        {"x": (0.0, 1.0), "y": (0.0, 1.0), "z": (0.0, 1.0)},
        [curve],
        storage=MemoryStorage(),
        optimizer="grey-box",
        seed=seed,
        executor="serial",
    )
    study.run(measurements=before, progress=False)
    study.choose(lambda a, b: "first" if utility(a) > utility(b) else "second", questions=QUESTIONS)
    if steered:
        study.steer("favourite")
    begun_s = time.process_time()
    study.run(measurements=after, progress=False)
    return max(map(utility, study.trials)), time.process_time() - begun_s


def main() -> None:
    """Print a row for each weight."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--seeds", type=int, default=6, help="studies of each weight")
    parser.add_argument("--before", type=int, default=12, help="measurements before the questions")
    parser.add_argument("--after", type=int, default=24, help="measurements in all")
    args = parser.parse_args()
    budget = {"before": args.before, "after": args.after}
    for weight in WEIGHTS:
        found = np.array(
            [
                [play(seed, weight, steered=steered, **budget) for steered in (False, True)]
                for seed in range(args.seeds)
            ]
        )  # (seeds, 2, 2)
        plain, best = found[:, 0, 0], found[:, 1, 0]
        cost = found[:, :, 1].mean(axis=0) / (args.after - args.before)
        print(
            f"weight {weight}: without {plain.mean():.4f}, with {best.mean():.4f}, "
            f"better in {(best > plain).sum()}, worse in {(best < plain).sum()} of {args.seeds}; "
            f"{cost[0]:.3f} and {cost[1]:.3f} s per suggestion",
            flush=True,
        )


if __name__ == "__main__":
    main()
