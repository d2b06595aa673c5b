"""Studies of one space put together."""

from dataclasses import replace

import pytest

from dse.core.trial import State
from dse.errors import StudyError
from dse.interop.archive.archive import restore
from dse.interop.archive.study_record import Record, check_record
from dse.interop.merge import merge_records
from dse.schema.history.recorded_specification import identity_of
from dse.schema.study.budget import Budget
from dse.storage.memory import MemoryStorage
from dse.study.proposers import CARRIED
from dse.study.replay import Replay
from dse.study.study_engine import StudyEngine


@pytest.fixture
def storage() -> MemoryStorage:
    return MemoryStorage()


def run(path, storage, name, seed, trials=8) -> Record:
    StudyEngine.open(path, name=name, storage=storage, seed=seed).run(budget=Budget(trials=trials))
    return Record.of(storage, name)


def put_together(*records):
    return merge_records(
        records, [identity_of(record.spec) for record in records], "both", by=CARRIED
    )


def changed(record, number, **facts):
    trials = list(record.trials)
    trials[number] = replace(trials[number], **facts)
    return replace(record, trials=tuple(trials))


def test_the_union_stands_in_the_order_of_first_appearance(study_file, storage):
    one, other = run(study_file, storage, "one", 1), run(study_file, storage, "other", 2)
    found = put_together(one, other).record
    designs = [trial.design for trial in (*one.finished, *other.finished)]
    assert [trial.design for trial in found.finished] == list(dict.fromkeys(designs))
    check_record(found)


def test_a_study_and_itself_are_that_study(study_file, storage):
    one = run(study_file, storage, "one", 1)
    found = put_together(one, replace(one, study="copy"))
    assert [t.metrics for t in found.record.finished] == [t.metrics for t in one.finished]
    assert (found.shared, found.unlike) == (8, 0)


def test_of_unlike_readings_the_first_is_kept_and_it_is_told(study_file, storage):
    one = run(study_file, storage, "one", 1)
    other = changed(one, 3, metrics={"cost.energy": 1.0, "cost.error": 1.0})
    found = put_together(one, other)
    assert found.unlike == 1
    assert found.record.trials[one.finished_order.index(3)].metrics == one.trials[3].metrics
    assert "1 of these with unlike numbers" in found.record.events[0].text


def test_a_measurement_is_kept_over_a_failure(study_file, storage):
    one = run(study_file, storage, "one", 1)
    failed = changed(one, 3, state=State.FAILED, metrics={})
    assert State.FAILED not in {t.state for t in put_together(failed, one).record.trials}


def test_what_was_merged_costs_nothing_and_goes_on_with_its_whole_budget(study_file, storage):
    one, other = run(study_file, storage, "one", 1), run(study_file, storage, "other", 2)
    record = put_together(one, other).record
    restore(record, storage, trusted=True)
    study = StudyEngine.load("both", storage)
    assert study.carried == len(record.trials)
    study.run(budget=Budget(trials=5))
    assert Replay(StudyEngine.load("both", storage)).proof().whole
    added = study.trials[len(record.trials) :]
    assert len(added) == 5
    assert not {t.design for t in added} & {t.design for t in record.trials}
    assert sum(trial.cost_s for trial in record.trials) == 0


def test_the_front_of_both_is_the_front_of_their_fronts(study_file, storage):
    one, other = run(study_file, storage, "one", 1), run(study_file, storage, "other", 2)
    restore(put_together(one, other).record, storage)
    front = {trial.design for trial in StudyEngine.load("both", storage).front.trials}
    fronts = [StudyEngine.load(name, storage).front.trials for name in ("one", "other")]
    assert front <= {trial.design for trials in fronts for trial in trials}


def test_unlike_spaces_are_refused_with_what_differs(study_file, storage):
    one = run(study_file, storage, "one", 1)
    space = study_file.with_name("space.yaml")
    space.write_text(space.read_text().replace("range(1 .. 16)", "range(1 .. 8)"))
    other = run(study_file, storage, "other", 1)
    with pytest.raises(StudyError, match=r"'one' and 'other' have different spaces: .*rows"):
        put_together(one, other)


def test_unlike_evaluators_are_refused_with_what_differs(study_file, storage):
    one = run(study_file, storage, "one", 1)
    study_file.write_text(study_file.read_text().replace("1 / rows", "2 / rows"))
    other = run(study_file, storage, "other", 1)
    with pytest.raises(StudyError, match="the evaluator 'cost' of 'one' and 'other'"):
        put_together(one, other)


def test_another_question_about_the_same_numbers_can_be_merged(study_file, storage):
    one = run(study_file, storage, "one", 1)
    study_file.write_text(study_file.read_text().replace(", {maximize: cost.error}]", "]"))
    other = run(study_file, storage, "other", 2)
    assert put_together(one, other).record.spec["identity"] == one.spec["identity"]
