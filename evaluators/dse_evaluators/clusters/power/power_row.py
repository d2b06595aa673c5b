"""The evaluator ``clusters.power-row``: oversubscription of a row's power limit."""

from __future__ import annotations

from collections.abc import Mapping

from dse.core.batch import Batch
from dse.core.metric import Metric, Metrics
from dse_evaluators.alike import row_by_row
from dse_evaluators.amounts import amount
from dse_evaluators.clusters.power.governor import LEVELS, Governor, Outcome, Policy, outcome
from dse_evaluators.clusters.power.load import DAY_S, FITTED, LoadTrace, Wave, load_of
from dse_evaluators.clusters.power.server_power import (
    BRAKE_HZ,
    CLOCK_HZ,
    Class,
    ServerPower,
    ServerRow,
    failure,
    ladder,
)
from dse_evaluators.declared_evaluator import DeclaredEvaluator
from dse_evaluators.reading_table import NumberInput, Reading, one_of
from dse_evaluators.readings import number

POLICIES = ("none", "two-thresholds")

_PARTS = ("idle", "low", "high")
_METRICS = (
    Metric(name="servers", goal="maximize"),
    Metric(name="peak", goal="minimize"),
    Metric(name="spike", goal="minimize"),
    Metric(name="energy", unit="J", goal="minimize"),
    *(Metric(name=f"{part}_energy", unit="J", part_of="energy") for part in _PARTS),
    Metric(name="mean_power", unit="W", goal="minimize"),
    Metric(name="brakes", goal="minimize"),
    Metric(name="braked_share", goal="minimize"),
    Metric(name="low_capped_share", goal="minimize"),
    Metric(name="high_capped_share", goal="minimize"),
    Metric(name="low_slowdown", goal="minimize"),
    Metric(name="high_slowdown", goal="minimize"),
    Metric(name="capped_power", goal="minimize"),
    Metric(name="capped_slowdown", goal="minimize"),
    Metric(name="bottleneck", words=(*LEVELS, "brake")),
)
_READINGS: Mapping[str, Reading] = {
    "policy": one_of(POLICIES),
    "extra_servers": NumberInput(-0.99, 100.0),
    "first_threshold": NumberInput(0.01, 10.0, default=0.80),
    "second_threshold": NumberInput(0.01, 10.0, default=0.89),
    "hysteresis": NumberInput(0.0, 1.0, default=0.05),
    "low_clock": NumberInput(BRAKE_HZ, CLOCK_HZ, "Hz", default=1275e6),
    "lower_clock": NumberInput(BRAKE_HZ, CLOCK_HZ, "Hz", default=1110e6),
    "high_clock": NumberInput(BRAKE_HZ, CLOCK_HZ, "Hz", default=1305e6),
    "low_share": NumberInput(0.0, 1.0, default=0.5),
    "command_time": NumberInput(0.0, 3600.0, "s", default=40.0),
}
_SPIKE_S = 40.0
_MOST_STEPS = 2e7


class PowerRow(
    DeclaredEvaluator,
    reads=_READINGS,
    provides=_METRICS,
    version="1",
    fits=("load.fits.json",),
):
    """Stepwise simulation of a row of A100 servers that together may exceed its power limit.

    The limit is the provisioned power of ``base_servers``. Above ``first_threshold`` of it the
    servers of low priority are capped to ``low_clock``, above ``second_threshold`` to
    ``lower_clock``, and if that is not enough those of high priority to ``high_clock``; a cap is
    lifted ``hysteresis`` below its threshold. Commands take effect after ``command_time``; above
    the limit a brake lowers all clocks to 288 MHz at once. ``peak`` is the largest power,
    ``spike`` its largest rise within 40 s, both as shares of the limit; ``capped_power`` and
    ``capped_slowdown`` are those of one busy server at ``lower_clock``, relative to one without a
    cap. All designs see the same load.

    Args:
        base_servers: servers that the limit is provisioned for.
        server_power: provisioned power of each [W]; by default that of a DGX A100.
        load_peak, load_trough: shares of the time that servers are busy, at noon and at midnight.
        noise: standard deviation of the load's noise.
        noise_time: correlation time of the noise [s].
        idle: share of its power that a server draws without work.
        prompt_share: share of the busy time spent on prefill.
        days: simulated days.
        step_time: length of a step [s].
        brake_time: time that a brake is held [s].
        most_brakes: number of brakes at which a design is infeasible.

    Inputs:
        extra_servers: share of the base.
        first_threshold, second_threshold, hysteresis: shares of the limit.
        low_share: share of the servers that have low priority.

    Limits:
        Not modelled: queues (work waits only for its own server), the distribution of power within
        the row, recovery after a brake. Load, power and slowdown by clock are assumed. Two
        constants of the load are fitted to the published peak and spike.

    Error:
        Agrees with the policy simulated step by step. With 30 % more servers: no brake (published:
        0), high priority .02 % slower (published: < 1 %), low priority 2.3 % (< 2 %). In one of
        four other random loads with 30 % more servers there were two brakes.

    Example:
        options: {days: 0.5}
        parameters: {policy: [none, two-thresholds], extra_servers: [0.0, 0.1, 0.3]}

    Source:
        Patel et al.: Characterizing Power Management Opportunities for LLMs in the Cloud (POLCA),
        ASPLOS 2024: the policy, its clocks, thresholds and latencies, by notes on it.

    Raises:
        SpecError: an option is out of range.
    """

    base_servers: float = 40.0
    server_power: float | str = 6500.0
    load_peak: float = FITTED["peak"]
    load_trough: float = FITTED["peak"] / 2.0
    noise: float = FITTED["noise"]
    noise_time: float | str = 60.0
    idle: float = 0.3
    prompt_share: float = 0.1
    days: float = 7.0
    step_time: float | str = 5.0
    brake_time: float | str = 5.0
    most_brakes: int = 5000
    seed: int = 0
    low_share: float | None = None
    command_time: float | str | None = None

    def __post_init__(self) -> None:
        for name in ("load_peak", "load_trough", "noise", "idle", "prompt_share"):
            number(0.0, 1.0)(name, getattr(self, name))
        number(0.01, 366.0)("days", self.days)
        number(1, 1_000_000, whole=True)("most_brakes", self.most_brakes)
        number(0, 2**62, whole=True)("seed", self.seed)
        number(1e-3, 1e9)("base_servers", self.base_servers)
        self._brake_s = amount("brake_time", self.brake_time, "s")
        self._server_w = amount("server_power", self.server_power, "W")
        self._step_s = amount("step_time", self.step_time, "s")
        number(self.days * DAY_S / _MOST_STEPS, self.days * DAY_S / 2.0)("step_time", self._step_s)
        noise_s = amount("noise_time", self.noise_time, "s")
        number(1e-6, 1e12)("noise_time", noise_s)
        self._wave = Wave(
            days=self.days,
            step_s=self._step_s,
            peak=self.load_peak,
            trough=self.load_trough,
            noise=self.noise,
            noise_time_s=noise_s,
            seed=self.seed,
        )
        self._server = ServerPower(idle=self.idle, prompt_share=self.prompt_share)
        super().__post_init__()

    def evaluate(self, batch: Batch) -> Metrics:
        """Return the metrics of n server rows as arrays (n,) by name, with faults if infeasible."""
        inputs, load = self._readings.rows(batch), load_of(self._wave)
        return row_by_row(inputs, self.provides, lambda design: self._one(design, load))

    def _one(self, inputs: Mapping[str, float], load: LoadTrace) -> dict[str, float] | str:
        """Return the metrics of a design, or the reason why it is infeasible."""
        wrong = failure(inputs) if inputs["policy"] else ""
        if wrong:
            return wrong
        rows = tuple(self._row(inputs, *clocks) for clocks in ladder(inputs))
        policy = self._policy(inputs)
        course = Governor(policy, rows, load).course()
        if len(course.brakes) >= self.most_brakes:
            days = course.ends[-1] * self._step_s / DAY_S
            return f"the brake was pulled {len(course.brakes)} times in {days:.3g} days"
        braked = self._row(inputs, BRAKE_HZ, BRAKE_HZ)
        got = outcome(course, rows, braked, load, policy.brake_steps)
        return self._metrics(inputs, got, rows[0], load)

    def _policy(self, inputs: Mapping[str, float]) -> Policy:
        return Policy(
            governed=inputs["policy"] > 0,
            first=inputs["first_threshold"],
            second=inputs["second_threshold"],
            hysteresis=inputs["hysteresis"],
            latency_steps=round(inputs["command_time"] / self._step_s),
            brake_steps=max(1, round(self._brake_s / self._step_s)),
            most_brakes=self.most_brakes,
        )

    def _row(self, inputs: Mapping[str, float], low_hz: float, high_hz: float) -> ServerRow:
        low, high = (
            Class(
                share=share,
                idle=self._server.idle,
                busy=self._server.busy_power(clock_hz),
                slowness=self._server.slowness(clock_hz),
            )
            for share, clock_hz in (
                (inputs["low_share"], low_hz),
                (1.0 - inputs["low_share"], high_hz),
            )
        )
        return ServerRow(servers=1.0 + inputs["extra_servers"], low=low, high=high)

    def _metrics(
        self, inputs: Mapping[str, float], got: Outcome, free: ServerRow, load: LoadTrace
    ) -> dict[str, float]:
        limit_j = self.base_servers * self._server_w * len(load) * self._step_s
        energies = {
            "idle_energy": got.idle_power * limit_j,
            "low_energy": got.low_power * limit_j,
            "high_energy": got.high_power * limit_j,
        }
        energy_j = sum(energies.values())
        rise = free.servers * (1.0 - self.idle) * load.largest_rise(_SPIKE_S)
        return {
            **energies,
            "servers": self.base_servers * free.servers,
            "peak": got.peak,
            "spike": rise,
            "energy": energy_j,
            "mean_power": energy_j / (len(load) * self._step_s),
            "brakes": float(got.brakes),
            "braked_share": got.braked,
            "low_capped_share": got.low_capped,
            "high_capped_share": got.high_capped,
            "low_slowdown": got.low_slowdown,
            "high_slowdown": got.high_slowdown,
            "capped_power": self._server.busy_power(inputs["lower_clock"]),
            "capped_slowdown": self._server.slowness(inputs["lower_clock"]) - 1.0,
            "bottleneck": float(got.level),
        }
