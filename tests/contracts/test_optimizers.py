"""Every registered optimizer keeps the laws, on a finite space and on one with reals."""

from functools import partial

import pytest

from dse import registry
from dse.testing.optimizer_contract import FiniteOptimizerContract, OptimizerContract
from dse.testing.problems import mixed_reals

MARKS = {"ax": pytest.mark.proof, "qlognehvi": pytest.mark.slow}
NEEDS_MODELS = {"decompose"}
"""What refuses a problem with anything to be measured, as all are that contracts are put to."""

NEEDS_ORDER = {"cma-es"}
"""What refuses choices, conditions and several objectives; its own test puts it to the contract."""

NAMES = [
    pytest.param(name, marks=MARKS[name]) if name in MARKS else name
    for name in registry.names("optimizers")
    if name not in NEEDS_MODELS | NEEDS_ORDER
]
COUNTS_NOTHING = [name for name in NAMES if name != "exhaustive"]


class TestOnAFiniteSpace(FiniteOptimizerContract):
    @pytest.fixture(params=NAMES)
    def make(self, request):
        return partial(registry.make, "optimizers", request.param)


class TestOnASpaceWithReals(OptimizerContract):
    @pytest.fixture(params=COUNTS_NOTHING)
    def make(self, request):
        return partial(registry.make, "optimizers", request.param)

    @pytest.fixture
    def known(self):
        return mixed_reals()


EVOLUTION = ("age-moea2", "ctaea", "moead", "nsga2", "nsga3", "rvea", "sms-emoa")
"""Those whose usual population is larger than what is told here."""


@pytest.mark.parametrize("steady", [False, True], scope="class")
class TestBreedingOnAFiniteSpace(FiniteOptimizerContract):
    @pytest.fixture(params=EVOLUTION)
    def make(self, request, steady):
        return partial(registry.make, "optimizers", request.param, pop_size=4, steady=steady)


class TestBreedingOnASpaceWithReals(OptimizerContract):
    @pytest.fixture(params=EVOLUTION)
    def make(self, request):
        return partial(registry.make, "optimizers", request.param, pop_size=5, steady=True)

    @pytest.fixture
    def known(self):
        return mixed_reals()
