"""Evaluator ``edge.mission``: flights of an aerial robot for each charge of its battery."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from dse.core.metric import Metric, Metrics
from dse.core.values import Floats
from dse.errors import SpecError
from dse_evaluators.alike import infeasible
from dse_evaluators.declared_evaluator import DeclaredEvaluator
from dse_evaluators.reading_table import NumberInput, Reading

_GRAVITY = 9.80665
"""Standard gravity in m/s2."""

_STAGES = ("sensor", "compute", "control")

_INPUTS: Mapping[str, Reading] = {
    "latency": NumberInput(1e-9, 1e6, "s"),
    "energy": NumberInput(0, 1e9, "J"),
    "sensor_rate": NumberInput(1e-3, 1e6, "Hz"),
    "control_rate": NumberInput(1e-3, 1e9, "Hz", default=1e9),
    "sensing_range": NumberInput(1e-3, 1e6, "m"),
    "mass": NumberInput(1e-6, 1e6, "kg"),
    "board_mass": NumberInput(0, 1e6, "kg", default=0.0),
    "heatsink": NumberInput(0, 1e3, "kg/W"),
    "thrust": NumberInput(1e-6, 1e9, "N"),
    "hover_power": NumberInput(1e-6, 1e9, "W"),
    "other_power": NumberInput(0, 1e9, "W", default=0.0),
    "battery": NumberInput(1e-6, 1e15, "J"),
    "distance": NumberInput(1e-3, 1e9, "m"),
    "success": NumberInput(0, 1, default=1.0),
}

_METRICS = (
    Metric(name="missions", goal="maximize"),
    Metric(name="safe_speed", unit="m/s", goal="maximize"),
    Metric(name="speed_limit", unit="m/s"),
    Metric(name="action_rate", unit="Hz", goal="maximize"),
    Metric(name="knee_rate", unit="Hz"),
    Metric(name="bottleneck", words=_STAGES),
    Metric(name="acceleration", unit="m/s^2"),
    Metric(name="payload", unit="kg", goal="minimize"),
    Metric(name="mission_time", unit="s", goal="minimize"),
    Metric(name="mission_energy", unit="J", goal="minimize"),
    Metric(name="rotor_energy", unit="J", goal="minimize", part_of="mission_energy"),
    Metric(name="compute_energy", unit="J", goal="minimize", part_of="mission_energy"),
    Metric(name="other_energy", unit="J", goal="minimize", part_of="mission_energy"),
)


class Mission(DeclaredEvaluator, reads=_INPUTS, provides=_METRICS, version="1"):
    """Missions for each battery charge of an aerial robot that reacts to what its camera sees.

    The robot flies as fast as it can still stop within ``sensing_range`` of an obstacle that
    appears right after a frame. The robot takes one decision for each frame, at the rate of the
    slowest of sensor, computer and controller. The computer adds mass, by its board and by a
    heatsink in proportion to its power; mass lowers the acceleration and raises the power of the
    rotors. A design that cannot hover is infeasible.

    ``latency`` and ``energy`` of a frame are inputs: in a study they are the metrics of the
    evaluator of the computer, such as ``accelerators.systolic`` or ``accelerators.gpu``.

    Args:
        knee: share of the speed limit that is reached at ``knee_rate``; a faster computer brings
            little more.

    Inputs:
        latency: time in which the computer processes one frame.
        energy: energy of one frame.
        sensor_rate: frames of the sensor in a second.
        control_rate: commands that the flight controller follows in a second; the default is no
            limit.
        sensing_range: distance at which an obstacle is seen.
        mass: mass of the robot with battery and sensor, without the computer.
        board_mass: mass of the computer without its heatsink.
        heatsink: mass of the heatsink for each watt of the computer at work.
        thrust: greatest thrust of all rotors together.
        hover_power: power of the rotors that keeps ``mass`` in the air.
        other_power: power of all but the rotors and the computer.
        battery: energy of a full battery.
        distance: length of a mission.
        success: share of missions that succeed, such as a measured accuracy; ``missions`` counts
            successful missions.

    Limits:
        Straight flight on level ground at the safe speed. Stages of sensing, computing and control
        overlap, so that the slowest one sets the rate, and the time to the first reaction is one
        period. Drag, wind, take-off and the battery's own losses are left out. The computer draws
        nothing between frames. All figures of the robot are the user's.

    Error:
        Not validated: no flight was available. Krishnan et al. report differences of 5.1 to 9.5 %
        between the law of the safe speed and flights of four robots.

    Source:
        Speed: Liu et al.: High Speed Navigation for Quadrotors with Limited Onboard Sensing, 2016;
        rates and mass: Krishnan et al., F-1 model, 2020, and AutoPilot, 2022. Power of the rotors
        grows with mass to the 3/2, as in momentum theory.

    Example:
        options:
          latency: 20 ms
          energy: 10 mJ
          sensing_range: 3 m
          mass: 43 g
          thrust: 0.72 N
          heatsink: 5 g/W
          hover_power: 9 W
          battery: 4660 J
          distance: 100 m
        parameters: {sensor_rate: [10.0, 30.0, 60.0], board_mass: [0.002, 0.01]}

    Raises:
        SpecError: ``knee`` is not between 0 and 1, or the value of an option is invalid.
    """

    knee: float = 0.95
    latency: float | str | None = None
    energy: float | str | None = None
    sensor_rate: float | str | None = None
    control_rate: float | str | None = None
    sensing_range: float | str | None = None
    mass: float | str | None = None
    board_mass: float | str | None = None
    heatsink: float | str | None = None
    thrust: float | str | None = None
    hover_power: float | str | None = None
    other_power: float | str | None = None
    battery: float | str | None = None
    distance: float | str | None = None
    success: float | None = None

    def __post_init__(self) -> None:
        if not 0 < self.knee < 1:
            raise SpecError(f"knee is {self.knee:g}", hint="a share of the speed limit, as 0.95")
        super().__post_init__()

    def compute(self, inputs: Mapping[str, Floats], /) -> Metrics:
        """Return the metrics of n designs; a robot that cannot hover is infeasible."""
        computer_w = inputs["energy"] / inputs["latency"]
        payload = inputs["board_mass"] + inputs["heatsink"] * computer_w
        flying = inputs["mass"] + payload
        lift = inputs["thrust"] / (_GRAVITY * flying)
        grounded = lift <= 1
        acceleration = _GRAVITY * np.where(grounded, 1.0, lift - 1)
        stages = [inputs["sensor_rate"], 1 / inputs["latency"], inputs["control_rate"]]
        rate = np.min(stages, axis=0)
        motion = Motion(acceleration=acceleration, sensing_range=inputs["sensing_range"])
        speed = motion.safe_speed(1 / rate)
        flight_s = inputs["distance"] / speed
        rotor_j = inputs["hover_power"] * (flying / inputs["mass"]) ** 1.5 * flight_s
        compute_j = inputs["energy"] * rate * flight_s
        other_j = inputs["other_power"] * flight_s
        mission_j = rotor_j + compute_j + other_j
        columns = {
            "missions": inputs["success"] * inputs["battery"] / mission_j,
            "safe_speed": speed,
            "speed_limit": motion.speed_limit,
            "action_rate": rate,
            "knee_rate": 1 / motion.period_of(self.knee),
            "bottleneck": np.argmin(stages, axis=0).astype(float),
            "acceleration": acceleration,
            "payload": payload,
            "mission_time": flight_s,
            "mission_energy": mission_j,
            "rotor_energy": rotor_j,
            "compute_energy": compute_j,
            "other_energy": other_j,
        }
        failures = infeasible(
            grounded,
            lambda row: f"it cannot hover: its thrust is {lift[row]:.3g} of its weight",
        )
        return Metrics(columns=columns, failures=failures)


@dataclass(frozen=True, slots=True, kw_only=True)
class Motion:
    """Straight flight of n robots; arrays are (n,)."""

    acceleration: Floats  # m/s2, which is also the deceleration
    sensing_range: Floats  # m

    @property
    def speed_limit(self) -> Floats:
        """Safe speed [m/s] of a robot that reacts at once."""
        return np.sqrt(2 * self.sensing_range * self.acceleration)

    def safe_speed(self, period_s: Floats) -> Floats:
        """Return the speed [m/s] from which a robot stops within its sensing range.

        Args:
            period_s: time until the robot reacts, (n,).

        Source:
            Liu et al., 2016: v T + v^2 / (2 a) = d, solved for v, in a form that loses no digits at
            long periods.
        """
        still = 2 * self.sensing_range / self.acceleration
        return 2 * self.sensing_range / (np.sqrt(period_s**2 + still) + period_s)

    def period_of(self, share: float) -> Floats:
        """Return the reaction period [s] at which the safe speed is a share of its limit."""
        unit = np.sqrt(2 * self.sensing_range / self.acceleration)
        return unit * (1 - share**2) / (2 * share)
