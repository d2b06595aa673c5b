"""Sums of parts on problems that no constant was chosen on: random sums, with known fronts.

    python benchmarks/separable_held_out.py
    python benchmarks/separable_held_out.py --problem 3 --only declared --seeds 5

Each problem has a random number of layers and of formats, random sizes of the layers, lognormal
sensitivities, and a random noise of each format, falling with its bits; in every other problem, the
noise of a format differs between layers. The loss is the sum of sensitivity times noise, in a third
of the problems its power 0.6. Compared is ``grey-box`` with the parts declared by the modelled
noise, undeclared (it may find the sum), and undeclared without the search for sums; in ``blind`` no
noise is modelled either. Printed is what is left to the hypervolume of the front, in thousandths of
it: medians over the seeds.
"""

from __future__ import annotations

import argparse
import time
from dataclasses import dataclass

import numpy as np

from dse.core.batch import Batch
from dse.core.expressions.parser import parse
from dse.core.metric import Metric, Metrics
from dse.core.objective import Objective
from dse.core.parameter import Choice
from dse.core.pareto import hypervolume
from dse.core.problem import Problem, Source
from dse.core.separable import Separable
from dse.core.space import DesignSpace
from dse.core.trial import State, Trial
from dse.core.values import Floats
from dse.optimizers.grey_box import GreyBox
from dse.optimizers.separable.front_of_sums import front_of_sums

MODES = ("declared", "undeclared", "unsought", "blind", "blind-unsought")
LOOKS = (20, 30, 45)
PROBLEMS = 6


@dataclass(frozen=True, kw_only=True)
class RandomSum:
    """Random problem: bits of all layers against a loss that is about a sum over them."""

    widths: Floats  # (values,)
    sizes: Floats  # (layers,)
    noises: Floats  # (layers, values)
    sensitivities: Floats  # (layers,)
    power: float

    @staticmethod
    def of(number: int) -> RandomSum:
        """Draw the problem with this number."""
        rng = np.random.default_rng([number, 20261123])
        layers, values = int(rng.integers(7, 21)), int(rng.integers(4, 9))
        widths = np.sort(rng.choice(np.arange(2, 13), values, replace=False)).astype(float)
        noises = np.tile(4.0 ** -(widths + rng.normal(0, 0.25, values)), (layers, 1))
        if number % 2:
            noises *= np.exp(rng.normal(0, 0.5, noises.shape))
        return RandomSum(
            widths=widths,
            sizes=np.exp(rng.normal(0, 1.0, layers)),
            noises=noises / noises.max(),
            sensitivities=np.exp(rng.normal(0, rng.uniform(0.5, 1.5), layers)),
            power=(1.0, 1.0, 0.6)[number % 3],
        )

    @property
    def names(self) -> list[str]:
        """Names of the parameters, one for each layer."""
        return [f"bits[{layer}]" for layer in range(len(self.sizes))]

    @property
    def space(self) -> DesignSpace:
        """All combinations of a width for each layer."""
        values = tuple(int(width) for width in self.widths)
        return DesignSpace(parameters=tuple(Choice(name=one, values=values) for one in self.names))

    @property
    def front(self) -> Floats:
        """Losses of the front over all designs, (k, 2): size and loss."""
        tables = [
            np.column_stack([size * self.widths, own * noise])
            for size, own, noise in zip(self.sizes, self.sensitivities, self.noises, strict=True)
        ]
        sums = front_of_sums(tables).sums
        return np.column_stack([sums[:, 0], sums[:, 1] ** self.power])

    def evaluate(self, batch: Batch) -> dict[str, Floats]:
        """Return the size, the noise and the loss of n designs, (n,) each."""
        bits = np.column_stack([batch[name].astype(float) for name in self.names])
        rows = np.searchsorted(self.widths, bits)
        noise = self.noises[np.arange(len(self.sizes)), rows]
        return {
            "size": bits @ self.sizes,
            "noise": noise.sum(axis=1),
            "loss": (noise @ self.sensitivities) ** self.power,
        }

    def problem(self, seed: int, mode: str) -> Problem:
        """Return the problem as the optimizer gets it."""
        reads = frozenset(self.names)
        modelled = ["size"] if mode.startswith("blind") else ["size", "noise"]
        sources = {
            name: Source(metric=Metric(name), kind="modelled", reads=reads) for name in modelled
        }
        groups = tuple(frozenset({name}) for name in self.names)
        parts = Separable(groups=groups, by="noise") if mode == "declared" else None
        loss = Source(metric=Metric("loss"), kind="measured", reads=reads, separable=parts)
        goals = [Objective(expression=parse(name), goal="minimize") for name in ("size", "loss")]

        def model(batch: Batch) -> Metrics:
            found = self.evaluate(batch)
            return Metrics(columns={name: found[name] for name in modelled})

        return Problem(
            space=self.space,
            sources={**sources, "loss": loss},
            objectives=tuple(goals),
            seed=seed,
            model=model,
        )


def run(drawn: RandomSum, seed: int, mode: str) -> tuple[Floats, float]:
    """Return the share of the hypervolume that is missing at each look, and seconds an ask."""
    front = drawn.front
    reference = front.max(axis=0) * 1.1
    problem = drawn.problem(seed, mode)
    optimizer = GreyBox(problem, find_sums=not mode.endswith("unsought"))
    points: list[list[float]] = []
    spent = 0.0
    for number in range(LOOKS[-1]):
        start = time.process_time()
        (design,) = optimizer.ask(1)
        spent += time.process_time() - start
        metrics = {
            name: float(values[0])
            for name, values in drawn.evaluate(problem.space.batch([design])).items()
        }
        trial = Trial(number=number, design=design, state=State.DONE, metrics=metrics)
        optimizer.tell([trial])
        points.append([metrics["size"], metrics["loss"]])
    best = hypervolume(front, reference)
    left = [1 - hypervolume(np.array(points[:count]), reference) / best for count in LOOKS]
    return np.array(left), spent / LOOKS[-1]


def main() -> None:
    """Print a table of what is left, by problem, mode and number of measurements."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--seeds", type=int, default=2)
    parser.add_argument("--problem", type=int, action="append")
    parser.add_argument("--only", action="append", choices=MODES)
    options = parser.parse_args()
    looks = " | ".join(f"after {n}" for n in LOOKS)
    print(f"| problem | layers x formats | parts | {looks} | seconds an ask |")
    print("|---" * (len(LOOKS) + 4) + "|")
    for number in options.problem or range(PROBLEMS):
        drawn = RandomSum.of(number)
        shape = f"{len(drawn.sizes)} x {len(drawn.widths)}"
        for mode in options.only or MODES:
            found = [run(drawn, seed, mode) for seed in range(options.seeds)]
            left = 1000 * np.median([own for own, _ in found], axis=0)
            cells = " | ".join(f"{value:.2f}" for value in left)
            seconds = np.mean([own for _, own in found])
            print(f"| {number} | {shape} | {mode} | {cells} | {seconds:.2f} |", flush=True)


if __name__ == "__main__":
    main()
