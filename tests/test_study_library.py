"""Libraries of exported studies, whose results become prior means of a new study."""

import re
from dataclasses import replace
from pathlib import Path

import pytest

from dse import Metric, Study
from dse.errors import SpecErrors, StorageError, StudyError
from dse.interop.archive.archive import read_archive, write
from dse.schema.study.budget import Budget
from dse.services.doctor.check_files import judged_file
from dse.services.studies.study_transfer import write_study_export
from dse.storage.memory import MemoryStorage
from dse.study.study_engine import StudyEngine

STUDY = """
study: {name}
space: space.yaml
evaluators:
  board: {{use: table, file: board.csv, kind: measured, metrics: {{{loss}: '', time: ms}}}}
objectives: [{{minimize: board.{loss}}}, {{minimize: board.time}}]
optimizer: {optimizer}
executor: serial
budget: {{measurements: {measurements}}}
{more}
"""
LIBRARY = "transfer_from: {library: ../studies}"


def study_file(
    folder: Path,
    *,
    slope: float = 1.0,
    names: tuple[str, str] = ("left", "right"),
    loss: str = "loss",
    optimizer: str = "grey-box",
    measurements: int = 12,
    more: str = "",
) -> Path:
    """Write a study of a table whose loss rises, or falls for a slope of -1, around c and d."""
    folder.mkdir(exist_ok=True)
    one, other = names
    space = f"space: s\nparameters:\n  {one}: {{choice: [a, b, c, d, e, f]}}\n"
    space += f"  {other}: {{choice: [a, b, c, d, e, f]}}\n"
    (folder / "space.yaml").write_text(space)
    rows = [f"{one},{other},{loss},time"]
    for i, x in enumerate("abcdef"):
        for j, y in enumerate("abcdef"):
            value = 50 + slope * ((i - 2) ** 2 + 0.5 * (j - 3) ** 2)
            rows.append(f"{x},{y},{value},{9 + (i - 4) ** 2 + slope * 0.3 * j}")
    (folder / "board.csv").write_text("\n".join(rows) + "\n")
    file = folder / "study.yaml"
    words = {"optimizer": optimizer, "measurements": measurements, "more": more, "loss": loss}
    file.write_text(STUDY.format(name=folder.name, **words))
    return file


def export(folder: Path, name: str, **words: object) -> Path:
    """Run a study of 20 random designs and export it to the library."""
    (folder / "studies").mkdir(exist_ok=True)
    words = {"optimizer": "random", "measurements": 20, **words}
    study = StudyEngine.open(study_file(folder / name, **words), storage=MemoryStorage())
    study.run()
    target = folder / "studies" / f"{name}.jsonl"
    write_study_export(study, target)
    return target


def begin(folder: Path, name: str = "new", more: str = LIBRARY, **words: object) -> StudyEngine:
    file = study_file(folder / name, more=more, **words)
    return StudyEngine.open(file, name="new", storage=MemoryStorage())


def texts(study: StudyEngine, kind: str) -> list[str]:
    return [event.text for event in study.events if event.kind == kind]


def test_members_become_prior_data_and_their_weights_are_recorded(tmp_path):
    export(tmp_path, "like")
    export(tmp_path, "unlike", slope=-1.0)
    study = begin(tmp_path)
    assert [(one.study, one.library) for one in study.problem.priors] == [
        ("like", True),
        ("unlike", True),
    ]
    study.run()
    assert texts(study, "prior") == [
        "from like (20 trials), unlike (20 trials): 0 readings known; 0 designs to begin with; "
        "a guess of board.loss, board.time"
    ]
    last = [text for text in texts(study, "library") if text.startswith("board.loss")][-1]
    weight = {name: float(value) for name, value in re.findall(r"(\w+) (\d\.\d+)", last)}
    assert weight["like"] > weight.get("unlike", 0.0)


def test_a_library_is_used_once_it_ranks_four_or_more_measured_designs_alike(tmp_path):
    export(tmp_path, "like")
    study, alone = begin(tmp_path), begin(tmp_path, more="")
    study.run()
    alone.run()
    used = [event for event in study.events if event.text.startswith("used after")]
    first = used[0].told
    assert 4 <= first < 8
    assert "an unrelated library ranks their designs as well with a probability of" in used[0].text
    asked = [[trial.design for trial in one.trials] for one in (study, alone)]
    assert asked[0][:first] == asked[1][:first]
    assert asked[0] != asked[1]


def test_a_library_that_contradicts_the_measurements_changes_no_design(tmp_path):
    export(tmp_path, "unlike", slope=-1.0)
    study, alone = begin(tmp_path), begin(tmp_path, more="")
    study.run()
    alone.run()
    assert [trial.design for trial in study.trials] == [trial.design for trial in alone.trials]
    assert not [text for text in texts(study, "library") if text.startswith("used")]


def test_studies_without_a_common_parameter_or_metric_are_named_and_left_out(tmp_path):
    export(tmp_path, "like")
    export(tmp_path, "renamed", names=("up", "down"))
    study = begin(tmp_path)
    assert [one.study for one in study.problem.priors] == ["like"]
    study.run(budget=Budget(measurements=1))
    (text,) = texts(study, "prior")
    assert text.endswith("left out: renamed, no parameter in common (it has up, down)")


def test_a_study_of_other_metrics_is_left_out(tmp_path):
    export(tmp_path, "other", loss="wear")
    study = begin(tmp_path)
    assert set(study.problem.priors[0].metrics) == {"board.time"}


def test_only_the_trials_of_a_file_are_read(tmp_path):
    file = export(tmp_path, "like")
    record = read_archive(file)
    write(replace(record, spec={"path": "/", "texts": {"/": "no study"}, "identity": {}}), file)
    assert [one.study for one in begin(tmp_path).problem.priors] == ["like"]


def test_a_damaged_file_is_named_with_its_line_and_the_mend(tmp_path):
    file = export(tmp_path, "like")
    lines = file.read_bytes().splitlines(keepends=True)
    file.write_bytes(b"".join([*lines[:3], lines[3].replace(b"board", b"bread"), *lines[4:]]))
    storage = MemoryStorage()
    with pytest.raises(StorageError, match="check sum differs") as caught:
        StudyEngine.open(study_file(tmp_path / "new", more=LIBRARY), storage=storage)
    assert caught.value.where == f"{file}:4"
    assert "take it out of the library" in caught.value.hint
    assert list(storage.studies()) == []
    (found,) = judged_file(str(tmp_path / "new" / "study.yaml"))["errors"]
    assert found["where"] == f"{file}:4"


def test_a_check_states_what_a_library_offers(tmp_path):
    export(tmp_path, "like")
    export(tmp_path, "renamed", names=("up", "down"))
    told = judged_file(str(study_file(tmp_path / "new", more=LIBRARY)))
    assert "a library of 1 study; left out: renamed, no parameter in common" in told["summary"]


def test_a_program_names_the_library_as_a_file_does(tmp_path):
    export(tmp_path, "like", loss="wear")
    study = Study(
        "new",
        {"left": list("abcdef"), "right": list("abcdef")},
        metrics=[Metric("time", "s", goal="minimize")],
        transfer_from={"library": str(tmp_path / "studies")},
        storage=MemoryStorage(),
    )
    (prior,) = study.engine.problem.priors
    like = read_archive(tmp_path / "studies" / "like.jsonl").finished
    assert prior.metrics["reported.time"].tolist() == pytest.approx(
        [trial.metrics["board.time"] / 1000 for trial in like]
    )


@pytest.mark.parametrize(
    ("more", "problem"),
    [
        ("transfer_from: {library: ../studys}", "does not exist"),
        ("transfer_from: {library: ../empty}", "has no exported study"),
        ("transfer_from: {library: ../studies, study: old}", "transfer is from a study"),
        ("transfer_from: {library: ../studies, storage: memory}", "it has no 'storage'"),
        (f"{LIBRARY}\n", "does not learn from a library"),
    ],
)
def test_mistakes_are_found_before_anything_is_run(tmp_path, more, problem):
    export(tmp_path, "like")
    (tmp_path / "empty").mkdir()
    optimizer = "tpe" if more.endswith("\n") else "grey-box"
    with pytest.raises(SpecErrors, match=problem) as caught:
        begin(tmp_path, more=more, optimizer=optimizer)
    assert caught.value.errors[0].where.endswith("study.yaml:10")


def test_a_changed_library_makes_no_difference_to_a_study_that_has_begun(tmp_path):
    export(tmp_path, "like")
    study, twin = begin(tmp_path), begin(tmp_path)
    twin.run()
    study.run(budget=Budget(measurements=4))
    export(tmp_path, "late", slope=-1.0)
    (tmp_path / "studies" / "like.jsonl").unlink()
    resumed = StudyEngine.load("new", study.storage)
    resumed.run(budget=Budget(measurements=12))
    assert [trial.design for trial in resumed.trials] == [trial.design for trial in twin.trials]


def test_a_study_file_whose_library_has_changed_asks_something_else(tmp_path):
    export(tmp_path, "like")
    study = begin(tmp_path)
    export(tmp_path, "late", slope=-1.0)
    with pytest.raises(StudyError, match=r"the library .* changed since"):
        StudyEngine.open(tmp_path / "new" / "study.yaml", storage=study.storage)


def test_an_unrelated_library_loses_its_trust(tmp_path):
    export(tmp_path, "unlike", slope=-1.0)
    study = begin(tmp_path, measurements=20)
    study.run()
    last = [text for text in texts(study, "library") if text.startswith("board.loss")][-1]
    assert float(re.search(r"trust (\d\.\d+)", last)[1]) < 0.1
