"""What stands in the table of models is what the models say of themselves."""

from __future__ import annotations

import pytest

from dse.errors import PluginError
from dse_evaluators.workloads.models import MODELS, model_of, workload_of
from dse_evaluators.workloads.shapes import read_shapes, shapes_of


@pytest.fixture(params=MODELS)
def workload(request):
    try:
        return workload_of(request.param)
    except PluginError as error:
        pytest.skip(error.problem)


@pytest.mark.slow
def test_a_model_has_the_layers_and_metrics_that_the_table_says(workload):
    row = MODELS[workload.name]
    assert workload.compressible == row.layers
    assert workload.metrics == row.metrics


@pytest.mark.slow
def test_its_shapes_are_known_without_it(workload):
    told = list(shapes_of(workload.name).items())
    assert told == list(read_shapes(workload.name).items())


@pytest.mark.slow
def test_every_layer_is_a_parameter_with_outputs_and_inputs(workload):
    assert min(workload.parameters[name].ndim for name in workload.compressible) >= 2


def test_a_model_that_there_is_not_is_answered_with_the_nearest():
    with pytest.raises(PluginError) as error:
        model_of("mnist_cnn")
    assert error.value.hint == "did you mean 'mnist-cnn'?"
