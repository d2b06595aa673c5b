"""A build step of ``command``: once for each combination of compile-time parameters."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from dse.core.batch import Batch
from dse.core.metric import Metrics
from dse.errors import PluginError, SpecError
from dse_evaluators.generic.command import Command

COMPILER = """
import json, os, pathlib, sys
given = json.load(sys.stdin)
with open("builds.txt", "a") as file:
    file.write(f"{sys.argv[1:]} {json.dumps(given)}\\n")
if given.get("tile") == 3:
    sys.exit("kernel.c:7: error: tile must be even")
folder = pathlib.Path(os.environ["DSE_BUILD_DIR"])
assert list(folder.iterdir()) == []
(folder / "program.py").write_text(f"import json, sys\\nprint(json.dumps({{'time': {given['tile']} * float(sys.argv[1])}}))\\n")
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch) -> Path:
    monkeypatch.setenv("DSE_CACHE", str(tmp_path / "cache"))
    (tmp_path / "compiler.py").write_text(COMPILER)
    (tmp_path / "kernel.c").write_text("int main() {}\n")
    return tmp_path


def command_in(folder: Path, **changes: object) -> Command:
    build = {
        "run": [sys.executable, "compiler.py", "-DTILE={tile}", "-DGROUP={group}", "kernel.c"],
        "sources": ["compiler.py", "kernel.c"],
    }
    return Command(
        run=[sys.executable, "{DSE_BUILD_DIR}/program.py", "{threads}"],
        metrics={"time": "ms"},
        cwd=str(folder),
        build={**build, **changes},
    )


def builds(folder: Path) -> list[str]:
    return (folder / "builds.txt").read_text().splitlines()


def measured(command: Command, *designs: dict[str, object]) -> Metrics:
    return command.evaluate(Batch.of(list(designs)))


def test_designs_with_the_same_compile_time_parameters_share_a_build(folder):
    designs = [{"tile": 2, "threads": threads} for threads in (1, 2)]
    got = measured(command_in(folder), *designs, {"tile": 4, "threads": 1})
    assert got.columns["time"].tolist() == [2, 4, 4]
    assert builds(folder) == [
        """['-DTILE=2', 'kernel.c'] {"tile": 2}""",
        """['-DTILE=4', 'kernel.c'] {"tile": 4}""",
    ]


def test_a_parameter_without_a_value_leaves_its_argument_out(folder):
    measured(command_in(folder), {"tile": 2, "group": True, "threads": 1})
    assert builds(folder) == [
        """['-DTILE=2', '-DGROUP=1', 'kernel.c'] {"group": true, "tile": 2}"""
    ]


def test_a_build_outlives_the_evaluator_until_a_source_changes(folder):
    measured(command_in(folder), {"tile": 2, "threads": 1})
    measured(command_in(folder), {"tile": 2, "threads": 1})
    assert len(builds(folder)) == 1
    (folder / "kernel.c").write_text("int main() { return 0; }\n")
    measured(command_in(folder), {"tile": 2, "threads": 1})
    assert len(builds(folder)) == 2


def test_a_build_that_fails_is_the_trials_failure_with_the_last_lines(folder):
    command = command_in(folder)
    got = measured(command, {"tile": 3, "threads": 1}, {"tile": 2, "threads": 1})
    assert got.failures[0].kind == "raised"
    assert got.failures[0].reason == (
        "the build failed with exit status 1: kernel.c:7: error: tile must be even"
    )
    assert list(got.failures) == [0]
    measured(command, {"tile": 3, "threads": 1})  # it is tried again
    assert len(builds(folder)) == 3


def test_a_build_that_never_ends_is_a_timeout(folder):
    run = [sys.executable, "-c", "while True: pass", "{tile}"]
    got = measured(command_in(folder, run=run, timeout=0.2), {"tile": 2, "threads": 1})
    assert got.failures[0].kind == "timeout"


def test_the_seed_depends_on_the_design_and_on_nothing_else(tmp_path):
    words = "import json, os; print(json.dumps({'seed': int(os.environ['DSE_SEED'])}))"
    command = Command(run=[sys.executable, "-c", words], metrics={"seed": ""})
    got = measured(command, {"tile": 2}, {"tile": 4}, {"tile": 2}).columns["seed"].tolist()
    assert got[0] == got[2] != got[1]


@pytest.mark.parametrize(
    ("build", "problem"),
    [
        ("make", "without run"),
        ({"run": ["cc", "{tile}"], "parameters": ["group"]}, "not in build.parameters"),
        ({"run": ["cc"], "timout": 3}, "build has no 'timout'"),
        ({"run": []}, "names no program"),
        ({"run": ["cc"], "sources": ["/etc/passwd"]}, "build.sources holds"),
    ],
)
def test_a_malformed_build_is_refused(build, problem):
    with pytest.raises(PluginError, match=problem):
        Command(run=["{DSE_BUILD_DIR}/a.out"], metrics={"time": "ms"}, build=build)


def test_a_name_that_is_no_parameter_is_refused_with_the_nearest(folder):
    with pytest.raises(SpecError, match="names 'threads'") as caught:
        command_in(folder).check_values({"tile": [2], "group": [1], "thread": [1]})
    assert "thread" in caught.value.hint


def test_a_source_that_does_not_exist_is_found_by_the_check(folder):
    with pytest.raises(PluginError, match="kernal"):
        command_in(folder, sources=["kernal.c"]).check_program()
