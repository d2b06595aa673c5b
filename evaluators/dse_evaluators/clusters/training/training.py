"""Evaluator ``clusters.training``: a step of distributed training of a transformer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import ClassVar

import numpy as np

from dse.core.batch import Batch
from dse.core.metric import Failure, Metrics
from dse.protocols import CalibrationResult, ModelError
from dse_evaluators.alike import evaluate_distinct
from dse_evaluators.amounts import amount
from dse_evaluators.clusters.chips import chip_of, chips_of
from dse_evaluators.clusters.choices import Labels
from dse_evaluators.clusters.chosen_options import ChosenOptions
from dse_evaluators.clusters.own_system import (
    SystemOption,
    label_of_system,
    system_edition,
    system_from,
)
from dse_evaluators.clusters.training.account import TrainingCostModel, metrics
from dse_evaluators.clusters.training.activations import compute_kept_bytes
from dse_evaluators.clusters.training.device_memory import TrainingMemoryUse, memory, too_large
from dse_evaluators.clusters.training.kernels import FORMATS, plain
from dse_evaluators.clusters.training.layer import SEEN_BY_LAYERS, SEEN_BY_STAGES, layer, passed_s
from dse_evaluators.clusters.training.model_state import SEEN_BY_STATE, state
from dse_evaluators.clusters.training.plan_inputs import READINGS, plans
from dse_evaluators.clusters.training.published_errors import training_errors
from dse_evaluators.clusters.training.replicas import compute_exchange
from dse_evaluators.clusters.training.step import Habits, Rest, step
from dse_evaluators.clusters.training.training_plan import TrainingJob, TrainingPlan, spread
from dse_evaluators.clusters.training.training_plan_rules import infeasible
from dse_evaluators.clusters.upkeep import Upkeep, price_among
from dse_evaluators.reading_table import ChoiceInput, Readings
from dse_evaluators.readings import number
from dse_evaluators.workloads.model_source import (
    ModelOption,
    edition_of_models,
    label_of_model,
    plain_transformer_of,
)


class Training(
    ChosenOptions,
    reads=READINGS,
    provides=(),
    version="5",
    fits=("../chips.fits.json", "../networks.fits.json"),
):
    """Time, memory, energy, cost and carbon of a training step, by its parallel layout.

    ``throughput`` is tokens per second, ``utilization`` the model FLOPs utilization (recomputed
    operations do not count), ``headroom`` the free memory of the fullest device, ``exposed`` the
    time of a step in which devices wait for communication, ``data_traffic`` the bytes that a device
    sends to replicas in a step. A plan that does not fit into memory is infeasible; the message
    gives the shortfall. ``extrapolated`` is yes where the device was not measured in the plan's
    format, and for models with experts. Cost, carbon and energy are provided where the price and
    power of the device are known, ``time_to_train`` and ``cost_to_train`` where ``tokens`` is
    given.

    Args:
        model: a name of ``workloads.transformer_configs``, the path of a Hugging Face
            ``config.json`` or of its folder, or ``{like: llama3-70b, layers: 40}``; a list of
            these makes it an input, as does one of systems.
        system: a name of ``clusters.systems``, the path of a YAML file, or a mapping
            ``{like: h100-dgx, nodes: 4}``; its keys are ``device`` (a name, or ``{like: h100-sxm,
            memory: 96 GB}``), ``nodes``, ``node_devices``, ``fabric`` (within a node: a name, or
            ``{bandwidth: 360 GB/s, latency: 10 us}``) and ``network`` (between nodes: a name, or
            ``{adapters: 8, adapter_bandwidth: 50 GB/s}``).
        sequence: tokens of one sequence.
        number_format: GEMM format of designs that do not give one.
        fused: whether attention is one kernel that never writes its scores.
        global_batch: sequences of a step; ``None`` makes it an input.
        reserve: share of the memory that is kept free, for the runtime and fragmentation.
        imbalance: tokens of the busiest expert over the mean of all experts.
        uneven: whether stages may have one layer more than others, and interleaved schedules a
            number of microbatches that is no multiple of the stages.
        overlap_tax: share of its compute rate that a device loses during communication; 0.02 to
            0.15 in Calculon.
        host_bandwidth: bandwidth between a device and its host, in each direction [B/s]; the
            default is assumed: PCIe 4 as realised.
        host_memory: memory of a node's host [B].
        stream_optimizer: whether offloaded optimizer state passes through a device in the backward
            pass of every microbatch, as in Calculon, and not once in the update.
        split_messages: whether each tensor-parallel device sends its part of a message between
            stages, as Megatron does, and not each of them all of it.
        price_per_hour: US dollars per device and hour, or a mapping by system or device; by default
            those of ``clusters/prices.csv``, which has the date and the source of each.
        grid: a name of ``carbon.grids``.
        pue: power usage effectiveness: power of the building over that of its computers.
        tokens: tokens of the complete training.

    Limits:
        Models with layers of several kinds, latent attention, windows or shared experts are
        refused. Not modelled: contention between collectives on one link, overlap of tensor
        parallelism, faults (``clusters.job-time``); kernels other than those of Megatron.

    Error:
        Nothing fitted. Megatron-LM on A100: 8 points, mean 1.5 %, largest 4.1 %; 10 further points,
        3.3 % and 7.1 %; memory at most 8.3 %. Whether a plan is feasible: 98.4 % of 4,000 random
        plans as Calculon, and seconds of a step 4.3 % off (median), by its conventions. Rates with
        experts: +75 to +208 % of software of 2025 (3 points), -4 to -32 % of that of 2026 (6
        points).
        Details: ``docs/training.md`` and ``docs/training_validation.md``.

    Example:
        options: {model: llama2-70b, global_batch: 2048}
        parameters: {tp: [4, 8], pp: [4, 8], dp: [32], microbatch: [1], zero: [1]}

    Raises:
        SpecError: a name is unknown, an amount out of range, or the device lacks the format.

    Source:
        Narayanan et al., SC 2021; Korthikanti et al., 2022; Rajbhandari et al., 2020; the modules
        of this package cite the source of each equation.
    """

    user_options: ClassVar[Sequence[str]] = ("model", "system")
    choosable: ClassVar[Labels] = {"model": label_of_model, "system": label_of_system}

    model: ModelOption | Sequence[ModelOption]
    system: SystemOption | Sequence[SystemOption] = "h100-dgx"
    sequence: int = 4096
    number_format: str | None = None
    fused: bool = True
    global_batch: int | None = None
    reserve: float = 0.06
    imbalance: float = 1.0
    uneven: bool = False
    overlap_tax: float = 0.1
    host_bandwidth: float | str = 25e9
    host_memory: float | str = 2e12
    stream_optimizer: bool = False
    split_messages: bool = True
    price_per_hour: float | Mapping[str, float] | None = None
    grid: str = "usa"
    pue: float = 1.1
    tokens: float | str | None = None

    def prepare(self) -> None:
        self.version = edition_of_models(type(self).version, self.model)
        self.version = "-".join(filter(None, (self.version, system_edition(self.system))))
        number(1.0, 1e6)("imbalance", self.imbalance)
        for name in ("overlap_tax", "reserve"):
            number(0.0, 1.0)(name, getattr(self, name))
        for name in ("sequence", "global_batch"):
            if getattr(self, name) is not None:
                number(1, 1e9, whole=True)(name, getattr(self, name))
        self._job = TrainingJob(
            model=plain_transformer_of(self.model, "clusters.training"),
            sequence=self.sequence,
            fused=self.fused,
            imbalance=self.imbalance,
            uneven=self.uneven,
            split_messages=self.split_messages,
        )
        self._system = system_from(self.system)
        self._device = self._system.sheet
        self._chips = chips_of(self._device)
        self._habits = Habits(
            host_bytes_per_s=amount("host_bandwidth", self.host_bandwidth, "B/s", least=1.0),
            overlap_tax=self.overlap_tax,
            streams_optimizer=self.stream_optimizer,
        )
        self._host_bytes = amount("host_memory", self.host_memory, "B")
        self._account = self._accounts()
        self.provides = {metric.name: metric for metric in self._account.metrics}
        self.absent_metrics = self._account.absent_metrics
        fixed = {} if self.global_batch is None else {"global_batch": self.global_batch}
        self.declare(Readings({**READINGS, "number_format": self._formats()}).fixed(fixed))

    def evaluate_options(self, batch: Batch) -> Metrics:
        """Return the metrics of n training plans as arrays (n,) by name, with infeasible plans."""
        return evaluate_distinct(batch, self.reads | self.optional, self._evaluate_columns)

    def _evaluate_columns(self, batch: Batch) -> Metrics:
        plan = plans(batch, self._readings)
        alike = batch.distinct(SEEN_BY_LAYERS)
        few = plan.take(alike)
        tax = self._habits.overlap_tax
        took_each = layer(self._job, few, self._chips, self._system, overlap_tax=tax)
        one = spread(took_each, alike)
        rest = self._rest(batch, plan)
        stored = memory(plan, rest.state, spread(compute_kept_bytes(self._job, few), alike))
        took = step(plan, one, rest, chip=plain(self._chips), habits=self._habits)
        columns = metrics(self._account, plan, took, stored, rest.replicas.step_bytes(plan))
        return Metrics(columns=columns, failures=self._failures(plan, stored))

    def model_errors(self, batch: Batch) -> Mapping[str, Sequence[ModelError]]:
        """Return the relative model errors of n training plans, by metric.

        The errors were found on published training runs.
        """
        if self._choices is not None:
            return self._choices.model_errors(batch)
        formats = [FORMATS[int(at)] for at in plans(batch, self._readings).number_format]
        return training_errors(self.provides, self._job.model, self._device, self._chips, formats)

    @staticmethod
    def calibrate(file: Path, like: str) -> CalibrationResult:
        """Fit the constants of a system's device to the times of measured training steps.

        Args:
            file: CSV file with the columns model, tp, pp, dp, microbatch, global_batch and
                step_time_s.
            like: name of the system that was measured.

        Raises:
            SpecError: a row is invalid, or the rows do not determine the constants.
        """
        # SciPy is slow to import, and only this needs it
        from dse_evaluators.clusters.training.training_fit import calibrate_training_rows

        return calibrate_training_rows(file, like)

    def _rest(self, batch: Batch, plan: TrainingPlan) -> Rest:
        alike, stages = batch.distinct(SEEN_BY_STATE), batch.distinct(SEEN_BY_STAGES)
        few, passing = plan.take(alike), plan.take(stages)
        return Rest(
            state=spread(state(self._job.model, few), alike),
            replicas=spread(compute_exchange(self._job, few, self._system), alike),
            passed_s=stages.spread(passed_s(self._job, passing, self._system)),
        )

    def _failures(self, plan: TrainingPlan, stored: TrainingMemoryUse) -> dict[int, Failure]:
        failures = infeasible(plan, self._job, system=self._system)
        possible = np.ones(plan.tensor.shape, dtype=bool)
        possible[list(failures)] = False
        return failures | too_large(
            stored,
            possible,
            device_bytes=self._device.dram_bytes * (1.0 - self.reserve),
            host_bytes=self._host_bytes / self._system.node_devices,
        )

    def _formats(self) -> ChoiceInput:
        """Return the choices and the default of the ``number_format`` input for the device."""
        known = {name: float(place) for place, name in enumerate(FORMATS) if name in self._chips}
        usual = self.number_format or next(iter(known))
        chip_of(self._device, usual)
        return ChoiceInput(dict(known.items()), usual)

    def _accounts(self) -> TrainingCostModel:
        return TrainingCostModel(
            job=self._job,
            device=self._device,
            chips=self._chips,
            upkeep=Upkeep(
                device=self._device.name,
                system=self._system.name,
                price_per_hour=price_among(
                    self.price_per_hour, self._system.name, self._device.name
                ),
                grid=self.grid,
                pue=self.pue,
            ),
            tokens=None if self.tokens is None else amount("tokens", self.tokens, ""),
        )
