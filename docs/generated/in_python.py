"""Each command and what is written in Python instead; tests run every line.

``study`` is a study of the file ``study.yaml`` that was run, called ``first``; ``space`` is its
space, from ``space.yaml``; ``small`` is a study whose evaluator compresses a model.
"""

from __future__ import annotations

from collections.abc import Mapping

IN_PYTHON: Mapping[str, tuple[str, ...]] = {
    "init": ('dse.init("kernels")',),
    "run": ('Study.open("study.yaml").run()',),
    "resume": ('Study.load("first").run(trials=8)',),
    "verify": ("study.record.verify()",),
    "status": ("study.record.status",),
    "front": ("study.front", "study.record.answer", "study.gap()"),
    "choose": ("study.favourite()",),
    "judge": ("small.judge()",),
    "deploy": ('small.deploy("safetensors", "model.safetensors", trial=0)',),
    "compress": ('dse.compress("net", "net-int4", recipe="format int4:channel")',),
    "learn": ('dse.learn("runs.csv", "latency.dse", metrics={"latency": "ms"})',),
    "trials": ("study.trials", "study.to_pandas()", "study.to_polars()"),
    "compare": (
        'dse.compare("first", "second")',
        'dse.compare({"one": [study], "two": [other]}).shortfalls(0.05)',
    ),
    "sweep": ('dse.sweep("study.yaml", optimizers=["random", "sobol"], seeds=2)',),
    "effects": ("study.effects()",),
    "report": (
        'study.report("first.html")',
        'dse.compare("first", "second").report("comparison.html")',
    ),
    "serve": ('dse.live_view("sqlite:///dse.db")',),
    "check": ('dse.check("study.yaml")', 'dse.reproduce("study.yaml")'),
    "doctor": ("dse.doctor()",),
    "evaluate": ('study.evaluate({"rows": 4, "clock": 1.5})',),
    "attach": ('Study.open("study.yaml", name="third").attach({"rows": 4, "clock": 1.5}, {})',),
    "space count": ("space.count()", "space.fixed(rows=4).count()"),
    "space describe": ("space.describe()",),
    "space explain": ("space.why(rows=4)",),
    "space sample": ('space.sample(5, method="sobol")',),
    "space neighbours": ('space.neighbours({"rows": 4, "clock": 1.5})',),
    "space enumerate": ("list(space.fixed(clock=1.5).enumerate())",),
    "space export": ('space.export("configspace", "theirs.json")',),
    "space import": ('Space.import_("theirs.json")',),
    "space diff": ('space.difference(Space.read("wider.yaml"))',),
    "plugins list": ("dse.plugins()",),
    "plugins show": ('dse.plugin("tpe")',),
    "studies list": ("dse.studies()",),
    "studies delete": ("study.record.delete()",),
    "studies migrate": ('study.record.migrate("wider_study.yaml")',),
    "studies export": (
        'study.record.export("first.jsonl")',
        'study.record.export_to_optuna("sqlite:///optuna.db")',
    ),
    "studies import": ('dse.import_study("kept.jsonl", name="theirs")',),
    "studies trust": ("study.record.trust()",),
    "studies merge": ('dse.merge("first", "second", name="both")',),
    "assets list": ("supplies.assets.listed()",),
    "assets install": ('supplies.assets.install("tiny")',),
    "assets where": ("supplies.assets.where()",),
    "assets remove": ('supplies.assets.remove("tiny")',),
    "calibrate collectives": (
        'dse.calibrate_collectives("nccl.txt", "my-node.yaml", like="h100-dgx")',
    ),
    "calibrate devices": (
        'dse.calibrate_devices("products.csv", "my-h100.yaml", like="h100-sxm")',
    ),
    "calibrate serving": (
        'dse.calibrate_serving("services.csv", "my-h100.yaml", like="h100-sxm")',
    ),
    "calibrate training": (
        'dse.calibrate_training("steps.csv", "my-cluster.yaml", like="h100-dgx")',
    ),
    "environments list": ("supplies.environments.listed()",),
    "environments install": ('supplies.environments.install("tool")',),
    "environments where": ("supplies.environments.where()",),
    "environments remove": ('supplies.environments.remove("tool")',),
}
"""By the words of the command; ``add`` and ``ask`` have no command, see ``Study``."""
