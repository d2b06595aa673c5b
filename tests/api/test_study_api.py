"""A study that is written in Python: the same question, record and answer as one in YAML."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import dse
from dse import InfeasibleError, Metric, Space, Study, evaluator
from dse.api.study_document import StudyOptions
from dse.errors import PluginError, SpecError, SpecErrors, StudyError

SPACE = {"tile": [16, 32, 64, 128], "stages": (1, 6)}
TIME = Metric("time", "us", goal="minimize")
MEMORY = Metric("memory", "KiB", goal="minimize")


def cost(tile: int, stages: int) -> dict[str, float]:
    return {"time": 1000 / tile + 40 / stages, "memory": tile * tile * stages / 512}


def kernel(**options):
    return evaluator(TIME, MEMORY, **options)(cost)


def asked(storage: str = "memory://", **options) -> Study:
    return Study("tiles", SPACE, {"kernel": kernel()}, storage=storage, **options)


@pytest.fixture
def here(tmp_path, monkeypatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_a_modelled_function_gives_the_exact_front():
    study = Study("tiles", SPACE, {"kernel": kernel(kind="modelled")}, storage="memory://")
    study.run()
    assert study.front.exact
    best = {(t.design["tile"], t.design["stages"]) for t in study.front}
    values = {
        (tile, stages): tuple(cost(tile, stages).values())
        for tile in SPACE["tile"]
        for stages in range(1, 7)
    }
    by_hand = {
        one
        for one, (time, memory) in values.items()
        if not any(
            t <= time and m <= memory and (t, m) != (time, memory) for t, m in values.values()
        )
    }
    assert best == by_hand


def test_it_asks_the_same_as_the_file_that_says_the_same(here):
    (here / "space.yaml").write_text(
        "space: space\nparameters:\n  tile: {ordinal: [16, 32, 64, 128]}\n  stages: {integer: [1, 6]}\n"
    )
    (here / "cost.py").write_text(
        "import json, sys\nd = json.load(sys.stdin)\n"
        "print(json.dumps({'time': 1000 / d['tile'] + 40 / d['stages'],"
        " 'memory': d['tile'] ** 2 * d['stages'] / 512}))\n"
    )
    (here / "study.yaml").write_text(
        "study: tiles\nspace: space.yaml\nevaluators:\n"
        f"  kernel: {{use: command, run: [{sys.executable}, cost.py],"
        " metrics: {time: us, memory: KiB}}\n"
        "objectives: [{minimize: kernel.time}, {minimize: kernel.memory}]\n"
        "optimizer: sobol\nexecutor: serial\n"
    )
    by_file = Study.open("study.yaml", storage="memory://")
    by_file.run(measurements=6)
    by_hand = asked(optimizer="sobol")
    by_hand.run(measurements=6)
    assert [t.design for t in by_hand.trials] == [t.design for t in by_file.trials]
    assert [t.metrics for t in by_hand.trials] == [t.metrics for t in by_file.trials]
    assert by_hand.front.hypervolume == by_file.front.hypervolume


def test_it_is_gone_on_with_and_read_by_the_command(here):
    study = asked("sqlite:///dse.db")
    assert study.run(measurements=5) == "5 measurements are done"
    again = asked("sqlite:///dse.db")
    assert again.run(measurements=8) == "8 measurements are done"
    assert [t.number for t in again.trials] == list(range(8))
    told = subprocess.run(
        [sys.executable, "-m", "dse", "front", "tiles"], capture_output=True, text=True, check=False
    )
    assert told.returncode == 0, told.stderr
    assert f"{len(again.front)} designs" in told.stdout
    refused = subprocess.run(
        [sys.executable, "-m", "dse", "resume", "tiles", "--measurements", "9"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert refused.returncode == 2
    assert "'kernel' is a function of the Python program that began the study" in refused.stderr
    assert "Traceback" not in refused.stderr
    assert len(again.trials) == 8


def test_another_function_is_another_question(here):
    asked("sqlite:///dse.db").run(measurements=3)

    def other(tile: int, stages: int) -> dict[str, float]:
        return {"time": 2000 / tile + 40 / stages, "memory": tile * tile * stages / 512}

    changed = evaluator(TIME, MEMORY)(other)
    with pytest.raises(StudyError, match="kernel") as caught:
        Study("tiles", SPACE, {"kernel": changed})
    assert "version" in str(caught.value)
    assert "another name" in caught.value.hint
    with pytest.raises(StudyError, match="is not the one that"):
        Study.load("tiles", evaluators={"kernel": changed})


def test_a_stored_study_runs_again_with_its_functions(here):
    asked("sqlite:///dse.db").run(measurements=3)
    study = Study.load("tiles", evaluators={"kernel": kernel()})
    study.run(measurements=5)
    assert len(study.trials) == 5
    alone = Study.load("tiles")
    assert len(alone.front) == len(study.front)
    with pytest.raises(StudyError, match="cannot be run here"):
        alone.run(measurements=6)
    assert len(alone.trials) == 5


def test_functions_stand_beside_plugins_and_limits():
    study = Study(
        "tiles",
        SPACE,
        {
            "kernel": kernel(kind="modelled"),
            "price": {
                "use": "expression",
                "metrics": {"both": {"formula": "kernel.time * kernel.memory", "unit": "us KiB"}},
            },
        },
        minimize={"the product": "price.both"},
        maximize="kernel.time",
        constraints="kernel.memory <= 40 KiB",
        storage="memory://",
    )
    study.run()
    assert [o.goal for o in study.problem.objectives] == ["minimize", "maximize"]
    assert all(t.metrics["kernel.memory"] <= 40 for t in study.front)


def test_an_objective_may_go_by_the_metrics_own_name():
    study = asked(minimize="memory")
    assert [o.text for o in study.problem.objectives] == ["kernel.memory"]


def test_what_a_function_raises_costs_one_trial():
    def picky(tile: int, stages: int) -> dict[str, float]:
        if stages == 1:
            raise InfeasibleError("one stage is none")
        if tile == 16:
            raise ValueError("no such tile")
        return cost(tile, stages)

    study = Study(
        "tiles",
        SPACE,
        {"kernel": evaluator(TIME, MEMORY)(picky)},
        storage="memory://",
        optimizer="exhaustive",
    )
    study.run(measurements=24)
    states = [trial.state.value for trial in study.trials]
    assert states.count("infeasible") == 4
    assert states.count("failed") == 5
    reasons = {trial.failure.reason for trial in study.trials if trial.failure}
    assert reasons == {"one stage is none", "ValueError: no such tile"}


def test_a_local_function_can_run_in_other_processes():
    factor = 3.0

    def scaled(tile: int, stages: int) -> dict[str, float]:
        return {"time": factor * tile, "memory": stages}

    study = Study(
        "tiles",
        SPACE,
        {"kernel": evaluator(TIME, MEMORY)(scaled)},
        storage="memory://",
        executor={"use": "processes", "workers": 2},
        optimizer="sobol",
    )
    study.run(measurements=4)
    assert [t.state.value for t in study.trials] == ["done"] * 4
    assert all(t.metrics["kernel.time"] == 3.0 * t.design["tile"] for t in study.trials)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"minimise": "kernel.time"}, "a study has no 'minimise'"),
        ({"minimize": "kernel.tim"}, "kernel.tim"),
        ({"constraints": "kernel.memory <= 3 s"}, "constraints.0"),
        ({"optimizer": "nsga"}, "there is no optimizer 'nsga'"),
        ({"budget": {"measurement": 3}}, "there is no key 'measurement' here"),
        ({"optimizer": {"use": "nsga2", "populace": 3}}, "populace"),
    ],
)
def test_a_mistake_is_told_where_it_is(options, words):
    with pytest.raises((SpecError, SpecErrors), match=words):
        asked(**options)


def test_a_space_tells_all_its_mistakes():
    with pytest.raises(SpecErrors) as caught:
        Study("x", {"tile": (3, 1), "kind": []}, {"kernel": kernel()}, storage="memory://")
    assert "parameters.tile" in str(caught.value)
    assert "parameters.kind" in str(caught.value)


@pytest.mark.parametrize("told", ["abc", (1, 2, 3), 7, range(5, 0)])
def test_what_says_nothing_of_a_parameter_is_refused(told):
    with pytest.raises(SpecError, match="tile"):
        Space({"tile": told})


def test_short_words_for_parameters_mean_what_they_look_like():
    space = Space(
        {
            "tile": [16, 32],
            "format": ["int8", "int4"],
            "fused": [True, False],
            "stages": (1, 3),
            "share": (0.25, 0.5),
            "clock": ("200 MHz", "1 GHz"),
            "depth": range(0, 9, 4),
            "size": {"ordinal": "pow2(1 .. 8)"},
        },
        "tile == 16 -> not fused",
    )
    kinds = {p.name: type(p).__name__ for p in space.solved.parameters}
    assert kinds["format"] == "Choice"
    assert kinds["clock"] == kinds["share"] == "Real"
    assert space.solved.by_name["clock"].high == 1e9
    whole = Space(
        {
            name: one
            for name, one in space.document["parameters"].items()
            if name not in ("share", "clock")
        },
        space.document["constraints"],
    )
    assert whole.count() == 2 * 3 * 3 * 4 * (2 + 1)
    assert all(design in whole for design in whole.sample(20, seed=1))
    again = Space.of(whole.document)
    assert list(again.enumerate()) == list(whole.enumerate())


def test_an_evaluator_says_its_metrics():
    with pytest.raises(PluginError, match="names its metrics"):
        evaluator()(cost)
    with pytest.raises(PluginError, match="names its metrics"):
        evaluator(cost)
    with pytest.raises(SpecError, match="nothing is to be minimized"):
        Study("x", SPACE, [evaluator("time", "memory")(cost)], storage="memory://")
    with pytest.raises(SpecError, match="is no evaluator"):
        Study("x", SPACE, [cost], storage="memory://")
    with pytest.raises(SpecError, match=r"evaluators.kernel: .*is no evaluator"):
        Study("x", SPACE, {"kernel": cost}, storage="memory://")
    with pytest.raises(SpecError, match="7 is no list of evaluators"):
        Study("x", SPACE, 7, storage="memory://")
    with pytest.raises(SpecError, match="cannot be called '<lambda>'"):
        Study("x", SPACE, [evaluator(TIME)(lambda tile: {"time": tile})], storage="memory://")
    assert kernel()(tile=100, stages=4) == {"time": 20.0, "memory": 78.125}


@pytest.mark.parametrize("told", ["time", Metric("time", "us"), ["time"], (Metric("time"),)])
def test_one_metric_that_is_told_needs_no_list(told):
    study = Study("x", SPACE, metrics=told, minimize="time", storage="memory://")
    assert list(study.problem.metrics) == ["reported.time"]


@pytest.mark.parametrize("space", [7, ["tile"], None])
def test_what_is_no_space_is_refused(space):
    with pytest.raises(SpecError, match="is no space"):
        Study("x", space, metrics="time", minimize="time", storage="memory://")


@pytest.mark.parametrize("storage", ["own.db", "folder/own.db", Path("own.db")])
def test_a_file_is_no_url_and_the_url_of_it_is_told(storage, here):
    with pytest.raises(SpecError, match="is no URL of a storage") as caught:
        asked(storage)
    assert caught.value.hint == f"of a file: sqlite:///{storage}"


def test_a_function_tells_numbers_and_no_words():
    with pytest.raises(PluginError, match="'bottleneck' has words"):
        evaluator(Metric("bottleneck", words=("compute", "memory")))(cost)


def test_a_space_with_mistakes_can_be_looked_at():
    assert "the range goes backwards" in repr(Space({"tile": (3, 1)}))


def test_frames_have_a_row_for_each_design():
    study = asked(optimizer="sobol")
    study.run(measurements=6)
    assert study.to_polars().height == 6
    front = study.front.to_pandas()
    assert len(front) == len(study.front) <= 6
    assert front.attrs["units"]["kernel.time"] == "us"
    assert set(front["trial"]) == {t.number for t in study.front}


def test_the_help_names_every_key_of_a_question():
    assert [
        key for key in StudyOptions.__annotations__ if f"``{key}``" not in str(Study.__doc__)
    ] == []


def test_the_package_is_completed_by_what_it_offers():
    offered = {name for name in dir(dse) if not name.startswith("__")}
    assert offered == set(dse.__all__)
