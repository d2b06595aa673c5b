"""Each of two hundred damaged models ends in one clear error; none runs code or takes memory."""

from __future__ import annotations

import resource

import numpy as np
import pytest

from dse.errors import DseError
from dse_evaluators.workloads.own.named_model import model_ref
from dse_evaluators.workloads.own.own_workload import workload_of_option
from dse_evaluators.workloads.workload import Signals
from tests.evaluators.compression.damaged_models import damages, images, sound_network, tokens
from tests.evaluators.compression.own_models import write_llama


@pytest.fixture(scope="module")
def network(tmp_path_factory):
    return sound_network(tmp_path_factory.mktemp("net"))


def _run(model, data):
    """Return the outputs on the search split, as a study computes them."""
    workload = model_ref(model, data, "accuracy", runs=True).make()
    return workload.outputs(workload.parameters, "search", Signals())


def _failure(damage, folder):
    """Return what is wrong with how a damaged model fails; empty if nothing is."""
    folder.mkdir()
    model, data = damage.write(folder)
    try:
        outputs = _run(model, data)
    except DseError as error:
        text = str(error)
        if not error.hint or len(text) < 40 or "Traceback" in text:
            return f"{damage.name}: unclear: {text}"
        return f"{damage.name}: long: {text}" if len(text) > 700 else ""
    except BaseException as error:  # noqa: BLE001 - every other exception is a mistake of ours
        return f"{damage.name}: {type(error).__name__}: {error}"
    if damage.may_run and np.isfinite(outputs).all():
        return ""
    return f"{damage.name}: no error"


@pytest.mark.parametrize("kind", ["onnx", "llama"])
def test_the_models_that_are_damaged_are_sound(kind, network, tmp_path):
    if kind == "onnx":
        (tmp_path / "net.onnx").write_bytes(network)
        outputs = _run(str(tmp_path / "net.onnx"), images())
    else:
        outputs = _run(str(write_llama(tmp_path / "llama")), tokens())
    assert np.isfinite(outputs).all()


def test_every_damage_to_a_workload_is_one_clear_error(network, tmp_path):
    failures = [
        _layer_fault(one, tmp_path / str(place)) for place, one in enumerate(damages(network))
    ]
    assert [one for one in failures if one] == []


def _layer_fault(damage, folder):
    """Return what is wrong with how the layers of a damaged model are read; empty if nothing is."""
    folder.mkdir()
    model, _ = damage.write(folder)
    try:
        _ = workload_of_option(model).table  # which need not read the weights
    except DseError as error:
        return "" if error.hint and len(str(error)) < 700 else f"{damage.name}: unclear: {error}"
    except BaseException as error:  # noqa: BLE001 - every other exception is a mistake of ours
        return f"{damage.name}: {type(error).__name__}: {error}"
    return ""


def test_every_damage_is_one_clear_error_and_runs_nothing(network, tmp_path):
    listed = list(damages(network))
    assert len(listed) >= 200
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    failures = [_failure(one, tmp_path / str(place)) for place, one in enumerate(listed)]
    assert [failure for failure in failures if failure] == []
    assert list(tmp_path.glob("**/ran")) == []
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 400_000  # kB
