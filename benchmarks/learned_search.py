"""Checks bought by the optimizer ``learned``, on tables of trained networks.

Run: pip install nas-bench-graph, then python benchmarks/learned_search.py [DATA_SET ...] [--seed 0]

200 of the 26,206 networks of a data set are given as finished trials, and the optimizer measures 20
more. The share of the hypervolume of the true front (error and the logarithm of latency, scaled to
their ranges) is compared with that of 220 random networks, and with that of ``grey-box`` with the
same 200 trials and up to 20 and 40 more.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Mapping, Sequence

import numpy as np
from learned import CHECKS, DATA_SETS, RUNS, read_table

from dse import Metric, Space, Study, evaluator
from dse.core.problem import Problem
from dse.core.trial import State, Trial
from dse.core.values import Floats
from dse.registry import make
from dse.storage.memory import MemoryStorage

_INPUTS = tuple(f"{kind}{at}" for kind in ("in", "op") for at in range(4))


def main() -> None:
    """Print one line for each data set."""
    parser = argparse.ArgumentParser()
    parser.add_argument("data_sets", nargs="*", default=list(DATA_SETS))
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--grey-box", action="store_true", help="also search by grey-box, slowly")
    asked = parser.parse_args()
    for name in asked.data_sets:
        designs, truth = read_table(name)
        order = np.random.default_rng(asked.seed).permutation(len(designs))
        report(name, designs, truth, order, grey_box=asked.grey_box)


def report(
    name: str,
    designs: Sequence[Mapping[str, object]],
    truth: Floats,
    order: np.ndarray,
    *,
    grey_box: bool,
) -> None:
    """Print the shares of the true hypervolume, and the processor time of the search."""
    scaled = np.stack([truth[:, 0], np.log(truth[:, 1])], axis=1)
    scaled = (scaled - scaled.min(axis=0)) / np.ptp(scaled, axis=0)
    problem = problem_of(designs, truth)
    start = time.process_time()
    rows = search(problem, "learned", designs, truth, order)
    spent = time.process_time() - start
    found = {
        "learned": share(scaled, rows),
        "learned, 10 checks": share(scaled, rows[: RUNS + CHECKS // 2]),
        "random": share(scaled, order[: RUNS + CHECKS]),
        "runs alone": share(scaled, order[:RUNS]),
    }
    if grey_box:
        found["grey-box"] = share(scaled, search(problem, "grey-box", designs, truth, order))
    text = ", ".join(f"{label} {value:.3f}" for label, value in found.items())
    print(f"{name}: {text}; {spent:.0f} s", flush=True)


def problem_of(designs: Sequence[Mapping[str, object]], truth: Floats) -> Problem:
    """Return the problem of a table: its designs are the legal ones."""
    rows = {tuple(design[one] for one in _INPUTS): at for at, design in enumerate(designs)}

    @evaluator(Metric("error", "", goal="minimize"), Metric("latency", "s", goal="minimize"))
    def trained(in0, in1, in2, in3, op0, op1, op2, op3):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202, PLR0913, PLR0917 - one argument for each column
        error, latency = truth[rows[in0, in1, in2, in3, op0, op1, op2, op3]]
        return {"error": error, "latency": latency}

    @evaluator(Metric("known", ""), kind="modelled")
    def table(in0, in1, in2, in3, op0, op1, op2, op3):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202, PLR0913, PLR0917 - one argument for each column
        return {"known": float((in0, in1, in2, in3, op0, op1, op2, op3) in rows)}

    values = {one: sorted({design[one] for design in designs}) for one in _INPUTS}
    links = sorted({tuple(design[f"in{at}"] for at in range(4)) for design in designs})
    legal = " or ".join(
        "(" + " and ".join(f"in{at} == {one}" for at, one in enumerate(link)) + ")"
        for link in links
    )
    study = Study(
        "graph-nets",
        Space(values, [legal]),
        [trained, table],
        log_scale=["trained.latency"],
        constraints=["table.known >= 1"],
        storage=MemoryStorage(),
    )
    return study.engine.plan.problem


def search(
    problem: Problem,
    optimizer: str,
    designs: Sequence[Mapping[str, object]],
    truth: Floats,
    order: np.ndarray,
) -> list[int]:
    """Return the rows of the 200 drawn networks, and of those that an optimizer measured."""
    rows = {tuple(design[one] for one in _INPUTS): at for at, design in enumerate(designs)}
    names = sorted(problem.measured)
    method = make("optimizers", optimizer, problem)
    done = order[:RUNS].tolist()
    made = problem.space.batch([designs[at] for at in done]).designs()
    method.tell([_trial(at, made[at], truth[row], names) for at, row in enumerate(done)])
    while len(done) < RUNS + CHECKS:
        (design,) = method.ask(1)
        done.append(rows[tuple(design[one] for one in _INPUTS)])
        method.tell([_trial(len(done) - 1, design, truth[done[-1]], names)])
    return done


def _trial(
    number: int, design: Mapping[str, object], values: Floats, names: Sequence[str]
) -> Trial:
    metrics = dict(zip(names, values.tolist(), strict=True))
    metrics["table.known"] = 1.0
    return Trial(number=number, design=design, state=State.DONE, metrics=metrics, measured=1)


def share(scaled: Floats, rows: Sequence[int]) -> float:
    """Return the hypervolume of some networks as a share of that of all."""
    import moocore

    whole = moocore.hypervolume(scaled, ref=[1.0, 1.0])
    return float(moocore.hypervolume(scaled[rows], ref=[1.0, 1.0]) / whole)


if __name__ == "__main__":
    main()
