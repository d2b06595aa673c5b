"""Benchmark problems with known Pareto fronts: ZDT1, small codesigns, and corner cases."""

from __future__ import annotations

import numpy as np

from dse.core.batch import Batch
from dse.core.expressions.parser import parse
from dse.core.metric import Failure, Kind, Metrics
from dse.core.objective import Limit
from dse.core.parameter import Choice, Integer, Ordinal, Real
from dse.core.space import DesignSpace
from dse.testing.known import Known, enumerated, problem_of


def zdt1(dimensions: int = 6, kind: Kind = "measured") -> Known:
    """Return ZDT1 over reals; on its front ``f2 = 1 - sqrt(f1)``, and all ``x`` but ``x0`` are 0.

    Source:
        Zitzler, Deb, Thiele: Comparison of Multiobjective Evolutionary Algorithms: Empirical
        Results, Evolutionary Computation 8(2), 2000, eq. 7.
    """
    names = [f"x{place}" for place in range(dimensions)]

    def truth(batch: Batch) -> Metrics:
        x = np.column_stack([batch[name] for name in names])
        g = 1 + 9 * x[:, 1:].mean(axis=1)
        return Metrics(columns={"f1": x[:, 0], "f2": g * (1 - np.sqrt(x[:, 0] / g))})

    f1 = np.linspace(0, 1, 2_001)
    return Known(
        problem=problem_of(
            DesignSpace(parameters=tuple(Real(name=name, low=0.0, high=1.0) for name in names)),
            {"f1": kind, "f2": kind},
            {"f1": "minimize", "f2": "minimize"},
            truth,
        ),
        truth=truth,
        front=np.column_stack([f1, 1 - np.sqrt(f1)]),
        reference=np.array([1.1, 3.0]),
    )


def tiny_codesign(kind: Kind = "measured") -> Known:
    """Return a small problem with parallelism, number format and clock, constraints and a limit.

    Args:
        kind: kind (such as measured) of the accuracy and of the cost, which has a limit; time and
            energy are computed by a model.
    """
    space = DesignSpace(
        parameters=(
            Ordinal(name="gpus", values=(8, 16, 32)),
            Ordinal(name="tp", values=(1, 2, 4, 8)),
            Ordinal(name="pp", values=(1, 2, 4, 8)),
            Ordinal(name="dp", values=(1, 2, 4, 8, 16, 32)),
            Choice(name="format", values=("bf16", "fp8", "mxfp4")),
            Ordinal(name="group", values=(16, 32, 64)),
            Integer(name="clock", low=1, high=4),
        ),
        conditions={"group": parse("format == 'mxfp4'")},
        constraints=(parse("tp * pp * dp == gpus"), parse("12 % tp == 0")),
    )
    return enumerated(
        space,
        {"time": "modelled", "energy": "modelled", "accuracy": kind, "cost": kind},
        {"time": "minimize", "energy": "minimize", "accuracy": "maximize"},
        _codesign,
        limits=(Limit(text="cost <= 60", slack=parse("60 - cost"), scale=60.0),),
    )


def pocket_codesign() -> Known:
    """Return a problem of 24 designs with a constraint, a condition, limits and infeasibility."""
    space = DesignSpace(
        parameters=(
            Ordinal(name="tp", values=(1, 2, 4)),
            Ordinal(name="dp", values=(2, 4, 8, 16)),
            Choice(name="format", values=("bf16", "fp8", "mxfp4")),
            Ordinal(name="group", values=(16, 64)),
        ),
        conditions={"group": parse("format == 'mxfp4'")},
        constraints=(parse("tp * dp == 8 or tp * dp == 16"),),
    )
    return enumerated(
        space,
        {"time": "measured", "accuracy": "measured", "memory": "modelled"},
        {"time": "minimize", "accuracy": "maximize"},
        _pocket,
        limits=(
            Limit(text="memory <= 12", slack=parse("12 - memory"), scale=12.0),
            Limit(text="accuracy >= 0.85", slack=parse("accuracy - 0.85"), scale=0.85),
        ),
    )


def mixed_reals() -> Known:
    """Return a mixed problem: ordinals of fixed product, a conditional real, a constrained real.

    Its front is that of ZDT1 with ``g`` slightly above 1, because ``knob`` is at least 1e-3.
    """
    space = DesignSpace(
        parameters=(
            Ordinal(name="tp", values=(1, 2, 4)),
            Ordinal(name="pp", values=(1, 2, 4)),
            Choice(name="mode", values=("plain", "tuned", "wild")),
            Real(name="x", low=0.0, high=1.0),
            Real(name="knob", low=1e-3, high=1.0, scale="log"),
        ),
        conditions={"knob": parse("mode == 'tuned'")},
        constraints=(parse("tp * pp == 4"), parse("x <= 0.9 or mode != 'wild'")),
    )

    def truth(batch: Batch) -> Metrics:
        base = batch.lookup("mode", {"plain": 0.3, "tuned": 0.0, "wild": 0.6})
        g = 1 + 9 * (base + batch.get("knob", 0.0) + (batch["tp"] != 2) * 0.2) / 2
        return Metrics(columns={"f1": batch["x"], "f2": g * (1 - np.sqrt(batch["x"] / g))})

    f1 = np.linspace(0, 1, 2_001)
    g = 1 + 9 * 1e-3 / 2
    return Known(
        problem=problem_of(
            space,
            {"f1": "modelled", "f2": "measured"},
            {"f1": "minimize", "f2": "minimize"},
            truth,
        ),
        truth=truth,
        front=np.column_stack([f1, g * (1 - np.sqrt(f1 / g))]),
        reference=np.array([1.1, 3.0]),
    )


def one_design(kind: Kind = "measured") -> Known:
    """Return a problem with a single legal design."""
    space = DesignSpace(
        parameters=(Ordinal(name="tp", values=(1, 2)), Ordinal(name="dp", values=(1, 2))),
        constraints=(parse("tp * dp == 4"),),
    )
    return enumerated(space, {"f": kind}, {"f": "minimize"}, _product)


def all_infeasible(kind: Kind = "measured") -> Known:
    """Return a problem of eight legal designs that all violate its limit."""
    space = DesignSpace(
        parameters=(Ordinal(name="tp", values=(1, 2, 4, 8)), Ordinal(name="dp", values=(1, 2)))
    )
    limit = Limit(text="f <= 0.5", slack=parse("0.5 - f"), scale=0.5)
    return enumerated(space, {"f": kind}, {"f": "minimize"}, _product, limits=(limit,))


def _product(batch: Batch) -> Metrics:
    return Metrics(columns={"f": (batch["tp"] * batch["dp"]).astype(float)})


def _pocket(batch: Batch) -> Metrics:
    """Return synthetic metrics of a parallel workload; tp = 4 with dp = 4 is infeasible."""
    bits = batch.lookup("format", {"bf16": 16.0, "fp8": 8.0, "mxfp4": 4.25})
    tp, dp = batch["tp"].astype(float), batch["dp"].astype(float)
    broken = np.flatnonzero((tp == 4) & (dp == 4)).tolist()
    return Metrics(
        columns={
            "time": bits / (tp * dp) + 0.05 * tp + 0.01 * dp,
            "accuracy": 0.9 - 0.08 / bits - 0.0006 * batch.get("group", 0),
            "memory": bits / tp,
        },
        failures={row: Failure(kind="infeasible", reason="too wide") for row in broken},
    )


def _codesign(batch: Batch) -> Metrics:
    """Return synthetic metrics of a training step; tp = 4 with pp = 8 is infeasible."""
    bits = batch.lookup("format", {"bf16": 16.0, "fp8": 8.0, "mxfp4": 4.25})
    tp, pp, dp, clock = (batch[name].astype(float) for name in ("tp", "pp", "dp", "clock"))
    compute = bits / (clock * batch["gpus"] * 4.0)
    time = compute * (1 + (pp - 1) / 16) + 0.02 * np.log2(tp) + 0.01 * np.log2(dp)
    energy = batch["gpus"] * time * (0.2 + 0.1 * clock**2)
    loss = batch.lookup("format", {"bf16": 0.0, "fp8": 0.01, "mxfp4": 0.03})
    accuracy = 0.9 - loss - 0.0004 * batch.get("group", 0) - 0.001 * np.log2(dp)
    cost = batch["gpus"] * (1 + 0.25 * clock)
    broken = np.flatnonzero((pp == 8) & (tp == 4)).tolist()
    return Metrics(
        columns={"time": time, "energy": energy, "accuracy": accuracy, "cost": cost},
        failures={row: Failure(kind="infeasible", reason="too many stages") for row in broken},
    )
