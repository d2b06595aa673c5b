"""Rounds of SIGKILL at random instants: what was acknowledged is kept once, and all is proved.

``DSE_KILL_ROUNDS`` says how many kills each kind of set-up has to survive, ``DSE_KILL_SEED`` from
which number their instants are drawn; the seed of a run is printed.
"""

import json
import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from contextlib import closing, suppress
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from dse.core.trial import State
from dse.executors.process_tree import descendants
from dse.study import Study, opened_storage
from dse.verify import Replay

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
retries: {lost: 1000000, crashed: 1000000}
seed: SEED
"""

BOARD = """
import json, sys
d = json.load(sys.stdin)
if d["dp"] == 64 and d["format"] == "fp8":
    sys.exit("out of memory")
speed = {"bf16": 1.0, "fp8": 1.7, "mxfp4": 2.3}[d["format"]]
time = (1 + 0.2 * (d["tp"] - 1) + (d["pp"] - 1) / (4 * d["micro"])) / speed
loss = {"bf16": 0.0, "fp8": 0.02, "mxfp4": 0.07}[d["format"]] + d.get("block", 0) / 1e3
print(json.dumps({"time": time, "loss": loss + d["dp"] / 1e4}))
"""

LONGEST_START_S = 120
EARLY = 0.15
"""The share of kills that may come before a driver is ready."""

MEASUREMENTS = {"random": 40, "sobol": 40, "nsga2": 40, "tpe": 30, "grey-box": 8}


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
        (self.folder / "space.yaml").write_text(SPACE)
        (self.folder / "board.py").write_text(BOARD)
        words = {
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
        self.said.append(self.folder / f"{self.name}-{len(self.said)}.said")
        with self.said[-1].open("w") as said, self.said[-1].with_suffix(".err").open("w") as errors:
            return subprocess.Popen(
                [sys.executable, DRIVER, path, self.url],
                env={**os.environ, "OMP_NUM_THREADS": "1"},
                stdin=subprocess.DEVNULL,
                stdout=said,
                stderr=errors,
                start_new_session=True,
            )

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

    def check(self) -> None:
        """Nothing acknowledged is lost or there twice, nothing is left over, all is proved."""
        with closing(opened_storage(self.url)) as storage:
            study = Study.load(self.name, storage)
            trials = study.trials
            kept = {t.number: (t.state, dict(t.metrics)) for t in trials}
            assert self.acknowledged().items() <= kept.items()
            assert sorted(storage.finished_order(self.name)) == list(range(len(trials)))
            assert {t.state for t in trials} <= {State.DONE, State.FAILED}
            assert {t.fault.kind for t in trials if t.fault} <= {"raised"}
            assert len({t.design for t in trials}) == len(trials)
            measured = sum(t.measured > 0 or t.state is State.FAILED for t in trials)
            assert measured == MEASUREMENTS[self.optimizer]
            proof = Replay(study).proof()
            assert (proof.mismatch, proof.unknown) == (None, 0)

    def table(self) -> list[tuple]:
        with closing(opened_storage(self.url)) as storage:
            trials = Study.load(self.name, storage).trials
        return [
            (t.number, dict(t.design), t.told, t.state, dict(t.metrics), t.fault, t.measured)
            for t in trials
        ]


def workers(driver: int) -> list[int]:
    """The processes under a driver that evaluate, and Ray's seats: not Ray's own servers."""
    found = []
    for process in descendants(driver):
        with suppress(OSError):
            line = Path(f"/proc/{process}/cmdline").read_bytes()
            if b"spawn_main" in line or line.startswith(b"ray::Seat"):
                found.append(process)
    return found


def struck(driver: subprocess.Popen, victim: str, rng: random.Random) -> bool:
    """True if the driver was alive, and it, one of its workers or both were killed."""
    chosen: list[int] = []
    until = time.monotonic() + LONGEST_START_S
    while victim != "driver" and not chosen and driver.poll() is None:
        assert time.monotonic() < until
        chosen = workers(driver.pid)
    if driver.poll() is not None:
        return False
    if victim == "worker":
        chosen = [rng.choice(chosen)]
    else:
        chosen.append(driver.pid)
    for process in chosen:
        with suppress(ProcessLookupError):
            os.kill(process, signal.SIGKILL)
    return True


def whole(folder: Path, **what: object) -> tuple[list[tuple], float]:
    """The trials of a study that nobody struck, and how long its driver took once it was ready."""
    name = f"whole-{what['seed']}"
    study = Torn(folder=folder, url=f"sqlite:///{folder}/whole.db", name=name, **what)
    driver = study.begin()
    study.await_ready()
    began = time.perf_counter()
    study.finish([driver])
    spent_s = time.perf_counter() - began
    study.check()
    return study.table(), spent_s


def strike(torn: Torn, *, drivers: int, most: int, whole_s: float, rng: random.Random) -> Counter:
    """How often which victim was killed, until the study has ended or there were enough kills."""
    victims = ["driver"] if torn.executor == "use: serial" else ["driver", "worker", "both"]
    tally: Counter = Counter()
    running: list[subprocess.Popen] = []
    while tally.total() < most:
        running += [torn.begin() for _ in range(drivers - len(running))]
        if rng.random() > EARLY:
            torn.await_ready()
        time.sleep(rng.random() * whole_s * rng.choice([0.3, 0.6, 1.0]))
        codes = {one.poll() for one in running}
        assert codes <= {None, 0}, [said.with_suffix(".err").read_text() for said in torn.said]
        if 0 in codes:
            break
        victim = rng.choice(victims)
        one = rng.choice(running)
        if not struck(one, victim, rng):
            continue
        if victim != "worker" and one.wait(timeout=60) == 0:
            break  # it ended in the same instant
        tally[victim] += 1
        running = [driver for driver in running if driver.returncode != -signal.SIGKILL]
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
        table, whole_s = whole(folder, **what)
        torn = Torn(folder=folder, url=url, name=f"torn-{place}", **what)
        left = rounds - kills.total()
        kills += strike(torn, drivers=drivers, most=left, whole_s=whole_s, rng=rng)
        torn.check()
        assert setup != "serial" or torn.table() == table
        others += Counter(studies=1, acknowledged=len(torn.acknowledged()))
    return kills + others


SETUPS = {
    "serial": ("use: serial", 1),
    "processes": ("use: processes, workers: 2", 1),
    "two drivers": ("use: processes, workers: 1", 2),
    "ray": ("use: ray, workers: 2", 1),
}
OPTIMIZERS = ["random", "nsga2", "sobol", "tpe", "grey-box"]


@pytest.mark.slow
@pytest.mark.parametrize("setup", ["serial", "two drivers"])
def test_six_kills_lose_nothing_that_was_acknowledged(tmp_path, place, setup):
    tally = survived(tmp_path, place, setup=setup, optimizers=["nsga2"], rounds=6)
    assert tally["acknowledged"] >= MEASUREMENTS["nsga2"]


@pytest.mark.proof
@pytest.mark.parametrize("setup", SETUPS)
def test_many_kills_lose_nothing_that_was_acknowledged(tmp_path, place, setup, capsys):
    tally = survived(tmp_path, place, setup=setup, optimizers=OPTIMIZERS, rounds=ROUNDS)
    with capsys.disabled():
        sys.stdout.write(f"\n{setup}, {place[:10]}, seed {SEED}: {dict(tally)}\n")
