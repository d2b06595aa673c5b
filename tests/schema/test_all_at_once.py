"""One round reports every mistake that does not depend on another one, and says what it hides."""

from itertools import combinations
from pathlib import Path

import pytest
from typer.testing import CliRunner

from dse import Metric, Study, evaluator
from dse.cli.app import app
from dse.errors import SpecErrors
from dse.schema.study.plan import plan_of
from dse.schema.yaml.source import parse_yaml

SPACE = """
space: s
parameters:
  rows:   {ordinal: [8, 16]}
  cols:   {ordinal: [8, 16]}
  clock:  {ordinal: [100 MHz, 200 MHz]}
constraints:
  - rows <= cols
  - clock <= 200 MHz
"""

STUDY = """
study: s
space: space.yaml
evaluators:
  chip: {use: accelerators.systolic, workload: digits-cnn, dataflow: ws}
  cost:
    use: expression
    metrics:
      total: {formula: chip.latency * rows, unit: ms}
      edge:  {formula: cols * 3}
objectives:
  - minimize: chip.latency
  - minimize: cost.total
constraints:
  - chip.area <= 20 mm2
  - cost.edge <= 48
reference: {chip.latency: 1 s, cost.total: 1 s}
baselines:
  today: {rows: 8, cols: 16, clock: 100 MHz}
optimizer: {use: nsga2, crossover: 0.8}
executor: {use: processes, workers: 2}
budget: {measurements: 20, time: 5 min}
retries: {lost: 1}
reproduces:
  - {claim: c, source: s, published: 1 s, proof: direction, ours: least(chip.latency), accept: ours > 0 s}
seed: 3
"""

MISTAKES: dict[str, tuple[str, str, str]] = {
    "a key": ("seed: 3", "sed: 3", "there is no key 'sed' here"),
    "a domain": ("rows:   {ordinal: [8, 16]}", "rows:   {ordinals: [8, 16]}", "'ordinals'"),
    "a rule's name": ("- rows <= cols", "- rows <= colz", "there is no 'colz'"),
    "a rule's unit": ("- clock <= 200 MHz", "- clock <= 5 kg", "does not go with"),
    "an option": ("dataflow: ws", "dataflov: ws", "has no option 'dataflov'"),
    "an option's value": ("dataflow: ws", "dataflow: sideways", "sideways"),
    "a formula": ("formula: cols * 3", "formula: cols * (3", "edge: expected ')'"),
    "a formula's unit": ("* rows, unit: ms", "* rows, unit: mJ", "cost.total is declared in mJ"),
    "an objective": ("- minimize: cost.total", "- minimize: cost.totl", "'cost.totl'"),
    "an objective's goal": ("- minimize: chip.latency", "- minimise: chip.latency", "'minimise'"),
    "a limit's unit": ("chip.area <= 20 mm2", "chip.area <= 20 s", "does not go with"),
    "a limit's name": ("cost.edge <= 48", "cost.egde <= 48", "'cost.egde'"),
    "the optimizer's option": ("crossover: 0.8", "crosover: 0.8", "no option 'crosover'"),
    "the executor's option": ("workers: 2", "worker: 2", "no option 'worker'"),
    "the budget": ("time: 5 min", "time: 5 kg", "is no time"),
    "a baseline": ("today: {rows: 8", "today: {rwos: 8", "there is no parameter 'rwos'"),
    "retries": ("lost: 1", "lots: 1", "there is no key 'lots'"),
    "a claim": ("least(chip.latency)", "least(chip.latencie)", "'chip.latencie'"),
    "a claim's proof": ("proof: direction", "proof: sure", "proof cannot be 'sure'"),
}
HIDES = {
    "a domain": {"a rule's name", "a formula's unit", "a baseline"},
    "a rule's name": {"a baseline"},
    "a rule's unit": {"a baseline"},
    "an option": {"an option's value"},
    "a formula": set[str](),
    "an objective's goal": set[str](),
    "a claim's proof": {"a claim"},
    "a claim": {"a claim's proof"},
}
"""What a mistake makes impossible to judge, or what stands in the same words."""


def checked(folder: Path, *names: str) -> SpecErrors:
    space, study = SPACE, STUDY
    for name in names:
        old, new, _ = MISTAKES[name]
        assert old in space + study
        space, study = space.replace(old, new), study.replace(old, new)
    (folder / "space.yaml").write_text(space)
    (folder / "study.yaml").write_text(study)
    with pytest.raises(SpecErrors) as caught:
        plan_of(folder / "study.yaml")
    return caught.value


def test_without_mistakes_it_is_a_study(tmp_path):
    (tmp_path / "space.yaml").write_text(SPACE)
    (tmp_path / "study.yaml").write_text(STUDY)
    assert plan_of(tmp_path / "study.yaml").warnings == ()


@pytest.mark.parametrize("name", MISTAKES)
def test_each_mistake_alone_is_one_mistake(tmp_path, name):
    (error,) = checked(tmp_path, name).errors
    assert MISTAKES[name][2] in str(error)
    assert ".yaml:" in error.where


def independent(*names: str) -> bool:
    return not any(
        b in HIDES.get(a, ()) or a in HIDES.get(b, ()) for a, b in combinations(names, 2)
    )


PAIRS = [pair for pair in combinations(MISTAKES, 2) if independent(*pair)][::3]


@pytest.mark.parametrize("pair", PAIRS)
def test_two_independent_mistakes_are_reported_in_one_round(tmp_path, pair):
    told = str(checked(tmp_path, *pair))
    assert [name for name in pair if MISTAKES[name][2] not in told] == [], told


MANY = [
    ("a rule's unit", "an option", "an objective", "the budget"),
    ("a key", "a rule's name", "an option's value", "a limit's unit"),
    ("a domain", "an objective's goal", "a limit's name", "the optimizer's option", "a claim"),
    ("a formula", "a limit's unit", "the executor's option", "a baseline", "retries"),
    ("a key", "a formula's unit", "an objective", "the budget", "a baseline", "a claim's proof"),
    ("a rule's name", "a rule's unit", "an option", "an objective", "a limit's name", "a claim"),
]


@pytest.mark.parametrize("names", MANY)
def test_four_to_six_mistakes_in_different_stages_take_one_round(tmp_path, names):
    errors = checked(tmp_path, *names)
    told = str(errors)
    assert [name for name in names if MISTAKES[name][2] not in told] == [], told
    assert len(errors.errors) == len(names), told


def test_what_a_mistake_hides_is_said_and_not_guessed(tmp_path):
    hidden = checked(tmp_path, "a domain", "a baseline")
    assert len(hidden.errors) == 1
    assert "not checked because of this" in str(hidden)
    assert f"{tmp_path}/study.yaml:19" in hidden.unchecked  # the baseline
    assert f"{tmp_path}/space.yaml:8" in hidden.unchecked  # the rule over rows


def test_check_and_run_say_how_much_was_not_checked(tmp_path):
    checked(tmp_path, "a domain", "the budget")
    answer = CliRunner().invoke(app, ["check", str(tmp_path / "study.yaml")])
    assert "2 mistakes" in answer.output
    assert "parts were not checked because of these: " in answer.output


def test_a_study_without_its_required_keys_is_checked_for_the_rest(tmp_path):
    (tmp_path / "study.yaml").write_text("study: s\nspace: nowhere.yaml\nbudget: {time: 5 kg}\n")
    with pytest.raises(SpecErrors) as caught:
        plan_of(tmp_path / "study.yaml")
    told = str(caught.value)
    for words in ("'evaluators' is missing", "'objectives' is missing", "no file", "is no time"):
        assert words in told


def test_several_options_of_one_evaluator_are_one_round(tmp_path):
    (tmp_path / "space.yaml").write_text(SPACE)
    text = STUDY.replace("dataflow: ws", "dataflow: sideways, coress: 2, clock: 5 kg")
    (tmp_path / "study.yaml").write_text(text)
    with pytest.raises(SpecErrors) as caught:
        plan_of(tmp_path / "study.yaml")
    told = str(caught.value)
    for words in ("sideways", "coress", "clock"):
        assert words in told


def test_python_reports_all_at_once_too():
    @evaluator(Metric("time", "s", goal="minimize"), kind="modelled")
    def kernel(tile: int) -> dict[str, float]:
        return {"time": 1.0 * tile}

    with pytest.raises(SpecErrors) as caught:
        Study(
            "s",
            {"tile": [1, 2]},
            [kernel],
            storage="memory://",
            constraints=["kernel.tiem <= 3 s"],
            budget={"time": "5 kg"},
            optimizer={"use": "nsga2", "populaton": 3},
        )
    told = str(caught.value)
    for words in ("kernel.tiem", "is no time", "populaton"):
        assert words in told


def judged(folder: Path, space: str, evaluators: str, rest: str) -> str:
    """Return what `dse check` prints in a study of these parts."""
    (folder / "space.yaml").write_text(f"space: s\n{space}")
    study = f"study: s\nspace: space.yaml\nevaluators: {evaluators}\n{rest}\n"
    (folder / "study.yaml").write_text(study)
    done = CliRunner().invoke(app, ["check", str(folder / "study.yaml")])
    assert done.exit_code == 2, done.output
    return done.output


ROWS = "parameters: {rows: {ordinal: [8, 16]}}"


def test_every_metric_without_a_formula_is_reported(tmp_path):
    forms = "{use: expression, metrics: {a: rows, b: rows * 2, c: {formul: rows}, d: {formula: 3}}}"
    told = judged(tmp_path, ROWS, f"{{e: {forms}}}", "objectives: [{minimize: e.a}]")
    assert [f"'{name}'" in told for name in "abcd"] == [True] * 4, told
    assert "did you mean 'formula'?" in told


def test_a_metric_whose_formula_is_a_mistake_is_there(tmp_path):
    forms = "{use: expression, metrics: {v: {formula: rows *}, w: {formula: rows}}}"
    rest = "objectives: [{minimize: e.w}]\nconstraints: [e.v <= 3]"
    told = judged(tmp_path, ROWS, f"{{e: {forms}}}", rest)
    assert "1 mistake\n" in told, told
    assert "study.yaml:5" in told.partition("not checked")[2]  # the constraint


def test_a_name_near_to_a_parameter_with_a_mistake_is_that_parameter(tmp_path):
    space = "parameters: {layers: {integer: [1, 8], stp: 2}, g: {ordinal: [1, 2]}}\n"
    rules = "constraints: [layerz * g <= 8]"
    forms = "{use: expression, metrics: {v: {formula: g}}}"
    told = judged(tmp_path, space + rules, f"{{e: {forms}}}", "objectives: [{minimize: e.v}]")
    assert "did you mean 'layers'?" in told, told


@pytest.mark.parametrize("program", [True, False])
def test_programs_that_were_not_looked_for_are_said(tmp_path, program):
    board = "{use: command, run: [python3, none.py], metrics: {t: s}}"
    chip = "{use: expression, metrics: {t: {formula: rows, unit: ''}}}"
    evaluators = f"{{e: {board if program else chip}}}"
    rest = "objectives: [{minimize: e.t}]\nbudget: {measurments: 4}"
    told = judged(tmp_path, ROWS, evaluators, rest)
    assert ("whether programs and scripts exist" in told) == program, told


def test_parts_of_lists_and_mappings_are_taken_out_at_once_with_their_lines():
    text = "a:\n- x\n- y\n- p: 1\n  q: 2\n- z\nb: 3\nc: 4\n"
    source = parse_yaml(Path("f.yaml"), text)
    rest = source.without([("a", 0), ("a", 2, "p"), ("b",), ("a", 1)])
    assert rest.value == {"a": [{"q": 2}, "z"], "c": 4}
    assert [rest.lines[path] for path in (("a", 0, "q"), ("a", 1), ("c",))] == [5, 6, 8]
    assert ("b",) not in rest.lines
    many = parse_yaml(Path("f.yaml"), "a:\n" + "- 1\n" * 20_000)
    left = many.without([("a", place) for place in range(0, 20_000, 2)])
    assert len(left.value["a"]) == 10_000
    assert left.lines["a", 9_999] == 20_001
