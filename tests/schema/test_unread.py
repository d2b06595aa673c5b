"""A parameter that nothing reads is refused, unless the study lists it under ``unread``."""

from dataclasses import replace
from pathlib import Path

import pytest
import yaml
from typer.testing import CliRunner

from dse import Metric, Study, evaluator
from dse.cli.app import app
from dse.errors import SpecErrors
from dse.schema.history.recorded_specification import begun_with
from dse.schema.study.plan import Plan, plan_of
from dse.study.storage_access import opened_storage

SYSTEMS = "[a100-dgx, h100-dgx, b200-dgx]"
PLAN = {
    "system": f"{{choice: {SYSTEMS}}}",
    "tp": "{ordinal: [4, 8]}",
    "pp": "{ordinal: [1, 2]}",
    "dp": "{ordinal: [1, 2]}",
    "microbatch": "{ordinal: [1, 2]}",
}
TRAINING = """
  cluster: {use: clusters.training, model: llama2-7b, sequence: 4096, global_batch: 64}
objectives: [{minimize: cluster.step_time}]
"""
FORMULA = """
  chip: {use: expression, metrics: {time: {formula: rows * 1 s, unit: s}}}
objectives: [{minimize: chip.time}]
"""


def written(folder: Path, parameters: dict[str, str], study: str, rules: str = "[]") -> Path:
    rows = "".join(f"  {name}: {domain}\n" for name, domain in parameters.items())
    (folder / "space.yaml").write_text(f"space: s\nparameters:\n{rows}constraints: {rules}\n")
    path = folder / "study.yaml"
    path.write_text(f"study: s\nspace: space.yaml\nevaluators:{study}")
    return path


def refused(path: Path) -> str:
    with pytest.raises(SpecErrors) as caught:
        plan_of(path)
    return str(caught.value)


def read(path: Path) -> Plan:
    return plan_of(path)


def test_a_parameter_beside_an_option_of_its_name_is_refused_with_its_line_and_the_mend(tmp_path):
    told = refused(written(tmp_path, PLAN, TRAINING))
    assert f"{tmp_path}/space.yaml:3: nothing reads the parameter 'system'" in told
    assert "'system' is an option of cluster, with one value for all designs" in told
    assert "'unread: [system]' in the study" in told
    assert told.count("nothing reads") == 1


def test_check_run_and_evaluate_refuse_alike_and_unread_says_that_it_is_meant(
    tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    path = written(tmp_path, PLAN, TRAINING)
    runner = CliRunner()
    sets = [w for n, v in {"tp": 8, "pp": 1, "dp": 1}.items() for w in ("--set", f"{n}={v}")]
    for words in (["check", str(path)], ["run", str(path)], ["evaluate", str(path), *sets]):
        answer = runner.invoke(app, words)
        assert answer.exit_code != 0
        assert "nothing reads the parameter 'system'" in f"{answer.output}{answer.exception}"
    path.write_text(path.read_text() + "unread: [system]\n")
    assert runner.invoke(app, ["check", str(path)]).exit_code == 0


def test_where_a_rule_ties_an_option_s_name_to_others_it_is_refused_all_the_same(tmp_path):
    rules = "[\"system == 'a100-dgx' -> tp == 8\"]"
    assert "nothing reads the parameter 'system'" in refused(
        written(tmp_path, PLAN, TRAINING, rules)
    )


@pytest.mark.parametrize(
    ("rules", "extra"),
    [
        ("[rows * gpus == 8]", "{}"),
        ("[rows <= gpus]", "{}"),
        ("['gpus > 1 -> middle == 2', middle <= rows]", "{middle: '{ordinal: [1, 2]}'}"),
    ],
)
def test_a_parameter_that_rules_tie_to_one_that_is_read_shapes_the_space(tmp_path, rules, extra):
    given = {"rows": "{ordinal: [1, 2, 4]}", "gpus": "{ordinal: [1, 2, 4, 8]}"}
    plan = read(written(tmp_path, given | yaml.safe_load(extra), FORMULA, rules))
    assert plan.warnings == ()


@pytest.mark.parametrize(
    ("name", "domain", "rules"),
    [
        ("format", "{choice: [int8, int4]}", "[]"),
        ("format", "{choice: [int8, int4]}", "[\"format == 'int8'\"]"),
        ("bits", "{each: 3, ordinal: [2, 4, 8]}", "[sum(bits) <= 12]"),
        ("stages", "{partition: 12, parts: [1, 3]}", "[]"),
    ],
)
def test_a_parameter_that_only_its_own_rules_name_is_refused_once(tmp_path, name, domain, rules):
    told = refused(written(tmp_path, {"rows": "{ordinal: [1, 2]}", name: domain}, FORMULA, rules))
    assert f"space.yaml:4: nothing reads the parameter {name!r}" in told
    assert told.count("nothing reads") == 1
    assert "chip reads rows" in told


def test_a_condition_is_read_by_what_it_guards_and_not_the_other_way(tmp_path):
    given = {
        "rows": "{ordinal: [1, 2], when: wide}",
        "wide": "{boolean: true}",
        "lanes": "{ordinal: [1, 2], when: rows == 2}",
    }
    told = refused(written(tmp_path, given, FORMULA))
    assert "nothing reads the parameter 'lanes'" in told
    assert told.count("nothing reads") == 1


def test_a_list_is_read_where_one_of_its_members_is(tmp_path):
    given = {"rows": "{ordinal: [1, 2]}", "bits": "{each: 3, ordinal: [2, 4]}"}
    study = FORMULA.replace("rows * 1 s", "'rows * bits[0] * 1 s'")
    assert read(written(tmp_path, given, study)).warnings == ()


def test_objectives_and_constraints_of_the_study_read_too(tmp_path):
    given = dict.fromkeys(("rows", "cols", "depth"), "{ordinal: [1, 2]}")
    study = (
        FORMULA.replace("}]", "}, {minimize: cols}]") + "constraints: [chip.time / depth <= 9 s]"
    )
    assert read(written(tmp_path, given, study)).warnings == ()


def test_a_misspelt_reading_is_named(tmp_path):
    given = {**PLAN, "zeroo": "{ordinal: [0, 1]}"}
    told = refused(written(tmp_path, given, TRAINING + "unread: [system]"))
    assert "'zeroo'" in told
    assert "did you mean 'zero', which cluster reads?" in told


def test_an_option_that_takes_braces_says_so(tmp_path):
    given = {"recipe": "{choice: [format int8, format int4]}"}
    study = """
  size: {use: compression.size, model: digits-cnn, recipe: "format int8"}
objectives: [{minimize: size.size}]
"""
    told = refused(written(tmp_path, given, study))
    assert "nothing reads the parameter 'recipe'" in told
    assert "write 'recipe: \"{recipe}\"' there" in told


def test_a_fragment_that_nothing_reads_is_refused_at_its_include(tmp_path):
    (tmp_path / "array.yaml").write_text(
        "space: array\nparameters:\n  lanes: {ordinal: [1, 2]}\n  cols: {ordinal: [1, 2]}\n"
        "constraints: [lanes <= cols]\n"
    )
    path = written(tmp_path, {"rows": "{ordinal: [1, 2]}"}, FORMULA)
    space = tmp_path / "space.yaml"
    space.write_text(space.read_text() + "include:\n  side: array.yaml\n")
    told = refused(path)
    assert "space.yaml:6: nothing reads a parameter of 'side': side.lanes, side.cols" in told
    path.write_text(path.read_text() + "unread: [side]\n")
    assert read(path).warnings == ()
    space.write_text(space.read_text().replace("[]", "[rows <= side.cols]"))
    path.write_text(path.read_text().replace("unread: [side]\n", ""))
    assert read(path).warnings == ()


ARRAY = "  {name}: {{use: accelerators.systolic, workload: digits-cnn, {options}}}\n"


def test_an_option_that_hides_a_parameter_which_others_read_is_refused(tmp_path):
    given = {"rows": "{ordinal: [8, 16]}", "cols": "{ordinal: [8, 16]}"}
    wide = "\n" + ARRAY.format(name="wide", options="dataflow: ws")
    flat = ARRAY.format(name="flat", options="dataflow: ws, rows: 8")
    end = "objectives: [{minimize: wide.latency}, {minimize: flat.latency}]\n"
    told = refused(written(tmp_path, given, wide + flat + end))
    assert "study.yaml:5: 'rows' is both an option of flat and a parameter of the space" in told
    assert "remove the option, so that flat reads the parameter" in told
    meant = written(tmp_path, given, wide + flat + end + "unread: [flat.rows]\n")
    assert read(meant).warnings == ()


def test_an_option_with_a_usual_value_is_left_to_the_space_by_null(tmp_path):
    serving = "\n  s: {use: clusters.serving, model: llama3-8b}\nobjectives: [{minimize: s.tpot}]\n"
    given = {"tp": "{ordinal: [1, 2]}", "batch": "{ordinal: [8]}"}
    devices = {"device": "{choice: [h100-sxm, h200-sxm]}"}
    path = written(tmp_path, {**given, **devices}, serving)
    assert "write 'device: null' there, so that s reads the parameter" in refused(path)
    path.write_text(path.read_text().replace("llama3-8b", "llama3-8b, device: null"))
    assert read(path).warnings == ()


@pytest.mark.parametrize(
    ("entry", "problem", "hint"),
    [
        ("rows", "'rows' is listed as unread, but chip reads it", "remove it from the list"),
        ("colz", "there is no parameter 'colz'", "did you mean 'cols'?"),
    ],
)
def test_an_entry_of_unread_that_is_not_true_is_refused(tmp_path, entry, problem, hint):
    given = {"rows": "{ordinal: [1, 2]}", "cols": "{ordinal: [1, 2]}"}
    told = refused(written(tmp_path, given, FORMULA + f"unread: [cols, {entry}]\n"))
    assert f"study.yaml:6: {problem}" in told
    assert hint in told


def test_a_stored_study_opens_and_is_warned_of(tmp_path, monkeypatch):
    monkeypatch.setenv("COLUMNS", "1000")  # no line is wrapped, however long the path is
    path = written(tmp_path, PLAN, TRAINING + "unread: [system]\n")
    plan = plan_of(path)
    texts = {**plan.texts, str(path): plan.texts[str(path)].replace("unread: [system]\n", "")}
    storage = f"sqlite:///{tmp_path}/dse.db"
    opened_storage(storage, begins=True).create("s", begun_with(replace(plan, texts=texts)))
    (warning,) = Study.load("s", storage).engine.plan.warnings
    assert "nothing reads the parameter 'system'" in warning
    for words in (["status", "s"], ["resume", "s", "--trials", "2"]):
        answer = CliRunner().invoke(app, [*words, "--storage", storage])
        assert answer.exit_code == 0
        assert f"warning: {tmp_path}/space.yaml:3: nothing reads" in answer.output


@evaluator(Metric("time", "s", goal="minimize"), kind="modelled")
def kernel(tile: int) -> dict[str, float]:
    return {"time": 1.0 * tile}


def test_python_refuses_what_no_function_reads_and_takes_unread():
    space = {"tile": [1, 2], "colour": ["red", "blue"]}
    with pytest.raises(SpecErrors, match="nothing reads the parameter 'colour'") as caught:
        Study("s", space, [kernel], storage="memory://")
    assert 'unread=["colour"]' in str(caught.value)
    assert "parameters.colour" in str(caught.value)
    study = Study("s", space, [kernel], storage="memory://", unread="colour")
    assert study.engine.plan.warnings == ()


def test_metrics_that_the_program_tells_itself_may_depend_on_all():
    told = [Metric("time", "s", goal="minimize")]
    study = Study(
        "s", {"tile": [1, 2], "colour": ["red", "blue"]}, metrics=told, storage="memory://"
    )
    assert study.engine.plan.warnings == ()
