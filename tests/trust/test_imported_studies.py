"""Trust in an imported study: asked for, given, kept in the storage, and never taken along."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

import dse
from dse import Metric, Study, evaluator
from dse.cli.app import app
from dse.core.trial import Event
from dse.errors import StudyError
from dse.interop.archive import archive as portable
from dse.interop.archive.study_record import Record
from dse.registry import names
from dse.schema.study.plan import plan_of
from dse.services.studies.study_transfer import restore_study
from dse.services.studies.trust_consent import named_programs
from dse.storage.memory import MemoryStorage
from dse.storage.trust import TRUST, add_import_mark, has_trust, trust
from dse.study.storage_access import opened_storage
from dse.system.terminal_text import is_visible

SPACE = "{space: s, parameters: {a: {integer: [1, 6]}, b: {integer: [1, 4]}}}"

PURE = """
study: pure
space: space.yaml
evaluators:
  sum: {use: expression, metrics: {total: {formula: a + b}}}
objectives: [{minimize: sum.total}]
optimizer: random
budget: {trials: 3}
"""


def called(*words: str, code: int = 0):
    done = CliRunner().invoke(app, list(words), input="n\n")
    assert done.exit_code == code, f"{done.output}\n{done.exception!r}"
    return done


def test_an_import_prints_the_programs_that_running_would_start(victim):
    done = called("studies", "import", "theirs.jsonl", "--name", "again")
    lines = done.stderr.splitlines()
    assert "running it starts:" in lines
    assert sum("touch" in line for line in lines) == 3
    assert any("file: " in line and "evil.py" in line for line in lines)
    assert lines[-1] == "not trusted yet; to run it: dse studies trust again"


def test_an_import_in_json_tells_programs_and_trust(victim):
    done = called("studies", "import", "theirs.jsonl", "--name", "again", "--format", "json")
    facts = json.loads(done.stdout)
    assert facts["trusted"] is False
    assert len(facts["starts"]) == 4


@pytest.mark.parametrize(
    "words",
    [
        ["studies", "trust", "theirs", "--yes"],
        ["resume", "theirs", "--trust"],
        ["studies", "import", "theirs.jsonl", "--name", "theirs", "--trust"],
    ],
)
def test_trust_is_given_by_a_word_at_any_time(victim, words):
    if words[1] == "import":
        called("studies", "delete", "theirs", "--yes")
    called(*words)
    assert json.loads(called("status", "theirs", "--format", "json").stdout)["trusted"]
    done = called("resume", "theirs", "--trials", "23")
    assert victim.left == []  # all of its trials were there
    assert "not trusted" not in done.stderr


def test_a_trusted_study_runs_its_programs(victim):
    called("resume", "theirs", "--trust", "--quiet")
    Study.load("theirs").evaluate({"a": 1, "b": 1})
    assert victim.left == ["started"]


def test_trust_that_is_not_confirmed_is_not_given(victim):
    called("studies", "trust", "theirs", code=1)
    assert not json.loads(called("status", "theirs", "--format", "json").stdout)["trusted"]


def test_status_says_that_a_study_is_not_trusted(victim):
    assert "dse studies trust theirs" in called("status", "theirs").stdout
    assert "not trusted" not in called("studies", "list").stdout


@pytest.mark.parametrize("form", ["jsonl", "parquet"])
def test_an_export_carries_no_trust_and_no_word_of_its_lack(victim, tmp_path, form):
    for name, words in (("second", ()), ("theirs", ("studies", "trust", "theirs", "--yes"))):
        if words:
            called(*words)
        called(
            *("studies", "export", name, "--name", "theirs", "-o", f"{name}.{form}"),
            "--with-machine",
        )
        record = portable.read_archive(tmp_path / f"{name}.{form}")
        assert all(event.kind != TRUST for event in record.events)
        assert record.spec == portable.read_archive(tmp_path / "theirs.jsonl").spec


def test_a_strangers_file_that_says_it_is_trusted_is_not(victim, tmp_path):
    record = portable.read_archive(tmp_path / "theirs.jsonl")
    forged = Record(
        study="forged",
        spec={**record.spec, "origin": "here", "trusted": True},
        trials=record.trials,
        finished_order=record.finished_order,
        events=(*record.events, Event(kind=TRUST, text="trusted by the user")),
    )
    portable.write(forged, tmp_path / "forged.jsonl")
    called("studies", "import", "forged.jsonl")
    with pytest.raises(StudyError, match="is not trusted"):
        Study.load("forged").run()
    assert victim.left == []


def test_what_is_merged_from_an_imported_study_is_not_trusted_either(victim):
    done = called("studies", "merge", "theirs", "second", "--name", "both")
    assert "dse studies trust both" in done.stderr
    with pytest.raises(StudyError, match="is not trusted"):
        Study.load("both").run(trials=99)
    Study.load("theirs").record.trust()
    dse.merge("theirs", "second", name="all")
    assert Study.load("all").record.status["trusted"]


def test_the_same_question_of_ones_own_file_does_not_run_an_imported_record(victim):
    spec = Study.load("theirs").engine.storage.spec("theirs")
    Path("mine").mkdir()
    for path, text in spec["texts"].items():
        (Path("mine") / Path(path).name).write_text(text)
    with pytest.raises(StudyError, match=r"is not trusted|asks something else"):
        Study.open("mine/theirs.yaml", name="theirs").run()
    assert victim.left == []


def test_an_imported_study_without_programs_waits_all_the_same_but_is_proved(victim):
    Path("pure.yaml").write_text(PURE)
    study = Study.open("pure.yaml")
    study.run()
    study.record.export("pure.jsonl")
    done = called("studies", "import", "pure.jsonl", "--name", "theirs too")
    assert "running it starts no program" in done.stderr
    assert "proved" in called("verify", "theirs too").stdout
    with pytest.raises(StudyError, match="is not trusted"):
        Study.load("theirs too").run(trials=5)
    Study.load("theirs too").record.trust()
    Study.load("theirs too").run(trials=5)
    assert "proved" in called("verify", "theirs too").stdout


def test_studies_that_were_begun_here_or_before_are_trusted(victim):
    study = Study.open("theirs.yaml", name="mine")
    assert study.record.status["trusted"]
    storage = study.engine.storage
    assert "origin" not in storage.spec("mine")  # as in every record of older versions
    assert has_trust(storage, "mine")
    before = len(storage.events("mine"))
    trust(storage, "mine")
    assert len(storage.events("mine")) == before


def test_a_strange_record_is_imported_and_said_to_be_unreadable(tmp_path):
    storage = MemoryStorage()
    storage.create("odd", {"path": "nowhere"})
    portable.write(Record.of(storage, "odd"), tmp_path / "odd.jsonl")
    facts = restore_study(tmp_path / "odd.jsonl", storage=storage, name="again")
    assert facts["starts"] == []
    assert facts["problem"]
    assert not has_trust(storage, "again")


def test_an_import_that_nobody_can_read_does_not_say_that_it_starts_nothing(victim, tmp_path):
    storage = MemoryStorage()
    storage.create("odd", {"path": "nowhere"})
    portable.write(Record.of(storage, "odd"), tmp_path / "odd.jsonl")
    done = called("studies", "import", "odd.jsonl")
    assert "what running it would start is unknown" in done.stderr
    assert "starts no program" not in done.stderr


def test_an_import_names_the_plug_ins_of_others(tmp_path, monkeypatch):
    about = tmp_path / "others-1.0.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: others\nVersion: 1.0\n")
    (about / "entry_points.txt").write_text("[dse.evaluators]\nothers = others:Others\n")
    (tmp_path / "others.py").write_text(
        "from dse_evaluators.generic.expression import Formulas\nclass Others(Formulas): pass\n"
    )
    (tmp_path / "space.yaml").write_text(SPACE)
    (tmp_path / "pure.yaml").write_text(PURE.replace("use: expression", "use: others"))
    monkeypatch.syspath_prepend(tmp_path)
    names.cache_clear()
    lines = named_programs(plan_of(tmp_path / "pure.yaml"))
    names.cache_clear()
    assert lines == ["sum: the plug-in 'others' of this machine: others:Others"]


def test_a_program_is_shown_without_what_a_terminal_would_obey(victim):
    text = Path("theirs.yaml").read_text()
    loud = text.replace(
        "run: [sh, -c, ", r'run: [sh, -c, "\e[2J\u202E\a\n", "postgresql://me:secret@host/db", ', 1
    )
    Path("loud.yaml").write_text(loud)
    lines = named_programs(plan_of(Path("loud.yaml").resolve()))
    assert any(r"\x1b[2J<U+202E>\x07\n" in line for line in lines)
    assert all(is_visible(line) for line in lines)
    assert not any("secret" in line for line in lines)


def test_a_function_of_this_program_may_be_looked_at(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    calls = []

    @evaluator(Metric("time", "s", goal="minimize"), kind="modelled")
    def kernel(tile: int) -> dict[str, float]:
        calls.append(tile)
        return {"time": 1.0 / tile}

    study = Study("tiles", {"tile": [1, 2, 4, 8]}, [kernel], optimizer="exhaustive")
    study.run()
    calls.clear()
    study.report("tiles.html")
    assert calls  # it is ours, and quick: the page looks at all designs


def test_a_marked_record_keeps_the_rest():
    assert add_import_mark({"path": "x"}) == {"path": "x", "origin": "imported"}


def test_a_storage_keeps_trust_over_a_restart(victim):
    called("studies", "trust", "theirs", "--yes")
    again = opened_storage("sqlite:///dse.db")
    assert has_trust(again, "theirs")
    assert not has_trust(again, "second")
    again.close()
