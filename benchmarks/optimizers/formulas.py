"""Small single-objective problems by formula: switches, conditions, heavy tails and failures.

Those of ``DEVELOPMENT`` were looked at while the optimizers were changed; those of ``HELD_OUT``
have the same difficulties in other spaces, and were played once, after the last change.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache, partial

import numpy as np
from case import Case, done

from dse.core.batch import Batch
from dse.core.design import Design
from dse.core.expressions.parser import parse
from dse.core.metric import Failure, Metric
from dse.core.objective import Objective
from dse.core.parameter import Choice, Integer, Ordinal, Parameter, Real
from dse.core.problem import Problem, Source
from dse.core.space import DesignSpace
from dse.core.trial import Outcome, State, Trial
from dse.core.values import Floats, Mask

SAMPLE = 20_000
"""Random designs whose median loss counts as a share of nothing."""


@dataclass(frozen=True, kw_only=True)
class Formula:
    """A loss of designs, (n,), those of them that fail, (n,), and the least loss.

    The share of a record is how far its best loss is from the median of random designs to ``best``,
    by logarithms with ``log``. Without
    ``best``, it is the least loss of all designs.
    """

    parameters: tuple[Parameter, ...]
    loss: Callable[[Batch], Floats]
    best: float | None = None
    conditions: Sequence[tuple[str, str]] = ()
    fails: Callable[[Batch], Mask] | None = None
    log: bool = False

    @property
    def space(self) -> DesignSpace:
        """The legal designs."""
        return DesignSpace(
            parameters=self.parameters,
            conditions={name: parse(text) for name, text in self.conditions},
        )


def case(name: str) -> Case:
    """The problem of that name, whose only metric is measured."""
    formula = FORMULAS[name]()
    space = formula.space
    problem = Problem(
        space=space,
        sources={
            "loss": Source(
                metric=Metric(name="loss"), kind="measured", reads=frozenset(space.by_name)
            )
        },
        objectives=(Objective(expression=parse("loss"), goal="minimize"),),
    )
    return Case(
        name=name,
        problem=problem,
        evaluate=partial(_outcome, formula, space),
        judge=partial(_share, name),
    )


def _outcome(formula: Formula, space: DesignSpace, design: Design) -> Outcome:
    one = space.batch([design])
    if formula.fails is not None and formula.fails(one)[0]:
        failure = Failure(kind="crashed", reason="the formula fails here")
        return Outcome(state=State.FAILED, failure=failure, measured=1)
    return done({"loss": float(formula.loss(one)[0])})


@cache
def _zero(name: str) -> float:
    """The median loss of random designs that do not fail."""
    formula = FORMULAS[name]()
    batch = formula.space.sample(SAMPLE, np.random.default_rng(0))
    losses = formula.loss(batch)
    kept = losses if formula.fails is None else losses[~formula.fails(batch)]
    return float(np.median(kept))


@cache
def _best(name: str) -> float:
    """The least loss of all designs that do not fail."""
    formula = FORMULAS[name]()
    if formula.best is not None:
        return formula.best
    least = np.inf
    for batch in formula.space.enumerate():
        losses = formula.loss(batch)
        kept = losses if formula.fails is None else losses[~formula.fails(batch)]
        least = min(least, float(kept.min(initial=np.inf)))
    return least


def _share(name: str, trials: Sequence[Trial]) -> float:
    formula = FORMULAS[name]()
    losses = [trial.metrics["loss"] for trial in trials if trial.state is State.DONE]
    if not losses:
        return 0.0
    scale = np.log if formula.log else np.asarray
    zero, least, own = (float(scale(x)) for x in (_zero(name), _best(name), min(losses)))
    return float(np.clip((zero - own) / (zero - least), 0.0, 1.0))


def _on(batch: Batch, name: str) -> Floats:
    return batch.lookup(name, {"on": 1.0, "off": 0.0})


def _switch(name: str) -> Choice:
    return Choice(name=name, values=("on", "off"))


def _roughness(batch: Batch, size: float) -> Floats:
    """A fixed error of each design, from 0 to ``size``, which no model can learn."""
    codes = sum(
        (place + 1) * 7.31 * np.nan_to_num(np.asarray(_number(batch, name), dtype=float))
        for place, name in enumerate(sorted(batch.names))
    )
    return np.asarray(size * np.abs(np.modf(np.sin(codes) * 43758.5453)[0]))


def _number(batch: Batch, name: str) -> Floats:
    codes = batch.columns[name].codes
    return batch[name] if codes is None else codes.astype(float)


def _value(batch: Batch, name: str) -> Floats:
    """A number of each design; 0 where the parameter is absent."""
    return np.nan_to_num(np.asarray(batch.get(name, 0.0), dtype=float))


def _switches() -> Formula:
    """Ten switches: on is better on average, and best are two off together with a third on."""

    def loss(batch: Batch) -> Floats:
        s = [_on(batch, f"s{k}") for k in range(10)]
        kind = batch.lookup("kind", {"a": 0.0, "b": 0.1, "c": 0.2})
        single = 0.25 * s[0] + 0.2 * s[2] + 0.15 * s[1] - 0.1 * s[5]
        off = (1 - s[0]) * (1 - s[2])
        bonus = off * (0.55 + 0.6 * s[4] * (1 - s[3]))
        return np.asarray(2.0 - single - bonus + kind + _roughness(batch, 0.05))

    switches = tuple(_switch(f"s{k}") for k in range(10))
    kinds = Choice(name="kind", values=("a", "b", "c"))
    return Formula(parameters=(*switches, kinds), loss=loss)


def _boosting() -> Formula:
    """Three boosters: the linear one is good everywhere, the best one needs all its settings."""

    def loss(batch: Batch) -> Floats:
        eta, rounds = np.log10(batch["eta"]), np.log2(batch["rounds"])
        depth = np.nan_to_num(_value(batch, "depth"))
        grown = (eta + rounds / 4 + 0.1 * depth - 1.6) ** 2 * 0.25
        grown += 0.012 * np.abs(depth - 7) + 0.2 * (_value(batch, "subsample") - 0.8) ** 2
        drop = 0.9 * (_value(batch, "rate_drop") - 0.2) ** 2
        drop += 0.3 * (_value(batch, "skip_drop") - 0.6) ** 2
        shrink = 0.01 * (np.log10(_value(batch, "lambda") + 1e-9) + 1) ** 2
        linear = 0.30 + 0.01 * (eta + 1) ** 2 + shrink
        booster = batch.lookup("booster", {"tree": 0.0, "dart": 1.0, "linear": 2.0})
        return np.where(
            booster == 0, 0.26 + grown, np.where(booster == 1, 0.16 + grown + drop, linear)
        )

    return Formula(
        parameters=(
            Choice(name="booster", values=("tree", "dart", "linear")),
            Real(name="eta", low=1e-3, high=1.0, scale="log"),
            Integer(name="rounds", low=8, high=512, scale="log"),
            Integer(name="depth", low=1, high=12),
            Real(name="subsample", low=0.3, high=1.0),
            Real(name="rate_drop", low=0.0, high=1.0),
            Real(name="skip_drop", low=0.0, high=1.0),
            Real(name="lambda", low=1e-4, high=1e2, scale="log"),
        ),
        conditions=(
            ("depth", "booster != 'linear'"),
            ("subsample", "booster != 'linear'"),
            ("rate_drop", "booster == 'dart'"),
            ("skip_drop", "booster == 'dart'"),
            ("lambda", "booster == 'linear'"),
        ),
        loss=loss,
        best=0.16,
    )


def _branch() -> Formula:
    """A branch with 2.7 % of the designs holds the best ones, and is worse on average."""

    def loss(batch: Batch) -> Floats:
        big = sum((_value(batch, f"b{k}") - t) ** 2 for k, t in enumerate((2, 5, 3, 6, 1)))
        small = (_value(batch, "u") - 21) ** 2 / 90 + (_value(batch, "v") - 8) ** 2 / 60
        mode = batch.lookup("mode", {"wide": 0.0, "narrow": 1.0})
        return np.where(mode == 0, 1.2 + 0.04 * big, 0.4 + 0.9 * np.minimum(small, 3.0))

    wide = tuple(Integer(name=f"b{k}", low=0, high=7) for k in range(5))
    narrow = tuple(Integer(name=name, low=0, high=29) for name in "uv")
    return Formula(
        parameters=(Choice(name="mode", values=("wide", "narrow")), *wide, *narrow),
        conditions=(
            *((p.name, "mode == 'wide'") for p in wide),
            *((p.name, "mode == 'narrow'") for p in narrow),
        ),
        loss=loss,
        best=0.4,
    )


def _storm() -> Formula:
    """The latency of a stream of stages: a queue for each, saturated in half of the designs."""

    def loss(batch: Batch) -> Floats:
        size = np.log2(batch["batch"])
        threads = batch["threads"].astype(float)
        stages = np.zeros(len(batch))
        for place, need in enumerate((3.0, 9.0, 5.0)):
            workers = batch[f"workers{place}"].astype(float)
            use = need * (1 + 2.0 ** (2 - size)) / workers
            stages += np.where(use < 0.95, 1 / (1 - np.minimum(use, 0.95)), 20 + 400 * (use - 0.95))
        total = sum(batch[f"workers{k}"].astype(float) for k in range(3))
        crowd = np.exp(np.maximum(total / threads - 5, 0) * 0.9)
        return np.asarray((stages + 2.0**size / 16) * crowd * (1 + 0.1 * np.log2(threads)))

    workers = tuple(Integer(name=f"workers{k}", low=1, high=30) for k in range(3))
    return Formula(
        parameters=(
            *workers,
            Ordinal(name="batch", values=(1, 2, 4, 8, 16, 32, 64, 128), scale="log"),
            Integer(name="threads", low=1, high=16),
        ),
        loss=loss,
        log=True,
    )


def _failures() -> Formula:
    """A slope into a region of failures, which holds two fifths of the designs."""

    def loss(batch: Batch) -> Floats:
        x = np.column_stack([batch[f"x{k}"] for k in range(5)])
        kind = batch.lookup("kind", {"a": 0.0, "b": 0.15, "c": 0.3})
        goal = np.array([0.9, 0.8, 0.3, 0.6, 0.7])
        return np.asarray(((x - goal) ** 2).sum(axis=1) + kind)

    def fails(batch: Batch) -> Mask:
        high = batch["x0"] + 0.8 * batch["x1"] > 1.15
        odd = (batch["x3"] > 0.75) & (batch.lookup("kind", {"a": 1.0, "b": 0.0, "c": 1.0}) > 0)
        return np.asarray(high | odd)

    reals = tuple(Real(name=f"x{k}", low=0.0, high=1.0) for k in range(5))
    kinds = Choice(name="kind", values=("a", "b", "c"))
    best = (0.9 + 0.8 * 0.8 - 1.15) ** 2 / (1 + 0.8**2)
    return Formula(parameters=(*reals, kinds), loss=loss, fails=fails, best=best)


def _flags() -> Formula:
    """Two parameters of five levels and eight flags; one level is best with two flags only."""

    def loss(batch: Batch) -> Floats:
        f = [_on(batch, f"f{k}") for k in range(8)]
        layout = {"v": 0.0, "w": 0.1, "x": 0.2, "y": 0.15, "z": 0.45}
        order = {"p": 0.2, "q": 0.0, "r": 0.1, "s": 0.3, "t": 0.25}
        rare = batch.lookup("layout", dict.fromkeys("vwxy", 0.0) | {"z": 1.0})
        single = 0.2 * f[1] + 0.15 * f[6]
        bonus = rare * (0.3 * (1 - f[1]) + 0.7 * (1 - f[1]) * f[3])
        base = batch.lookup("layout", layout) + batch.lookup("order", order)
        return np.asarray(2.0 + base - single - bonus + _roughness(batch, 0.05))

    flags = tuple(_switch(f"f{k}") for k in range(8))
    layouts = Choice(name="layout", values=tuple("vwxyz"))
    orders = Choice(name="order", values=tuple("pqrst"))
    return Formula(parameters=(*flags, layouts, orders), loss=loss)


def _solvers() -> Formula:
    """Four solvers with settings of their own; the best has 1.5 % of the designs."""

    def loss(batch: Batch) -> Floats:
        name = batch.lookup(
            "solver", {"direct": 0.0, "krylov": 1.0, "multigrid": 2.0, "jacobi": 3.0}
        )
        direct = 1.0 + 0.05 * np.abs(_value(batch, "block") - 4)
        krylov = 0.7 + 0.02 * (_value(batch, "restart") - 12) ** 2 / 4
        krylov += 0.02 * (_value(batch, "fill") - 6) ** 2 + 0.05 * _value(batch, "levels")
        grid = (
            0.3
            + 0.06 * (_value(batch, "smooth") - 3) ** 2
            + 0.04 * (_value(batch, "depth") - 9) ** 2
        )
        jacobi = 1.3 - 0.02 * _value(batch, "sweeps")
        return np.choose(name.astype(int), [direct, krylov, grid, jacobi])

    def integer(name: str, high: int) -> Integer:
        return Integer(name=name, low=0, high=high)

    return Formula(
        parameters=(
            Choice(name="solver", values=("direct", "krylov", "multigrid", "jacobi")),
            integer("block", 15),
            integer("restart", 29),
            integer("fill", 15),
            integer("levels", 13),
            integer("smooth", 7),
            integer("depth", 12),
            integer("sweeps", 9),
        ),
        conditions=(
            ("block", "solver == 'direct'"),
            *((name, "solver == 'krylov'") for name in ("restart", "fill", "levels")),
            *((name, "solver == 'multigrid'") for name in ("smooth", "depth")),
            ("sweeps", "solver == 'jacobi'"),
        ),
        loss=loss,
        best=0.3,
    )


def _contention() -> Formula:
    """The run time of a kernel: products of penalties, over four decades."""

    def loss(batch: Batch) -> Floats:
        x = np.column_stack([np.log2(batch[f"tile{k}"]) for k in range(3)])
        spill = np.exp(1.2 * np.maximum(x.sum(axis=1) - 13, 0))
        idle = np.exp(0.8 * np.maximum(9 - x.sum(axis=1), 0))
        skew = np.exp(0.35 * (np.abs(x[:, 0] - x[:, 1] - 1) + np.abs(x[:, 1] - x[:, 2])))
        unroll = 1 + 0.1 * np.abs(np.log2(batch["unroll"]) - 2)
        packed = batch.lookup("pack", {"none": 1.6, "left": 1.2, "both": 1.0})
        return np.asarray(spill * idle * skew * unroll * packed)

    tiles = tuple(
        Ordinal(name=f"tile{k}", values=tuple(2**p for p in range(9)), scale="log")
        for k in range(3)
    )
    return Formula(
        parameters=(
            *tiles,
            Ordinal(name="unroll", values=(1, 2, 4, 8, 16), scale="log"),
            Choice(name="pack", values=("none", "left", "both")),
        ),
        loss=loss,
        best=1.0,
        log=True,
    )


def _memory() -> Formula:
    """Designs fail that need too much memory; the best ones need almost as much as there is."""

    def loss(batch: Batch) -> Floats:
        size, width = batch["size"].astype(float), batch["width"].astype(float)
        keep = batch.lookup("recompute", {"none": 1.0, "some": 1.15, "all": 1.33})
        return np.asarray(keep * (40 / size + 60 / width + 0.1 * batch["shard"]))

    def fails(batch: Batch) -> Mask:
        need = batch.lookup("recompute", {"none": 1.0, "some": 0.55, "all": 0.3})
        held = need * batch["size"] * batch["width"] / np.sqrt(batch["shard"])
        return np.asarray(held > 110)

    return Formula(
        parameters=(
            Integer(name="size", low=1, high=32),
            Integer(name="width", low=1, high=32),
            Ordinal(name="shard", values=(1, 2, 4, 8), scale="log"),
            Choice(name="recompute", values=("none", "some", "all")),
        ),
        loss=loss,
        fails=fails,
    )


DEVELOPMENT: dict[str, Callable[[], Formula]] = {
    "switches": _switches,
    "boosting": _boosting,
    "branch": _branch,
    "storm": _storm,
    "failures": _failures,
}
HELD_OUT: dict[str, Callable[[], Formula]] = {
    "flags": _flags,
    "solvers": _solvers,
    "contention": _contention,
    "memory": _memory,
}
FORMULAS = DEVELOPMENT | HELD_OUT
NAMES = tuple(FORMULAS)
