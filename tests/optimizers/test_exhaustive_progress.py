"""A search that is ended loses nothing that it kept, and never reads what is not whole."""

import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from dse.errors import StudyError
from dse.optimizers.exact.checkpoint import Checkpoint, EnumerationProgress
from dse.optimizers.exact.exact_front import exact_front
from dse.optimizers.exact.running_front import RunningFront
from dse.testing.problems import tiny_codesign

PROGRESS = EnumerationProgress(
    found=RunningFront(
        losses=np.array([[0.1, 1e300], [1 / 3, -0.0]]), places=np.array([3, 9]), total=20
    ),
    done=frozenset({0, 10}),
)


class Told:
    """Keeps what it is told, and ends the search when it is told so much."""

    def __init__(self, end=None):
        self.done = []
        self._end = end

    def __call__(self, done, total):
        self.done.append(done)
        if done == self._end:
            raise KeyboardInterrupt


def test_what_is_kept_comes_back(tmp_path):
    file = Checkpoint(tmp_path / "kept", "key")
    file.write(PROGRESS)
    back = file.read(2)
    assert back.done == PROGRESS.done
    assert back.found.losses.tobytes() == PROGRESS.found.losses.tobytes()
    assert (back.found.places.tolist(), back.found.total) == ([3, 9], 20)


@pytest.mark.parametrize("share", [0.0, 0.1, 0.5, 0.9, 0.99])
def test_a_half_written_file_counts_as_none(tmp_path, share):
    file = Checkpoint(tmp_path / "kept", "key")
    file.write(PROGRESS)
    whole = file.path.read_bytes()
    file.path.write_bytes(whole[: int(share * len(whole))])
    assert file.read(2) is None


def test_a_file_with_one_changed_figure_counts_as_none(tmp_path):
    file = Checkpoint(tmp_path / "kept", "key")
    file.write(PROGRESS)
    file.path.write_text(file.path.read_text().replace('"total": 20', '"total": 21'))
    assert file.read(2) is None


def test_a_file_of_another_question_counts_as_none(tmp_path):
    Checkpoint(tmp_path / "kept", "key").write(PROGRESS)
    assert Checkpoint(tmp_path / "kept", "another").read(2) is None


def test_a_file_of_an_older_version_counts_as_none_and_is_replaced(tmp_path):
    path = tmp_path / "kept"
    path.write_text("dse exhaustive 1 5bc9ff\n{}\n")
    assert Checkpoint(path, "key").read(2) is None
    Checkpoint(path, "key").write(PROGRESS)
    assert Checkpoint(path, "key").read(2).done == PROGRESS.done


def test_a_file_of_something_else_is_not_overwritten(tmp_path):
    (tmp_path / "thesis.tex").write_text("My thesis")
    with pytest.raises(StudyError, match="no checkpoint"):
        Checkpoint(tmp_path / "thesis.tex", "key")


def test_a_folder_that_cannot_be_written_costs_nothing(tmp_path):
    (tmp_path / "file").touch()
    Checkpoint(tmp_path / "file" / "kept", "key").write(PROGRESS)


def test_an_interrupted_search_goes_on_where_it_was(tmp_path):
    problem, path = tiny_codesign("modelled").problem, str(tmp_path / "kept")
    undisturbed = exact_front(problem, chunk=100)
    with pytest.raises(KeyboardInterrupt):
        exact_front(problem, chunk=100, checkpoint=path, on_progress=Told(end=300))
    told = Told()
    assert exact_front(problem, chunk=100, checkpoint=path, on_progress=told) == undisturbed
    assert told.done == [400, 500, 600, 640]


def test_another_limit_is_another_question(tmp_path):
    problem, path = tiny_codesign("modelled").problem, str(tmp_path / "kept")
    with pytest.raises(KeyboardInterrupt):
        exact_front(problem, chunk=100, checkpoint=path, on_progress=Told(end=300))
    told = Told()
    exact_front(replace(problem, limits=()), chunk=100, checkpoint=path, on_progress=told)
    assert told.done[0] == 100


def test_a_model_that_says_something_else_is_another_question(tmp_path):
    problem, path = tiny_codesign("modelled").problem, str(tmp_path / "kept")
    with pytest.raises(KeyboardInterrupt):
        exact_front(problem, chunk=100, checkpoint=path, on_progress=Told(end=300))
    told = Told()

    def slower(batch):
        got = problem.model(batch)
        return replace(got, columns={**got.columns, "time": got.columns["time"] * 2})

    exact_front(replace(problem, model=slower), chunk=100, checkpoint=path, on_progress=told)
    assert told.done[0] == 100


def test_without_an_identity_and_without_a_path_nothing_is_kept(tmp_path, monkeypatch):
    monkeypatch.setenv("DSE_CACHE", str(tmp_path))
    problem = tiny_codesign("modelled").problem
    with pytest.raises(KeyboardInterrupt):
        exact_front(problem, chunk=100, on_progress=Told(end=300))
    assert list(tmp_path.iterdir()) == []
    with pytest.raises(KeyboardInterrupt):
        exact_front(replace(problem, identity="mine"), chunk=100, on_progress=Told(end=300))
    assert len(list(tmp_path.iterdir())) == 1


SEARCH = """
import sys
from pathlib import Path
from dse.optimizers.exact.exact_front import exact_front
from dse.schema.study.plan import plan_of

def told(done, total):
    print(done, flush=True)

problem = plan_of(Path(sys.argv[1])).problem
front = exact_front(problem, workers=2, chunk=40_000, checkpoint=sys.argv[2], on_progress=told)
print(front.coverage.text, len(front.designs))
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    "number",
    [
        signal.SIGKILL,
        pytest.param(signal.SIGINT, marks=pytest.mark.proof),
        pytest.param(signal.SIGTERM, marks=pytest.mark.proof),
    ],
)
def test_a_search_that_is_ended_leaves_no_process_and_goes_on(tmp_path, number):
    study = Path(__file__).parents[2] / "studies" / "systolic_exact.yaml"
    command = [sys.executable, "-c", SEARCH, str(study), str(tmp_path / "kept")]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as search:
        early = [search.stdout.readline() for _ in range(20)]
        children = Path(f"/proc/{search.pid}/task/{search.pid}/children").read_text().split()
        search.send_signal(number)
        rest = search.stdout.read()
    assert len(early) == 20
    assert len(children) == 2
    assert b"exact front" not in rest
    assert left(children) == []
    again = subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()
    kept = (number == signal.SIGINT) * 19 * 40_000  # what is ended at once keeps what was kept
    assert int(again[0]) > kept
    assert again[-1] == "exact over all 4,320,600 legal designs; 4,320,600 keep every limit 226"


def left(pids):
    """Those that are still there when all had time to see that their driver is gone."""
    until = time.monotonic() + 300
    while alive := [pid for pid in pids if Path("/proc", pid).exists()]:
        if time.monotonic() > until:
            break
        time.sleep(0.05)
    return alive
