"""Each call of a run to its storage fails, hangs, or takes effect without saying so, in turn."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from threading import Thread
from typing import Any, get_args

import pytest

from dse import Metric, Study, evaluator
from dse.core.trial import State
from dse.errors import OutageError
from dse.evaluation.reporting import report
from dse.protocols import Storage
from dse.schema.history.recorded_specification import Inherited
from dse.schema.models import PluginSpec
from dse.schema.study.plan import Plan
from dse.storage.memory import MemoryStorage
from dse.storage.sql.database_storage import SqlStorage
from dse.study import study_engine as engine
from dse.study.replay import Replay
from dse.study.run_phases import StudyRun
from dse.study.stopping_bounds import Bounds
from dse.testing.outage_contract import FaultyStorage, Mishap

MISHAPS: tuple[Mishap, ...] = get_args(Mishap)
LEASE_S = 0.3
HANG_S = 0.5
"""Longer than the lease."""

SPACE = {"rate": list(range(1, 13)), "width": [1, 2, 4]}
WARM = 4
ASKED: dict[str, Any] = {
    "minimize": ["net.loss", "chip.area"],
    "optimizer": "random",
    "executor": "serial",
    "retries": {"raised": 1},
    "early_stopping": {"rule": "successive-halving", "eta": 3, "rungs": [1]},
    "budget": {"trials": 7},
    "seed": 3,
}
RUNS: Counter[tuple[int, int]] = Counter()
"""How often each design was run."""

KINDS = ("enter", "drivers", "finished_order", "trials", "events", "attempts", "add", "report")
KINDS += ("begin", "take", "reports", "since", "retry", "claim", "finish", "record", "leave")


@evaluator(Metric("loss"), version="1")
def net(rate: int, width: int) -> dict[str, float]:
    """Report twice; the first run of each of the widest designs raises."""
    RUNS[rate, width] += 1
    for step in (1, 2):
        report(step, {"loss": rate * (1 + 1 / step) / width})
    if width == WARM and RUNS[rate, width] == 1:
        raise ValueError("too warm")
    return {"loss": rate / width}


@dataclass(frozen=True, kw_only=True)
class Ended:
    """What a run left: the record but for the figures of clocks, and how often each design ran."""

    record: Mapping[str, Any]
    runs: Mapping[tuple[int, int], int]
    calls: Sequence[str]


@pytest.fixture(scope="module")
def plan() -> Plan:
    chip = {"use": "expression", "metrics": {"area": {"formula": "width * 2"}}}
    storage = MemoryStorage()
    return Study("s", SPACE, {"net": net, "chip": chip}, storage=storage, **ASKED).engine.plan


@pytest.fixture(scope="module")
def undisturbed(plan: Plan) -> Ended:
    return run_serially(plan, {})


def run_by(plan: Plan, storage: Storage, **options: Any) -> None:
    """One driver's run."""
    StudyRun(
        plan=plan,
        storage=storage,
        name="s",
        inherited=Inherited(studies={}),
        carried=0,
        bounds=Bounds(trials=ASKED["budget"]["trials"]),
        executor=PluginSpec(use="serial"),
        lease_s=LEASE_S,
        **options,
    ).go()


def record_of(storage: Storage) -> dict[str, Any]:
    return {
        "trials": [replace(trial, cost_s=0.0) for trial in storage.trials("s")],
        "order": storage.finished_order("s"),
        "asks": [replace(ask, seconds=0.0) for ask in storage.asks("s")],
        "events": storage.events("s"),
        "attempts": [replace(one, cost_s=0.0) for one in storage.attempts("s")],
        "reports": storage.reports("s"),
        "drivers": [one.left for one in storage.drivers("s")],
    }


def run_serially(plan: Plan, mishaps: Mapping[int, Mishap], times: int = 1) -> Ended:
    storage = MemoryStorage()
    engine.StudyEngine.of(plan, storage=storage)
    faulty = FaultyStorage(storage=storage, mishaps=mishaps, times=times, hang_s=HANG_S)
    RUNS.clear()
    run_by(plan, faulty)
    return Ended(record=record_of(storage), runs=dict(RUNS), calls=faulty.calls)


def check_three(plan: Plan, storage: Storage, mishaps: Mapping[int, Mishap]) -> None:
    """Three drivers, the first of which has mishaps: the record is whole, and proved."""
    study = engine.StudyEngine.of(plan, storage=storage)
    RUNS.clear()
    faulty = FaultyStorage(storage=storage, mishaps=mishaps, hang_s=HANG_S)
    others = [Thread(target=run_by, args=(plan, storage)) for _ in range(2)]
    for one in others:
        one.start()
    run_by(plan, faulty)
    for one in others:
        one.join()
    record = record_of(storage)
    proof = Replay(study).proof()
    assert proof.whole, (proof, record)
    assert sorted(record["order"]) == list(range(ASKED["budget"]["trials"]))
    tried = Counter(one.number for one in record["attempts"])
    assert all(trial.attempts == tried[trial.number] for trial in record["trials"])
    assert all(trial.state.finished for trial in record["trials"])


def test_an_undisturbed_run_makes_every_kind_of_call(undisturbed):
    assert set(undisturbed.calls) == set(KINDS)
    assert State.STOPPED in {trial.state for trial in undisturbed.record["trials"]}
    assert undisturbed.record["attempts"]


@pytest.mark.parametrize("mishap", ["fails", "acts and fails"])
@pytest.mark.parametrize("kind", KINDS)
def test_after_a_mishap_the_record_is_that_of_an_undisturbed_run(plan, undisturbed, kind, mishap):
    disturbed = run_serially(plan, {undisturbed.calls.index(kind): mishap})
    assert (disturbed.record, disturbed.runs) == (undisturbed.record, undisturbed.runs)


@pytest.mark.parametrize("mishap", ["fails", "acts and fails"])
@pytest.mark.parametrize("step", [5, 7])
def test_calls_fail_twice_again_and_again_and_the_record_is_that_of_an_undisturbed_run(
    plan, undisturbed, step, mishap
):
    disturbed = run_serially(plan, dict.fromkeys(range(0, 1000, step), mishap), times=2)
    assert (disturbed.record, disturbed.runs) == (undisturbed.record, undisturbed.runs)


@pytest.mark.proof
@pytest.mark.parametrize("mishap", MISHAPS)
def test_each_call_has_a_mishap_and_the_record_is_that_of_an_undisturbed_run(
    plan, undisturbed, mishap
):
    for place, call in enumerate(undisturbed.calls):
        disturbed = run_serially(plan, {place: mishap})
        assert disturbed.record == undisturbed.record, f"{call}, call {place}"
        assert disturbed.runs == undisturbed.runs, f"{call}, call {place}"


@pytest.mark.parametrize("kind", ["finish", "retry", "claim", "since"])
def test_what_a_run_measured_and_could_not_store_the_next_one_stores(
    plan, undisturbed, state, kind
):
    storage, first = MemoryStorage(), undisturbed.calls.index(kind)
    engine.StudyEngine.of(plan, storage=storage)
    RUNS.clear()
    away = FaultyStorage(storage=storage, mishaps=dict.fromkeys(range(first, 10_000), "fails"))
    with pytest.raises(OutageError, match="did not get through"):
        run_by(plan, away, patience_s=0.02)
    drivers = storage._studies["s"].drivers
    drivers[0] = replace(drivers[0], started="0")  # as its process would have ended
    said: list[str] = []
    run_by(plan, storage, on_notice=said.append)
    after, before = record_of(storage), undisturbed.record
    assert undisturbed.runs == RUNS
    assert [replace(t, worker=0) for t in after["trials"]] == before["trials"]
    assert (after["order"], after["attempts"]) == (before["order"], before["attempts"])
    assert Replay(engine.StudyEngine.load("s", storage, objects=plan.objects)).proof().whole
    assert not list(state.glob("*"))
    spooled = ["stored 1 outcomes that could not be stored before"]
    assert said == ([] if kind == "claim" else spooled)


@pytest.mark.parametrize("mishap", MISHAPS)
@pytest.mark.parametrize("kind", ["add", "finish", "retry", "claim"])
def test_three_drivers_prove_their_record_after_a_mishap_of_one(plan, undisturbed, kind, mishap):
    check_three(plan, MemoryStorage(), {undisturbed.calls.index(kind): mishap})


@pytest.mark.proof
@pytest.mark.parametrize("mishap", MISHAPS)
@pytest.mark.parametrize("place", range(60))
def test_three_drivers_prove_their_record_whichever_call_of_one_has_a_mishap(
    plan, tmp_path: Path, place, mishap
):
    storage = SqlStorage(f"sqlite:///{tmp_path}/study.db")
    check_three(plan, storage, {place: mishap})
    storage.close()
