"""Campaigns of single bit flips, kept by model, number formats and examples."""

from __future__ import annotations

from functools import lru_cache

from dse_evaluators.faults.criterion import Criterion
from dse_evaluators.faults.fault_runner import FaultRunner
from dse_evaluators.faults.layer_campaign import FlipCampaign
from dse_evaluators.faults.stored_layer import StoredLayer
from dse_evaluators.workloads.models import ModelRef, workload_of
from dse_evaluators.workloads.workload import Split


@lru_cache(maxsize=2)
def campaign_of(
    model: ModelRef,
    formats: tuple[tuple[str, str], ...],
    split: Split,
    criterion: Criterion,
    flips: tuple[str, int],
) -> FlipCampaign:
    """Return the fault-injection campaign of a model with its layers in some number formats.

    The last two campaigns of the process are kept, with the outcomes of their runs.

    Args:
        model: the model.
        formats: name and number format of each layer.
        split: examples for the runs.
        criterion: what counts as a corruption.
        flips: the bits that may flip, and the number of flips in each layer.

    Raises:
        PluginError: the model's assets are not installed.
        EvaluationError: the model does not run, or a format does not fit a layer.
    """
    parameters = workload_of(model).parameters
    layers = {name: StoredLayer(form, parameters[name]) for name, form in formats}
    runner = FaultRunner(model, split, layers, criterion)
    return FlipCampaign(runner, layers, *flips)
