"""Attributes and answers on pairs of trials stay with their designs when trial numbers change."""

import pytest

from dse.core.attributes import Attributes, attribute_event
from dse.core.judged_trials import JudgedTrial, claim_event, read_claims, read_judged
from dse.core.preference_answers import PREFERENCE, WITHDRAWN, read_answers
from dse.core.trial import Event
from dse.core.user_events import renumber_trials
from dse.interop.archive.archive import restore
from dse.interop.archive.study_record import Record
from dse.interop.merge import merge_records
from dse.schema.history.recorded_specification import identity_of
from dse.schema.study.budget import Budget
from dse.storage.memory import MemoryStorage
from dse.study.migrate import migrate_stored_study
from dse.study.proposers import CARRIED
from dse.study.study_engine import StudyEngine


def answer(first, second, words="preferred to"):
    return Event(kind=PREFERENCE, text=f"trial {first} is {words} trial {second}")


def withdrawal(number):
    return Event(kind=WITHDRAWN, text=f"answer {number}: as it was")


def pairs(events):
    return [(one.first, one.second, one.equal) for one in read_answers(events)]


@pytest.fixture
def storage() -> MemoryStorage:
    return MemoryStorage()


def begin(path, storage, name, seed, *events):
    StudyEngine.open(path, name=name, storage=storage, seed=seed).run(budget=Budget(trials=8))
    storage.record(name, list(events))
    return Record.of(storage, name)


def designs_of(record, found):
    """Return pairs of designs in place of the pairs of trial numbers."""
    trials = {trial.number: trial.design for trial in record.trials}
    return [(trials[first], trials[second], equal) for first, second, equal in found]


def merged(*records):
    identities = [identity_of(record.spec) for record in records]
    return merge_records(records, identities, "both", by=CARRIED).record


def test_an_answer_on_a_lost_trial_is_left_out_and_the_others_are_renumbered():
    events = [answer(0, 1), answer(2, 3), answer(3, 1, "as good as")]
    assert pairs(list(renumber_trials(events, {1: 0, 2: 1, 3: 2}))) == [(1, 2, False), (2, 0, True)]


def test_a_withdrawal_still_withdraws_its_own_answer_when_an_earlier_one_is_lost():
    events = [answer(0, 1), answer(2, 3), answer(4, 3), withdrawal(2)]
    assert pairs(events) == [(0, 1, False), (4, 3, False)]
    assert pairs(list(renumber_trials(events, {2: 0, 3: 1, 4: 2}))) == [(2, 1, False)]


def test_a_changed_answer_keeps_its_last_version():
    events = [answer(0, 1), answer(1, 0), Event(kind="other", text="unchanged")]
    kept = list(renumber_trials(events, {0: 5, 1: 6}))
    assert pairs(kept) == [(6, 5, False)]
    assert kept[-1].text == "unchanged"


def test_a_merged_study_keeps_attributes_and_answers_with_their_designs(study_file, storage):
    one = begin(study_file, storage, "one", 1, attribute_event("by", "day", trial=2), answer(1, 2))
    note = attribute_event("by", "night", trial=3)
    other = begin(study_file, storage, "other", 2, note, answer(4, 5))
    both = merged(one, other)
    assert set(designs_of(both, pairs(both.events))) == {
        *designs_of(one, [(1, 2, False)]),
        *designs_of(other, [(4, 5, False)]),
    }
    attributes = Attributes.of(both.events).trials
    found = {both.trials[number].design: notes["by"] for number, notes in attributes.items()}
    assert found == {one.trials[2].design: "day", other.trials[3].design: "night"}
    restore(both, storage)
    assert pairs(storage.events("both")) == pairs(both.events)


def test_where_two_studies_contradict_one_another_the_first_one_counts(study_file, storage):
    shift = [attribute_event("shift", word) for word in ("day", "night")]
    one = begin(study_file, storage, "one", 1, shift[0], answer(1, 2))
    same = begin(study_file, storage, "same", 1, shift[1], answer(2, 1))
    both = merged(one, same)
    assert Attributes.of(both.events).study == {"shift": "day"}
    assert designs_of(both, pairs(both.events)) == designs_of(one, [(1, 2, False)])


def test_a_migrated_study_keeps_attributes_and_answers(study_file, storage):
    note = attribute_event("by", "day", trial=2)
    old = begin(study_file, storage, "old", 1, note, answer(1, 2), answer(3, 4), withdrawal(1))
    migrate_stored_study("old", study_file, to="new", storage=storage)
    new = Record.of(storage, "new")
    assert designs_of(new, pairs(new.events)) == designs_of(old, [(3, 4, False)])
    attributes = Attributes.of(new.events).trials
    assert [new.trials[number].design for number in attributes] == [old.trials[2].design]


def test_a_migrated_study_keeps_results_on_the_test_split_and_no_claims(study_file, storage):
    result = JudgedTrial(number=2, metrics={"cost.energy": 1.5}, spread={"cost.energy": 0.1})
    events = [claim_event(2, 0, 8), result.event(8), claim_event(3, 0, 8)]
    old = begin(study_file, storage, "old", 1, *events)
    migrate_stored_study("old", study_file, to="new", storage=storage)
    new = Record.of(storage, "new")
    (kept,) = read_judged(new.events).values()
    assert new.trials[kept.number].design == old.trials[2].design
    assert (kept.metrics, kept.spread) == (result.metrics, result.spread)
    assert read_claims(new.events) == {}
