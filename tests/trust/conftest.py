"""A stranger's studies, which leave a file behind wherever something of theirs is started."""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from pathlib import Path

import pytest

from dse.core.trial import Outcome, State
from dse.interop.configspace import configspace
from dse.schema.space.space_loader import space_of
from dse.schema.yaml.files import Files
from dse.services.studies.study_transfer import restore_study, write_study_export
from dse.storage.memory import MemoryStorage
from dse.study.storage_access import opened_storage
from dse.study.study_engine import StudyEngine

SPACE = """
space: stranger
parameters:
  a: {integer: [1, 6]}
  b: {integer: [1, 4]}
"""

PROGRAM = """run: [sh, -c, 'touch CANARY; echo "{\\"LOSS\\": 3}"']"""

EVALUATORS = f"""
evaluators:
  lab: {{use: command, {PROGRAM}, kind: modelled, metrics: {{LOSS: ""}}}}
  bench: {{use: command, {PROGRAM}, metrics: {{LOSS: ""}}, reads: [a]}}
  many: {{use: command, {PROGRAM}, kind: modelled, metrics: {{LOSS: ""}}, replicates: {{count: 2, seed_input: a}}}}
  file: {{use: outside.worker, worker: EVIL, kind: modelled, metrics: {{LOSS: ""}}}}
  sum: {{use: expression, metrics: {{total: {{formula: lab.LOSS + file.LOSS + a}}, plain: {{formula: a * b}}}}}}
"""

ASKED = """
objectives: [{minimize: sum.total}, {minimize: bench.LOSS}, {minimize: "ratio(many.LOSS, base)"}]
constraints: [sum.plain <= 20]
baselines: {base: {a: 1, b: 1}}
"""

STUDY = f"""
study: theirs
question: What does it start?
space: space.yaml
{EVALUATORS}{ASKED}
optimizer: random
executor: serial
budget: {{trials: 23}}
"""

MODELLED = f"""
study: modelled
space: space.yaml
{EVALUATORS}
objectives: [{{minimize: sum.total}}, {{minimize: "ratio(many.LOSS, base)"}}]
baselines: {{base: {{a: 1, b: 1}}}}
optimizer: factorial
"""
"""Nothing that it asks is measured: where models may be called, all designs are computed."""

ALL_DOORS = f"""
study: doors
space: space.yaml
{EVALUATORS}
objectives: [{{minimize: sum.total}}, {{minimize: "ratio(many.LOSS, base)"}}]
baselines: {{base: {{a: 1, b: 1}}}}
optimizer: OPTIMIZER
executor: {{use: ray, address: "ray://198.51.100.7:10001"}}
storage: postgresql+psycopg://stranger@198.51.100.7/theirs
transfer_from: [{{study: earlier, storage: "postgresql+psycopg://stranger@198.51.100.7/theirs"}}]
"""
"""What a file can name beside programs: a cluster and storages on a network (RFC 5737)."""

EVIL = """
from pathlib import Path
Path("CANARY").touch()
def prepared(options):
    return lambda design: {"loss": 4.0}
"""


@dataclass(frozen=True)
class Stranger:
    """The stranger's folder: files, an exported study, and canaries that programs leave."""

    folder: Path

    @property
    def left(self) -> list[str]:
        """The canaries that are there."""
        return sorted(path.name for path in (self.folder / "canaries").iterdir())

    @property
    def code(self) -> set[str]:
        """The file of Python that nobody may open, as it may be named."""
        return {str(self.folder / "evil.py"), "evil.py"}

    def forget(self) -> None:
        """Take the canaries away."""
        for path in (self.folder / "canaries").iterdir():
            path.unlink()


def forge_trials(study: StudyEngine) -> None:
    """Write the trials that a run would have come to, as a stranger may who runs nothing."""
    designs = [design for batch in study.problem.space.enumerate() for design in batch.designs()]
    designs.sort(key=lambda design: (design["a"], design["b"]))  # the baseline comes first
    designs.pop()  # one is left to be asked
    study.storage.add(study.name, designs)
    constant = {"lab.loss": 3.0, "bench.loss": 3.0, "many.loss": 3.0, "file.loss": 4.0}
    outcomes = {
        number: Outcome(
            state=State.DONE,
            metrics={
                **constant,
                "sum.total": 7.0 + int(design["a"]),
                "sum.plain": float(int(design["a"]) * int(design["b"])),
            },
            measured=1,
        )
        for number, design in enumerate(designs)
    }
    study.storage.finish(study.name, outcomes)


@pytest.fixture(scope="session")
def stranger(tmp_path_factory: pytest.TempPathFactory) -> Stranger:
    """What a stranger sends: study files, and two exported studies."""
    folder = tmp_path_factory.mktemp("stranger")
    canary = str(folder / "canaries" / "started")
    (folder / "canaries").mkdir()
    (folder / "evil.py").write_text(EVIL.replace("CANARY", canary))
    (folder / "space.yaml").write_text(SPACE)
    for name, text in (("theirs", STUDY), ("modelled", MODELLED), ("doors", ALL_DOORS)):
        known = text.replace("CANARY", canary).replace("EVIL", str(folder / "evil.py"))
        (folder / f"{name}.yaml").write_text(
            known.replace("LOSS", "loss").replace("OPTIMIZER", "random")
        )
    storage = MemoryStorage()
    for name in ("theirs", "modelled"):
        study = StudyEngine.open(folder / f"{name}.yaml", storage=storage)
        forge_trials(study)
        write_study_export(study, folder / f"{name}.jsonl", with_machine=True)
    return Stranger(folder=folder)


@pytest.fixture(scope="session")
def received(stranger: Stranger, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Our folder: the stranger's files, and his studies imported into its database."""
    folder = tmp_path_factory.mktemp("received")
    storage = opened_storage(f"sqlite:///{folder}/dse.db", begins=True)
    for name, file in (("theirs", "theirs"), ("modelled", "modelled"), ("second", "theirs")):
        restore_study(stranger.folder / f"{file}.jsonl", name=name, storage=storage)
    for name in ("theirs", "modelled"):
        write_study_export(StudyEngine.load(name, storage), folder / f"{name}.csv")
    storage.close()
    for path in [*stranger.folder.glob("*.yaml"), *stranger.folder.glob("*.jsonl")]:
        shutil.copy(path, folder)
    space = space_of(folder / "space.yaml", Files())
    (folder / "theirs.json").write_text(configspace.write(space, "theirs").text)
    return folder


@pytest.fixture
def victim(
    stranger: Stranger, received: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Stranger:
    """The stranger, whose studies lie in the folder that we stand in; no canary is there."""
    stranger.forget()
    monkeypatch.delenv("DSE_STORAGE", raising=False)
    monkeypatch.setenv("DSE_CACHE", str(tmp_path / "cache"))  # some commands remove what is there
    shutil.copytree(received, tmp_path, dirs_exist_ok=True)
    monkeypatch.chdir(tmp_path)
    return stranger
