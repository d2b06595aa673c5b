"""Files to be passed on tell nothing of the machine; where they are read, they fit that machine."""

import json
import sys
from dataclasses import replace

import pytest
from typer.testing import CliRunner

from dse.cli.app import app
from dse.core.metric import Failure
from dse.core.trial import Driver, Event, Outcome, State
from dse.interop.archive import archive as portable
from dse.interop.archive.study_record import Record
from dse.schema.study.budget import Budget
from dse.services.studies.anonymize import Pseudonyms
from dse.storage.sql.database_storage import SqlStorage
from dse.study.study_engine import StudyEngine

HOST, USER = "wolf7.example", "annabella"
STUDY = """
study: s
space: spaces/space.yaml
evaluators:
  bench: {use: command, run: [PYTHON, bench.py], metrics: {time: ms}}
  chip: {use: expression, metrics: {area: {formula: n + 3}}}
objectives: [{minimize: bench.time}, {minimize: chip.area}]
optimizer: {use: random}
executor: serial
budget: {trials: 4}
"""
SPACE = """
space: s
parameters:
  n: {ordinal: [1, 2, 4, 8, 16]}
  file: {choice: [HOME/data/a.csv, /scratch/annabella/b.csv, c.csv]}
  kind: {choice: [annabella, wolf7.example, home]}
"""
BENCH = """
import json, os, sys
design = json.load(sys.stdin)
if design["n"] == 16:
    sys.exit(f"no file {os.getcwd()}/data and {os.path.expanduser('~')}/x on wolf7.example")
print(json.dumps({"time": 100 / design["n"]}))
"""


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    return tmp_path_factory.mktemp("machine") / "home" / USER


@pytest.fixture(scope="module")
def made(home):
    """A study that ran in a project in the home folder: some trials done, some failed."""
    project = home / "secret-project"
    (project / "spaces").mkdir(parents=True)
    (project / "study.yaml").write_text(STUDY.replace("PYTHON", sys.executable))
    (project / "spaces" / "space.yaml").write_text(SPACE.replace("HOME", str(home)))
    (project / "bench.py").write_text(BENCH)
    with pytest.MonkeyPatch.context() as patch:
        at(patch, home, project)
        url = f"sqlite:///{project}/dse.db"
        study = StudyEngine.open("study.yaml", storage=url)
        study.run(budget=Budget(trials=4))
        storage = study.storage
        design = storage.trials("s")[0].design
        storage.add("s", [design])
        number = len(storage.trials("s")) - 1
        reason = f"{project}/bench.py: no {home}/data, on {HOST}; /home/bert/x"
        failure = Failure(kind="raised", reason=reason)
        storage.retry("s", {number: Outcome(state=State.FAILED, failure=failure)})
        event = Event(kind="executor", text=f"lost {HOST} with {project}")
        storage.finish("s", {number: Outcome(state=State.FAILED, failure=failure)}, [event])
        driver = Driver(host=f"{HOST} 0a1b 42", pid=7, provenance={"host": HOST, "git": "abc"})
        storage.enter("s", driver)
    return project


def at(patch, home, folder):
    patch.setenv("HOME", str(home))
    patch.setenv("LOGNAME", USER if USER in str(home) else "bert")
    patch.delenv("DSE_STORAGE", raising=False)
    folder.mkdir(parents=True, exist_ok=True)
    patch.chdir(folder)


def dse(*words):
    result = CliRunner().invoke(app, list(words))
    assert result.exit_code == 0, f"{result.output}{result.exception}"
    return result


def tells(text, home):
    """Which words of the machine stand in a text that are no words of the study itself."""
    text = text.replace('"annabella"', "").replace('"wolf7.example"', "")  # the choices of kind
    text = text.replace("[annabella, wolf7.example, home]", "")
    words = [HOST, USER, str(home), "secret-project", "0a1b", "bert"]
    return [word for word in words if word in text]


@pytest.mark.parametrize("file", ["s.jsonl", "s.parquet", "s.csv", "report.html", "optuna.log"])
def test_no_file_tells_of_the_machine_unless_it_is_asked(file, home, made, monkeypatch, tmp_path):
    at(monkeypatch, home, made)
    out = tmp_path / file
    if file == "report.html":
        dse("report", "s", "-o", str(out))
    elif file == "optuna.log":
        pytest.importorskip("optuna")
        dse("studies", "export", "s", "--optuna", str(out))
    else:
        dse("studies", "export", "s", "-o", str(out))
    text = out.read_text() if out.suffix != ".parquet" else repr(portable.read_archive(out))
    if file in ("s.jsonl", "s.parquet"):
        assert tells(text.replace("'annabella'", "").replace("'wolf7.example'", ""), home) == []
    else:  # the designs are what the study chose
        assert "secret-project" not in text
        assert "lost wolf7" not in text
        assert "on wolf7" not in text
        assert f"{home}/x" not in text
        assert "/home/bert" not in text
    assert "machine-" in text


@pytest.mark.parametrize("file", ["s.jsonl", "s.parquet"])
def test_with_the_machine_a_file_says_all(file, home, made, monkeypatch, tmp_path):
    at(monkeypatch, home, made)
    dse("studies", "export", "s", "-o", str(tmp_path / file), "--with-machine")
    record = Record.of(SqlStorage(f"sqlite:///{made}/dse.db"), "s")
    assert portable.read_archive(tmp_path / file) == record


@pytest.mark.parametrize("file", ["s.jsonl", "s.parquet"])
def test_where_it_was_written_a_study_is_read_as_it_was(file, home, made, monkeypatch, tmp_path):
    at(monkeypatch, home, made)
    dse("studies", "export", "s", "-o", str(tmp_path / file))
    url = f"sqlite:///{tmp_path}/again.db"
    dse("studies", "import", str(tmp_path / file), "--storage", url, "--trust")
    old = Record.of(SqlStorage(f"sqlite:///{made}/dse.db"), "s")
    new = Record.of(SqlStorage(url), "s")
    assert new.spec == old.spec
    assert [one.design for one in new.trials] == [one.design for one in old.trials]
    hidden = {one.number for one in old.trials if one.failure is not None}
    for one, other in zip(old.trials, new.trials, strict=True):
        if one.number in hidden:
            assert other.failure.reason == one.failure.reason.replace(HOST, "machine-2").replace(
                "/home/bert", str(home)
            )
        assert replace(one, failure=None) == replace(other, failure=None)
    assert (new.asks, new.reports, new.finished_order) == (
        old.asks,
        old.reports,
        old.finished_order,
    )
    assert [one.kind for one in new.events] == [one.kind for one in old.events]
    assert [replace(one, host="", provenance={}) for one in new.drivers] == [
        replace(one, host="", provenance={}) for one in old.drivers
    ]
    assert new.drivers[-1].provenance == {"host": "machine-2", "git": "abc"}
    dse("resume", "s", "--storage", url, "--trials", "6", "--quiet")
    assert len(SqlStorage(url).trials("s")) == 6


def test_elsewhere_it_fits_that_machine_and_runs(home, made, monkeypatch, tmp_path):
    with pytest.MonkeyPatch.context() as patch:
        at(patch, home, made)
        dse("studies", "export", "s", "-o", str(tmp_path / "s.jsonl"))
    theirs = tmp_path / "home" / "bert"
    at(monkeypatch, theirs, theirs / "elsewhere")
    files = theirs / "got"
    files.mkdir()
    (files / "bench.py").write_text((made / "bench.py").read_text())
    words = ["--storage", "sqlite:///theirs.db"]
    dse("studies", "import", str(tmp_path / "s.jsonl"), "--folder", str(files), "--trust", *words)
    study = StudyEngine.load("s", "sqlite:///theirs.db")
    study.check_unchanged()
    told = json.dumps(study.storage.spec("s"))
    assert str(home) not in told
    assert str(files / "study.yaml") in told
    assert f"{theirs}/data/a.csv" in told
    assert study.plan.problem.space.are_legal is not None
    dse("resume", "s", "--trials", "7", "--quiet", *words)
    assert [one.state for one in study.trials[5:]].count(State.FAILED) <= 2
    assert len(study.trials) == 7


def test_names_replace_whole_parts_of_paths():
    names = Pseudonyms(
        folders={"/home/ann": "H", "/home/ann/p": "P"},
        users={"ann": "U"},
        hosts={"wolf": "M", "wolf 1 2": "M"},
        homes=True,
    )
    assert names.text("/home/ann/p/x /home/ann/q '/home/ann' /home/anna/z") == (
        "P/x H/q 'H' /dse-export/home/z"
    )
    assert names.text("/scratch/ann/x, ann, banns, /ann") == "/scratch/U/x, ann, banns, /ann"
    assert names.text("wolf") == "wolf"
    assert names.in_output("on wolf, not wolfram: wolf.log") == "on M, not wolfram: M.log"
    assert names.value({"/home/ann/p": ["/home/ann/p", 1, None]}) == {"P": ["P", 1, None]}
    assert names.text("base64:/home/ann") == "base64:/home/ann"
