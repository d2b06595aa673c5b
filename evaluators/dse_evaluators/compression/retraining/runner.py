"""Compression, retraining and measurement of one network."""

from __future__ import annotations

import numpy as np
import torch

from dse_evaluators.compression.retraining.cost import forward_flop, training_flop
from dse_evaluators.compression.retraining.descent import BATCH, updates_per_epoch
from dse_evaluators.compression.retraining.knobs import Knobs
from dse_evaluators.compression.retraining.material import TAIL, Circumstances, Lot, material
from dse_evaluators.compression.retraining.methods import train_network
from dse_evaluators.compression.retraining.storing import count_weights, read_network, store_network
from dse_evaluators.compression.retraining.trained import teaching_of
from dse_evaluators.workloads import judging
from dse_evaluators.workloads.network import Affines, forward
from dse_evaluators.workloads.torch_scope import deterministic
from dse_evaluators.workloads.workload import Split


def measure_network(circumstances: Circumstances, knobs: Knobs, split: Split) -> dict[str, float]:
    """Compress and retrain a network; return its quality, stored size [B] and operations."""
    given = material(circumstances, knobs.seed)
    result = train_network(circumstances, knobs)
    record = store_network(result, given.layers, knobs)
    lot: Lot = getattr(given, split)

    def says(affines: Affines) -> judging.Table:
        with deterministic(), torch.inference_mode():
            return forward(given.network, affines, lot.images).numpy()

    ours, whole = says(read_network(record, given.layers)), says(given.whole)
    labels = lot.labels.numpy()
    shown = updates_per_epoch(len(given.labels)) * BATCH
    taught = teaching_of(knobs).has_teacher
    return {
        **judging.measure_classifier(ours, whole, labels),
        **_by_class(ours, whole, labels),
        "size": record.cost.total / 8,
        "inference_flops": float(forward_flop(np.array(count_weights(record)), given.layers)),
        "training_flops": training_flop(result.weights, given.layers, shown, taught=taught),
    }


def _by_class(
    ours: judging.Table, whole: judging.Table, labels: judging.Labels
) -> dict[str, float]:
    """Return the mismatch on the tail classes and on the others, and the tail gap."""
    rare = np.isin(labels, TAIL)
    of_tail, of_head = (
        judging.mismatches(ours[rows], whole[rows], labels[rows])["mismatch"]
        for rows in (rare, ~rare)
    )
    gap = judging.mismatches(ours, whole, labels, TAIL)["tail_gap"]
    return {"tail_mismatch": of_tail, "head_mismatch": of_head, "tail_gap": gap}
