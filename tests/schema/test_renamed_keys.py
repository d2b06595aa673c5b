"""Study files with the old names of keys: read as before, with a warning for each."""

import warnings
from pathlib import Path

import pytest

from dse.errors import SpecErrors
from dse.schema.models import StudySpec
from dse.schema.study.plan import plan_of
from dse.schema.yaml.files import RENAMED, rename_old_keys
from dse.schema.yaml.source import parse_yaml

SPACE = "space: small\nparameters:\n  rows: {ordinal: [1, 2, 4]}\n"
NEW = """\
study: new
space: space.yaml
evaluators:
  net:
    use: command
    run: [python3, net.py]
    metrics: {loss: 1, time: s}
    replicates: {count: 2, seed_input: draw}
objectives:
  - {minimize: net.loss, label: loss}
  - {minimize: net.time}
budget: {measurements: 4, min_improvement: 0.1 %}
transfer_from: [earlier]
early_stopping: {rule: successive-halving, rungs: [1, 3]}
optimizer: grey-box
"""
OLD = (
    NEW.replace("seed_input:", "as:")
    .replace("label:", "as:")
    .replace("min_improvement:", "gain:")
    .replace("transfer_from:", "prior:")
    .replace("early_stopping:", "early:")
    .replace("rungs:", "at:")
)
LINES = {"as": 8, "gain": 12, "prior": 13, "early": 14, "at": 14}


def study(folder: Path, text: str) -> Path:
    (folder / "space.yaml").write_text(SPACE)
    path = folder / "study.yaml"
    path.write_text(text)
    return path


def test_an_old_file_is_the_study_that_it_was(tmp_path):
    old = parse_yaml(tmp_path / "study.yaml", OLD)
    new = parse_yaml(tmp_path / "study.yaml", NEW)
    renamed = rename_old_keys(old)
    assert renamed.mistakes == ()
    assert (renamed.source.value, renamed.source.lines) == (new.value, new.lines)
    assert StudySpec.model_validate(renamed.source.value) == StudySpec.model_validate(new.value)


def test_each_old_key_is_named_with_its_line(tmp_path):
    told = rename_old_keys(parse_yaml(Path("study.yaml"), OLD)).warnings
    assert len(told) == len(RENAMED)
    for old, line in LINES.items():
        assert any(f"study.yaml:{line}: '{old}' is called" in text for text in told)


def test_a_present_file_has_no_warning(tmp_path):
    assert rename_old_keys(parse_yaml(tmp_path / "study.yaml", NEW)).warnings == ()


@pytest.mark.parametrize(
    ("text", "key"), [("budget: {trials: 4}\nunread: []\n", ""), ("prior: []\n", "transfer_from")]
)
def test_reading_a_file_warns_of_its_old_keys_alone(tmp_path, text, key):
    path = study(
        tmp_path,
        "study: one\nspace: space.yaml\n"
        "evaluators: {m: {use: expression, metrics: {time: {formula: rows * 1 s, unit: s}}}}\n"
        "objectives: [{minimize: m.time}]\n" + text,
    )
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        plan_of(path)
    assert [key in str(one.message) for one in caught] == ([True] if key else [])


def test_a_key_under_both_of_its_names_is_a_mistake(tmp_path):
    text = NEW + "early: {rule: certain}\n"
    with pytest.raises(SpecErrors) as caught:
        plan_of(study(tmp_path, text))
    told = [str(one) for one in caught.value.errors]
    assert any("study.yaml:16" in one and "old name of 'early_stopping'" in one for one in told)


def test_a_mistake_in_an_old_key_is_placed_where_it_is_written(tmp_path):
    text = NEW.replace("early_stopping: {rule: successive-halving, rungs: [1, 3]}", "early: 3")
    with pytest.warns(FutureWarning), pytest.raises(SpecErrors) as caught:
        plan_of(study(tmp_path, text))
    assert any("study.yaml:14" in str(one) for one in caught.value.errors)
