"""Liveness check of the head of a Ray cluster."""

from __future__ import annotations

import re
import socket
import time

from dse.errors import PluginError

_CONNECT_S = 5.0

_AWAY_S = 20.0
"""Time without a response after which the head counts as gone, in seconds.

Ray itself would retry for a minute, and then end this process without an error message.
"""


class RayHead:
    """Head node of a Ray cluster, probed by a TCP connection before each request.

    If the head does not respond at the start, it is not probed later: a driver (process that runs a
    study) that joined through another address may not be able to reach this address.

    Args:
        address: ``host:port`` or ``ray://host:port``.
    """

    def __init__(self, address: str) -> None:
        self.gone = False
        self._address = address
        self._watched = not _silence(address)
        self._heard_at = time.monotonic()

    def answers(self) -> bool:
        """Return whether the head node accepts connections; if not, a request to it would block.

        Raises:
            PluginError: the head has not responded for too long.
        """
        silence = _silence(self._address) if self._watched else ""
        if not silence:
            self._heard_at = time.monotonic()
        elif time.monotonic() - self._heard_at >= _AWAY_S:
            raise self.lost(silence)
        return not silence

    def lost(self, reason: str) -> PluginError:
        """Mark the head node as lost; return the error that the caller is to raise."""
        self.gone = True
        return PluginError(
            f"the head of the Ray cluster {self._address} is gone: {reason}",
            hint="all results that were stored are kept; 'ray start --head' starts it again, "
            "and 'dse resume' continues the study",
        )

    def cut_off(self) -> PluginError:
        """Mark the head node as lost because the local raylet has ended; return the error to raise.

        Without its raylet (Ray's node process), this machine is cut off from the cluster.
        """
        self.gone = True
        return PluginError(
            f"the raylet that joins this machine to the Ray cluster {self._address} is gone",
            hint="all results that were stored are kept, and 'dse resume' continues the study",
        )


def check_reachable(address: str) -> None:
    """Raise PluginError unless the address accepts connections; Ray would retry for minutes.

    Raises:
        PluginError: the address does not accept connections.
    """
    silence = _silence(address)
    if silence:
        raise PluginError(
            f"no response from {address}: {silence}",
            hint="check that 'ray start --head' printed this address, and that its port is open",
        )


def _silence(address: str) -> str:
    """Return why a TCP connection to the address fails, as text; empty if it succeeds.

    An address without a port is not tested.
    """
    found = re.fullmatch(r"(?:ray://)?(.+):(\d+)", address)
    if found is None:
        return ""
    try:
        socket.create_connection((found[1].strip("[]"), int(found[2])), _CONNECT_S).close()
    except OSError as error:
        return str(error)
    return ""
