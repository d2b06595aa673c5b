"""Rounds of signals at random instants: what was acknowledged is kept once, and all is proved.

``DSE_KILL_ROUNDS`` says how many signals each kind of set-up has to survive, ``DSE_KILL_SEED`` from
which number their instants are drawn; the seed of a run is printed. Each evaluation writes when it
begins and ends into a log outside of the study, by which it is seen what was evaluated twice::

    DSE_KILL_ROUNDS=40 pytest -m proof -k many_kills tests/system/test_kill_rounds.py
"""

import json
import os
import random
import subprocess
import sys
import time
from collections import Counter, defaultdict
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from dse.core.trial import State
from dse.study.replay import Replay
from dse.study.storage_access import opened_storage
from dse.study.study_engine import StudyEngine
from tests.system.driver_processes import marked, struck

DRIVER = Path(__file__).with_name("acknowledging_driver.py")
ROUNDS = int(os.environ.get("DSE_KILL_ROUNDS", "200"))
SEED = int(os.environ.get("DSE_KILL_SEED", str(random.SystemRandom().randrange(10**6))))

SPACE = """
space: plan
parameters:
  tp:     {ordinal: [1, 2, 4, 8]}
  pp:     {ordinal: [1, 2, 4, 8, 16]}
  dp:     {ordinal: [1, 2, 4, 8, 16, 32, 64]}
  micro:  {integer: [1, 8]}
  format: {choice: [bf16, fp8, mxfp4]}
  block:  {ordinal: [16, 32], when: format == 'mxfp4'}
constraints:
  - tp * pp * dp == 64
"""

# A trial that is struck again and again is not given up: that is tested elsewhere.
STUDY = """
study: NAME
space: space.yaml
evaluators:
  board: {use: command, run: [PYTHON, -S, -E, board.py], metrics: {time: s, loss: ''}}
  cost:  {use: expression, metrics: {memory: {formula: 'micro * 1 GiB + 64 GiB / (tp * pp)', unit: GiB}}}
objectives: [{minimize: board.time}, {minimize: board.loss}, {minimize: cost.memory}]
optimizer: OPTIMIZER
executor: {EXECUTOR}
budget: {measurements: MEASUREMENTS}
retries: {lost: 1000000}
seed: SEED
"""

BOARD = """
import atexit, json, os, sys, time as clock
log = os.open("LOG", os.O_WRONLY | os.O_APPEND | os.O_CREAT)
def note(what):
    words = [what, os.environ["DSE_TRIAL"], os.environ["DSE_ATTEMPT"], os.environ["DSE_TRIAL_DIR"]]
    os.write(log, (" ".join([*words, repr(clock.time())]) + "\\n").encode())
note("begin")
d = json.load(sys.stdin)
clock.sleep(LASTS_S)
atexit.register(note, "end")
if d["dp"] == 64 and d["format"] == "fp8":
    sys.exit("out of memory")
speed = {"bf16": 1.0, "fp8": 1.7, "mxfp4": 2.3}[d["format"]]
time = (1 + 0.2 * (d["tp"] - 1) + (d["pp"] - 1) / (4 * d["micro"])) / speed
loss = {"bf16": 0.0, "fp8": 0.02, "mxfp4": 0.07}[d["format"]] + d.get("block", 0) / 1e3
print(json.dumps({"time": time, "loss": loss + d["dp"] / 1e4}))
"""

LONGEST_START_S = 300
LONGEST_END_S = 300
EARLY = 0.15
"""The share of kills that may come before a driver is ready."""

MEASUREMENTS = {"random": 40, "sobol": 40, "nsga2": 40, "tpe": 30, "grey-box": 8}

LASTS_S = {"use: ray, workers: 2": 0.2}
"""Of an evaluation: where the start of a driver takes seconds, most kills would fall into that."""

AT_ONCE = {"use: serial": 1, "use: processes, workers: 1": 1}
"""How many evaluations a driver has under way at most; two where nothing is said."""

VICTIMS = {
    "use: serial": ["driver", "child"],
    "use: processes, workers: 2": ["driver", "worker", "child", "driver + worker"],
    "use: processes, workers: 1": ["driver", "worker", "child", "driver + worker"],
    "use: ray, workers: 2": [
        "driver", "actor", "guard", "worker", "child", "head", "raylet", "node", "driver + actor",
        "driver + worker",
    ],
}  # fmt: skip
"""What is struck at once: one of a kind alone, with the driver all of that kind."""

CLUSTER = ("head", "raylet", "node")
"""Without them a Ray of the driver's own is gone, and the driver ends with an error."""


@dataclass(kw_only=True)
class Torn:
    """A study whose drivers and workers are struck, and all that they said before."""

    folder: Path
    url: str
    name: str
    optimizer: str
    executor: str
    seed: int
    said: list[Path] = field(default_factory=list)

    def begin(self) -> subprocess.Popen:
        """A driver of the study, begun or gone on with."""
        path = self.folder / f"{self.name}.yaml"
        if not path.exists():  # an evaluation of another driver may be reading
            self._write(path)
        self.said.append(self.folder / f"{self.name}-{len(self.said)}.said")
        with self.said[-1].open("w") as said, self.said[-1].with_suffix(".err").open("w") as errors:
            return subprocess.Popen(
                [sys.executable, DRIVER, path, self.url],
                env={
                    **os.environ,
                    "OMP_NUM_THREADS": "1",
                    "DSE_TRIAL_ROOT": str(self.root),
                    "DSE_TRIAL_KEEP": "1",
                },
                stdin=subprocess.DEVNULL,
                stdout=said,
                stderr=errors,
                start_new_session=True,
            )

    @property
    def root(self) -> Path:
        """Where the trials of this study have their folders."""
        return self.folder / f"{self.name}.trials"

    def _write(self, path: Path) -> None:
        """The study's files."""
        (self.folder / "space.yaml").write_text(SPACE)
        board = BOARD.replace("LASTS_S", str(LASTS_S.get(self.executor, 0.02)))
        log = self.folder / f"{self.name}.log"
        (self.folder / f"{self.name}.py").write_text(board.replace("LOG", str(log)))
        words = {
            "board.py": f"{self.name}.py",
            "NAME": self.name,
            "PYTHON": sys.executable,
            "OPTIMIZER": self.optimizer,
            "EXECUTOR": self.executor,
            "MEASUREMENTS": str(MEASUREMENTS[self.optimizer]),
            "SEED": str(self.seed),
        }
        text = STUDY
        for word, meant in words.items():
            text = text.replace(word, meant)
        path.write_text(text)

    def await_ready(self) -> None:
        """Wait until the driver that was begun last has all its imports behind it."""
        until = time.monotonic() + LONGEST_START_S
        while not self.said[-1].read_text():
            assert time.monotonic() < until, self.said[-1].with_suffix(".err").read_text()
            time.sleep(0.01)

    def finish(self, drivers: list[subprocess.Popen]) -> None:
        """Wait until the drivers have ended well."""
        codes = [driver.wait(timeout=900) for driver in drivers]
        assert not any(codes), [said.with_suffix(".err").read_text() for said in self.said]

    def acknowledged(self) -> dict[int, tuple]:
        """What was told to be stored, by number; a line that was cut off was not told."""
        lines = [line for said in self.said for line in said.read_text().splitlines(keepends=True)]
        whole = [json.loads(line) for line in lines if line.endswith("]\n")]
        return {number: (State(state), metrics) for number, state, metrics in whole}

    def check_log(self, kills: int) -> int:
        """Nothing is lost, and nothing evaluated twice without need; how often there was need.

        A signal costs at most the evaluations that its victim had under way; none that had ended,
        and of whose outcome its worker had taken note, is made again.
        """
        lines = (self.folder / f"{self.name}.log").read_text().splitlines()
        begun, ended = defaultdict(list), Counter()
        for what, number, _attempt, folder, at in map(str.split, lines):
            if what == "begin":
                begun[int(number)].append((Path(folder).parents[2], float(at)))
            else:
                ended[int(number)] += 1
        with closing(opened_storage(self.url)) as storage:
            trials = StudyEngine.load(self.name, storage).trials
        measured = {t.number for t in trials if t.measured or t.state is State.FAILED}
        assert measured == begun.keys()
        assert measured == {number for number, count in ended.items() if count}
        for evaluations in begun.values():
            assert len(evaluations) <= 1 + kills
            (folder,) = {folder for folder, _ in evaluations}
            noted = (folder / "outcome.json").stat().st_mtime
            assert [at for _, at in evaluations if at > noted] == []
        again = sum(len(evaluations) - 1 for evaluations in begun.values())
        assert again <= kills * AT_ONCE.get(self.executor, 2)
        return again

    def check_gone(self) -> None:
        """No process that was started for an evaluation is left."""
        until = time.monotonic() + LONGEST_START_S
        while left := [*marked(f"DSE_TRIAL_ROOT={self.root}")]:
            assert time.monotonic() < until, left
            time.sleep(0.1)

    def check(self) -> int:
        """Nothing acknowledged is lost or there twice, nothing is left over, all is proved.

        How often a trial was issued again.
        """
        with closing(opened_storage(self.url)) as storage:
            study = StudyEngine.load(self.name, storage)
            trials = study.trials
            kept = {t.number: (t.state, dict(t.metrics)) for t in trials}
            assert self.acknowledged().items() <= kept.items()
            assert sorted(storage.finished_order(self.name)) == list(range(len(trials)))
            assert {t.state for t in trials} <= {State.DONE, State.FAILED}
            assert {t.failure.kind for t in trials if t.failure} <= {"raised"}
            assert len({t.design for t in trials}) == len(trials)
            measured = sum(t.measured > 0 or t.state is State.FAILED for t in trials)
            assert measured == MEASUREMENTS[self.optimizer]
            proof = Replay(study).proof()
            assert (proof.mismatch, proof.unknown) == (None, 0)
            return len(storage.attempts(self.name))

    def table(self) -> list[tuple]:
        with closing(opened_storage(self.url)) as storage:
            trials = StudyEngine.load(self.name, storage).trials
        return [
            (t.number, dict(t.design), t.told, t.state, dict(t.metrics), t.failure, t.measured)
            for t in trials
        ]


def whole(folder: Path, **what: object) -> tuple[list[tuple], float, float]:
    """The trials of a study that nobody struck, and how long its driver took.

    First from when it was ready, then from when the first trial was stored.
    """
    name = f"whole-{what['seed']}"
    study = Torn(folder=folder, url=f"sqlite:///{folder}/whole.db", name=name, **what)
    driver = study.begin()
    study.await_ready()
    began = time.perf_counter()
    while not study.acknowledged() and driver.poll() is None:
        time.sleep(0.01)
    working = time.perf_counter()
    study.finish([driver])
    ended = time.perf_counter()
    study.check()
    assert study.check_log(kills=0) == 0
    return study.table(), ended - began, ended - working


def strike(
    torn: Torn, *, drivers: int, most: int, whole_s: float, working_s: float, rng: random.Random
) -> Counter:
    """How often which victim was killed, until the study has ended or there were enough kills."""
    tally: Counter = Counter()
    running: list[subprocess.Popen] = []
    while tally.total() < most:
        running += [torn.begin() for _ in range(drivers - len(running))]
        if rng.random() > EARLY:
            torn.await_ready()
        share = rng.choice([0.3, 0.6, 1.0])
        victim = rng.choice(VICTIMS[torn.executor])
        if victim == "driver":
            time.sleep(rng.random() * whole_s * share)
        codes = {one.poll() for one in running}
        assert codes <= {None, 0}, [said.with_suffix(".err").read_text() for said in torn.said]
        if 0 in codes:
            break
        one = rng.choice(running)
        if not struck(one, victim, within_s=working_s * share / 4, rng=rng):
            continue
        if victim in CLUSTER or "driver" in victim:
            running.remove(one)
            if one.wait(timeout=LONGEST_END_S) == 0:
                break  # it ended in the same instant
        tally[victim] += 1
    torn.finish([one for one in running if one.returncode is None])
    torn.finish([torn.begin()])
    return tally


def survived(folder: Path, url: str, *, setup: str, optimizers: list[str], rounds: int) -> Counter:
    """How often which victim was struck, until each study has ended and was found whole."""
    executor, drivers = SETUPS[setup]
    rng = random.Random(SEED)
    kills: Counter = Counter()
    others: Counter = Counter()
    while kills.total() < rounds:
        place = others["studies"]
        what = {
            "optimizer": optimizers[place % len(optimizers)],
            "executor": executor,
            "seed": SEED % 1000 + place,
        }
        if place == 0 or setup == "serial":
            table, whole_s, working_s = whole(folder, **what)
        torn = Torn(folder=folder, url=url, name=f"torn-{place}", **what)
        struck_here = strike(
            torn,
            drivers=drivers,
            most=rounds - kills.total(),
            whole_s=whole_s,
            working_s=working_s,
            rng=rng,
        )
        kills += struck_here
        again = torn.check()
        twice = torn.check_log(kills=struck_here.total() + 1)
        torn.check_gone()
        assert setup != "serial" or torn.table() == table
        told = len(torn.acknowledged())
        others += Counter(studies=1, acknowledged=told, again=again, twice=twice)
    return kills + others


SETUPS = {
    "serial": ("use: serial", 1),
    "processes": ("use: processes, workers: 2", 1),
    "two drivers": ("use: processes, workers: 1", 2),
    "ray": ("use: ray, workers: 2", 1),
}
OPTIMIZERS = ["random", "nsga2", "sobol", "tpe", "grey-box"]


@pytest.mark.slow
@pytest.mark.parametrize(("setup", "kills"), [("two drivers", 3), ("serial", 2)])
@pytest.mark.parametrize(
    "place", ["sqlite", pytest.param("postgresql", marks=pytest.mark.proof)], indirect=True
)
def test_few_kills_lose_nothing_that_was_acknowledged(tmp_path, place, setup, kills):
    tally = survived(tmp_path, place, setup=setup, optimizers=["nsga2"], rounds=kills)
    # A kill may come when a trial is stored and not yet told.
    assert tally["acknowledged"] >= MEASUREMENTS["nsga2"] - kills


@pytest.mark.proof
@pytest.mark.parametrize("setup", SETUPS)
def test_many_kills_lose_nothing_that_was_acknowledged(tmp_path, place, setup, capsys):
    tally = survived(tmp_path, place, setup=setup, optimizers=OPTIMIZERS, rounds=ROUNDS)
    with capsys.disabled():
        sys.stdout.write(f"\n{setup}, {place[:10]}, seed {SEED}: {dict(tally)}\n")
