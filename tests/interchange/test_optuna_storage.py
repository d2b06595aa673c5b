"""A study in an Optuna storage: Optuna reads it as its own, and what it writes is read."""

import pytest

from dse.core.trial import State
from dse.errors import StorageError, StudyError
from dse.interop.optuna.optuna_storage import read_study, write_study
from dse.schema.study.budget import Budget
from dse.storage.memory import MemoryStorage
from dse.study.import_trials import begun
from dse.study.study_engine import StudyEngine

optuna = pytest.importorskip("optuna")
optuna.logging.set_verbosity(optuna.logging.WARNING)

GOALS = ["minimize", "minimize", "maximize"]


@pytest.fixture
def study(study_file) -> StudyEngine:
    study = StudyEngine.open(study_file, storage=MemoryStorage())
    study.run(budget=Budget(trials=12))
    return study


@pytest.fixture
def url(tmp_path) -> str:
    return str(tmp_path / "optuna.log")


@pytest.fixture(params=["sqlite", "journal"])
def either(request, tmp_path, url) -> str:
    return f"sqlite:///{tmp_path}/optuna.db" if request.param == "sqlite" else url


def loaded(url: str, name: str):
    from optuna.storages import JournalStorage, RDBStorage
    from optuna.storages.journal import JournalFileBackend

    there = RDBStorage(url) if "://" in url else JournalStorage(JournalFileBackend(url))
    found = optuna.load_study(study_name=name, storage=there)
    trials, best = found.trials, found.best_trials
    if "://" in url:
        there.remove_session()
        there.engine.dispose()
    return found, trials, best


def test_optuna_finds_the_front_that_we_find(study, either):
    write_study(study.problem, study.finished, "carry", either)
    _, trials, best = loaded(either, "carry")
    assert {t.number for t in best} == {t.number for t in study.front.trials}
    assert [t.params["rows"] for t in trials] == [t.design["rows"] for t in study.trials]


def test_optuna_is_told_directions_units_and_limits(study, url):
    write_study(study.problem, study.finished, "carry", url)
    found, trials, _ = loaded(url, "carry")
    assert [direction.name.lower() for direction in found.directions] == GOALS
    first = study.trials[0]
    assert trials[0].values[0] == first.metrics["cost.energy"]
    assert trials[0].values[1] == first.metrics["cost.error"] * first.design["clock"]
    assert trials[0].user_attrs["cost.energy [pJ]"] == first.metrics["cost.energy"]
    within = [t.metrics["cost.energy"] <= 60 for t in study.trials]
    assert [t.system_attrs["constraints"][0] <= 0 for t in trials] == within


def test_what_optuna_has_no_words_for_is_told(study, url):
    told = "\n".join(write_study(study.problem, study.finished, "carry", url))
    assert "group exists only when" in told
    assert "rows * 2 <= 30" in told
    assert "clock: its unit Hz is lost" in told


def test_a_study_comes_back_from_optuna_as_it_went(study, study_file, either):
    write_study(study.problem, study.finished, "carry", either)
    name, found = read_study(None, either, GOALS)
    back = begun(study_file, found, source=name, name="back", storage=MemoryStorage())
    assert [t.design for t in back.study.finished] == [t.design for t in study.finished]
    assert [t.metrics for t in back.study.finished] == [t.metrics for t in study.finished]
    assert (back.inside, back.outside, back.left_out) == (12, 0, {})


def test_a_study_of_optuna_begins_one_of_ours(measured_file, either):
    from optuna.storages import JournalStorage, RDBStorage
    from optuna.storages.journal import JournalFileBackend

    there = RDBStorage(either) if "://" in either else JournalStorage(JournalFileBackend(either))
    theirs = optuna.create_study(
        study_name="theirs",
        storage=there,
        directions=["minimize", "minimize"],
        sampler=optuna.samplers.RandomSampler(seed=1),
    )

    def measure(trial):
        a, b = trial.suggest_int("a", 1, 4), trial.suggest_categorical("b", [1, 2])
        return 1.0 / a, float(a * b)

    theirs.optimize(measure, n_trials=12)
    pairs = [(t.params["a"], t.params["b"]) for t in theirs.trials]
    distinct = list(dict.fromkeys(pairs))
    if "://" in either:
        there.remove_session()
        there.engine.dispose()
    name, found = read_study("theirs", either, ["minimize", "minimize"])
    new = begun(measured_file, found, source=name, storage=MemoryStorage())
    trials = new.study.trials
    assert [(t.design["a"], t.design["b"]) for t in trials] == distinct
    assert [t.state for t in trials] == [
        State.DONE if a <= 3 else State.OUTSIDE for a, _ in distinct
    ]
    assert [t.metrics["bench.loss"] for t in trials] == [1 / a for a, _ in distinct]
    assert [t.metrics["cost.energy"] for t in trials] == [a * b for a, b in distinct]
    assert new.left_out == {"its design was there before": len(pairs) - len(distinct)}
    assert new.study.carried == len(trials)


def test_a_taken_name_is_not_written_over(study, url):
    write_study(study.problem, study.finished, "carry", url)
    with pytest.raises(StorageError, match="has a study 'carry' already"):
        write_study(study.problem, study.finished, "carry", url)


def test_other_goals_are_refused(study, url):
    write_study(study.problem, study.finished, "carry", url)
    with pytest.raises(StorageError, match="are minimize, minimize, maximize"):
        read_study("carry", url, ["minimize", "minimize", "minimize"])


def test_an_unknown_study_is_told_with_the_nearest(study, url):
    write_study(study.problem, study.finished, "carry", url)
    with pytest.raises(StorageError, match="did you mean 'carry'"):
        read_study("cary", url, GOALS)


@pytest.mark.parametrize("missing", ["sqlite:///nowhere/optuna.db", "nowhere.log"])
def test_a_storage_that_is_not_there_is_not_made(tmp_path, monkeypatch, missing):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(StorageError):
        read_study(None, missing, GOALS)
    assert list(tmp_path.iterdir()) == []


def test_a_file_that_is_no_journal_is_left_alone(study, tmp_path):
    other = tmp_path / "notes.txt"
    other.write_text("dear diary")
    with pytest.raises(StorageError, match="is no journal of Optuna"):
        write_study(study.problem, study.finished, "carry", str(other))
    assert other.read_text() == "dear diary"


def test_a_study_without_what_is_measured_cannot_begin_one(study, measured_file, url):
    write_study(study.problem, study.finished, "carry", url)
    _, found = read_study("carry", url, GOALS)
    with pytest.raises(StudyError, match="no trial of carry can be imported"):
        begun(measured_file, found, source="carry", storage=MemoryStorage())
