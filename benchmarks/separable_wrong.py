"""What a wrong declaration of parts costs: a product, a maximum and an interacting loss.

    python benchmarks/separable_wrong.py --seeds 2

Eight layers have one of six widths each. Every loss is declared to be a sum over the layers by
their modelled noise; the table compares ``grey-box`` with the declaration, without it, and without
it and without the search for undeclared sums, as shares of the hypervolume of the front of 200,000
random designs (so a share may exceed 1). Medians.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping

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

WIDTHS = (2, 3, 4, 5, 6, 8)
LAYERS = [f"bits[{layer}]" for layer in range(8)]
SPACE = DesignSpace(parameters=tuple(Choice(name=name, values=WIDTHS) for name in LAYERS))
RNG = np.random.default_rng(3)
SENSITIVITIES = np.exp(RNG.normal(0, 1.2, len(LAYERS)))
WEIGHTS = RNG.uniform(0.5, 3, len(LAYERS))
PAIRS = RNG.normal(0, 1, (len(LAYERS) * len(WIDTHS),) * 2)
LOOKS = (20, 30, 45)
DRAWN = 200_000
MODES = ("unsought", "undeclared", "declared")
"""Without sums, with sums that the optimizer finds, and with declared sums."""


def noises(batch: Batch) -> Floats:
    """Return the noise of each layer relative to that of two bits, (n, layers)."""
    return 16 * np.column_stack([4.0 ** -batch[name].astype(float) for name in LAYERS])


def interacting(batch: Batch) -> Floats:
    """Return a sum plus a random effect of each pair of layers' widths."""
    hot = [batch[name].astype(int)[:, None] == np.array(WIDTHS) for name in LAYERS]
    one = np.concatenate(hot, axis=1).astype(float)
    pairs = np.einsum("ni,ij,nj->n", one, PAIRS, one)
    return np.asarray(noises(batch) @ SENSITIVITIES / 3 + 0.35 * pairs + 25)


LOSSES: Mapping[str, Callable[[Batch], Floats]] = {
    "sum": lambda batch: noises(batch) @ SENSITIVITIES,
    "product": lambda batch: np.prod(1 + 1.5 * noises(batch) * SENSITIVITIES, axis=1),
    "maximum": lambda batch: (noises(batch) * SENSITIVITIES).max(axis=1),
    "interacting": interacting,
}


def model(batch: Batch) -> Metrics:
    """Return the modelled metrics: the noise of all layers, and their size."""
    bits = np.column_stack([batch[name].astype(float) for name in LAYERS])
    return Metrics(columns={"noise": noises(batch).sum(axis=1), "size": bits @ WEIGHTS})


def problem_of(seed: int, *, declared: bool) -> Problem:
    """Return the problem: modelled size against a measured loss."""
    parts = Separable(groups=tuple(frozenset({name}) for name in LAYERS), by="noise")
    reads = frozenset(LAYERS)
    modelled = {
        name: Source(metric=Metric(name), kind="modelled", reads=reads)
        for name in ("noise", "size")
    }
    separable = parts if declared else None
    loss = Source(metric=Metric("loss"), kind="measured", reads=reads, separable=separable)
    objectives = [Objective(expression=parse(name), goal="minimize") for name in ("size", "loss")]
    return Problem(
        space=SPACE,
        sources={**modelled, "loss": loss},
        objectives=tuple(objectives),
        seed=seed,
        model=model,
    )


def run(name: str, seed: int, reference: Floats, mode: str) -> Floats:
    """Return the hypervolume after each number of measurements, (looks,)."""
    problem = problem_of(seed, declared=mode == "declared")
    optimizer = GreyBox(problem, find_sums=mode != "unsought")
    points: list[list[float]] = []
    for number in range(LOOKS[-1]):
        (design,) = optimizer.ask(1)
        batch = SPACE.batch([design])
        metrics = {key: float(values[0]) for key, values in model(batch).columns.items()}
        metrics["loss"] = float(LOSSES[name](batch)[0])
        state = State.DONE
        optimizer.tell([Trial(number=number, design=design, state=state, metrics=metrics)])
        points.append([metrics["size"], metrics["loss"]])
    return np.array([hypervolume(np.array(points[:count]), reference) for count in LOOKS])


def main() -> None:
    """Print a table of shares by loss, declaration and number of measurements."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--loss", action="append", choices=LOSSES)
    parser.add_argument("--only", action="append", choices=MODES)
    options = parser.parse_args()
    drawn = SPACE.sample(DRAWN, np.random.default_rng(0))
    sizes = model(drawn).columns["size"]
    print("| loss | parts | " + " | ".join(f"after {n}" for n in LOOKS) + " |")
    print("|---" * (len(LOOKS) + 2) + "|")
    for name in options.loss or LOSSES:
        losses = LOSSES[name](drawn)
        reference = np.array([sizes.max(), np.quantile(losses, 0.9)])
        best = hypervolume(np.column_stack([sizes, losses]), reference)
        for mode in options.only or MODES:
            found = [run(name, seed, reference, mode) for seed in range(options.seeds)]
            cells = " | ".join(f"{share:.3f}" for share in np.median(found, axis=0) / best)
            print(f"| {name} | {mode} | {cells} |", flush=True)


if __name__ == "__main__":
    main()
