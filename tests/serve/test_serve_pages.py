"""Pages and API over studies that ran: what they say, and what they refuse."""

import csv
import io
import json
import time
from contextlib import ExitStack
from urllib.parse import quote

import numpy as np
import pytest
from pyarrow import parquet
from starlette.testclient import TestClient

from dse.core.metric import Failure
from dse.core.pareto import ParetoSet
from dse.core.trial import Outcome, State
from dse.serve.context import MOST
from dse.serve.server import application
from dse.storage.memory import MemoryStorage
from dse.study.study_engine import StudyEngine

NAMED = "\"' onmouseover='alert(2)"
TOY = "/api/studies/toy%205"
WIDE = """
study: wide
space: space.yaml
evaluators:
  chip: {use: expression, metrics: {x: {formula: p0 * 1 s, unit: s}, y: {formula: 0 s - p0 * 1 s, unit: s}}}
objectives: [{minimize: chip.x}, {minimize: chip.y}]
optimizer: random
budget: {trials: 20}
unread: [UNREAD]
"""
VAIN = {
    "space": "space: vain\nparameters: {n: {integer: [1, 3]}}\n",
    "study": "study: vain\nspace: vain_space.yaml\nobjectives: [{minimize: m.x}]\n"
    "evaluators: {m: {use: expression, metrics: {x: {formula: n * (0 / (n - n))}}}}\n",
}


def design(**changed):
    return {"a": 8, "b": 8, "mode": "slow", **changed}


def test_the_list_names_every_study_and_what_became_of_it(client) -> None:
    told = {row["name"]: row for row in client.get("/api/studies").json()["studies"]}
    assert (told["toy 5"]["state"], told["toy 5"]["finished"]) == ("complete", 60)
    assert told["senseless"]["state"] == "unreadable"


def test_a_study_says_what_its_record_says(client, storage) -> None:
    study = StudyEngine.load("toy 5", storage)
    told = client.get(TOY).json()
    assert told["hypervolume"] == study.front.hypervolume
    assert told["hypervolume_share"] == study.front.hypervolume_share
    assert told["front"] == len(study.front.trials)
    assert (told["done"], told["of"], told["counted"]) == (60, 60, "trials")


def test_the_front_is_the_front(client, storage) -> None:
    told = client.get(f"{TOY}/front").json()
    front = ParetoSet.of(
        StudyEngine.load("toy 5", storage).problem, storage.trials("toy 5").finished
    )
    assert [row["trial"] for row in told["front"]] == [trial.number for trial in front.trials]


def test_figures_have_every_design_of_the_front(client) -> None:
    front = {row["trial"] for row in client.get(f"{TOY}/front").json()["front"]}
    figures = client.get(f"{TOY}/figures").json()["figures"]
    (drawn,) = (trace for trace in figures[0]["data"] if trace.get("name") == "front")
    assert set(drawn["customdata"]) == front
    assert figures[-1]["key"] == "growth-trials"


def test_trials_are_given_from_a_number_on(client) -> None:
    told = client.get(f"{TOY}/trials", params={"first": 58, "count": 10}).json()
    assert ([row["trial"] for row in told["trials"]], told["total"]) == ([58, 59], 60)


@pytest.mark.parametrize(
    "page",
    [
        "/",
        "/compare",
        "/login",
        "/studies/toy%205",
        "/studies/toy%205/parts",
        "/studies/toy%205/trials?first=10",
        "/studies/toy%205/trials/3",
        "/studies/toy%205/design",
    ],
)
def test_a_page_has_no_script_of_its_own_and_no_markup_of_a_study(client, page: str) -> None:
    answer = client.get(page)
    assert answer.status_code == 200
    assert "<b>toy" not in answer.text
    assert "<script>" not in answer.text
    assert " onclick" not in answer.text
    assert "'unsafe-inline'" not in answer.headers["content-security-policy"].split(";")[1]


def test_a_failed_trial_tells_its_reason_as_text(client) -> None:
    page = client.get("/studies/%3Cscript%3Ealert(1)%3C%2Fscript%3E/trials/0")
    hostile = client.get(f"/studies/{quote(chr(34))}' onmouseover='alert(2)/trials/0")
    assert page.status_code == 404  # a slash ends a name: the study is listed, and harmless
    assert hostile.status_code == 200
    assert "&lt;img src=x onerror=alert(3)&gt;" in hostile.text
    assert "<img" not in hostile.text


def test_the_record_that_is_downloaded_is_read_back(client, tmp_path) -> None:
    from dse.interop.archive.archive import read_archive

    answer = client.get("/studies/toy%205/download/study.jsonl")
    (tmp_path / "study.jsonl").write_bytes(answer.content)
    assert answer.headers["content-disposition"].startswith("attachment")
    assert len(read_archive(tmp_path / "study.jsonl").trials) == 60


def test_the_front_that_is_downloaded_has_a_line_for_each_design(client) -> None:
    lines = client.get("/studies/toy%205/download/front.csv").text.splitlines()
    assert len(lines) == 1 + len(client.get(f"{TOY}/front").json()["front"])
    assert lines[0].startswith("trial,feasible")


@pytest.mark.slow
def test_a_report_runs_its_own_two_scripts_and_is_of_no_origin(client) -> None:
    path = "/compare/report?study=toy%205&study=toy%206"
    policy = client.get(path).headers["content-security-policy"]
    assert policy.count("'sha256-") == 2
    assert "sandbox allow-scripts allow-downloads" in policy
    assert "allow-same-origin" not in policy


@pytest.mark.parametrize("what", ["front", "trials"])
def test_a_table_is_the_same_in_every_format(client, what: str) -> None:
    def taken(suffix: str):
        answer = client.get(f"/studies/toy%205/download/{what}.{suffix}")
        assert answer.headers["content-disposition"].endswith(f"toy%205%20{what}.{suffix}")
        return answer.content

    rows = list(csv.DictReader(io.StringIO(taken("csv").decode())))
    columns = parquet.read_table(io.BytesIO(taken("parquet"))).to_pydict()
    plain = json.loads(taken("json"))[what]
    numbers = [row["trial"] for row in plain]
    assert [int(row["trial"]) for row in rows] == numbers == columns["trial"]
    assert list(rows[0]) == list(columns)


def test_trials_of_a_state_are_found_and_paged(client) -> None:
    path = f"/api/studies/{quote(NAMED)}/trials"
    failed = client.get(path, params={"state": "failed"}).json()
    done = client.get(path, params={"state": "done"}).json()
    page = client.get("/studies/toy%205/trials", params={"first": 20, "count": 20}).text
    assert ([row["state"] for row in failed["trials"]], done["total"]) == (["failed"], 0)
    for place in ("?count=20", "?first=40&amp;count=20"):  # the first ones, and the last ones
        assert f'href="/studies/toy%205/trials{place}"' in page
    assert "21 to 40 of 60" in page


def test_too_many_wishes_for_reports_are_told_to_come_again(client, monkeypatch) -> None:
    turns = client.app.state.house.turns
    with ExitStack() as held:
        for _ in range(MOST):
            held.enter_context(turns.one())
        monkeypatch.setattr("dse.serve.context.PATIENCE_S", 0.05)
        answer = client.get("/studies/toy%205/report")
    assert answer.status_code == 503
    assert "try again" in answer.text
    assert client.get("/studies/toy%205/download/front.csv").status_code == 200


def test_studies_are_compared(client) -> None:
    answer = client.get("/compare/report", params={"study": ["toy 5", "toy 6"], "joint": True})
    assert answer.status_code == 200
    assert "What can be claimed" in answer.text


def test_what_cannot_be_compared_is_told(client) -> None:
    answer = client.get("/compare/report", params={"study": ["toy 5", "nothing"]})
    assert answer.status_code == 404
    assert "There is no study" in answer.text


def test_an_illegal_design_is_told_which_rule_it_breaks(client, writer) -> None:
    body = {"values": design(a=64, b=64)}
    told = client.post(f"{TOY}/designs", json=body, headers=writer).json()
    assert told["legal"] is False
    assert "a * b <= 1024" in told["reason"]


def test_a_design_that_the_study_has_is_named_and_not_added_again(client, writer) -> None:
    known = client.get(f"{TOY}/trials/7").json()["trial"]["design"]
    body = {"values": known, "action": "add"}
    answer = client.post(f"{TOY}/designs", json=body, headers=writer)
    assert answer.status_code == 409
    assert "trial 7" in answer.json()["error"]


def test_a_study_in_memory_cannot_be_run_by_another_process(client, writer) -> None:
    answer = client.post(f"{TOY}/start", json={}, headers=writer)
    assert answer.status_code == 409
    assert "in-memory" in answer.json()["error"]


def test_pausing_what_nobody_runs_is_told(client, writer) -> None:
    answer = client.post(f"{TOY}/pause", headers=writer)
    assert (answer.status_code, answer.json()["error"]) == (409, "no process runs 'toy 5'")


@pytest.mark.parametrize(
    ("path", "status"),
    [
        ("/api/studies/none", 404),
        ("/api/studies/toy%205/trials/60", 404),
        ("/api/studies/toy%205/trials/-1", 422),
        ("/api/studies/toy%205/trials?count=100000", 422),
        ("/api/studies/senseless", 409),
        ("/api/none", 404),
    ],
)
def test_an_error_of_the_api_is_json_that_says_why(client, path: str, status: int) -> None:
    answer = client.get(path)
    assert answer.status_code == status
    assert answer.json().keys() == {"error", "hint"}
    assert answer.json()["error"]


def test_an_error_for_people_is_a_page(client) -> None:
    answer = client.get("/studies/<u>none")
    assert (answer.status_code, answer.headers["content-type"]) == (404, "text/html; charset=utf-8")
    assert "&lt;u&gt;none" in answer.text
    assert "did you mean" in answer.text or "valid:" in answer.text


def test_studies_that_state_no_reference_point_are_compared_at_the_worst_of_their_fronts(
    client,
) -> None:
    page = client.get("/compare/report", params={"study": ["toy 5", "toy 6"]})
    assert page.status_code == 200
    assert "from the joint nadir" in page.text


def test_what_is_of_another_question_is_told_above_the_choice(client, hostile_study) -> None:
    listed = f'value="{hostile_study}"'
    for _ in range(600):  # the list of studies is read again after a while
        if listed in client.get("/compare").text:
            break
        time.sleep(0.05)
    page = client.get("/compare/report", params={"study": ["toy 5", "hostile"]})
    assert page.status_code == 409
    assert "cannot be compared" in page.text
    assert page.text.count(" checked") == 2


@pytest.mark.parametrize(
    ("finish", "words", "tile"),
    [
        (None, "Nothing has been tried yet. Start it here, or run: dse resume new", "known yet"),
        (
            Outcome(state=State.FAILED, failure=Failure(kind="raised", reason="no board")),
            "No design has numbers: 1 finished; the reasons are below.",
            "no design has numbers",
        ),
        (
            Outcome(state=State.DONE, metrics={"chip.time": 1.0, "chip.area": 900.0}),
            "The nearest misses",
            "no design is within all limits",
        ),
    ],
    ids=["empty", "failed", "outside"],
)
def test_a_study_without_a_front_says_why_and_what_to_do(
    folder, local, finish, words: str, tile: str
) -> None:
    storage = MemoryStorage()
    study = StudyEngine.open(folder / "toy.yaml", name="new", storage=storage)
    if finish is not None:
        storage.add("new", [next(iter(study.problem.space.sample(1, np.random.default_rng(1))))])
        storage.finish("new", {0: finish})
    with TestClient(application(storage, local), base_url="http://127.0.0.1") as looked:
        page = looked.get("/studies/new").text
    assert words in page
    assert tile in page


def test_a_search_that_found_no_value_is_not_called_untried(folder, local) -> None:
    storage = MemoryStorage()
    for name in ("study", "space"):
        (folder / f"vain_{name}.yaml").write_text(VAIN[name])
    StudyEngine.open(folder / "vain_study.yaml", storage=storage).run()
    with TestClient(application(storage, local), base_url="http://127.0.0.1") as looked:
        page = looked.get("/studies/vain").text
    assert "No design has a value: see the reasons below." in page
    assert "3 of 3 legal designs failed" in page
    assert "nothing is known yet" not in page


def test_trials_are_counted_by_state_with_the_units_of_their_objectives(client) -> None:
    page = client.get("/studies/toy%205/trials").text
    none = client.get("/studies/toy%205/trials?first=900").text
    assert 'state=done">done</a> <span class="soft">60</span>' in page
    assert "state=failed" not in page
    assert ">chip.time [s]</button>" in page
    assert "There are no trials from number 900 on." in none


def test_the_order_of_a_table_stays_from_page_to_page(client) -> None:
    asked = {"sort": "-chip.time [s]", "count": 20}
    page = client.get("/studies/toy%205/trials", params=asked)
    assert page.status_code == 200
    assert "trials?first=20&amp;count=20&amp;sort=-chip.time+%5Bs%5D" in page.text
    assert '<input type="hidden" name="sort" value="-chip.time [s]">' in page.text
    assert '<input type="hidden" name="count" value="20">' in page.text


def test_parameters_that_the_front_does_not_tell_are_counted(local, tmp_path) -> None:
    many = {f"p{place}": {"integer": [1, 64]} for place in range(30)}
    (tmp_path / "space.yaml").write_text(json.dumps({"space": "wide", "parameters": many}))
    unread = ", ".join(list(many)[1:])
    (tmp_path / "study.yaml").write_text(WIDE.replace("UNREAD", unread))
    storage = MemoryStorage()
    StudyEngine.open(tmp_path / "study.yaml", storage=storage).run()
    with TestClient(application(storage, local), base_url="http://127.0.0.1") as looked:
        page = looked.get("/studies/wide").text
    assert "24 of 30 parameters are shown. The CSV contains all." in page


def test_an_address_where_nothing_is_shows_the_way_back(client) -> None:
    page = client.get("/nothing/here")
    assert page.status_code == 404
    assert "There is nothing at this address" in page.text
    assert '<a href="/">' in page.text
