"""Memory use of n model copies, and the cost of their iterations."""

from __future__ import annotations

from dataclasses import dataclass, fields, is_dataclass, replace
from functools import cache
from typing import Any, TypeVar

import numpy as np

from dse.core.values import Floats, Ints
from dse_evaluators.accelerators.devices.devices import Device
from dse_evaluators.clusters.serving.energy import Draw, draw
from dse_evaluators.clusters.serving.engine import Engine
from dse_evaluators.clusters.serving.fabric import ServingFabric
from dse_evaluators.clusters.serving.inference_step import StepTokens, step
from dse_evaluators.clusters.serving.model_memory import (
    bounded_bytes,
    growing_bytes,
    weight_bytes,
    workspace_bytes,
)
from dse_evaluators.clusters.serving.run import Formats
from dse_evaluators.clusters.serving.share import ModelSharding
from dse_evaluators.clusters.simulator.server_iteration import IterationCost, Tariff
from dse_evaluators.clusters.simulator.server_settings import IterationWork
from dse_evaluators.workloads.transformer_configs import Transformer

_T = TypeVar("_T")


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelServer:
    """Cost model of n copies of a model, each on its own number of tensor-parallel devices."""

    share: ModelSharding
    engine: Engine
    fabric: ServingFabric
    draw: Draw
    device: Device

    @staticmethod
    def of(
        model: Transformer,
        device: Device,
        fabric: ServingFabric,
        *,
        devices: Floats,
        formats: Formats,
    ) -> ModelServer:
        """Build the cost model of n servers, each one copy of the model.

        Args:
            model: the model.
            device: the device.
            fabric: links between the devices of a copy.
            devices: tensor-parallel devices of a copy, (n,).
            formats: number formats of the servers.

        Raises:
            SpecError: no device was measured in one of the formats.
        """
        return ModelServer(
            share=ModelSharding(model=model, devices=devices, cache_bytes=formats.cache_bytes),
            engine=formats.engine(device),
            fabric=fabric,
            draw=draw(device, formats.names, formats.place, formats.expert_place),
            device=device,
        )

    def take(self, rows: Ints) -> ModelServer:
        """Return the cost model of the servers at the indices ``rows``."""
        return replace(
            self,
            share=_taken(self.share, rows),
            engine=_taken(self.engine, rows),
            draw=_taken(self.draw, rows),
        )

    def weights(self) -> Floats:
        """Return the bytes of weights on one device, (n,)."""
        return weight_bytes(self.share, self.engine.weight_bytes, self.engine.routed.weight_bytes)

    def workspace(self, most_tokens: Floats, scored: Floats) -> Floats:
        """Return the bytes of activations and logits on one device, (n,).

        ``most_tokens`` are the tokens of the largest iteration, ``scored`` those with logits.
        """
        return workspace_bytes(self.share, most_tokens, scored)

    def token_bytes(self) -> Floats:
        """Return the bytes that a token adds to a sequence's KV cache on one device, (n,)."""
        return growing_bytes(self.share)

    def sequence_bytes(self, tokens: float) -> Floats:
        """Return the bytes of a sequence's windows and recurrent states on one device, (n,)."""
        return bounded_bytes(self.share, tokens)

    def tariff(self, rows: Ints) -> Tariff:
        """Return a function that computes time and energy of an iteration of the given servers."""
        return self.take(rows).cost

    def cost(self, work: IterationWork) -> IterationCost:
        """Return the time and energy of one iteration of each server.

        Energy is that of arithmetic and memory traffic in excess of the base power, with the power
        clipped to the power limit.
        """
        tokens = StepTokens(
            sequences=work.sequences,
            queries=np.ones_like(work.sequences),
            context=work.context / np.maximum(work.sequences, 1.0),
            prompt=work.prompt,
            length=np.where(work.prompt > 0, work.square / np.maximum(work.prompt, 1.0), 1.0),
        )
        took = step(self.share, tokens, self.engine, self.fabric)
        seconds = took.total_s
        compute_j, memory_j = self.draw.flop_j * took.flops, self.draw.byte_j * took.moved_bytes
        compute_j += (self.draw.routed_flop_j - self.draw.flop_j) * took.routed_flops
        most_j = (self.draw.limit_w - self.draw.base_w) * seconds
        scale = self.share.devices * most_j / np.maximum(compute_j + memory_j, most_j)
        return IterationCost(
            seconds=seconds, compute_j=scale * compute_j, memory_j=scale * memory_j
        )


def _taken(value: _T, rows: Ints) -> _T:
    """Return a dataclass with its arrays indexed by ``rows``, recursively; scalars stay."""
    found: dict[str, Any] = {}  # fields of any record
    taken = False
    for name in _field_names(type(value)):  # type: ignore[arg-type]  # types hash
        part = getattr(value, name)
        if isinstance(part, np.ndarray):
            part, taken = part[rows], True
        elif _field_names(type(part)):  # type: ignore[arg-type]  # types hash
            whole = part
            part = _taken(whole, rows)
            taken = taken or part is not whole
        found[name] = part
    return type(value)(**found) if taken else value


@cache
def _field_names(kind: type) -> tuple[str, ...]:
    """Return the names of a dataclass's fields; none for another type.

    Every iteration takes rows of the same few records, so their fields are looked up once.
    """
    return tuple(each.name for each in fields(kind)) if is_dataclass(kind) else ()
