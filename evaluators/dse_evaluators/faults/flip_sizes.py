"""Sizes of flips in a layer's weights: a modelled feature, without a run of the model."""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from dse.core.batch import Batch
from dse.core.values import Floats
from dse_evaluators.compression.layer_sums import layer_columns
from dse_evaluators.faults.layer_campaign import read_flips, sample_flips
from dse_evaluators.faults.layer_protections import LayerProtections, divide
from dse_evaluators.faults.protections import protection_of
from dse_evaluators.faults.stored_layer import StoredLayer
from dse_evaluators.workloads.models import ModelRef, workload_of

_SAMPLED = 200


def flip_sizes(chosen: LayerProtections, batch: Batch) -> Floats:
    """Return the mean size of a bit flip in each layer of n designs, (n, layers).

    A size is the change of the weight that is read, over the largest magnitude of the layer's
    weights, and at most 1.
    """
    return layer_columns(
        chosen.parts, batch, lambda layer, text: (_flip_size(chosen.model, layer, text), 1.0)
    )


@lru_cache(maxsize=2**16)
def _flip_size(model: ModelRef, layer: str, text: str) -> float:
    form, name = divide(text)
    stored, protection = _store_layer(model, layer, form), protection_of(name)
    flips = sample_flips(stored, "all", _SAMPLED, 0, layer)
    changed = read_flips(stored, protection, flips).astype(np.float64)
    intact = stored.values.reshape(-1)[flips.places]
    largest = max(float(np.abs(stored.values).max()), float(np.finfo(np.float32).tiny))
    sizes = np.nan_to_num(np.abs(changed - intact) / largest, nan=1.0)
    return float(np.minimum(sizes, 1.0).mean())


@lru_cache(maxsize=1)
def _store_layer(model: ModelRef, layer: str, form: str) -> StoredLayer:
    return StoredLayer(form, workload_of(model).parameters[layer])
