"""Dependence graphs that Triton's modulo scheduler writes: JSON of the schema ``ddg-0.1``."""

from __future__ import annotations

import json
from pathlib import Path

from pydantic import BaseModel, ConfigDict, Field, NonNegativeInt, ValidationError

from dse.errors import SpecError
from dse_evaluators.kernels.pipelining.loop_graph import Dependence, LoopGraph, LoopOperation

_HINT = "TRITON_MODULO_DUMP_DDG=FILE writes such a file; a loop of yours can also be a CSV file"


class _Node(BaseModel):
    model_config = ConfigDict(extra="ignore")

    id: int
    op_kind: str
    pipeline: str
    latency: NonNegativeInt
    self_latency: NonNegativeInt
    occupancy: NonNegativeInt


class _Edge(BaseModel):
    model_config = ConfigDict(extra="ignore")

    src: int
    dst: int
    distance: NonNegativeInt
    latency: NonNegativeInt


class _Graph(BaseModel):
    model_config = ConfigDict(extra="ignore")

    nodes: list[_Node] = Field(min_length=1)
    edges: list[_Edge]


class _Loop(BaseModel):
    model_config = ConfigDict(extra="ignore")

    is_outer: bool
    ddg: _Graph


class _File(BaseModel):
    model_config = ConfigDict(extra="ignore")

    loops: list[_Loop]


def read_triton_graph(path: Path) -> LoopGraph:
    """Return the innermost loop of a file of Triton's modulo scheduler.

    A node's ``self_latency`` is the cycles for which it blocks its warp. Each node of a unit takes
    it for at least one cycle, as in the file's own ``res_mii``. The file has no registers.

    Raises:
        SpecError: the file cannot be read, is not of this form, or has more than one inner loop.
    """
    try:
        text = path.read_text(encoding="utf-8")
        found = _File.model_validate(json.loads(text))
    except json.JSONDecodeError as error:
        where = f"{path}:{error.lineno}"
        raise SpecError(f"the file is no JSON: {error.msg}", where=where, hint=_HINT) from error
    except (OSError, UnicodeDecodeError) as error:
        raise SpecError(f"{path} cannot be read: {error}", part=["loop"]) from error
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(str(each) for each in first["loc"])
        raise SpecError(f"{path}: {place}: {first['msg']}", hint=_HINT, part=["loop"]) from error
    inner = [each.ddg for each in found.loops if not each.is_outer]
    if len(inner) != 1:
        raise SpecError(f"{path} has {len(inner)} inner loops", hint="keep one", part=["loop"])
    return _graph_of(inner[0], path)


def _graph_of(found: _Graph, path: Path) -> LoopGraph:
    places = {one.id: place for place, one in enumerate(found.nodes)}
    unknown = [id_ for one in found.edges for id_ in (one.src, one.dst) if id_ not in places]
    if unknown:
        raise SpecError(f"{path}: an edge has the unknown node {unknown[0]}", part=["loop"])
    operations = tuple(
        LoopOperation(
            name=f"{one.op_kind}#{one.id}",
            unit=one.pipeline,
            latency=one.latency,
            occupancy=0 if one.pipeline == "NONE" else max(one.occupancy, 1),
            blocks=one.self_latency,
            registers=0,
        )
        for one in found.nodes
    )
    dependences = tuple(
        Dependence(
            source=places[one.src],
            use=places[one.dst],
            distance=one.distance,
            latency=one.latency,
        )
        for one in found.edges
    )
    return LoopGraph(operations=operations, dependences=dependences)
