"""What an optimizer suggests is legal and new, or nothing of it is kept."""

from __future__ import annotations

import math

import numpy as np
import pytest

from dse import Metric, Space, Study, evaluator
from dse.core.design import Design
from dse.errors import PluginError
from dse.evaluation.pipeline import MeasurementCache
from dse.executors.serial import Serial
from dse.study.asking import check_suggestions
from dse.study.claimed_trials import Lease
from dse.study.history import TrialHistory
from dse.study.loop import Loop
from dse.study.stopping_bounds import Bounds

SPACE = Space(
    {
        "tile": [16, 32, 64, 128],
        "stages": (1, 6),
        "format": ["int8", "int4", ""],
        "safe": [True, False],
        "clock": (0.5, 2.0),
        "group": {"ordinal": [32, 64], "when": "format == 'int4'"},
    },
    ["tile * stages <= 512"],
).solved
GOOD = {"tile": 16, "stages": 1, "format": "int8", "safe": True, "clock": 1.0}
ILLEGAL = [
    ({"tile": 128, "stages": 6}, "the rule 'tile \\* stages <= 512' does not hold"),
    ({"tile": 17}, "tile cannot be 17"),
    ({"tile": 16.0}, "tile is written 16, not 16.0"),
    ({"tile": True}, "tile cannot be True"),
    ({"tile": "16"}, "tile cannot be '16'"),
    ({"tile": np.int64(16)}, "tile cannot be"),
    ({"stages": 0}, "stages cannot be 0"),
    ({"stages": 2.0}, "stages cannot be 2.0"),
    ({"stages": [1]}, "stages cannot be"),
    ({"format": "fp4"}, "format cannot be 'fp4'"),
    ({"format": None}, "format cannot be None"),
    ({"safe": 1}, "safe cannot be 1"),
    ({"clock": 2.5}, "clock cannot be 2.5"),
    ({"clock": 1}, "clock is written 1.0, not 1"),
    ({"clock": math.nan}, "clock cannot be nan"),
    ({"clock": math.inf}, "clock cannot be inf"),
    ({"group": 32}, "group is set, but it exists only when format == 'int4'"),
    ({"format": "int4"}, "group is missing"),
    ({"format": "int4", "group": 48}, "group cannot be 48"),
    ({"width": 3}, "there is no parameter 'width'"),
]


def without(name: str) -> Design:
    return Design({key: value for key, value in GOOD.items() if key != name})


def check(*designs: object, asked=(), rungs: int = 0, wanted: int = 9) -> None:
    known = {design: [number] for number, design in enumerate(asked)}
    check_suggestions(designs, SPACE, by="greedy", wanted=wanted, asked=known, rungs=rungs)


@pytest.mark.parametrize(("change", "words"), ILLEGAL)
@pytest.mark.parametrize("among", [0, 3], ids=["alone", "among"])
def test_an_illegal_design_is_refused_with_the_rule_that_it_breaks(change, words, among):
    others = [Design({**GOOD, "clock": 1 + place / 8}) for place in range(1, 1 + among)]
    with pytest.raises(PluginError, match=f"the optimizer 'greedy' suggests .*{words}"):
        check(*others, Design({**GOOD, **change}))


@pytest.mark.parametrize("name", GOOD)
def test_a_design_that_lacks_a_parameter_is_refused(name):
    with pytest.raises(PluginError, match=f"{name} is missing"):
        check(without(name))


def test_what_is_no_design_is_refused():
    with pytest.raises(PluginError, match="which is a dict, not a Design"):
        check(GOOD)


def test_a_design_is_suggested_once():
    with pytest.raises(PluginError, match="twice in one suggestion"):
        check(Design(GOOD), Design(dict(reversed(GOOD.items()))))
    with pytest.raises(PluginError, match="which trial 0 is already"):
        check(Design(GOOD), asked=[Design(GOOD)])
    with pytest.raises(PluginError, match="suggests 2 designs where 1 are wanted"):
        check(Design(GOOD), Design({**GOOD, "tile": 32}), wanted=1)


def test_a_ladder_asks_a_design_once_for_each_rung():
    check(Design(GOOD), asked=[Design(GOOD)], rungs=1)
    with pytest.raises(PluginError, match="which trial 0 is already"):
        check(Design(GOOD), asked=[Design(GOOD)], rungs=0)


def test_legal_designs_pass_and_are_judged_as_one_by_one():
    rng = np.random.default_rng(3)
    drawn = list(dict.fromkeys(SPACE.sample(200, rng).designs()))
    check(*drawn, wanted=200)
    values = {p.name: [d[p.name] for d in drawn if p.name in d] for p in SPACE.parameters}
    mixed = [
        Design({name: rng.choice(np.array(v, dtype=object)) for name, v in values.items()})
        for _ in range(300)
    ]
    legal = SPACE.are_legal(SPACE.batch(mixed)).tolist()
    assert legal == [design in SPACE for design in mixed]
    assert {*legal} == {True, False}


class Scripted:
    """Suggests what it is given, one after the other, whatever comes of it."""

    def __init__(self, designs):
        self.designs = [*designs]

    def ask(self, count, pending=()):
        return [self.designs.pop(0)] if self.designs else []

    def tell(self, finished):
        pass

    def events(self):
        return []


def test_nothing_illegal_reaches_the_record_or_the_front():
    cost = evaluator(Metric("cost", goal="minimize"))(lambda tile: {"cost": float(tile)})
    study = Study("s", {"tile": [16, 32, 64]}, {"own": cost}, storage="memory://").engine
    good = Design({"tile": 64})
    with Lease(study.storage, "s") as lease, pytest.raises(PluginError, match="tile cannot be 1"):
        Loop(
            space=study.problem.space,
            history=TrialHistory(study.storage, "s"),
            lease=lease,
            optimizer=Scripted([good, Design({"tile": 1})]),
            by="greedy",
            executor=Serial(study.plan.pipeline),
            readings=MeasurementCache(study.plan.pipeline),
            bounds=Bounds(),
        ).run()
    assert [trial.design for trial in study.trials] == [good]
    assert [trial.design for trial in study.front.trials] == [good]
    assert study.run() == "no design is left to ask"
    assert len(study.trials) == 3
