"""The evaluator ``private.aggregation``: what secure aggregation reveals of who took part."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from dse.core.batch import Batch
from dse.core.metric import Metric, Metrics
from dse.core.values import Floats
from dse_evaluators.alike import row_by_row
from dse_evaluators.counts import check_count
from dse_evaluators.declared_evaluator import DeclaredEvaluator
from dse_evaluators.reading_table import NumberInput, Reading

INPUTS: Mapping[str, Reading] = {
    "users": NumberInput(2, 512, whole=True),
    "rounds": NumberInput(2, 4096, whole=True),
    "window": NumberInput(1, 4096, whole=True),
    "participation": NumberInput(0.01, 0.99, default=0.25),
    "noise": NumberInput(0, 100, default=0.0),
}
METRICS = (
    Metric(name="recovery", goal="minimize"),
    Metric(name="advantage", goal="minimize"),
    Metric(name="users_exposed", goal="minimize"),
    Metric(name="reports", goal="maximize"),
    Metric(name="signal_to_noise", goal="maximize"),
)


class Aggregation(DeclaredEvaluator, reads=INPUTS, provides=METRICS, version="1"):
    """Simulated attack that recovers who took part in rounds of secure aggregation.

    The metric is the share of participations that the attacker recovers. Each round publishes the
    sum of the updates of the users who take part. Analytics publish how often each user took part
    in each window of rounds. The attacker finds the column space of the sums by a singular value
    decomposition, solves for each user's participations in this space, and rounds them. The
    defender chooses the window, the participation and the noise.

    Args:
        update_size: number of parameters of an update.
        repeats: simulations of each design; metrics are means over them.
        seed: seed of the simulations.

    Inputs:
        users: number of users.
        rounds: rounds whose sums the attacker has.
        window: rounds of one report of the analytics.
        participation: probability that a user takes part in a round.
        noise: standard deviation of the noise on a sum, over that of the parameters of an update.

    Limits:
        Updates of a user are equal in all rounds, which favours the attacker. Participations are
        independent. With fewer windows than users the attacker takes the least-squares solution of
        least norm; integer programming would recover more, so ``recovery`` is then a lower bound.
        A simulation: milliseconds to seconds for each design.

    Error:
        Without noise, recovery is exact if there are at least as many windows as users. The paper
        states only "thousands of participants".

    Source:
        Lam et al.: Gradient Disaggregation: Breaking Privacy in Federated Learning by
        Reconstructing the User Participant Matrix, 2021.

    Example:
        options: {update_size: 64}
        parameters: {users: [10], rounds: [20, 40], window: [1, 2, 4], noise: [0.0, 0.5]}

    Raises:
        PluginError: a count is invalid.
        SpecError: an input is invalid.
    """

    update_size: int = 256
    repeats: int = 3
    seed: int = 0
    users: float | None = None
    rounds: float | None = None
    window: float | None = None
    participation: float | None = None
    noise: float | None = None

    def __post_init__(self) -> None:
        check_count("update_size", self.update_size, least=2)
        check_count("repeats", self.repeats, least=1)
        check_count("seed", self.seed, least=0)
        super().__post_init__()

    def evaluate(self, batch: Batch) -> Metrics:
        """Return the metrics of n designs, simulating equal ones once."""
        return row_by_row(self._readings.rows(batch), self.provides, self._simulate)

    def _simulate(self, design: Mapping[str, float]) -> Mapping[str, float] | str:
        users, rounds, window = (int(design[name]) for name in ("users", "rounds", "window"))
        if users > min(rounds, self.update_size):
            return f"{users} users, and sums of rank {min(rounds, self.update_size)} at most"
        if window > rounds:
            return f"a window of {window} rounds, and {rounds} rounds"
        share, noise = design["participation"], design["noise"]
        found = []
        for repeat in range(self.repeats):
            rng = np.random.default_rng([self.seed, repeat])
            taken = (rng.random((rounds, users)) < share).astype(np.float64)
            updates = rng.standard_normal((users, self.update_size))
            sums = taken @ updates
            sums += noise * rng.standard_normal(sums.shape)
            right = recover_participation(sums, taken, window) == taken
            found.append((right.mean(), right.all(axis=0).mean()))
        recovery, exposed = np.mean(found, axis=0).tolist()
        chance = max(share, 1.0 - share)
        return {
            "recovery": recovery,
            "advantage": max(recovery - chance, 0.0) / (1.0 - chance),
            "users_exposed": exposed,
            "reports": float(rounds // window),
            "signal_to_noise": 1.0 / (1.0 + noise),
        }


def recover_participation(sums: Floats, taken: Floats, window: int) -> Floats:
    """Return the participations that an attacker infers, (rounds, users) of 0 and 1.

    Args:
        sums: the published sums, (rounds, numbers of an update).
        taken: the participations, (rounds, users); the attacker sees only their sums over windows.
        window: rounds of a report; rounds after the last whole window are not reported.
    """
    rounds, users = taken.shape
    space = np.linalg.svd(sums, full_matrices=False)[0][:, :users]  # (rounds, users)
    reports = rounds // window
    kept = reports * window
    counts = taken[:kept].reshape(reports, window, users).sum(axis=1)
    summed = space[:kept].reshape(reports, window, users).sum(axis=1)
    solved = np.linalg.lstsq(summed, counts, rcond=None)[0]
    return (space @ solved > 0.5).astype(np.float64)
