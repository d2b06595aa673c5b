"""Hints point at the mend: the nearest name that is near, the unit, the quotes, the tab."""

from pathlib import Path

import pytest

from dse import Metric
from dse.errors import DseError, SpecError, nearest
from dse.schema.history.recorded_specification import begun_with, kept_plan
from dse.schema.study.plan import plan_of

SPACE = """
space: s
parameters:
  rows: {ordinal: [8, 16]}
  clock: {ordinal: [100 MHz, 200 MHz]}
"""
STUDY = """
study: s
space: space.yaml
evaluators:
  e: {use: expression, metrics: {t: {formula: rows / clock, unit: s}}}
objectives: [{minimize: e.t}]
"""
RECIPE = STUDY.replace(
    "objectives", "  q: {use: compression.size, model: digits-cnn, recipe: RECIPE}\nobjectives"
)
PLANS = """
space: s
parameters:
  tp: {ordinal: [4, 8]}
  pp: {ordinal: [1]}
  dp: {ordinal: [1, 2]}
  microbatch: {ordinal: [1, 2]}
"""
TRAINING = """
study: s
space: space.yaml
evaluators:
  c: {use: clusters.training, model: llama2-7b, sequence: 4096, global_batch: 64, MORE}
objectives: [{minimize: c.step_time}]
"""
COMMAND = """
study: s
space: space.yaml
evaluators:
  e: {use: command, run: RUN, metrics: {t: s}}
objectives: [{minimize: e.t}]
"""
TAB = "put spaces where the tab is"

CASES: dict[str, tuple[str, str, str]] = {
    "another tool's word": (
        STUDY + "optimizer: {use: nsga2, population: 8}",
        "pop_size",
        "mutation",
    ),
    "capitals": (STUDY + "optimizer: TPE", "did you mean 'tpe'?", "valid:"),
    "a recipe's operator": (
        RECIPE.replace("RECIPE", "prun 0.5 > format fp16"),
        "did you mean 'prune'?",
        "awq",
    ),
    "a recipe that keeps nothing": (
        RECIPE.replace("RECIPE", "prune 0.5"),
        "'prune ... > format fp16'",
        "wrong place",
    ),
    "a number in quotes": (
        TRAINING.replace("MORE", 'tokens: "260e9"'),
        "without quotes: 260000000000",
        "write 2\n",
    ),
    "a name that is far": (
        TRAINING.replace("llama2-7b", "quokka").replace("MORE", "pue: 1.1"),
        "model cannot be 'quokka'",
        "did you mean",
    ),
    "a mass for a time": (
        STUDY + "constraints: [e.t <= 5 kg]",
        "give it a unit such as s, not kg: '5 s'",
        "both",
    ),
    "a bare number in a rule": (
        STUDY + "constraints: [e.t <= 5]",
        "give it a unit such as s: '5 s'",
        "both",
    ),
    "a bare reference": (
        STUDY + "reference: {e.t: 5}",
        "study.yaml:7: e.t is the bare number 5, and it is a quantity in s\n  hint: give it a unit: '5 s'",
        "both",
    ),
    "a bare time": (STUDY + "budget: {time: 60}", "'60 s'", "both"),
    "a bare cost": (STUDY + "budget: {cost: 60, price: 4 $/h}", "'60 $'", "both"),
    "a bare timeout": (COMMAND.replace("RUN", "['true'], timeout: 60"), "'60 s'", "both"),
    "a bare memory": (
        COMMAND.replace("RUN", "['true'], resources: {memory: 60}"),
        "'60 B'",
        "both",
    ),
    "a tab before a key": (STUDY + "budget:\n\ttime: 60 s", TAB, "missing colon"),
    "a tab before an entry": (STUDY.replace("  e: {use", "\te: {use"), TAB, "missing colon"),
    "a tab within": (
        STUDY.replace("  e: {use: expression,", "  e:\n\tuse: expression\n  f: {"),
        TAB,
        "missing colon",
    ),
    "a word of run that is null": (
        COMMAND.replace("RUN", "[python3, x.py, null]"),
        "run holds null, which is no text",
        "NoneType",
    ),
    "a key twice": (STUDY + "seed: 1\nseed: 2", "the key 'seed' is already on line 7", "valid"),
    "an objective's goal": (STUDY.replace("minimize", "min"), "write 'minimize'", "valid:"),
}


def refused(folder: Path, study: str, space: str = SPACE) -> str:
    (folder / "space.yaml").write_text(space)
    (folder / "study.yaml").write_text(study)
    with pytest.raises(DseError) as caught:
        plan_of(folder / "study.yaml")
    return str(caught.value)


@pytest.mark.parametrize("case", CASES)
def test_a_hint_points_at_the_mend(tmp_path, case):
    study, wanted, unwanted = CASES[case]
    told = refused(tmp_path, study, PLANS if "clusters." in study else SPACE)
    assert wanted in told
    assert unwanted not in told
    assert "study.yaml:" in told


def test_numbers_in_quotes_are_numbers_all_the_same():
    from dse_evaluators.amounts import amount

    assert amount("power", "3 kW", "W") == 3000
    with pytest.raises(SpecError, match="not a number") as caught:
        amount("power", "260e9", "W")
    assert caught.value.hint == "without quotes: 260000000000 W"


def test_a_goal_of_a_metric_is_checked():
    with pytest.raises(SpecError, match="the goal of 'time' cannot be 'min'") as caught:
        Metric("time", "s", goal="min")
    assert caught.value.hint == "did you mean 'minimize'?"


@pytest.mark.parametrize("kind", ["ordinal", "choice"])
def test_values_that_agree_to_twelve_digits_are_one(tmp_path, kind):
    space = SPACE.replace("{ordinal: [8, 16]}", f"{{{kind}: [0.1, 0.5, 0.1000000000000001]}}")
    told = refused(tmp_path, STUDY, space)
    assert "space.yaml:4: 0.1 and 0.1000000000000001 are one value" in told


def test_large_whole_numbers_that_differ_by_one_are_two(tmp_path):
    space = SPACE.replace("[8, 16]", f"[{2**52}, {2**52 + 1}]")
    (tmp_path / "space.yaml").write_text(space)
    (tmp_path / "study.yaml").write_text(STUDY)
    assert plan_of(tmp_path / "study.yaml").problem.space.count() == 4


def test_a_stored_study_keeps_its_bare_numbers(tmp_path):
    (tmp_path / "space.yaml").write_text(SPACE)
    (tmp_path / "study.yaml").write_text(STUDY + "reference: {e.t: 5 s}\nbudget: {time: 60 s}\n")
    plan = plan_of(tmp_path / "study.yaml")
    texts = {
        name: text.replace("5 s", "5").replace("60 s", "60") for name, text in plan.texts.items()
    }
    kept = kept_plan({**begun_with(plan), "texts": texts})
    assert kept.problem.fixed_reference == (5.0,)
    assert kept.budget.time_s == 60


@pytest.mark.parametrize(
    ("written", "valid", "hint"),
    [
        ("gpt-oss-120b", ["gpt-310b", "llama2-7b"], "valid: gpt-310b, llama2-7b"),
        ("rwos", ["rows", "cols"], "did you mean 'rows'?"),
        ("thruput", ["throughput", "input"], "did you mean 'throughput'?"),
        ("accelerator.foo", ["accelerator.bar"], "valid: accelerator.bar"),
        ("accelerator.enrgy", ["accelerator.energy"], "did you mean 'accelerator.energy'?"),
        ("population", ["pop_size", "mutation"], "did you mean 'pop_size'?"),
        ("max", ["minimize", "maximize"], "did you mean 'maximize'?"),
        ("time", ["tile", "time_ms"], "did you mean 'time_ms' or 'tile'?"),
        ("x", [], ""),
    ],
)
def test_only_a_near_name_is_suggested(written, valid, hint):
    assert nearest(written, valid) == hint


def test_of_many_names_the_closest_are_listed_and_the_command_that_lists_all():
    many = [f"model-{place:03}" for place in range(100)]
    hint = nearest("modal-x12-large", many, "dse plugins list models")
    assert hint.startswith("100 are valid, the closest: ")
    assert "model-012" in hint
    assert hint.endswith("; dse plugins list models lists all")
    assert " more" not in nearest("zzz", many[:35])
