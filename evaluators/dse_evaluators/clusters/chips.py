"""What devices make of the products of training, by format."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from dse.errors import SpecError, nearest
from dse_evaluators.accelerators.devices.devices import device_of
from dse_evaluators.accelerators.devices.roofline import Constants
from dse_evaluators.clusters.training.block_time import Chip


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """Medians of the constants over software stacks, and of their held-out errors."""

    compute_share: float
    memory_share: float
    launch_s: float
    exponent: float
    stacks: int
    heldout_median: float

    @property
    def constants(self) -> Constants:
        return Constants(
            compute_share=self.compute_share,
            memory_share=self.memory_share,
            exponent=self.exponent,
            launch_s=self.launch_s,
        )


# The smooth roofline of four constants over the measured products of aiconfigurator@095f58a
# (ai-dynamo, Apache-2.0), 3,000 of each stack, some held out. Stacks whose constants no device
# could have (shares above 1.05, exponents above 10) are left out. Those of `accelerators.gpu` are
# of few products, most of them small; a step of training has few that are small.
ROWS: Mapping[tuple[str, str], Row] = {
    (device, form): Row(
        compute_share=compute,
        memory_share=memory,
        launch_s=launch_us * 1e-6,
        exponent=exponent,
        stacks=stacks,
        heldout_median=heldout,
    )
    for device, form, compute, memory, launch_us, exponent, stacks, heldout in (
        ("a100-sxm-80gb", "bf16", 0.808, 0.748, 5.015, 1.51, 4, 0.0905),
        ("h100-sxm", "bf16", 0.786, 0.831, 3.015, 2.64, 10, 0.0735),
        ("h100-sxm", "fp8", 0.581, 0.833, 6.87, 1.31, 10, 0.143),
        ("h200-sxm", "bf16", 0.780, 0.804, 3.225, 2.335, 12, 0.0865),
        ("h200-sxm", "fp8", 0.618, 0.836, 6.82, 1.0, 11, 0.163),
        ("b200-sxm", "bf16", 0.676, 0.762, 2.565, 2.34, 10, 0.0975),
        ("b200-sxm", "fp8", 0.536, 0.686, 7.58, 1.12, 9, 0.127),
    )
}


def chip_of(device: str, number_format: str) -> Chip:
    """A device in a format of its products.

    Raises:
        SpecError: nobody measured it in that format.
    """
    row = ROWS.get((device, number_format))
    if row is None:
        formats = [form for name, form in ROWS if name == device]
        raise SpecError(
            f"{device} was not measured in {number_format!r}",
            hint=nearest(number_format, formats) if formats else "no constants of this device",
        )
    known = device_of(device)
    return Chip(
        constants=row.constants,
        flops_per_s=known.flops_per_s[number_format],
        bytes_per_s=known.dram_bytes_per_s,
    )
