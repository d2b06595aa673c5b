"""Small studies in a folder: of a formula, or of a program that may fail at its first design."""

import sys
from pathlib import Path

from dse.storage.memory import MemoryStorage
from dse.study.study_engine import StudyEngine

SPACE = """
space: s
parameters:
  rows:  {ordinal: 'range(1 .. 40)'}
  cols:  {ordinal: 'range(1 .. 40)'}
"""
MODELLED = """
study: s
space: space.yaml
evaluators:
  chip: {use: expression, metrics: {time: {formula: 1000 / (rows * cols)}, area: {formula: rows * cols + rows}}}
objectives: [{minimize: chip.time}, {minimize: chip.area}]
optimizer: random
executor: {use: serial, batch: 1}
budget: {trials: 12}
"""
MEASURED = """
study: s
space: space.yaml
evaluators:
  board: {use: command, run: [PYTHON, -S, -E, board.py], metrics: {time: s}, timeout: LIMIT}
objectives: [{minimize: board.time}]
optimizer: random
executor: {use: EXECUTOR}
budget: {measurements: 2}
RETRIES
"""

LIMITS = {"hang": "4 s"}
"""For what hangs; all else has a minute, however busy the machine is."""

# Each deed is done by the first two runs of the first design. Two runs that begin at once read and
# write under a lock: else both may find no run before them, and both do the deed.
BOARD = """
import fcntl, json, os, signal, sys, time
design = json.load(sys.stdin)
with open("runs", "a+") as file:
    fcntl.flock(file, fcntl.LOCK_EX)
    file.seek(0)
    runs = file.read().split()
    file.write(json.dumps(design["rows"]) + "\\n")
first = not runs or (runs[0] == str(design["rows"]) and runs.count(runs[0]) < 2)
deed = "DEED" if first else "fine"
if deed == "crash": os.kill(os.getppid(), signal.SIGKILL)
if deed == "hang": time.sleep(60)
if deed == "raise": sys.exit("on fire")
if deed == "impossible": print(json.dumps({"infeasible": "too hot"})); sys.exit()
print(json.dumps({"time": design["rows"]}))
"""


def study_in(
    folder: Path, text: str, storage: MemoryStorage, deed: str = "fine", **words: str
) -> StudyEngine:
    (folder / "space.yaml").write_text(SPACE)
    (folder / "board.py").write_text(BOARD.replace("DEED", deed))
    for word, meant in {
        "PYTHON": sys.executable,
        "EXECUTOR": "serial",
        "RETRIES": "",
        "LIMIT": LIMITS.get(deed, "60 s"),
        **words,
    }.items():
        text = text.replace(word, meant)
    (folder / "study.yaml").write_text(text)
    return StudyEngine.open(folder / "study.yaml", storage=storage)
