"""Liveness check of the head of a Ray cluster."""

from __future__ import annotations

import re
import socket
import time

from dse.errors import PluginError

_CONNECT_S = 5.0

_AWAY_S = 20.0
"""A head that does not answer for so long is gone.

Ray would try for a minute, and then end the process from within, without a word of ours.
"""


class RayHead:
    """Head of a cluster, checked for an answer on each request.

    It is not watched where it does not answer to begin with: who came in by another door may not
    reach that one.

    Args:
        address: ``host:port`` or ``ray://host:port``.
    """

    def __init__(self, address: str) -> None:
        self.gone = False
        self._address = address
        self._watched = not _silence(address)
        self._heard_at = time.monotonic()

    def answers(self) -> bool:
        """Return whether the head answers; if not, a request to it would not return.

        Raises:
            PluginError: nobody has for a while.
        """
        silence = _silence(self._address) if self._watched else ""
        if not silence:
            self._heard_at = time.monotonic()
        elif time.monotonic() - self._heard_at >= _AWAY_S:
            raise self.lost(silence)
        return not silence

    def lost(self, reason: str) -> PluginError:
        """Mark the head as gone and return the error to raise."""
        self.gone = True
        return PluginError(
            f"the head of the Ray cluster {self._address} is gone: {reason}",
            hint="all results that were stored are kept; 'ray start --head' starts it again, "
            "and 'dse resume' goes on",
        )

    def cut_off(self) -> PluginError:
        """Mark the head as gone and return the error for a machine cut off from the cluster."""
        self.gone = True
        return PluginError(
            f"the raylet that joins this machine to the Ray cluster {self._address} is gone",
            hint="all results that were stored are kept, and 'dse resume' goes on",
        )


def check_reachable(address: str) -> None:
    """Nothing, if somebody listens there: Ray itself would try for minutes.

    Raises:
        PluginError: nobody does.
    """
    silence = _silence(address)
    if silence:
        raise PluginError(
            f"nobody answers at {address}: {silence}",
            hint="is it the address that 'ray start --head' told, and is its port open?",
        )


def _silence(address: str) -> str:
    """Return the reason that the address does not answer; empty if it does or has no port."""
    found = re.fullmatch(r"(?:ray://)?(.+):(\d+)", address)
    if found is None:
        return ""
    try:
        socket.create_connection((found[1].strip("[]"), int(found[2])), _CONNECT_S).close()
    except OSError as error:
        return str(error)
    return ""
