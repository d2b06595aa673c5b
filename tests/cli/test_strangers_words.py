"""What a stranger reads when his program fails, his words are off or the output has no room."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from dse.cli.app import app
from dse.cli.output.failure_text import gist, lines
from dse.core.design import Design
from dse.core.metric import Failure
from dse.core.trial import Outcome, State, Trial
from dse.services.doctor.storage_checks import storage_findings
from dse.study.study_engine import StudyEngine

runner = CliRunner()

SPACE = """\
space: mine
parameters:
  workers: {ordinal: [1, 2, 4]}
  cache: {ordinal: [64 KiB, 1 MiB]}
  pinned: {boolean: true}
constraints:
  - workers * cache <= 2 MiB
"""
STUDY = f"""\
study: mine
space: space.yaml
evaluators:
  bench:
    use: command
    run: [{sys.executable}, bench.py]
    metrics: {{time: ms, memory: KiB}}
objectives:
  - minimize: bench.time
  - minimize: bench.memory
budget: {{measurements: 3}}
"""
FINE = 'print(\'{"time": 1, "memory": 64}\')\n'
BROKEN = "raise SystemExit('no device')\n"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "80")
    (tmp_path / "space.yaml").write_text(SPACE)
    (tmp_path / "study.yaml").write_text(STUDY)
    (tmp_path / "bench.py").write_text(FINE)
    return tmp_path


def command(*words: str | bytes, **options: object) -> subprocess.CompletedProcess[str]:
    """The installed command, as a process of its own."""
    return subprocess.run(
        [sys.executable, "-m", "dse", *words],
        check=False,
        text=True,
        timeout=120,
        **{"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **options},
    )


def ended(number: int, state: State, reason: str) -> Trial:
    kind = "infeasible" if state is State.INFEASIBLE else "raised"
    outcome = Outcome(state=state, failure=Failure(kind=kind, reason=reason))
    return Trial(number=number, design=Design({"n": number})).finished(outcome)


# -- programs that fail -------------------------------------------------------------------------


def test_the_first_failure_is_told_at_once_and_the_way_out_at_the_end(folder):
    (folder / "bench.py").write_text(BROKEN)
    told = runner.invoke(app, ["run", "study.yaml", "--executor", "serial"]).stderr.splitlines()
    at_once, at_the_end = (
        next(place for place, line in enumerate(told) if line.startswith(begun))
        for begun in ("trial 0 failed (raised): exit status 1: no device", "all 3 trials failed: ")
    )
    assert at_once < at_the_end
    assert "trial 1 failed" not in "\n".join(told)
    assert told[-2].startswith("a failed design is not tried again: fix the cause")
    assert "(dse studies delete mine)" in told[-1]


def test_who_mends_his_program_and_does_as_he_is_told_gets_his_front(folder):
    (folder / "bench.py").write_text(BROKEN)
    runner.invoke(app, ["run", "study.yaml", "--executor", "serial", "--quiet"])
    (folder / "bench.py").write_text(FINE)
    assert runner.invoke(app, ["evaluate", "study.yaml"]).exit_code == 0
    runner.invoke(app, ["studies", "delete", "mine", "--yes"])
    runner.invoke(app, ["run", "study.yaml", "--executor", "serial", "--quiet"])
    assert len(StudyEngine.load("mine", "sqlite:///dse.db").front.trials) > 0


@pytest.mark.parametrize("in_file", [True, False])
def test_the_study_to_forget_is_told_with_the_storage_that_keeps_it(folder, in_file):
    (folder / "bench.py").write_text(BROKEN)
    words = ["run", "study.yaml", "--executor", "serial"]
    if in_file:
        (folder / "study.yaml").write_text(f"{STUDY}storage: sqlite:///far.db\n")
    else:
        words += ["--storage", "sqlite:///far.db"]
    told = runner.invoke(app, words).stderr
    assert "(dse studies delete mine --storage sqlite:///far.db)" in told
    resumed = runner.invoke(app, ["resume", "mine", "--storage", "sqlite:///far.db"]).stderr
    assert "(dse studies delete mine --storage sqlite:///far.db)" in resumed


def test_designs_that_cannot_exist_are_not_called_failed():
    trials = [
        ended(0, State.INFEASIBLE, "too hot"),
        ended(1, State.FAILED, "no device"),
        ended(2, State.FAILED, "no device"),
        ended(3, State.FAILED, "no light"),
    ]
    assert list(lines("mine", trials)) == [
        "3 of 4 trials failed; 2 of them: no device",
        "1 of 4 trials ended infeasible: too hot",
    ]


def test_of_a_long_traceback_the_end_is_told_since_it_says_what_is_wrong():
    frames = "".join(f'  File "bench.py", line {number}, in step\n' for number in range(40))
    told = gist(f"exit status 1: Traceback (most recent call last):\n{frames}ValueError: no tile")
    assert told.startswith("exit status 1: Traceback")
    assert told.endswith("ValueError: no tile")
    assert len(told) < 320


# -- words that are off -------------------------------------------------------------------------


def test_every_mistake_of_a_file_is_called_an_error(folder):
    (folder / "study.yaml").write_text("study: s\nspaces: space.yaml\n")
    told = command("run", "study.yaml")
    assert told.returncode == 2
    assert (
        len([one for one in told.stderr.splitlines() if one.startswith("error: study.yaml:")]) > 2
    )


def test_a_name_that_is_no_text_is_told_without_a_traceback(folder):
    told = command("front", b"\xff\xfe")
    assert told.returncode == 2
    assert told.stderr.startswith("error: '\\udcff\\udcfe' is not valid UTF-8")


def test_a_name_with_an_umlaut_is_understood_where_the_locale_knows_none(folder):
    plain = {**os.environ, "LC_ALL": "POSIX", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    told = command("front", "süß".encode(), env=plain, encoding="latin-1")
    assert told.returncode == 2
    assert told.stderr.startswith("error: there is no study '")


def test_a_file_with_an_umlaut_is_found_where_the_locale_knows_none(folder):
    (folder / "süß.yaml").write_text(SPACE)
    plain = {**os.environ, "LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    told = command("check", "süß.yaml".encode(), env=plain, encoding="utf-8")
    assert (told.returncode, told.stderr) == (0, "")
    assert "yaml: ok. 3 parameters" in told.stdout


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no device is always full here")
@pytest.mark.parametrize(
    "words", [["check", "study.yaml"], ["plugins", "list", "--format", "json"]]
)
def test_an_output_without_room_is_told_in_a_line(folder, words):
    with Path("/dev/full").open("w") as full:
        told = command(*words, stdout=full)
    assert told.returncode == 2
    assert told.stderr == "error: the output cannot be written: No space left on device\n"


def test_an_empty_storage_is_said_to_be_empty(folder):
    told = runner.invoke(app, ["report", "many", "--storage", "sqlite:///empty.db"]).exception
    assert "there is no study 'many' in sqlite:///empty.db" in str(told)
    assert "hint: no study is kept there; other storages: --storage URL" in str(told)


def test_a_study_that_changed_is_told_with_the_file_as_it_was_typed(folder):
    runner.invoke(app, ["run", "study.yaml", "--executor", "serial", "--quiet"])
    told = str(runner.invoke(app, ["run", "study.yaml", "--seed", "4"]).exception)
    assert told.startswith("study.yaml: the study 'mine' exists and asks something else: seed")
    assert told.endswith("dse studies migrate mine study.yaml")


def test_a_command_that_stands_deeper_is_told_with_the_way_there():
    told = runner.invoke(app, ["export", "mine"])
    assert told.exit_code == 2
    assert "Did you mean 'dse space export' or 'dse studies export'?" in told.stderr


@pytest.mark.parametrize("words", [[], ["space"], ["studies"], ["assets"]])
def test_a_list_of_commands_has_whole_sentences(words):
    assert "..." not in runner.invoke(app, [*words, "--help"]).stdout.partition("Commands:")[
        2
    ].replace("library:studies/...", "")


# -- what is printed ----------------------------------------------------------------------------


def test_a_design_is_told_as_files_write_it(folder):
    told = runner.invoke(app, ["evaluate", "study.yaml", "--set", "pinned=true"]).stdout
    assert "pinned = true" in told
    assert "bench.memory: 64 KiB" in told


def test_values_that_contradict_one_another_are_told_with_their_units(folder):
    words = ["evaluate", "study.yaml", "--set", "workers=4", "--set", "cache=1MiB"]
    assert "--set: cache = 1 MiB" in str(runner.invoke(app, words).exception)


def test_one_is_no_plural(folder):
    runner.invoke(app, ["run", "study.yaml", "--executor", "serial", "--quiet"])
    assert "front: 1 design, " in runner.invoke(app, ["status", "mine"]).stdout
    kept = next(one for one in storage_findings("sqlite:///dse.db") if one.part == "storage")
    assert kept.message == "sqlite:///dse.db, 1 study"


def test_a_storage_that_is_no_url_is_told_with_one_way_to_mend_it(folder):
    (found,) = storage_findings("nope.db")
    assert found.message == "nope.db: 'nope.db' is no URL of a storage"
    assert found.mend == "of a file: sqlite:///nope.db"


def test_a_folder_that_is_not_there_is_told_by_its_name(folder):
    found = {one.part: one for one in storage_findings(f"sqlite:///{folder}/not there/x.db")}
    assert found["writing"].message == f"there is no folder {folder}/not there"
    assert found["writing"].mend == f"make it: mkdir -p '{folder}/not there'"
