"""Small studies of every kind, the package that their evaluator is in, and what commands tell of them."""

from __future__ import annotations

import hashlib
import json
import shutil
import sys
import zipfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator
from typer.testing import CliRunner

from dse.cli.app import app
from dse.cli.json_schemas import PUBLISHED, schema
from dse.errors import DseError
from dse.registry import names
from dse.study.study_engine import StudyEngine
from tests.evaluators.accelerators.modelled_products import write_products
from tests.evaluators.clusters.modelled_rows import (
    write_collectives,
    write_services,
    write_steps,
)
from tests.evaluators.compression.own_models import write_llama

ODD = """
from pathlib import Path

import numpy as np

from dse.resources.asset import Asset
from dse.resources.environment import Environment
from dse.core.metric import Failure, Metric, Metrics
from dse.protocols import DeployedModel, DeployedTensor


class Odd:
    \"\"\"Fails at some designs, and tells a word and a number with an error of the others.\"\"\"

    kind, version = "measured", "1"
    reads, optional, units = frozenset({"rows", "mode"}), frozenset({"depth"}), {}
    provides = {
        "time": Metric("time", "s"),
        "loss": Metric("loss"),
        "bottleneck": Metric("bottleneck", words=("compute", "memory")),
    }

    def evaluate(self, batch):
        rows = batch["rows"].astype(float)
        failures = {"broken": Failure(kind="raised", reason="it <smokes>"),
                  "impossible": Failure(kind="infeasible", reason="too hot")}
        return Metrics(
            columns={"time": 8.0 / rows, "loss": rows, "bottleneck": (rows > 2).astype(float)},
            spread={"loss": rows / 10},
            failures={n: failures[m] for n, m in enumerate(batch["mode"]) if m in failures},
        )

    def test_evaluator(self):
        return self

    def deployed_model(self, design):
        return DeployedModel(tensors={"weight": DeployedTensor(values=np.ones((design["rows"], 2), np.float32))})


ABOUT = dict(licence="MIT", used_by=("a test",), purpose="zeros", version="1.0", size_bytes=1234)
ASSETS = {"tiny": Asset(name="tiny", package="tiny-data", sha256="SHA256", reads=("tiny.py",),
                        wheel="tiny_data-1.0-py3-none-any.whl", **ABOUT)}
ENVIRONMENTS = {"tool": Environment(name="tool", package="tiny-data",
                                    requirements=Path(__file__).with_name("pins.txt"), **ABOUT)}
"""
DOORS = """
[dse.evaluators]
odd = bringer:Odd
[dse.assets]
bringer = bringer:ASSETS
[dse.environments]
bringer = bringer:ENVIRONMENTS
"""

SPACE = """
space: odd
description: Some of it cannot be measured.
parameters:
  rows: {ordinal: [1, 2, 4, 8]}
  mode: {choice: [fine, broken, impossible]}
  depth: {ordinal: [1, 2], when: mode == 'fine'}
constraints:
  - mode == 'fine' or rows <= 2
"""
ODD_STUDY = """
study: odd
question: Which <rows> & "mode"?
space: space.yaml
evaluators:
  odd: {use: odd}
objectives:
  - minimize: odd.time
  - minimize: odd.loss
constraints:
  - odd.time <= 5 s
reference: {odd.time: 10 s, odd.loss: 10}
optimizer: exhaustive
executor: serial
"""
FREE_SPACE = """
space: free
parameters:
  rows: {ordinal: [1, 2, 4, 8]}
  clock: {real: [1, 2]}
"""
WIDER_SPACE = FREE_SPACE.replace("4, 8]", "4, 16]")
FORMULAS = """
study: NAME
space: free.yaml
evaluators:
  chip:
    use: expression
    metrics:
      time: {formula: work / rows + clock * 1 s, unit: s}
      energy: {formula: clock * rows * 1 J, unit: J}
scenarios:
  chat:  {weight: 3, values: {work: 4 s}}
  batch: {weight: 1, values: {work: 64 s}}
objectives:
  - minimize: mean(chip.time)
  - minimize: mean(chip.energy)
reference: {mean(chip.time): 90 s, mean(chip.energy): 20 J}
optimizer: random
budget: {trials: 6}
reproduces:
  - {claim: most is more, source: "A, table 1", published: 6, proof: direction, ours: "count(rows >= 1)", accept: ours > 0}
  - {claim: it is free, source: B, published: nothing, proof: not reproduced, ours: "least(rows, rows < 9)"}
"""
LADDER = """
study: ladder
space: space.yaml
evaluators:
  odd: {use: odd}
  rough: {use: expression, metrics: {loss: {formula: rows + 1, unit: ''}}}
objectives:
  - minimize: odd.loss
fidelities:
  odd.loss: [rough.loss, odd.loss]
optimizer: exhaustive
executor: serial
"""
HOPELESS = ODD_STUDY.replace("study: odd", "study: hopeless").replace("<= 5 s", "<= 0.5 s")
KEPT = [
    ["studies", "export", "formulas", "-o", "kept.jsonl"],
    ["studies", "export", "formulas", "-o", "kept.csv"],
    ["space", "export", "free.yaml", "--to", "configspace", "-o", "theirs.json"],
]

FILES = {
    "space.yaml": SPACE,
    "free.yaml": FREE_SPACE,
    "wider.yaml": WIDER_SPACE,
    "odd.yaml": ODD_STUDY,
    "hopeless.yaml": HOPELESS,
    "formulas.yaml": FORMULAS.replace("NAME", "formulas"),
    "wide_formulas.yaml": FORMULAS.replace("NAME", "formulas").replace("free.yaml", "wider.yaml"),
    "factorial.yaml": FORMULAS.replace("NAME", "factorial").replace("random", "factorial"),
    "ladder.yaml": LADDER,
    "wrong.yaml": ODD_STUDY.replace("odd.time", "odd.tmie"),
}

RUNS = "threads,block,latency\n" + "".join(
    f"{threads},{block},{9.7 / threads + 0.01 * block:.3f}\n"
    for threads in range(1, 8)
    for block in (16, 32, 64)
)


@pytest.fixture(scope="session")
def world(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with studies, some of which have run, and all that is looked for by name."""
    folder = tmp_path_factory.mktemp("world")
    _bring(folder / "bringer", folder / "index")
    for file, text in FILES.items():
        (folder / file).write_text(text)
    write_llama(folder / "net")
    write_products(folder / "products.csv")
    write_services(folder / "services.csv", models=("llama3-8b",))
    write_steps(folder / "steps.csv", models=("llama2-7b",), sizes=(1, 2, 4))
    write_collectives(folder / "sizes.csv")
    (folder / "runs.csv").write_text(RUNS)
    with pytest.MonkeyPatch.context() as patch, _brought(folder, patch):
        patch.chdir(folder)
        for study in ("odd", "hopeless", "formulas", "factorial", "ladder"):
            done = CliRunner().invoke(app, ["run", f"{study}.yaml", "-q"])
            assert done.exit_code == 0, done.exception
        StudyEngine.open(folder / "odd.yaml", name="empty")
        for words in KEPT:
            assert CliRunner().invoke(app, words).exit_code == 0
    return folder


@contextmanager
def _brought(world: Path, patch: pytest.MonkeyPatch) -> Iterator[None]:
    """The package and the index are found, and nothing else is: other tests do not see them."""
    patch.syspath_prepend(str(world / "bringer"))
    patch.setenv("COLUMNS", "80")
    patch.setenv("PIP_CONFIG_FILE", "/dev/null")
    patch.setenv("PIP_NO_INDEX", "1")
    patch.setenv("PIP_FIND_LINKS", str(world / "index"))
    patch.delenv("DSE_STORAGE", raising=False)
    names.cache_clear()
    yield
    names.cache_clear()
    sys.modules.pop("bringer", None)


@pytest.fixture
def folder(world: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The same folder for one test alone, which is where it is run."""
    monkeypatch.setenv("DSE_CACHE", str(tmp_path / "cache"))
    own = tmp_path / "world"
    shutil.copytree(world, own)
    monkeypatch.chdir(own)
    with _brought(world, monkeypatch):
        yield own


@pytest.fixture
def told(folder: Path) -> Callable[..., Any]:
    """What a command prints with ``--format json``, held to its schema."""
    return _told


def _told(*words: str, code: int = 0) -> Any:
    done = CliRunner().invoke(app, [*words, "--format", "json"])
    if isinstance(done.exception, DseError):
        raise done.exception
    assert done.exit_code == code, f"{done.stderr}\n{done.exception!r}"
    called = [command for command in PUBLISHED if set(command.split()) <= set(words)]
    command = max(called, key=len)
    validator = Draft202012Validator(schema(command))
    texts = done.stdout.splitlines() if PUBLISHED[command].each_line else [done.stdout]
    values = [json.loads(text, parse_constant=_refused) for text in texts]
    for value in values:
        validator.validate(value)
    return values if PUBLISHED[command].each_line else values[0]


def _refused(constant: str) -> None:
    raise AssertionError(f"{constant} is no JSON")


def _bring(package: Path, index: Path) -> None:
    """A package with an evaluator, an asset and an environment, and the index that has both."""
    about = package / "bringer-1.0.dist-info"
    about.mkdir(parents=True)
    index.mkdir()
    wheel = index / "tiny_data-1.0-py3-none-any.whl"
    with zipfile.ZipFile(wheel, "w") as archive:
        archive.writestr("tiny.py", "number = 3\n")
        inner = "tiny_data-1.0.dist-info"
        archive.writestr(
            f"{inner}/METADATA", "Metadata-Version: 2.1\nName: tiny-data\nVersion: 1.0"
        )
        archive.writestr(f"{inner}/WHEEL", "Wheel-Version: 1.0\nTag: py3-none-any\n")
        archive.writestr(f"{inner}/RECORD", "")
    sha256 = hashlib.sha256(wheel.read_bytes()).hexdigest()
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: bringer\nVersion: 1.0\n")
    (about / "entry_points.txt").write_text(DOORS)
    (package / "bringer.py").write_text(ODD.replace("SHA256", sha256))
    (package / "pins.txt").write_text(f"tiny-data==1.0 --hash=sha256:{sha256}\n")
