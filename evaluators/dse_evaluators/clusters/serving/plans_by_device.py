"""Evaluation of serving plans on different devices: each plan by the model of its device."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from dse.core.batch import Batch
from dse.core.metric import Failure, Metrics
from dse.core.values import Floats, Ints, Value
from dse_evaluators.accelerators.devices.devices import Device
from dse_evaluators.accelerators.devices.recipes import RECIPES
from dse_evaluators.alike import gather_parts, groups
from dse_evaluators.clusters.serving.engine import PLAIN
from dse_evaluators.clusters.serving.model_memory import CACHE_BYTES
from dse_evaluators.clusters.serving.plan_rules import impossible, too_large
from dse_evaluators.clusters.serving.run import Formats, ServingScenario
from dse_evaluators.clusters.serving.serving_plan import SAME, SPELLINGS, WEIGHT_ONLY, Plans


@dataclass(frozen=True, slots=True, kw_only=True)
class Fleet:
    """Serving scenarios (model, device, fabric, request lengths) by name of the device."""

    services: Mapping[str, ServingScenario]

    def run(self, batch: Batch, plan: Plans, emitted: Floats) -> Metrics:
        """Return the metrics of n serving plans, each in the scenario of its ``device``.

        The batch's column ``device`` is read only if there are several scenarios.

        Args:
            batch: designs, with the formats of each plan.
            plan: the serving plans of the designs.
            emitted: kg of carbon per joule, (n,).
        """
        if len(self.services) == 1:
            return run_plans(next(iter(self.services.values())), batch, plan, emitted)
        parts = [
            (rows, run_plans(self.services[name], batch.take(rows), plan.take(rows), emitted[rows]))
            for (name,), rows in groups(batch, {"device": ""})
        ]
        provided = {name for _, found in parts for name in found.columns}
        return gather_parts(len(batch), provided, parts)


def run_plans(service: ServingScenario, batch: Batch, plan: Plans, emitted: Floats) -> Metrics:
    """Return the metrics of serving plans on one kind of device, with the infeasible plans."""
    formats, failures = read_formats(batch, service.device)
    failures = impossible(plan, service.model, service.fabric) | failures
    possible = np.ones(len(batch), dtype=bool)
    possible[list(failures)] = False
    columns, needed = service.run(plan, formats, emitted)
    return Metrics(columns=columns, failures=failures | too_large(needed, service.room, possible))


def read_formats(batch: Batch, device: Device) -> tuple[Formats, dict[int, Failure]]:
    """Return the number formats of n plans, and which plans have an unsupported format."""
    columns = ("weight_format", "prefill_weight_format", "expert_format")
    occurring = [name for column in columns for name in _occurring(batch, column)]
    asked = tuple(name for name in dict.fromkeys((*occurring, PLAIN)) if name != SAME)
    places: dict[Value, float] = {name: float(place) for place, name in enumerate(asked)}
    place = batch.lookup("weight_format", places, places[PLAIN]).astype(np.intp)
    named = [SPELLINGS[name] for name in asked]
    known = [RECIPES[name].rate in device.flops_per_s for name in named]
    cached: dict[Value, float] = dict(CACHE_BYTES.items())
    kept = np.asarray(batch.get("kv_bits", 0.0), dtype=np.float64) / 8.0
    format_bytes = batch.lookup("kv_format", cached, cached[PLAIN])
    prefill_place = _prefill_place(batch, places, place)
    expert_place, prefill_expert_place = (
        _own_place(batch, "expert_format", places, usual) for usual in (place, prefill_place)
    )
    stored = np.array([WEIGHT_ONLY.get(name, 0.0) for name in asked])
    weight_bits = _bits(batch, "weight_bits", stored[place])
    expert_bits = _bits(
        batch, "expert_bits", np.where(expert_place == place, 0.0, stored[expert_place])
    )
    stored_alike = (expert_bits == 0) & (expert_place == place)
    found = Formats(
        names=tuple(name if has else PLAIN for name, has in zip(named, known, strict=True)),
        place=place,
        prefill_place=prefill_place,
        expert_place=expert_place,
        prefill_expert_place=prefill_expert_place,
        expert_bits=np.where(stored_alike, weight_bits, expert_bits),
        cache_bytes=np.where(kept > 0, kept, format_bytes),
        weight_bits=weight_bits,
    )
    lacking = {
        name: Failure(kind="infeasible", reason=f"{device.name} has no units for {name}")
        for name, has in zip(asked, known, strict=True)
        if not has
    }
    failures: dict[int, Failure] = {}
    everywhere = (prefill_expert_place, expert_place, prefill_place, place)
    for each in everywhere if lacking else ():
        rows = np.flatnonzero(~np.array(known, dtype=bool)[each])
        failures |= {int(row): lacking[asked[each[row]]] for row in rows}
    return found, failures


def _bits(batch: Batch, name: str, usual: Floats) -> Floats:
    """Return the bits of a stored weight, (n,): the column's where above 0, else ``usual``."""
    stated = np.asarray(batch.get(name, 0.0), dtype=np.float64)
    return np.where(stated > 0, stated, usual)


def _occurring(batch: Batch, name: str) -> Sequence[Value]:
    """Return the distinct values of a column; none if the batch has no such column."""
    column = batch.columns.get(name)
    if column is None:
        return ()
    if column.codes is None:
        return tuple(dict.fromkeys(batch[name].tolist()))
    return [column.domain[code] for code in np.unique(column.codes).tolist() if code >= 0]


def _prefill_place(batch: Batch, places: Mapping[Value, float], place: Ints) -> Ints:
    """Return the index of the format of each plan's prefill replicas, (n,)."""
    own = _own_place(batch, "prefill_weight_format", places, place)
    apart = np.asarray(batch.get("prefill_replicas", 0.0), dtype=np.float64) > 0
    return np.where(apart, own, place)


def _own_place(batch: Batch, name: str, places: Mapping[Value, float], usual: Ints) -> Ints:
    """Return the index of the format in a column, or ``usual`` where it is the same, (n,)."""
    if name not in batch.columns:
        return usual
    own = batch.lookup(name, {**places, SAME: -1.0}, -1.0).astype(np.intp)
    return np.where(own >= 0, own, usual)
