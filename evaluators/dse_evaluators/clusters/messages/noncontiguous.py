"""The evaluator ``clusters.noncontiguous``: messages of strided data between devices."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from dse.core.batch import Batch
from dse.core.metric import Failure, Metric, Metrics
from dse.core.values import Floats
from dse.errors import SpecError
from dse_evaluators.accelerators.devices.platforms import is_path, read_mapping
from dse_evaluators.clusters.messages.message_machine import machine_of
from dse_evaluators.clusters.messages.message_methods import METHODS, message_times
from dse_evaluators.clusters.messages.strided_types import StridedBlocks, datatype_of
from dse_evaluators.clusters.own_system import system_edition
from dse_evaluators.declared_evaluator import DeclaredEvaluator
from dse_evaluators.reading_table import NumberInput, Reading, Readings, one_of

_STEPS = ("pack", "copy", "send", "unpack")
_SHAPE: Mapping[str, Reading] = {
    "size": NumberInput(1, 1e12, "B", whole=True),
    "block": NumberInput(1, 1e12, "B", whole=True),
    "stride": NumberInput(0, 1e12, "B", default=0, whole=True),
}
_INPUTS: Mapping[str, Reading] = {
    "method": one_of(METHODS),
    **_SHAPE,
    "count": NumberInput(1, 1e9, default=1, whole=True),
}
_METRICS = (
    Metric(name="time", unit="s", goal="minimize"),
    *(Metric(name=f"{step}_time", unit="s", part_of="time") for step in _STEPS),
    Metric(name="regret", goal="minimize"),
    Metric(name="speedup", goal="maximize"),
    Metric(name="blocks"),
    Metric(name="host_buffer", unit="B", goal="minimize"),
    Metric(name="device_buffer", unit="B", goal="minimize"),
    Metric(name="bottleneck", words=_STEPS),
)
_EXAMPLE = "{vector: {count: 64, block_length: 16, stride: 128, of: float32}}"


class Noncontiguous(
    DeclaredEvaluator,
    reads=_INPUTS,
    provides=_METRICS,
    version="1",
    fits=("message_times.fits.json",),
):
    """Time of a message of strided data from one device to another, by how it is packed.

    With ``device``, a kernel packs the blocks into a buffer of the device, which is sent; with
    ``one-shot`` it packs them into a buffer of the host through the link, and the host sends it;
    with ``staged`` it packs on the device, and the buffer is copied to the host; with ``per-block``
    each block is copied by itself, as MPI implementations do. The receiver does the same in
    reverse. ``time`` is one way. ``regret`` is how much slower the method is than the fastest of
    them, ``speedup`` how much faster than ``per-block``. Contiguous data is sent as it is.

    Args:
        machine: ``summit``; the path of the ``perf.json`` that TEMPI's ``measure-system`` writes on
            your machine; or a mapping or YAML file ``{like: summit, launch: 6 us, ...}`` with
            ``launch``, ``sector_time``, ``block_time``, ``copy_latency``, ``host_link``,
            ``host_latency``, ``host_bandwidth`` and ``device_messages``, pairs of bytes and time.
        place: ``nodes`` or ``node``: between nodes or within one, for a ``perf.json``.
        datatype: the type of your message, as nested MPI constructors ``contiguous``, ``vector``,
            ``hvector`` and ``subarray``, or the path of a YAML file with it. Equivalent types have
            one canonical form, from which ``size``, ``block`` and ``stride`` follow.

    Inputs:
        method: ``one-shot``, ``device``, ``staged`` or ``per-block``.
        size: bytes of data of the message.
        block: bytes of each contiguous block.
        stride: bytes from one block to the next; 0: twice the block.
        count: instances of the datatype in a message; only with ``datatype``.

    Limits:
        One message at a time. Blocks start at multiples of 32 B: a block of up to 32 B takes one
        access of memory, whatever its distance to the next. ``host_bandwidth`` and ``copy_latency``
        of Summit are assumed, and ``staged`` was not measured there.

    Error:
        Messages of 4 MiB on Summit, held out: mean 7.0 %, largest 20 %; figures were read off a
        chart, to 9 %. The modelled choice between ``one-shot`` and ``device`` is the measured
        one in 26 of 27 shapes, 8 of 9 of them held out.

    Source:
        Pearson et al.: TEMPI, An Interposed MPI Library with a Canonical Representation of
        CUDA-aware Datatypes, HPDC 2021 (arXiv 2012.14363): methods and canonical form, by its code;
        measured times: its README.

    Example:
        options: {machine: summit, size: 1 MiB, stride: 512 B}
        parameters: {method: [one-shot, device], block: [8, 64]}

    Raises:
        SpecError: the machine or the datatype is invalid.
    """

    user_options: ClassVar[Sequence[str]] = ("machine", "datatype")

    machine: str | Mapping[str, Any] = "summit"
    place: str = "nodes"
    datatype: str | Mapping[str, Any] | None = None
    method: str | None = None
    size: float | str | None = None
    block: float | str | None = None
    stride: float | str | None = None
    count: int | None = None

    def __post_init__(self) -> None:
        if self.place not in ("nodes", "node"):
            raise SpecError(f"place is {self.place!r}", hint="nodes or node", part=["place"])
        self._machine = machine_of(self.machine, self.place)
        self._type = None if self.datatype is None else _read_type(self.datatype)
        without = set(_SHAPE) if self._type is not None else {"count"}
        for name in sorted(without):
            if getattr(self, name) is not None:
                reason = "the datatype states it" if self._type else "it needs a datatype"
                raise SpecError(f"{name} has no effect: {reason}", part=[name])
        table = {name: one for name, one in _INPUTS.items() if name not in without}
        self.declare(Readings.of(table, self))
        own = [repr(self._machine) if self.machine != "summit" else "", repr(self._type)]
        edition = system_edition({"own": own}) if own != ["", "None"] else ""
        self.version = "-".join(filter(None, (type(self).version, edition)))

    def evaluate(self, batch: Batch) -> Metrics:
        """Return the metrics of n designs, (n,); blocks that overlap are infeasible."""
        inputs = self.readings.columns(batch)
        size, block, stride = self._shapes(inputs)
        failures: dict[int, Failure] = {}
        for row in np.flatnonzero(stride < block).tolist():
            reason = f"blocks of {block[row]:g} B overlap: their stride is {stride[row]:g} B"
            failures[row] = Failure(kind="infeasible", reason=reason)
        for row in np.flatnonzero(size % block).tolist():
            reason = f"{size[row]:g} B are no whole number of blocks of {block[row]:g} B"
            failures.setdefault(row, Failure(kind="infeasible", reason=reason))
        block = np.where(stride == block, size, block)
        return Metrics(columns=self._times(inputs["method"], size, block), failures=failures)

    def _shapes(self, inputs: Mapping[str, Floats]) -> tuple[Floats, Floats, Floats]:
        """Return bytes of data, of a block and of its stride, each (n,)."""
        if self._type is None:
            size, block, stride = (inputs[name] for name in _SHAPE)
            return size, block, np.where(stride == 0, 2 * block, stride)
        forms = [self._type.repeat(int(count)) for count in inputs["count"]]
        rows = [(f.size, f.block, f.streams[-1][1] if f.streams else f.block) for f in forms]
        size, block, stride = np.array(rows, dtype=np.float64).reshape(-1, 3).T
        return size, block, stride

    def _times(self, method: Floats, size: Floats, block: Floats) -> dict[str, Floats]:
        every = [message_times(self._machine, name, size, block) for name in METHODS]
        plain = size == block
        sent = self._machine.send_s(size, from_host=False)
        for one in every:  # contiguous data needs no packing, whatever the method
            for step in one:
                packed = step not in ("time", "send_time")
                one[step] = np.where(plain, 0.0 if packed else sent, one[step])
        chosen = method.astype(int)
        found = {name: np.choose(chosen, [one[name] for one in every]) for name in every[0]}
        fastest = np.min([one["time"] for one in every], axis=0)
        buffered = np.where(plain, 0.0, size)
        steps = np.stack([found[f"{step}_time"] for step in _STEPS])
        named = {name: chosen == METHODS.index(name) for name in METHODS}
        return {
            **found,
            "regret": found["time"] / fastest - 1,
            "speedup": every[METHODS.index("per-block")]["time"] / found["time"],
            "blocks": size / block,
            "host_buffer": np.where(named["one-shot"] | named["staged"], buffered, 0.0),
            "device_buffer": np.where(named["one-shot"], 0.0, buffered),
            "bottleneck": np.argmax(steps, axis=0).astype(np.float64),
        }


def _read_type(value: object) -> StridedBlocks:
    """Return the canonical form of the option ``datatype``: a mapping, a name or a file."""
    try:
        contents = read_mapping(Path(str(value)), _EXAMPLE) if is_path(value) else value
        return datatype_of(contents)
    except SpecError as error:
        raise SpecError(error.problem, hint=error.hint, part=["datatype"]) from error
