"""Study files: what they mean, and what each mistake is answered with."""

from pathlib import Path

import numpy as np
import pytest

from dse.errors import SpecError, SpecErrors
from dse.schema.history.recorded_specification import difference
from dse.schema.study.plan import plan_of

SPACE = """
space: s
parameters:
  rows:   {ordinal: [8, 16]}
  clock:  {ordinal: [100 MHz, 200 MHz]}
  format: {choice: [int8, fp8]}
"""

STUDY = """
study: s
space: space.yaml
evaluators:
  board: {use: command, run: ['true'], metrics: {power: mW, speed: ''}}
  chip: {use: expression, metrics: {energy: {formula: board.power * 3 ms, unit: mJ}}}
objectives:
  - minimize: chip.energy
  - maximize: board.speed
"""


def plan_from(folder: Path, study: str, space: str = SPACE):
    (folder / "space.yaml").write_text(space)
    path = folder / "study.yaml"
    path.write_text(study)
    return plan_of(path)


def mistakes_in(folder: Path, study: str, space: str = SPACE) -> str:
    with pytest.raises((SpecError, SpecErrors)) as caught:
        plan_from(folder, study, space)
    return str(caught.value)


def test_a_metric_of_a_measured_metric_is_measured_and_reads_what_is_behind_it(tmp_path):
    problem = plan_from(tmp_path, STUDY).problem
    assert problem.measured == {"chip.energy", "board.speed"}
    assert problem.reads("chip.energy") == {"rows", "clock", "format"}


def test_objectives_are_told_in_their_units_and_minimised(tmp_path):
    problem = plan_from(tmp_path, STUDY).problem
    columns = {"chip.energy": np.array([9.0, 12.0]), "board.speed": np.array([1.0, 2.0])}
    from dse.core.batch import Column

    losses = problem.losses({k: Column(v) for k, v in columns.items()}, 2)
    assert losses.tolist() == [[9.0, -1.0], [12.0, -2.0]]


def test_a_product_of_metrics_has_the_product_of_their_units(tmp_path):
    text = STUDY.replace("- minimize: chip.energy", "- minimize: chip.energy * 2 s")
    (objective, _) = plan_from(tmp_path, text).problem.objectives
    from dse.core.batch import Column

    assert objective.unit == "mJ*s"
    values = objective.values({"chip.energy": Column(np.array([5.0]))}, 1)
    assert values.tolist() == pytest.approx([10.0])


def test_a_limit_is_kept_in_any_unit_of_the_same_dimension(tmp_path):
    text = STUDY + "constraints:\n  - chip.energy <= 10 uJ\n  - 1 < board.speed < 5\n"
    problem = plan_from(tmp_path, text).problem
    from dse.core.batch import Column

    columns = {
        "chip.energy": Column(np.array([0.005, 0.02])),
        "board.speed": Column(np.array([3.0, 6.0])),
    }
    slacks = problem.slacks(columns, 2)
    assert slacks.shape == (2, 3)
    assert slacks[0] == pytest.approx([0.5, 2.0, 0.4])
    assert (slacks[1] < 0).tolist() == [True, False, True]


def test_a_reference_point_is_told_in_the_objectives_units(tmp_path):
    text = STUDY + "reference: {chip.energy: 20 uJ, board.speed: 0}\n"
    assert plan_from(tmp_path, text).problem.fixed_reference == pytest.approx((0.02, 0.0))


def test_a_baseline_may_use_units(tmp_path):
    text = STUDY + "baselines:\n  - {rows: 8, clock: 0.1 GHz, format: fp8}\n"
    (design,) = plan_from(tmp_path, text).problem.baselines
    assert design["clock"] == 100_000_000


def test_a_number_is_one_value_however_it_is_written(tmp_path):
    space = SPACE.replace("[8, 16]", "[0.5, 1]")
    text = STUDY + "baselines:\n  - {rows: 1, clock: 100 MHz, format: fp8}\n"
    problem = plan_from(tmp_path, text, space).problem
    drawn = problem.space.sample(200, problem.rng(0)).designs()
    assert problem.baselines[0] in drawn


def with_line(old: str, new: str) -> str:
    assert old in STUDY
    return STUDY.replace(old, new)


@pytest.mark.parametrize(
    "limit",
    ["board.speed >= 90 percent", "board.speed >= 0.9", "board.speed * chip.speed >= 1.2"],
)
def test_a_share_is_a_limit_as_it_is_written(tmp_path, limit):
    text = with_line("speed: ''", "speed: '%'").replace(
        "unit: mJ}}}", "unit: mJ}, speed: {formula: '2'}}}"
    )
    assert plan_from(tmp_path, f"{text}constraints: [{limit}]\n").problem.limits


BAD = {
    "misspelt key": (
        with_line("evaluators:", "evaluatros:"),
        ["study.yaml:4", "'evaluatros'", "did you mean 'evaluators'"],
    ),
    "unknown evaluator": (
        with_line("use: command", "use: comand"),
        ["study.yaml:5", "no evaluator 'comand'", "did you mean 'command'"],
    ),
    "unknown option": (
        with_line("run: ['true']", "runs: ['true']"),
        ["study.yaml:5", "no option 'runs'", "did you mean 'run'"],
    ),
    "missing option": (
        with_line("run: ['true'], ", ""),
        ["study.yaml:5", "needs the option 'run'"],
    ),
    "unknown metric": (
        with_line("maximize: board.speed", "maximize: board.sped"),
        ["study.yaml:9", "no evaluator provides 'board.sped'", "did you mean 'board.speed'"],
    ),
    "two goals": (
        with_line("- minimize: chip.energy", "- {minimize: chip.energy, maximize: board.speed}"),
        ["study.yaml:8", "either 'minimize"],
    ),
    "rule as objective": (
        with_line("- minimize: chip.energy", "- minimize: chip.energy < 3 mJ"),
        ["study.yaml:8", "go under 'constraints'"],
    ),
    "word as objective": (
        with_line("- minimize: chip.energy", "- minimize: format"),
        ["study.yaml:8", "is text, and cannot be"],
    ),
    "limit in the wrong unit": (
        STUDY + "constraints: [chip.energy <= 20 ms]\n",
        ["study.yaml:10", "does not go with"],
    ),
    "limit without unit": (
        STUDY + "constraints: [chip.energy <= 20]\n",
        ["study.yaml:10", "a bare number", "mJ"],
    ),
    "limit that means thousands of percent": (
        with_line("speed: ''", "speed: '%'") + "constraints: [board.speed >= 90]\n",
        ["study.yaml:10", "9000 %", "write 90 percent"],
    ),
    "limit that is an equation": (
        STUDY + "constraints: [board.speed == 2]\n",
        ["study.yaml:10", "is no limit"],
    ),
    "formula in another unit": (
        with_line("unit: mJ}", "unit: W}"),
        ["study.yaml:6", "energy", "W"],
    ),
    "metric without such a unit": (
        with_line("power: mW", "power: mV2W"),
        ["study.yaml:5", "there is no unit 'mV2W'"],
    ),
    "reading itself": (
        with_line("board.power * 3 ms", "chip.energy"),
        ["study.yaml:6", "which it reports itself"],
    ),
    "reference of nothing": (
        STUDY + "reference: {chip.enrgy: 1 mJ, board.speed: 0}\n",
        ["study.yaml:10", "not one of the objectives", "did you mean 'chip.energy'"],
    ),
    "reference of a part": (
        STUDY + "reference: {chip.energy: 1 mJ}\n",
        ["study.yaml:10", "lacks 'board.speed'"],
    ),
    "reference in the wrong unit": (
        STUDY + "reference: {chip.energy: 1 s, board.speed: 0}\n",
        ["study.yaml:10", "no quantity in mJ"],
    ),
    "illegal baseline": (
        STUDY + "baselines: [{rows: 9, clock: 100 MHz, format: int8}]\n",
        ["study.yaml:10", "rows cannot be 9", "8, 16"],
    ),
    "unknown optimizer": (
        STUDY + "optimizer: nsg2\n",
        ["study.yaml:10", "no optimizer 'nsg2'", "did you mean 'nsga2'"],
    ),
    "unknown optimizer option": (
        STUDY + "optimizer: {use: nsga2, popsize: 3}\n",
        ["study.yaml:10", "no option 'popsize'", "pop"],
    ),
    "budget in the wrong unit": (
        STUDY + "budget: {time: 3 kg}\n",
        ["study.yaml:10", "is no time"],
    ),
    "negative budget": (STUDY + "budget: {measurements: 0}\n", ["study.yaml:10", "measurements"]),
    "binding to nothing": (
        with_line("unit: mJ}}}", "unit: mJ}}, bind: {board.power: board.pwr}}"),
        ["study.yaml:6", "'board.pwr'", "did you mean 'board.power'"],
    ),
    "binding of nothing": (
        with_line("unit: mJ}}}", "unit: mJ}}, bind: {pwr: board.power}}"),
        ["study.yaml:6", "reads no 'pwr'"],
    ),
    "no space": (
        with_line("space: space.yaml", "space: spaec.yaml"),
        ["study.yaml:3", "there is no file", "did you mean 'space.yaml'"],
    ),
    "bad name": (with_line("study: s", "study: ../x"), ["study.yaml:2", "'../x' is no name"]),
    "seed of the wrong type": (
        STUDY + "seed: many\n",
        ["study.yaml:10", "seed: expected a whole number, found 'many'"],
    ),
}


@pytest.mark.parametrize("case", BAD)
def test_a_mistake_is_told_with_its_line_and_how_to_mend_it(tmp_path, case):
    text, expected = BAD[case]
    told = mistakes_in(tmp_path, text)
    missing = [words for words in expected if words not in told]
    assert not missing, told


def test_all_mistakes_of_a_study_are_told_at_once(tmp_path):
    text = STUDY + "constraints: [x <= 1]\nbaselines: [{rows: 9}]\noptimizer: nothing\n"
    told = mistakes_in(tmp_path, text)
    assert all(f"study.yaml:{line}:" in told for line in (10, 11, 12))


def test_two_evaluators_cannot_give_one_metric(tmp_path):
    from dse.core.metric import Metric
    from dse.evaluation.bound_evaluator import Bound
    from dse.evaluation.pipeline import order_evaluators

    class Constant:
        reads = optional = frozenset()
        units = {}
        kind = "modelled"
        version = "1"

        def __init__(self, *names):
            self.provides = {name: Metric(name=name) for name in names}

    one = Bound(name="chip", evaluator=Constant("a.b"), names={})
    other = Bound(name="chip.a", evaluator=Constant("b"), names={})
    with pytest.raises(SpecError, match=r"both chip and chip\.a provide"):
        order_evaluators([one, other])


def test_a_changed_study_differs_in_the_part_that_was_changed(tmp_path):
    before = plan_from(tmp_path, STUDY).identity
    after = plan_from(tmp_path, STUDY + "seed: 3\n").identity
    assert difference(before, before) == ""
    assert difference(before, after) == "seed: 0 is now 3"
    other = plan_from(tmp_path, STUDY, SPACE.replace("[8, 16]", "[8, 32]")).identity
    assert difference(before, other).startswith("space: ")
