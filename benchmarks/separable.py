"""Measurements that a declared sum of terms saves, on studies of one format for each layer.

    python benchmarks/separable.py
    python benchmarks/separable.py --study studies/minilm_mixed_precision.yaml --model minilm
    python benchmarks/separable.py --only declared --only baseline --seeds 3

Compared are the optimizer that ``auto`` chooses, with the parts that `compression.recipe` declares
(``declared``) and without them (``undeclared``); a page of NumPy (``baseline``: one probe per
layer, then evenly spaced designs of the exact front of the sum of sensitivity times modelled
noise); and Optuna's TPE and NSGA-II. Every design is measured with the coding ``format``, if the
study has codings; as the size is modelled, the measured designs also have a hypervolume over both
codings (after the slash). Medians over the seeds, with the least and the largest at the end.
"""

from __future__ import annotations

import argparse
import importlib
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
from mixed_precision import CODING, CODINGS, PEERS, STUDY, Kept, record
from mixed_precision import Started as LayerCase
from playing import Step

from dse.core.batch import Batch, Column
from dse.core.design import Design
from dse.core.pareto import hypervolume
from dse.core.problem import Problem
from dse.core.trial import Trial
from dse.core.values import Floats
from dse.optimizers.separable.front_of_sums import front_of_sums
from dse.schema.study.plan import plan_of

NAMES = ("declared", "undeclared", "baseline", *PEERS)
LOOKS = (20, 30, 45, 75)
SPREAD = 30
"""Designs of the front of the sum that the baseline measures."""


def main() -> None:
    """Print a table of hypervolumes by optimizer and number of measurements."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--study", type=Path, default=STUDY)
    parser.add_argument("--model", default="shakespeare-lm")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--only", action="append", choices=NAMES)
    parser.add_argument("--noise", default="noise.noise", help="modelled feature of the baseline")
    options = parser.parse_args()
    plan = plan_of(options.study)
    problem = replace(plan.problem, baselines=())
    if CODING in problem.space.by_name:
        problem = replace(problem, space=problem.space.fixed({CODING: CODINGS[0]}))
    case = LayerCase(
        name=plan.name,
        problem=problem,
        evaluate=Kept(plan, options.model),
        judge=lambda trials: volume(plan.problem, trials),
    )
    print("| optimizer | " + " | ".join(f"after {n}" for n in LOOKS) + " | seconds an ask |")
    print("|---" * (len(LOOKS) + 2) + "|")
    for name in options.only or NAMES:
        seeds = range(1 if name == "baseline" else options.seeds)
        print(line(name, [run(case, name, seed, options.noise) for seed in seeds]), flush=True)


def line(name: str, runs: Sequence[tuple[Floats, float]]) -> str:
    """Return a row of the table: medians, then the range after the last look."""
    values = np.array([volumes for volumes, _ in runs])  # (seeds, looks, codings)
    cells = [
        "/".join("" if np.isnan(v) else f"{v:.4f}" for v in np.median(values, axis=0)[at])
        for at in range(len(LOOKS))
    ]
    least, most = values[:, -1, 0].min(), values[:, -1, 0].max()
    seconds = np.mean([own for _, own in runs])
    return f"| {name} | {' | '.join(cells)} ({least:.4f} to {most:.4f}) | {seconds:.2f} |"


def run(case: LayerCase, name: str, seed: int, noise: str) -> tuple[Floats, float]:
    """Return the hypervolumes, (looks, codings), and the seconds that an ask took."""
    seeded = case.seeded(seed)
    if name == "baseline":
        steps = list(baseline(case, noise))
    elif name in PEERS:
        peer = importlib.import_module(PEERS[name])
        steps = list(peer.run(seeded, seed, LOOKS[-1]))
    else:
        chosen = seeded if name == "declared" else without_parts(seeded)
        steps = list(record(replace(chosen, start=()), "auto", LOOKS[-1]))
    trials = [step.trial for step in steps]
    found = [[case.judge(own) for own in codings(case, trials[:count])] for count in LOOKS]
    return np.array(found), steps[-1].optimizer_s / len(steps)


def codings(case: LayerCase, trials: Sequence[Trial]) -> Iterator[list[Trial]]:
    """Yield the trials as measured, and, if the study has codings, with each of them."""
    yield list(trials)
    if trials and CODING in trials[0].design:
        yield [
            case.played(Design({**trial.design, CODING: coding}), trial.number)
            for trial in trials
            for coding in CODINGS
        ]


def without_parts(case: LayerCase) -> LayerCase:
    """Return the case without declared terms."""
    sources = {n: replace(one, separable=None) for n, one in case.problem.sources.items()}
    return replace(case, problem=replace(case.problem, sources=sources))


def volume(problem: Problem, trials: Sequence[Trial]) -> float:
    """Return the hypervolume below the study's reference point."""
    signs = [1.0 if one.goal == "minimize" else -1.0 for one in problem.objectives]
    reference = np.array(signs) * np.array(problem.fixed_reference)
    return hypervolume(problem.trial_losses(trials), reference)


def baseline(case: LayerCase, noise: str) -> Iterator[Step]:
    """Yield one probe per layer, then evenly spaced designs of the front of the sum."""
    problem, space = case.problem, case.problem.space
    layers = [one.name for one in space.parameters if one.name != CODING]
    formats = space.by_name[layers[0]].values
    fixed = {CODING: CODINGS[0]} if CODING in space.by_name else {}
    best = {**fixed, **dict.fromkeys(layers, formats[-1])}
    probes = [best, *({**best, layer: formats[0]} for layer in layers)]
    trials = [case.played(Design(own), number) for number, own in enumerate(probes)]
    yield from (Step(trial, 0.0) for trial in trials)
    varied = space.batch([Design({**best, layer: one}) for layer in layers for one in formats])
    sizes, noises = changes(problem, varied, noise, len(layers))
    place = measured_objective(problem)
    losses = problem.trial_losses(trials)[:, place]
    sensitivities = np.maximum(losses[1:] - losses[0], 0.0) / noises[:, 0]
    front = front_of_sums(list(np.stack([sizes, sensitivities[:, None] * noises], axis=2)))
    order = np.argsort(front.sums[:, 0])
    for row in np.unique(np.linspace(0, len(order) - 1, SPREAD).round().astype(int)):
        chosen = [formats[at] for at in front.rows[order[row]]]
        design = Design({**best, **dict(zip(layers, chosen, strict=True))})
        yield Step(case.played(design, len(trials) + int(row)), 0.0)


def changes(problem: Problem, varied: Batch, noise: str, layers: int) -> tuple[Floats, Floats]:
    """Return the changes of size and noise from the last format, (layers, formats) each."""
    known = {name: Column(values) for name, values in problem.known(varied).columns.items()}
    size = problem.objectives[1 - measured_objective(problem)].values(known, len(varied))
    tables = [np.reshape(one, (layers, -1)) for one in (size, known[noise].values)]
    return tables[0] - tables[0][:, -1:], tables[1] - tables[1][:, -1:]


def measured_objective(problem: Problem) -> int:
    """Return the index of the measured one of two objectives."""
    return next(
        place
        for place, one in enumerate(problem.objectives)
        if one.expression.names & problem.measured
    )


if __name__ == "__main__":
    main()
