"""Times of the methods that send data which is not contiguous."""

from __future__ import annotations

import numpy as np

from dse.core.values import Floats
from dse_evaluators.clusters.messages.message_machine import MessageMachine

METHODS = ("one-shot", "device", "staged", "per-block")


def message_times(
    machine: MessageMachine, method: str, size: Floats, block: Floats
) -> dict[str, Floats]:
    """Return the one-way times of messages by one method, (n,) by name.

    Args:
        machine: the machine.
        method: one of :data:`METHODS`.
        size: bytes of data of each message, (n,).
        block: bytes of each contiguous block, (n,).

    Source:
        Pearson et al.: TEMPI, HPDC 2021, section 5 (by its code, cwpearson/tempi@9e623f0).
    """
    nothing = np.zeros(len(size))
    if method == "per-block":
        pack = unpack = size / block * machine.block_s(block)
        send, copy = machine.send_s(size, from_host=False), nothing
    else:
        mapped = method == "one-shot"
        pack = machine.pack_s(size, block, to_host=mapped)
        unpack = machine.unpack_s(size, block, from_host=mapped)
        send = machine.send_s(size, from_host=method != "device")
        copy = 2 * machine.copy_s(size) if method == "staged" else nothing
    return {
        "time": pack + copy + send + unpack,
        "pack_time": pack,
        "copy_time": copy,
        "send_time": send,
        "unpack_time": unpack,
    }
