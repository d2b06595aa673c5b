"""What evaluators need of their machine: read with units, and refused where it stands."""

from pathlib import Path

import pytest

from dse.errors import SpecErrors
from dse.protocols import Needs
from dse.schema.study.plan import Plan, plan_of

SPACE = "space: toy\nparameters:\n  x: {ordinal: [1, 2]}\n"
STUDY = """\
study: toy
space: space.yaml
evaluators:
  board:
    use: command
    run: [./measure]
    metrics: {time: s}
    exclusive: EXCLUSIVE
    kind: KIND
    resources:
      RESOURCES
  quality: {use: command, run: [./train], metrics: {loss: ''}, resources: {gpu: 1, memory: 2 GB}}
objectives: [minimize: board.time]
"""


def plan(folder: Path, resources: str, exclusive: str = "true", kind: str = "measured") -> Plan:
    (folder / "space.yaml").write_text(SPACE)
    text = STUDY.replace("RESOURCES", resources.replace("; ", "\n      "))
    text = text.replace("EXCLUSIVE", exclusive).replace("KIND", kind)
    (folder / "study.yaml").write_text(text)
    return plan_of(folder / "study.yaml")


def told(folder: Path, resources: str, *words: str) -> str:
    with pytest.raises(SpecErrors) as caught:
        plan(folder, resources, *words)
    return str(caught.value)


def test_resources_are_read_with_their_units(tmp_path):
    bound = {one.name: one for one in plan(tmp_path, "cpu: 2; memory: 8 GiB").pipeline.bound}
    assert bound["board"].needs == Needs(cpu=2, memory_bytes=8 * 2**30)
    assert bound["quality"].needs == Needs(gpu=1, memory_bytes=2_000_000_000)


def test_a_task_needs_the_most_of_each_that_one_of_its_evaluators_needs(tmp_path):
    needs = plan(tmp_path, "cpu: 2; memory: 1 GiB; custom: {board: 1}").pipeline.needs
    assert needs == Needs(cpu=2, gpu=1, memory_bytes=2_000_000_000, custom={"board": 1})


def test_an_exclusive_evaluator_says_so(tmp_path):
    bound = plan(tmp_path, "cpu: 1").pipeline.bound
    assert {one.name: one.exclusive for one in bound} == {"board": True, "quality": False}


def test_resources_are_no_part_of_what_a_study_is(tmp_path):
    assert plan(tmp_path, "cpu: 1").identity == plan(tmp_path, "cpu: 2").identity
    assert plan(tmp_path, "cpu: 1").identity == plan(tmp_path, "cpu: 1", "false").identity


@pytest.mark.parametrize(
    ("resources", "mistake"),
    [
        ("cpus: 2", "study.yaml:11: there is no key 'cpus' here\n  hint: did you mean 'cpu'?"),
        ("cpu: 0", "study.yaml:11: cpu is more than 0"),
        ("cpu: 1; gpu: -1", "study.yaml:12: gpu is at least 0"),
        ("cpu: many", "study.yaml:11: cpu: expected a number, found 'many'"),
        ("cpu: 1; gpu: 1.5", "study.yaml:12: 1.5 GPUs cannot be given to one task"),
        (
            "gpu: 1; memory: 8 GHz",
            "study.yaml:12: '8 GHz' is not a memory size\n  hint: memory: 8 GiB",
        ),
        ("memory: 0", "study.yaml:11: 0 is not a positive memory size"),
        ("custom: {board: 0}", "study.yaml:11: board is more than 0"),
    ],
)
def test_resources_that_make_no_sense_are_refused_where_they_stand(tmp_path, resources, mistake):
    assert mistake in told(tmp_path, resources)


def test_a_model_is_not_exclusive(tmp_path):
    assert "study.yaml:8: board is modelled" in told(tmp_path, "cpu: 1", "true", "modelled")


def test_a_scenario_changes_no_resources(tmp_path):
    plan(tmp_path, "cpu: 1")
    file = tmp_path / "study.yaml"
    file.write_text(file.read_text() + "scenarios:\n  busy:\n    board: {resources: {cpu: 2}}\n")
    with pytest.raises(SpecErrors, match="but not its 'resources'"):
        plan_of(file)
