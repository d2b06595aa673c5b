"""``dse studies export``, ``import`` and ``merge`` as a user meets them."""

import json

import pytest
from typer.testing import CliRunner

from dse.cli.app import app
from dse.errors import DseError, PluginError, SpecErrors, StorageError, StudyError


@pytest.fixture
def folder(study_file, monkeypatch):
    monkeypatch.chdir(study_file.parent)
    monkeypatch.delenv("DSE_STORAGE", raising=False)
    dse("run", "study.yaml", "--trials", "10")
    return study_file.parent


def dse(*words):
    result = CliRunner().invoke(app, list(words), catch_exceptions=True)
    if isinstance(result.exception, DseError):
        raise result.exception
    assert result.exit_code == 0, result.output
    return result


def told(*words):
    return json.loads(dse(*words, "--format", "json").stdout)


def designs(name):
    return [trial["design"] for trial in told("trials", name)["trials"]]


@pytest.mark.parametrize("file", ["study.jsonl", "study.parquet"])
def test_what_is_exported_is_imported_and_gone_on_with(folder, file):
    written = told("studies", "export", "carry", "-o", file)
    read = told("studies", "import", file, "--name", "again")
    assert (written["trials"], read["trials"], read["finished"]) == (10, 10, 10)
    assert designs("again") == designs("carry")
    assert told("front", "again")["front"] == told("front", "carry")["front"]
    dse("resume", "again", "--trials", "15", "--trust")
    assert designs("again")[:10] == designs("carry")


def test_both_forms_have_one_fingerprint(folder):
    lines = told("studies", "export", "carry", "-o", "study.jsonl")
    columns = told("studies", "export", "carry", "-o", "study.parquet")
    assert lines["sha256"] == columns["sha256"]


def test_an_imported_study_is_told_how_to_go_on(folder):
    dse("studies", "export", "carry", "-o", "study.jsonl")
    result = dse("studies", "import", "study.jsonl", "--name", "the other")
    assert "dse studies trust 'the other'" in result.stderr
    result = dse("studies", "trust", "the other", "--yes")
    assert "dse resume 'the other'" in result.stderr


def test_a_study_is_never_imported_over_another(folder):
    dse("studies", "export", "carry", "-o", "study.jsonl")
    with pytest.raises(StudyError, match="--name"):
        dse("studies", "import", "study.jsonl")


def test_a_name_that_is_none_is_refused(folder):
    dse("studies", "export", "carry", "-o", "study.jsonl", "--name", "../carry")
    with pytest.raises(StudyError, match="is no name"):
        dse("studies", "import", "study.jsonl")
    dse("studies", "import", "study.jsonl", "--name", "tame")


def test_a_table_begins_a_study_where_one_is_named(folder):
    dse("studies", "export", "carry", "-o", "study.csv")
    assert "clock [Hz]" in (folder / "study.csv").read_text()
    with pytest.raises(StorageError, match="--study FILE"):
        dse("studies", "import", "study.csv")
    facts = told("studies", "import", "study.csv", "--study", "study.yaml", "--name", "table")
    counts = {"trials": 10, "finished": 10, "inside": 10, "outside": 0}
    more = {"left_out": {}, "trusted": True, "starts": [], "problem": ""}
    assert facts == {"study": "table", **counts, **more}
    assert designs("table") == designs("carry")


def test_a_study_goes_to_optuna_and_back(folder):
    pytest.importorskip("optuna")
    notes = told("studies", "export", "carry", "--optuna", "optuna.log")["notes"]
    assert any("rows * 2 <= 30" in note for note in notes)
    words = ["--study", "study.yaml", "--optuna", "carry", "--name", "back"]
    assert told("studies", "import", "optuna.log", *words)["inside"] == 10
    assert designs("back") == designs("carry")


def test_studies_are_merged(folder):
    dse("run", "study.yaml", "--name", "other", "--seed", "4", "--trials", "10")
    facts = told("studies", "merge", "carry", "other", "--name", "both")
    assert facts["trials"] == 20 - facts["shared"]
    assert len(designs("both")) == facts["trials"]


@pytest.mark.parametrize(
    ("words", "error"),
    [
        (["export", "carry"], "exactly one destination"),
        (["export", "carry", "-o", "a.jsonl", "--optuna", "b.log"], "exactly one destination"),
        (["export", "carry", "-o", "study.txt"], "the format of"),
        (["export", "other", "-o", "study.jsonl"], "no study 'other'"),
        (["import", "nowhere.jsonl"], "cannot be read"),
        (["import", "study.yaml"], "no line of a study"),
        (["import", "space.yaml", "--study", "study.yaml"], "no journal"),
        (["merge", "carry", "nobody", "--name", "both"], "no study 'nobody'"),
        (["merge", "carry", "carry", "--name", "a/b"], "is no name"),
    ],
)
def test_a_mistake_is_told_in_one_sentence(folder, words, error):
    with pytest.raises((PluginError, SpecErrors, StorageError, StudyError), match=error):
        dse("studies", *words)


@pytest.mark.parametrize(
    ("content", "error"),
    [
        ("", "does not name the columns"),
        ("rows,,clock\n1,2,3\n", "does not name the columns"),
        ("rows,clock\n1\n", r"table\.csv:2: this row has 1 cells"),
        ('rows\n"1\n', "cannot be read as a table"),
        ("depth\n3\n", "no trial of table.csv can be imported"),
    ],
)
def test_a_table_that_is_none_is_refused_with_the_line(folder, content, error):
    (folder / "table.csv").write_text(content)
    with pytest.raises((StorageError, StudyError), match=error):
        dse("studies", "import", "table.csv", "--study", "study.yaml", "--name", "table")
