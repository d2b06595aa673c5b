"""Every call of Python that only looks, on a stranger's study: nothing is started or connected to."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import dse
from dse import Front, Space, Study
from dse.api.record import StudyRecord
from dse.errors import StudyError
from dse.testing.evaluator_contract import traced

DESIGN = {"a": 1, "b": 1}

LOOKING: dict[str, Callable[[Study], Any]] = {
    "dse.check": lambda _: [dse.check(f"{name}.yaml") for name in ("theirs", "modelled", "doors")],
    "dse.compare": lambda _: dse.compare("theirs", "second", joint_reference=True).facts,
    "dse.doctor": lambda _: dse.doctor("sqlite:///dse.db"),
    "dse.import_study": lambda _: dse.import_study("theirs.jsonl", name="again"),
    "dse.init": lambda _: dse.init("new"),
    "dse.merge": lambda _: dse.merge("theirs", "second", name="both"),
    "dse.plugin": lambda _: dse.plugin("command"),
    "dse.plugins": lambda _: dse.plugins(),
    "dse.studies": lambda _: dse.studies(),
    "Study.open": lambda _: Study.open("theirs.yaml", name="mine"),
    "Study.load": lambda _: Study.load("modelled"),
    "Study.name": lambda study: study.name,
    "Study.problem": lambda study: study.problem,
    "Study.trials": lambda study: study.trials,
    "Study.front": lambda study: study.front,
    "Study.front_at": lambda _: Study.load("modelled").front_at("b >= 0"),
    "Study.prefer": lambda _: Study.load("modelled").prefer(0, 1),
    "Study.favourite": lambda _: Study.load("modelled").favourite(),
    "Study.choose": lambda _: Study.load("modelled").choose(lambda *_: "equal", questions=1),
    "Study.effects": lambda study: study.effects(),
    "Study.report": lambda study: study.report("report.html"),
    "Study.record": lambda study: repr(study.record),
    "Study.to_pandas": lambda study: study.to_pandas(),
    "Study.to_polars": lambda study: study.to_polars(),
    "Study.add": lambda study: study.add({"a": 6, "b": 4}),
    "Study.close": lambda study: study.close(),
    "Study.attributes": lambda study: study.attributes,
    "Study.trial_attributes": lambda study: study.trial_attributes(0),
    "Study.set_attribute": lambda study: study.set_attribute("a", 1, trial=0),
    "Study.stop": lambda study: study.stop(),
    "Study._repr_html_": lambda study: study._repr_html_(),
    "StudyRecord.answer": lambda study: study.record.answer,
    "StudyRecord.claims": lambda study: study.record.claims,
    "StudyRecord.delete": lambda _: Study.load("second").record.delete(),
    "StudyRecord.events": lambda study: study.record.events,
    "StudyRecord.export": lambda study: study.record.export("out.jsonl"),
    "StudyRecord.export_to_optuna": lambda study: study.record.export_to_optuna("sqlite:///o.db"),
    "StudyRecord.migrate": lambda study: study.record.migrate("theirs.yaml", to="moved"),
    "StudyRecord.provenance": lambda study: study.record.provenance,
    "StudyRecord.status": lambda study: study.record.status,
    "StudyRecord.trust": lambda _: Study.load("second").record.trust(),
    "Front": lambda study: [
        getattr(study.front, name)
        for name in dir(Front)
        if not name.startswith("_") and not callable(getattr(Front, name))
    ],
    "Front.to_pandas": lambda study: study.front.to_pandas(),
    "Front.to_polars": lambda study: study.front.to_polars(),
    "Front._repr_html_": lambda study: study.front._repr_html_(),
    "Space.read": lambda _: Space.read("space.yaml")._repr_html_(),
}
"""What each is called as, on the imported study."""

RUNNING: dict[str, Callable[[Study], Any]] = {
    "Study.run": lambda study: study.run(trials=25),
    "Study.ask": lambda study: study.ask(),
    "Study.evaluate": lambda study: study.evaluate(DESIGN),
    "Study.deploy": lambda study: study.deploy("torch", "model.pt", trial=0),
    "Study.judge": lambda study: study.judge(),
    "Study.attach": lambda study: study.attach({"a": 6, "b": 4}, {}),
    "Study.predict": lambda study: study.predict(DESIGN),
    "Study.gap": lambda study: study.gap(),
    "StudyRecord.verify": lambda study: study.record.verify(),
}
"""What may start programs; it is refused on an imported study."""

OTHER = {
    "dse.compress",
    "dse.calibrate_collectives",
    "dse.calibrate_devices",
    "dse.calibrate_serving",
    "dse.calibrate_training",
    "dse.learn",
    "Study.tell",
    "Study.steer",
    "Front.count",
    "Front.index",
    "dse.reproduce",
    "dse.sweep",
    "dse.live_view",
}
"""It follows what was asked; an event, on a study with answers; two of a sequence; files of weights or a CSV file that are read;
runs of one's own file; the pages, tested apart."""


def public(kind: type) -> set[str]:
    named = {name for base in kind.__mro__[:-1] for name in vars(base) if "dse." in base.__module__}
    own = {name for name in named if not name.startswith("_") or name == "_repr_html_"}
    return {f"{kind.__name__}.{name}" for name in own}


def test_every_call_either_looks_or_runs():
    told = {*LOOKING, *RUNNING, *OTHER}
    calls = {f"dse.{one}" for one in dse.__all__ if one.islower() and one not in PLAIN}
    front = {one for one in public(Front) if callable(getattr(Front, one.partition(".")[2]))}
    assert calls | public(Study) | public(StudyRecord) | front <= told
    assert {*RUNNING} <= public(Study) | public(StudyRecord)


PLAIN = {"current_trial", "evaluator", "report", "supplies", "time_call"}
"""What an evaluator is made with, reports, asks for, downloads and times by: they know no study."""


@pytest.mark.parametrize("name", LOOKING)
def test_a_call_that_looks_starts_nothing(victim, name):
    study = Study.load("theirs")
    with traced(victim.code) as found:
        LOOKING[name](study)
    assert [one for one in found if "nvidia-smi" not in one] == []  # dse.doctor asks it
    assert victim.left == []


@pytest.mark.parametrize("name", RUNNING)
def test_a_call_that_runs_refuses_an_imported_study(victim, name):
    study = Study.load("theirs")
    with traced(victim.code) as found, pytest.raises(StudyError, match="is not trusted"):
        RUNNING[name](study)
    assert found == []
    assert victim.left == []
