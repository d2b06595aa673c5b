"""Connection to a Ray cluster: an existing one, or a local one started by this process."""

from __future__ import annotations

import logging
import math
import os
import re
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import Any

from dse.errors import PluginError
from dse.executors.ray.cluster_resources import Node
from dse.executors.ray.head import RayHead, check_reachable
from dse.system.credentials import private_environment
from dse.system.process_guard import Watchdog
from dse.system.process_tree import descendants, runs

STORE_BYTES = 100 * 2**20
"""Object store of a local cluster, in bytes of shared memory; it holds mainly the pickled work."""

START_S = 300.0
"""Time limit for the start of a local cluster over all tries, in seconds."""

_STARTS = 3
"""Number of tries to start a local cluster that hangs; each gets an equal share of the time."""

_LOOK_S = 0.5

_GCS_WAIT = "RAY_gcs_server_port_wait_time_s"

_SETTINGS: Mapping[str, str] = {
    "RAY_USAGE_STATS_ENABLED": "0",
    "RAY_worker_niceness": "0",  # else other processes get priority over measurements
    "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0",  # else Ray prints a warning about a new default
}


class RaySession:
    """Connection to a Ray cluster; closing it ends the cluster only if this process started it.

    Args:
        address: ``auto``, ``host:port`` or ``ray://host:port``; ``None`` starts a local cluster,
            unless this process has joined a cluster already, which is then used and left running.
        cpus: the number of CPUs that a local cluster offers.
        store_bytes: the size of a local cluster's object store in shared memory, in bytes.
        start_s: the time limit for the start of a local cluster, in seconds.

    Raises:
        PluginError: Ray is not installed, there is no such cluster, or it does not start.
    """

    def __init__(
        self,
        address: str | None,
        *,
        cpus: int,
        store_bytes: int = STORE_BYTES,
        start_s: float = START_S,
    ) -> None:
        self.ray = import_ray()
        self._watchdog: Watchdog | None = None
        self._raylet: int | None = None
        self._theirs = bool(self.ray.is_initialized())
        self.local = address is None and not self._theirs
        if self._theirs:
            self._check_same(address)
        elif address is not None:
            self._join(address)
        else:
            self._start(cpus, store_bytes, start_s)
        from_afar = address if address and address.startswith("ray://") else None
        self.head = RayHead(from_afar or self._gcs())
        self._raylet = None if from_afar else _raylet_of(self._socket())

    def check_raylet(self) -> None:
        """Check that this machine's raylet (Ray's node process) runs; else Ray ends this process.

        Raises:
            PluginError: the raylet has ended.
        """
        if self._raylet is not None and not runs(self._raylet):
            raise self.head.cut_off()

    def nodes(self) -> list[Node]:
        """Return the nodes of the cluster that are alive, with their resources."""
        return [
            Node(name=str(one["NodeManagerHostname"]), offers=one["Resources"])
            for one in self.ray.nodes()
            if one["Alive"]
        ]

    def close(self) -> None:
        """Leave the cluster; end it if this process started it."""
        if not self._theirs:
            self._end()
        self._theirs = True

    def _end(self) -> None:
        if self._raylet is None or runs(self._raylet):  # else Ray would end this process at once
            self.ray.shutdown()
        if self._watchdog is not None:
            self._watchdog.close()
            self._watchdog = None

    def _check_same(self, address: str | None) -> None:
        """Raise PluginError if the process has joined a cluster with a different address."""
        joined = self._gcs()
        if address is not None and re.fullmatch(r"[^/]+:\d+", address) and address != joined:
            raise PluginError(
                f"this process has joined the Ray cluster {joined} and cannot join {address}",
                hint="ray.shutdown() leaves it",
            )

    def _socket(self) -> str:
        """Return the socket address of this machine's raylet; empty if Ray does not report it.

        A raylet is Ray's node process.
        """
        node = getattr(self.ray._private.worker, "_global_node", None)  # noqa: SLF001 - no option
        return str(getattr(node, "raylet_socket_name", ""))

    def _gcs(self) -> str:
        return str(self.ray.get_runtime_context().gcs_address)

    def _join(self, address: str) -> None:
        check_reachable(address)
        try:
            with _unheard(self.ray):
                self.ray.init(address=address, log_to_driver=False, logging_level=logging.ERROR)
        except (ConnectionError, RuntimeError, ValueError, OSError) as error:
            raise PluginError(
                f"the Ray cluster {address!r} cannot be joined: {_first_line(error)}",
                hint="on its first machine: ray start --head; all machines need the same Ray and "
                "Python, and the same token (RAY_AUTH_MODE=token and ~/.ray/auth_token)",
            ) from error
        if address.startswith("ray://"):
            _hush_client()

    def _start(self, cpus: int, store_bytes: int, start_s: float) -> None:
        """Start a local cluster; retry if it hangs or ends immediately.

        Raises:
            PluginError: it did not start in time.
        """
        for left in reversed(range(_STARTS)):
            try:
                with _patient(self.ray, start_s / _STARTS):
                    self._begin(tempfile.mkdtemp(prefix="dse-ray-"), cpus, store_bytes)
            except Exception as error:  # Ray raises a bare Exception on a timeout
                self._end()
                if left and "timed out" in str(error):
                    continue
                raise PluginError(
                    f"Ray cannot be started here: {_first_line(error)}",
                    hint=f"executor: {{use: ray, start_s: {2 * start_s:g}}} gives it longer; or "
                    "start it yourself (ray start --head) and give its address",
                ) from error
            return

    def _begin(self, folder: str, cpus: int, store_bytes: int) -> None:
        self._watchdog = Watchdog()
        self._watchdog.watch(folder=folder)
        before = set(descendants(os.getpid()))
        try:
            with _unheard(self.ray), private_environment():
                self.ray.init(
                    address="local",
                    num_cpus=cpus,
                    object_store_memory=store_bytes,
                    include_dashboard=False,
                    log_to_driver=False,
                    logging_level=logging.ERROR,
                    _temp_dir=folder,
                )
        finally:
            started = set(descendants(os.getpid())) - before
            self._watchdog.watch(folder=folder, processes=started)


def import_ray() -> Any:
    """Import and return the Ray library, after setting the environment that it reads.

    Raises:
        PluginError: it is not installed.
    """
    os.environ.update({name: os.environ.get(name, word) for name, word in _SETTINGS.items()})
    try:
        import ray
    except ImportError as error:
        raise PluginError(
            "the executor 'ray' needs Ray, which is not installed",
            hint="pip install 'dse-engine[ray]'",
        ) from error
    return ray


@contextmanager
def _patient(ray: Any, limit_s: float) -> Iterator[None]:
    """Set the time that Ray waits for the start of a node's processes, inside the block.

    Ray's limit of half a minute for the raylet is not configurable, so a private function is
    patched; if a Ray release renames it, Ray's own limit applies.

    Args:
        ray: the Ray library.
        limit_s: the time limit in seconds; a raylet that has ended is not waited for.
    """
    services = ray._private.services  # noqa: SLF001 - see above
    ask = getattr(services, "get_node", None)
    until = time.monotonic() + limit_s

    def wait(*where: Any) -> Any:
        assert ask is not None
        while True:
            try:
                return ask(*where)
            except RuntimeError as error:  # the node is not registered yet
                lives = _raylet_of() is not None
                if lives and time.monotonic() < until:
                    time.sleep(_LOOK_S)
                    continue
                words = f"took more than {limit_s:g} s" if lives else "has ended"
                raise TimeoutError(f"the start timed out: the raylet {words}") from error

    gcs = os.environ.get(_GCS_WAIT)
    os.environ[_GCS_WAIT] = gcs or str(math.ceil(limit_s))
    services.get_node = wait
    try:
        yield
    finally:
        services.get_node = ask
        if gcs is None:
            del os.environ[_GCS_WAIT]


def _raylet_of(socket: str = "") -> int | None:
    """Return the process id of the raylet (Ray's node process) at a socket; else ``None``.

    Without a socket, any raylet that this process has started is returned.
    """
    import psutil

    every = psutil.process_iter() if socket else psutil.Process().children(recursive=True)
    for process in every:
        with suppress(psutil.Error):
            program, *words = process.cmdline() or [""]
            if program.endswith("/raylet") and (
                not socket or f"--raylet_socket_name={socket}" in words
            ):
                return process.pid
    return None


@contextmanager
def _unheard(ray: Any) -> Iterator[None]:
    """Disable the thread in which Ray prints the cluster's errors; the errors are shown as events.

    Ray has no option for this. If a Ray release renames the function, the messages reappear, with
    no other effect.
    """
    worker = ray._private.worker  # noqa: SLF001 - see above
    listen = getattr(worker, "listen_error_messages", None)
    worker.listen_error_messages = lambda *_: None
    try:
        yield
    finally:
        worker.listen_error_messages = listen


def _hush_client() -> None:
    """Suppress tracebacks of Ray client threads that lost their server.

    The loss is reported as an error elsewhere.
    """
    logging.getLogger("ray.util.client.logsclient").setLevel(logging.ERROR)
    before = threading.excepthook

    def hook(failure: threading.ExceptHookArgs) -> None:
        if failure.exc_type is not ValueError or "Channel closed" not in str(failure.exc_value):
            before(failure)

    threading.excepthook = hook


def _first_line(error: Exception) -> str:
    return next((line for line in str(error).splitlines() if line.strip()), type(error).__name__)
