"""The split of tokens between two phases: the law's numbers and the minimum of its loss form."""

from __future__ import annotations

import numpy as np
import pytest

from dse.core.batch import Batch
from dse_evaluators.scaling.qat_law import QatLaw, best_share, excess

SHARES = np.linspace(0.001, 0.999, 999)


# Values of exp(-6.7297 / ln S), which the authors round to 10 to 15 % and 55 %.
@pytest.mark.parametrize(("tokens_per_byte", "share"), [(26, 0.127), (107, 0.237), (65116, 0.545)])
def test_the_best_share_is_that_of_the_law(tokens_per_byte, share):
    assert best_share(np.array([float(tokens_per_byte)]))[0] == pytest.approx(share, abs=0.0005)


def test_the_best_share_grows_with_the_tokens_of_a_byte():
    assert (np.diff(best_share(np.geomspace(2, 1e6, 100))) > 0).all()


def test_the_fitted_loss_form_has_its_minimum_near_the_law():
    ratios = np.geomspace(12, 7e4, 60)[:, None]
    found = SHARES[np.argmin(excess(ratios, SHARES[None, :]), axis=1)]
    off = np.abs(found - best_share(ratios[:, 0]))
    assert off.mean() < 0.03
    assert off.max() < 0.1


def law(**changes: float):
    design = {"parameters": 1e9, "bits": 4, "tokens": 1e11, "share": 0.2}
    return QatLaw().evaluate(Batch.of([{**design, **changes}]))


def test_sizes_are_counted():
    columns = law().columns
    assert columns["memory"][0] == 5e8
    assert columns["compute"][0] == 6e20
    assert columns["tokens_per_byte"][0] == 200


# Hoffmann et al. 2022, appendix: 1.69 + 406.4 / N^0.34 + 410.7 / D^0.28. For Chinchilla (70e9
# parameters, 1.4e12 tokens) its three terms are 1.69, 0.083 and 0.163.
def test_the_loss_in_full_precision_is_chinchillas():
    loss = law(parameters=70e9, tokens=1.4e12).columns["full_precision_loss"][0]
    assert loss == pytest.approx(1.69 + 0.083 + 0.163, abs=0.001)


def test_less_than_a_token_for_each_byte_is_outside_the_law():
    found = law(tokens=4e8)
    assert found.failures[0].kind == "infeasible"
