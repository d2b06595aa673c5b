"""A number format for each layer: our optimizer against Optuna's, on a real model.

    python benchmarks/mixed_precision.py -o mixed.csv
    python benchmarks/mixed_precision.py -o mixed.csv --start sobol --seeds 3

Every optimizer starts with the same designs, which count: one of each format in all layers
(``--start uniform``), or eight of a scrambled Sobol sequence, our own then with its own start.
What is measured does not depend on the coding of the words, and the size is modelled: for all
optimizers alike, a measured design counts under either coding. A run that is in the file is
skipped; ``problem`` there changes with the model's weights and the study's metrics. Designs that
were measured once are read from a file of the cache.
"""

from __future__ import annotations

import argparse
import csv
import hashlib
import importlib
import json
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path

import numpy as np

from dse.core.design import Design
from dse.core.pareto import hypervolume
from dse.core.trial import Outcome, State, Trial
from dse.core.values import Floats
from dse.optimizers.auto import optimizer_for
from dse.protocols import Task
from dse.registry import make
from dse.schema.study.plan import Plan, plan_of
from dse_evaluators.workloads.models import workload_of
from dse_evaluators.workloads.weight_cache import folder

sys.path.insert(0, str(Path(__file__).parent / "optimizers"))
from case import Case
from playing import Clock, Step

STUDY = Path(__file__).parent.parent / "studies" / "lm_mixed_precision.yaml"
LIST, CODING = "format", "coding"
PEERS = {"optuna-tpe": "peers.optuna_tpe", "optuna-nsga2": "peers.optuna_nsga2"}
OPTIMIZERS = ("auto", *PEERS)
CODINGS = ("format", "huffman")
MEASUREMENTS, SEEDS = 100, 10
LOOKS = (20, 50, 100)
COLUMNS = (
    "problem",
    "start",
    "optimizer",
    "seed",
    *(f"hypervolume_{n}" for n in LOOKS),
    "dominated",
    "dominated_huffman",
    "spent_s",
)


@dataclass(frozen=True, kw_only=True)
class Started(Case):
    """A problem whose first designs are given; none: each optimizer's own."""

    start: tuple[Design, ...] = ()

    def first(self) -> list[Design]:
        return list(self.start) or super().first()


class Kept:
    """Outcomes of designs, each measured once and kept on disk."""

    def __init__(self, plan: Plan, model: str) -> None:
        self._plan = plan
        mark = hashlib.sha256(repr(sorted(plan.problem.sources)).encode())
        for value in workload_of(model).parameters.values():
            mark.update(value.tobytes())
        self.problem = mark.hexdigest()[:16]
        self._file = folder() / f"mixed-precision-{self.problem}.jsonl"
        self._known: dict[str, dict[str, float]] = {}
        if self._file.exists():
            rows = (json.loads(line) for line in self._file.read_text().splitlines())
            self._known = {row["design"]: row["metrics"] for row in rows}

    def __call__(self, design: Design) -> Outcome:
        if design.key not in self._known:
            (outcome,) = self._plan.pipeline([Task(number=0, design=design)])
            if outcome.state is not State.DONE:
                return outcome
            self._known[design.key] = dict(outcome.metrics)
            self._file.parent.mkdir(parents=True, exist_ok=True)
            row = {"design": design.key, "metrics": self._known[design.key]}
            with self._file.open("a") as stream:
                stream.write(json.dumps(row) + "\n")
        return Outcome(state=State.DONE, metrics=self._known[design.key], measured=1)


def main() -> None:
    """Run what the file lacks, then say who won how often."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("-o", "--out", type=Path, default=Path("mixed_precision.csv"))
    parser.add_argument("--study", type=Path, default=STUDY)
    parser.add_argument("--model", default="shakespeare-lm")
    parser.add_argument("--start", choices=("uniform", "sobol"), default="uniform")
    parser.add_argument("--optimizer", action="append", help="only these")
    parser.add_argument("--seeds", type=int, default=SEEDS)
    parser.add_argument("--seed", type=int, action="append", help="only these")
    parser.add_argument("--measurements", type=int, default=MEASUREMENTS)
    options = parser.parse_args()
    plan = plan_of(options.study)
    kept = Kept(plan, options.model)
    plain, coded = (uniforms(plan, coding) for coding in CODINGS)
    case = Started(
        name=plan.name,
        problem=replace(plan.problem, baselines=()),  # the start is chosen here
        evaluate=kept,
        judge=judge(plan),
        start=plain if options.start == "uniform" else (),
    )
    for seed in options.seed or range(options.seeds):
        for name in options.optimizer or OPTIMIZERS:
            key = (kept.problem, options.start, name, str(seed))
            if key not in done(options.out):
                row = run(case.seeded(seed), name, options.measurements, (plain, coded))
                append(options.out, (*key, *row))
    for line in verdicts(options.out, kept.problem, options.start):
        print(line)


def uniforms(plan: Plan, coding: str) -> tuple[Design, ...]:
    """One design for each format: the same in all layers."""
    members = [p.name for p in plan.problem.space.parameters if p.name != CODING]
    values = plan.problem.space.by_name[members[0]].values
    return tuple(Design({CODING: coding, **dict.fromkeys(members, value)}) for value in values)


def judge(plan: Plan) -> Callable[[Sequence[Trial]], float]:
    """The hypervolume of trials below the study's reference point."""
    problem = plan.problem
    assert problem.fixed_reference is not None
    reference = np.array(problem.fixed_reference)

    def share(trials: Sequence[Trial]) -> float:
        return hypervolume(problem.trial_losses(trials), reference)

    return share


def run(
    case: Case, name: str, measurements: int, uniform: Sequence[Sequence[Design]]
) -> tuple[float | int, ...]:
    """Hypervolumes along the way, uniform formats that are dominated strictly, seconds spent."""
    steps = list(record(case, name, measurements))
    trials = [list(completed(case, step.trial)) for step in steps]
    volumes = [case.judge(list(chain(*trials[:count]))) for count in LOOKS]
    ours = case.problem.trial_losses(list(chain(*trials)))
    beaten = [dominated(case, ours, designs) for designs in uniform]
    print(name, case.problem.seed, *(f"{v:.4f}" for v in volumes), *beaten, flush=True)
    return (*volumes, *beaten, steps[-1].optimizer_s)


def completed(case: Case, trial: Trial) -> Iterator[Trial]:
    """What is known when the trial is: its design under each coding."""
    for coding in CODINGS:
        yield case.played(Design({**trial.design, CODING: coding}), trial.number)


def dominated(case: Case, ours: Floats, designs: Sequence[Design]) -> int:
    """How many of the designs some of our losses (n, m) are as good as in all, better in one."""
    theirs = case.problem.trial_losses([case.played(design, 0) for design in designs])
    return sum(bool(((ours <= one).all(1) & (ours < one).any(1)).any()) for one in theirs)


def record(case: Case, name: str, measurements: int) -> Iterator[Step]:
    """The trials of an optimizer."""
    if name in PEERS:
        peer = importlib.import_module(PEERS[name])
        yield from peer.run(case, case.problem.seed, measurements)
        return
    clock = Clock()
    use = optimizer_for(case.problem, measurements, 1.0).use if name == "auto" else name
    with clock:
        optimizer = make("optimizers", use, case.problem)
    start = list(getattr(case, "start", ()))
    for number in range(measurements):
        with clock:
            design = start[number] if number < len(start) else optimizer.ask(1)[0]
        trial = case.played(design, number)
        with clock:
            optimizer.tell([trial])
        yield Step(trial, clock.spent_s)


def done(path: Path) -> set[tuple[str, ...]]:
    """Problem, start, optimizer and seed of the runs that are in the file."""
    if not path.exists():
        return set()
    with path.open() as file:
        return {tuple(row[name] for name in COLUMNS[:4]) for row in csv.DictReader(file)}


def append(path: Path, row: Sequence[object]) -> None:
    """One more run."""
    new = not path.exists()
    with path.open("a", newline="") as file:
        csv.writer(file).writerows([COLUMNS, row] if new else [row])


def verdicts(path: Path, problem: str, start: str) -> Iterator[str]:
    """In how many seeds ``auto`` has more hypervolume at the end than each other."""
    with path.open() as file:
        rows = [r for r in csv.DictReader(file) if (r["problem"], r["start"]) == (problem, start)]
    last = f"hypervolume_{LOOKS[-1]}"
    found = {(row["optimizer"], row["seed"]): float(row[last]) for row in rows}
    for name in dict.fromkeys(row["optimizer"] for row in rows):
        own = [value for (optimizer, _), value in found.items() if optimizer == name]
        both = [s for optimizer, s in found if optimizer == name and ("auto", s) in found]
        won = sum(found["auto", seed] > found[name, seed] for seed in both)
        tail = "" if name == "auto" else f"; auto is higher in {won} of {len(both)} seeds"
        least = min(int(row["dominated"]) for row in rows if row["optimizer"] == name)
        yield (
            f"{name}: {min(own):.4f} to {max(own):.4f}, median {np.median(own):.4f}; "
            f"at least {least} uniform formats dominated{tail}"
        )


if __name__ == "__main__":
    main()
