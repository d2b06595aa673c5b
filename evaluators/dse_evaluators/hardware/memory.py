"""Evaluator ``hardware.dram``: energy per byte, bandwidth and embodied carbon of DRAM."""

from __future__ import annotations

from collections.abc import Mapping

from dse.core.batch import Batch
from dse.core.metric import Metric, Metrics
from dse.core.values import Value
from dse_evaluators.declared_evaluator import DeclaredEvaluator
from dse_evaluators.hardware.drams import DRAMS, dram_of
from dse_evaluators.reading_table import CheckedInput, NumberInput, Reading
from dse_evaluators.readings import check_with_lookup

_METRICS = (
    Metric(name="energy_per_byte", unit="J/B", goal="minimize"),
    Metric(name="bandwidth", unit="B/s", goal="maximize"),
    Metric(name="carbon_per_byte", unit="kg/B", goal="minimize"),
    Metric(name="extrapolated", words=("no", "yes")),
)

_INPUTS: Mapping[str, Reading] = {
    "dram": CheckedInput(check_with_lookup(dram_of)),
    "dram_channels": NumberInput(1, 1024, default=1.0, whole=True),
}


class Dram(DeclaredEvaluator, reads=_INPUTS, provides=_METRICS, version="1"):
    """Energy per byte, peak bandwidth and embodied carbon of DRAM, by kind and channels.

    ``extrapolated`` marks kinds without a figure of embodied carbon, for which that of an older
    kind is used.

    Inputs:
        dram: one of the kinds with a sourced energy.

    Limits:
        Kinds of DRAM without a published figure are refused.

    Error:
        The figures are published ones.

    Source:
        Horowitz, 2014; Jouppi et al., 2021; O'Connor et al., 2017; JEDEC; ACT, 2022.

    Example:
        parameters: {dram: [ddr4, hbm2], dram_channels: [1, 2]}
    """

    def evaluate(self, batch: Batch) -> Metrics:
        """Compute energy per byte, bandwidth and embodied carbon of the DRAM in n designs, (n,)."""
        channels = self._readings.column("dram_channels", batch)
        usable = [dram_of(name) for name, one in DRAMS.items() if one.j_per_byte is not None]
        tables: Mapping[str, dict[Value, float]] = {
            "energy_per_byte": {one.name: one.j_per_byte or 0.0 for one in usable},
            "bandwidth": {one.name: one.channel_bytes_per_s for one in usable},
            "carbon_per_byte": {one.name: one.kg_per_byte for one in usable},
            "extrapolated": {one.name: float(one.stand_in) for one in usable},
        }
        columns = {name: batch.lookup("dram", table) for name, table in tables.items()}
        return Metrics(columns={**columns, "bandwidth": columns["bandwidth"] * channels})
