"""What the runs of the simulator rest on: times of alike iterations lie on a line."""

from __future__ import annotations

import numpy as np
import pytest

from dse.core.batch import Batch
from dse_evaluators.accelerators.devices.devices import device_of
from dse_evaluators.clusters.serving.fabric import fabric_of
from dse_evaluators.clusters.serving.plans_by_device import read_formats
from dse_evaluators.clusters.simulator.server import ModelServer
from dse_evaluators.clusters.simulator.server_settings import IterationWork
from dse_evaluators.workloads.transformer_configs import TRANSFORMERS

STEPS = 501


def server(model, device, tp, count=STEPS):
    return ModelServer.of(
        TRANSFORMERS[model],
        device_of(device),
        fabric_of(device),
        devices=np.full(count, tp),
        formats=read_formats(Batch.of([{}] * count), device_of(device))[0],
    )


def run_of(texts, prompt, most):
    """The work of iterations from the first to the last of a run of so many."""
    ahead = np.linspace(0.0, most, STEPS)
    return IterationWork(
        sequences=np.full(STEPS, texts),
        context=texts * (100.0 + ahead),
        prompt=np.full(STEPS, prompt),
        square=prompt * (2.0 * prompt * ahead + prompt),
    )


@pytest.mark.parametrize("tp", [1.0, 8.0])
@pytest.mark.parametrize("model", ["llama2-13b", "llama3-70b"])
@pytest.mark.parametrize(
    ("texts", "prompt", "most"), [(1.0, 0.0, 4000), (256.0, 0.0, 4000), (8.0, 512.0, 50)]
)
def test_alike_iterations_take_times_on_a_line(model, tp, texts, prompt, most):
    """Fifty pieces of 512 tokens are a prompt of 25,600."""
    exact_s = server(model, "h100-sxm", tp).cost(run_of(texts, prompt, most)).seconds
    line_s = np.linspace(exact_s[0], exact_s[-1], STEPS)
    assert line_s == pytest.approx(exact_s, rel=3e-3)
    assert line_s.sum() == pytest.approx(exact_s.sum(), rel=1.2e-3)


def test_a_device_draws_no_more_than_its_limit():
    many = server("llama3-70b", "h100-sxm", 8.0)
    cost = many.cost(run_of(256.0, 8192.0, 1))
    most_w = 8.0 * (many.draw.limit_w - many.draw.base_w)
    watts = (cost.compute_j + cost.memory_j) / cost.seconds
    assert (watts <= most_w * (1 + 1e-12)).all()
    assert (watts > 0.3 * most_w).all()
