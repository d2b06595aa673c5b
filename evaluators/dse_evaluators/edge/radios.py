"""Energy that a device's radio spends on sending."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from dse.errors import SpecError, nearest
from dse_evaluators.amounts import amount
from dse_evaluators.readings import look_up_row

_OWN = "radio: {bit_energy: 300 nJ, power: 0.2 W} states your own"


@dataclass(frozen=True, slots=True, kw_only=True)
class Radio:
    """Power of a radio that sends: ``base_w`` while it sends, and ``bit_j`` for each bit."""

    bit_j: float
    base_w: float
    note: str = ""
    """Where the figures come from, if they are not the user's."""


_ASSUMED: Mapping[str, tuple[float, float]] = {
    "wifi": (283.17e-9, 0.13286),
    "lte": (438.39e-9, 1.28804),
    "3g": (868.98e-9, 0.81788),
}
"""Energy of a bit [J] and power [W] of phones of 2012 that send.

Source:
    Huang et al.: A Close Examination of Performance and Power Characteristics of 4G LTE Networks,
    2012, table 4: quoted from memory, not looked up again, hence assumed.
"""

RADIOS: Mapping[str, Radio] = {
    **{
        name: Radio(
            bit_j=bit_j,
            base_w=base_w,
            note=f"radio {name} is assumed: {bit_j * 1e9:.0f} nJ a bit and {base_w:.2f} W, quoted "
            f"from memory from Huang et al., 2012; {_OWN}",
        )
        for name, (bit_j, base_w) in _ASSUMED.items()
    },
    "wired": Radio(bit_j=0.0, base_w=0.0),
}
"""Radios by name; ``wired`` counts no energy."""


def read_radio(given: str | Mapping[str, float | str]) -> Radio:
    """Return a radio of :data:`RADIOS`, or a radio of the user.

    Args:
        given: name of the radio, or its ``bit_energy`` and ``power``, as numbers in J and W or with
            a unit.

    Raises:
        SpecError: there is no such radio, or a figure is missing, unknown or no amount.
    """
    if not isinstance(given, Mapping):
        return look_up_row("radio", given, RADIOS)
    figures = {"bit_energy": "J", "power": "W"}
    for name in given:
        if name not in figures:
            raise SpecError(f"a radio has no {name!r}", hint=nearest(str(name), figures))
    for name in figures:
        if name not in given:
            raise SpecError(f"radio lacks {name}", hint=_OWN)
    bit_j, base_w = (amount(f"radio: {name}", given[name], unit) for name, unit in figures.items())
    return Radio(bit_j=bit_j, base_w=base_w)
