"""Tables that are downloaded hold no formula of a study's; JSON and Parquet are as they were."""

import csv
import io
import json

import pytest
from pyarrow import parquet
from starlette.testclient import TestClient

from dse.core.metric import Failure
from dse.core.trial import Outcome, State
from dse.interop.found_trials import read_table
from dse.report.json.columns import write_csv
from dse.serve.downloads import harmless
from dse.serve.server import application
from dse.storage.memory import MemoryStorage
from dse.study.import_trials import begun
from dse.study.study_engine import StudyEngine

WORDS = ("=1+1", "+sum(a1)", "-2+3", "@sum(a1)", "-5", "plain", "in-the-middle = 1")
REASON = "=cmd|' /C calc'!A0\n-- its log; =1+1"

SPACE = "{space: words, parameters: {a: {integer: [1, 8]}, word: {choice: WORDS}}}"
STUDY = """
study: words
space: space.yaml
evaluators:
  chip: {use: expression, metrics: {time: {formula: 0 - a * 1 s, unit: s}}}
objectives: [{minimize: -chip.time}, {minimize: chip.time}]
optimizer: random
budget: {trials: 56}
unread: [word]
"""


@pytest.fixture(scope="module")
def taken(tmp_path_factory, local):
    """Gives a download of a study with a design of each word, and one that failed."""
    path = tmp_path_factory.mktemp("words") / "study.yaml"
    path.write_text(STUDY)
    path.with_name("space.yaml").write_text(SPACE.replace("WORDS", json.dumps(WORDS)))
    storage = MemoryStorage()
    StudyEngine.open(path, name="words", storage=storage).run()
    (trial,) = storage.add("words", [storage.trials("words")[0].design])
    failure = Failure(kind="raised", reason=REASON)
    storage.finish("words", {trial.number: Outcome(state=State.FAILED, failure=failure)})
    with TestClient(application(storage, local), base_url="http://127.0.0.1") as client:
        yield lambda kind: client.get(f"/studies/words/download/{kind}").content


def rows(content: bytes) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(content.decode(), newline="")))


def test_a_value_that_would_be_a_formula_has_an_apostrophe_before_it(taken) -> None:
    found = {row["word"] for row in rows(taken("trials.csv"))}
    assert found == {
        *("'=1+1", "'+sum(a1)", "'-2+3", "'@sum(a1)"),
        *("-5", "plain", "in-the-middle = 1"),
    }


def test_so_has_the_name_of_a_column_and_numbers_are_numbers(taken) -> None:
    (first, *_) = rows(taken("front.csv"))
    assert float(first["'-chip.time [s]"]) == -float(first["chip.time [s]"])


def test_so_has_a_reason_wherever_a_cell_may_begin(taken) -> None:
    (reason,) = {row["reason"] for row in rows(taken("trials.csv"))} - {""}
    assert reason == "'=cmd|' /C calc'!A0\n'-- its log;' =1+1"


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ("\t=1", "'\t'=1"),
        ("\r=1", "'\r'=1"),
        ("a;=1", "a;'=1"),
        ('a;"=1"', 'a;\'"=1"'),
        ('a\n "" =1', 'a\n\'\u0020"" =1'),
        ("a\r\nb", "a\r\nb"),
        ("\uff1d1", "'\uff1d1"),
        (" =1", "' =1"),
        ("-1.5e-3", "-1.5e-3"),
        ("-1_0", "'-1_0"),
        ("-inf", "'-inf"),
        ("", ""),
    ],
)
def test_a_text_is_told_so(words: str, told: str) -> None:
    assert harmless({words: [words, -1.0, None]}) == {told: [told, -1.0, None]}


@pytest.mark.parametrize("words", ["a;\"=cmd|' /C calc'!A0;b", 'a;"" =1+1', "a;=1", '"=1;=2'])
@pytest.mark.parametrize("delimiter", [",", ";", "\t"])
def test_no_cell_is_a_formula_however_a_spreadsheet_divides(words: str, delimiter: str) -> None:
    written = io.StringIO()
    write_csv(harmless({"trial": [1], "word": [words], words: [words]}), written)
    read = csv.reader(io.StringIO(written.getvalue(), newline=""), delimiter=delimiter)
    begun = [cell.lstrip(' "')[:1] for line in read for cell in line]
    assert not set(begun) & set("=+-@")


def test_what_was_made_harmless_is_imported_as_it_was(taken, tmp_path) -> None:
    (tmp_path / "front.csv").write_bytes(taken("front.csv"))
    (tmp_path / "study.yaml").write_text(STUDY)
    space = SPACE.replace("WORDS", json.dumps(WORDS))
    (tmp_path / "space.yaml").write_text(space)
    found = read_table(tmp_path / "front.csv")
    new = begun(tmp_path / "study.yaml", found, source="a front", storage=MemoryStorage())
    front = json.loads(taken("front.json"))["front"]
    assert (new.inside, new.outside) == (len(front), 0)
    assert [dict(one.design) for one in new.study.trials] == [one["design"] for one in front]
    assert {one.design["word"] for one in new.study.trials} >= {"=1+1", "-2+3"}


def test_other_formats_hold_every_text_as_it_is(taken) -> None:
    plain = {one["design"]["word"] for one in json.loads(taken("trials.json"))["trials"]}
    columns = parquet.read_table(io.BytesIO(taken("trials.parquet"))).to_pydict()
    assert plain == set(columns["word"]) == set(WORDS)
    assert REASON in columns["reason"]
