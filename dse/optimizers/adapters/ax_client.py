"""Ax client that is given the complete history at once; import it in a seeded scope only."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from ax.adapter.registry import Generators
from ax.api.client import Client
from ax.api.configs import ChoiceParameterConfig, RangeParameterConfig
from ax.generation_strategy.generation_node import GenerationNode
from ax.generation_strategy.generation_strategy import GenerationStrategy
from ax.generation_strategy.generator_spec import GeneratorSpec

from dse.core.design import Design
from dse.core.parameter import Finite, Real
from dse.core.problem import Problem
from dse.core.trial import Trial
from dse.optimizers.adapters.encoded_points import EncodedPoint, axes, encode_design, has_no_order
from dse.optimizers.support.constraints import trial_violations
from dse.optimizers.support.quiet_library import quiet

_RAW_SAMPLES = 16
"""Raw starting points per restart of the acquisition search."""


def suggest_points(
    problem: Problem,
    trials: Sequence[Trial],
    *,
    pending: Sequence[Design],
    count: int,
    seed: int,
    restarts: int,
) -> list[EncodedPoint]:
    """Return the points that Ax proposes next, given finished trials and pending designs.

    Each point is encoded as in :mod:`dse.optimizers.adapters.encoded_points`.
    """
    with quiet("ax"):
        client = _client(problem, seed, restarts)
        _tell(client, problem, trials)
        for design in pending:
            client.attach_trial(encode_design(problem.space, design))
        return list(client.get_next_trials(count).values())


def _client(problem: Problem, seed: int, restarts: int) -> Client:
    client = Client(random_seed=seed)
    client.configure_experiment(
        [_axis(name, parameter) for name, parameter in axes(problem.space).items()]
    )
    rules = [f"slack{place} >= 0" for place in range(len(problem.limits))]
    if problem.fixed_reference is not None:
        signs = [1 if o.goal == "minimize" else -1 for o in problem.objectives]
        bounds = [s * r for s, r in zip(signs, problem.fixed_reference, strict=True)]
        rules += [f"loss{place} <= {bound!r}" for place, bound in enumerate(bounds)]
    losses = ", ".join(f"-loss{place}" for place in range(len(problem.objectives)))
    client.configure_optimization(losses, rules)
    client.set_generation_strategy(_strategy(restarts))
    return client


def _strategy(restarts: int) -> GenerationStrategy:
    """Build a generation strategy that uses Ax's BoTorch generator from the first proposal on."""
    effort = {"num_restarts": restarts, "raw_samples": _RAW_SAMPLES * restarts}
    generator = GeneratorSpec(
        generator_enum=Generators.BOTORCH_MODULAR,
        generator_gen_kwargs={"model_gen_options": {"optimizer_kwargs": effort}},
    )
    node = GenerationNode(name="MBM", generator_specs=[generator], should_deduplicate=True)
    return GenerationStrategy(name="MBM", nodes=[node])


def _axis(name: str, parameter: Real | Finite) -> RangeParameterConfig | ChoiceParameterConfig:
    if isinstance(parameter, Real):
        return RangeParameterConfig(name, (0.0, 1.0), "float")
    last = len(parameter.values) - 1
    if not has_no_order(parameter):
        return RangeParameterConfig(name, (0, last), "int")
    names = [f"v{code}" for code in range(last + 1)]
    return ChoiceParameterConfig(name, names, "str", is_ordered=False)


def _tell(client: Client, problem: Problem, trials: Sequence[Trial]) -> None:
    """Add all trials to Ax; trials without metrics as abandoned, so that Ax avoids them."""
    losses = problem.trial_losses(trials)
    slacks = problem.slacks(problem.columns(trials), len(trials))
    done = np.isfinite(trial_violations(problem, trials))
    for row, trial in enumerate(trials):
        index = client.attach_trial(encode_design(problem.space, trial.design))
        if done[row]:
            found = {f"loss{place}": float(value) for place, value in enumerate(losses[row])}
            found |= {f"slack{place}": float(value) for place, value in enumerate(slacks[row])}
            client.complete_trial(index, found)
        else:
            client.mark_trial_abandoned(index)
