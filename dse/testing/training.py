"""Toy training that reports its loss after each epoch, for tests of early stopping."""

from __future__ import annotations

import dse

EPOCHS = 9


def train(rate: float) -> dict[str, float]:
    """Simulate a training: report a loss that falls from ``rate``, and return the last one."""
    for epoch in range(1, EPOCHS + 1):
        dse.report(epoch, {"loss": rate / epoch})
    return {"loss": rate / EPOCHS}
