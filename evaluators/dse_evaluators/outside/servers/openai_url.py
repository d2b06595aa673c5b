"""The evaluator ``serving.openai-url``: any OpenAI-compatible server, running or started here."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar
from urllib.parse import urlsplit

from dse.core.batch import Batch
from dse.core.metric import Failure, Kind, Metrics
from dse.core.values import Value
from dse.errors import PluginError
from dse.system.credentials import HIDDEN
from dse_evaluators.generic.answer import Answer, columns_of
from dse_evaluators.generic.options import seconds_of, texts_of, units_of
from dse_evaluators.generic.process import Program
from dse_evaluators.generic.program_files import check_program
from dse_evaluators.outside.servers.free_port import find_free_port, is_in_use
from dse_evaluators.outside.servers.request_draws import Requests
from dse_evaluators.outside.servers.request_times import METRICS, check_load, measure, repeats_of
from dse_evaluators.outside.servers.server_process import KeptServer, ServerError, ServerProcess
from dse_evaluators.outside.servers.streaming_client import Endpoint, list_models

_PLACE = re.compile(r"\{([A-Za-z_]\w*)\}")
_PORT = "port"
_LOAD = ("clients", "rate")


class OpenAiUrl:
    """Latency and throughput of an OpenAI-compatible server, measured under the user's traffic.

    The server already runs at ``url``, or each design starts it by its command line ``run``, in
    which ``{name}`` is replaced by the design's parameter of that name and ``{port}`` by a free
    port. An argument that is empty thereafter is left out, so that a parameter with the values
    ``--enable-prefix-caching`` and an empty text is a switch. A server is restarted only when its
    command line changes, not for other values of ``clients`` (concurrent clients) and ``rate``
    (arrivals per second, 0 for no limit). All processes of a started server are ended.

    Args:
        url: address of the server; with ``run`` by default ``http://127.0.0.1:{port}``.
        run: program and arguments that start the server; no shell interprets them.
        model: the name of the model in requests; by default the first that the server lists.
        api_key_env: name of the environment variable that holds the API key.
        traffic: as of ``serving.llama-cpp``.
        repeats: number of measured repeats of the traffic, after a warm-up of one request per
            client.
        timeout: time limit of each repeat: seconds, or a text such as ``5 min``.
        start: time limit until a started server lists its models; by default 10 min.
        units: the unit in which each parameter is written into the command line.
        cwd: the working directory of the program.
        env: variables to add to the program's environment.

    Limits:
        ``memory`` is the resident memory of the processes that ``run`` started, without a GPU's.

    Source:
        OpenAI API reference: completions with ``stream`` and ``stream_options``.

    Example:
        options: {url: "http://127.0.0.1:9", traffic: {requests: 2}, repeats: 1}
        parameters: {clients: [1, 2]}

    Raises:
        PluginError: an option has an invalid value, or no effect.
    """

    kind: Kind = "measured"
    version = "1"
    optional: frozenset[str] = frozenset(_LOAD)
    user_options: ClassVar[Sequence[str]] = ("traffic",)

    def __init__(  # noqa: PLR0913 - each is a word of the YAML
        self,
        *,
        url: str | None = None,
        run: Sequence[str] | None = None,
        model: str | None = None,
        api_key_env: str | None = None,
        traffic: Mapping[str, Any] | None = None,
        repeats: int = 3,
        timeout: float | str = "5 min",
        start: float | str | None = None,
        units: Mapping[str, str] | None = None,
        cwd: str | None = None,
        env: Mapping[str, str] | None = None,
    ) -> None:
        self._run = texts_of("run", run) if run is not None else ()
        _check_use(run=self._run, url=url, start=start, env=env)
        self._url = _url_of(url or f"http://127.0.0.1:{{{_PORT}}}", bool(self._run))
        names = {name for word in self._run for name in _PLACE.findall(word)} - {_PORT}
        self.reads = frozenset(names - set(_LOAD))
        self.units = {"rate": "1/s", **units_of(units, self.reads)}
        self._model, self._key_variable = model, api_key_env
        self._traffic, self._repeats = Requests(traffic), repeats_of(repeats)
        self._timeout_s = seconds_of("timeout", timeout)
        self._start_s = seconds_of("start", "10 min" if start is None else start)
        self._cwd, self._env = cwd if self._run else None, dict(env or {})
        metrics = METRICS if self._run else [one for one in METRICS if one.name != "memory"]
        self.provides = {metric.name: metric for metric in metrics}
        self._kept = KeptServer()
        self._endpoint: Endpoint | None = None

    @property
    def starts(self) -> tuple[str, ...]:
        """Description, for users, of the program that an evaluation starts or sends requests to."""
        if not self._run:
            return (f"requests to {self._url}",)
        return (Program(run=self._run, cwd=self._cwd, env=self._env).words,)

    def check_program(self) -> None:
        """Check that the server's program can be found on this machine.

        Raises:
            PluginError: its working directory, executable or script does not exist.
        """
        if self._run:
            check_program(Program(run=self._run, cwd=self._cwd, env=self._env))

    def evaluate(self, batch: Batch) -> Metrics:
        """Return the metrics of n designs, (n,) by name; equal command lines share a server."""
        designs = [batch.row(row) for row in range(len(batch))]
        order = sorted(range(len(batch)), key=lambda row: self._words(designs[row], ""))
        answers = {row: self._measure(designs[row]) for row in order}
        return columns_of([answers[row] for row in range(len(batch))], tuple(self.provides))

    def close(self) -> None:
        """End the server, if it was started here; the next evaluation starts it again."""
        self._kept.close()

    def _measure(self, design: Mapping[str, Value]) -> Answer:
        load = {"clients": design.get("clients", 1), "rate": design.get("rate", 0.0)}
        problem = check_load(load)
        if problem:
            return Failure(kind="infeasible", reason=problem)
        key = os.environ.get(self._key_variable, "") if self._key_variable else ""
        if self._key_variable and not key:
            reason = f"the environment variable {self._key_variable} is not set"
            return Failure(kind="raised", reason=reason)
        try:
            server = self._serve(design, key)
            assert self._endpoint is not None
            answer = measure(
                self._endpoint,
                self._traffic,
                clients=int(load["clients"]),
                rate=float(load["rate"]),
                repeats=self._repeats,
                timeout_s=self._timeout_s,
                server=server,
            )
        except ServerError as error:
            answer = error.failure
        if not isinstance(answer, Failure):
            return answer
        self.close()  # it may still work on the requests of this design
        reason = answer.reason.replace(key, HIDDEN) if key else answer.reason
        return Failure(kind=answer.kind, reason=reason)

    def _serve(self, design: Mapping[str, Value], key: str) -> ServerProcess | None:
        """Have the server of a design run, and its endpoint set.

        Raises:
            ServerError: there is no server.
        """
        headers = (("Authorization", f"Bearer {key}"),) if key else ()
        if not self._run:
            self._endpoint = self._named(Endpoint(url=self._url, model="", headers=headers), None)
            return None
        return self._kept.get(self._words(design, ""), lambda: self._start(design, headers))

    def _start(
        self, design: Mapping[str, Value], headers: tuple[tuple[str, str], ...]
    ) -> ServerProcess:
        parts = urlsplit(self._url.replace(f"{{{_PORT}}}", str(find_free_port())))
        assert parts.hostname is not None
        port = parts.port or (443 if parts.scheme == "https" else 80)
        if is_in_use(parts.hostname, port):
            reason = f"the port {port} of {parts.hostname} is already in use"
            raise ServerError(Failure(kind="raised", reason=reason))
        words = self._words(design, str(port))
        program = Program(run=tuple(words), cwd=self._cwd, env=self._env)
        server = ServerProcess(program, self._words(design, ""))
        endpoint = Endpoint(url=parts.geturl(), model="", headers=headers)
        try:
            server.wait_ready(endpoint, self._start_s)
            self._endpoint = self._named(endpoint, server)
        except BaseException:
            server.close()
            raise
        return server

    def _named(self, endpoint: Endpoint, server: ServerProcess | None) -> Endpoint:
        """Return the endpoint with its model's name; ask the server if no name is given.

        Raises:
            ServerError: the server does not list a model.
        """
        if self._model is not None:
            return Endpoint(url=endpoint.url, model=self._model, headers=endpoint.headers)
        try:
            names = list_models(endpoint, min(self._timeout_s, self._start_s))
        except (OSError, ValueError) as error:
            words = f": {server.words}" if server is not None and server.words else ""
            reason = f"{endpoint.url} lists no models ({error}){words}"
            raise ServerError(Failure(kind="raised", reason=reason)) from error
        return Endpoint(url=endpoint.url, model=names[0], headers=endpoint.headers)

    def _words(self, design: Mapping[str, Value], port: str) -> list[str]:
        """Return the command line of a design."""
        values = {name: _written(value) for name, value in design.items()} | {_PORT: port}
        filled = [_PLACE.sub(lambda place: values[place[1]], word) for word in self._run]
        both = zip(self._run, filled, strict=True)
        return [word for given, word in both if word or given == f"{{{_PORT}}}" or not given]


def _written(value: Value) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    return str(int(value)) if isinstance(value, float) and value.is_integer() else str(value)


def _check_use(*, run: Sequence[str], url: Any, start: Any, env: Any) -> None:
    """Raise PluginError for options that lack, or have no effect without, ``run``."""
    if not run and url is None:
        raise PluginError(
            "there is neither a url nor a command line",
            hint="write url: http://127.0.0.1:8000, or run: [vllm, serve, MODEL, --port, '{port}']",
        )
    for name, given in (("start", start), ("env", env)):
        if given is not None and not run:
            problem = f"{name} has no effect on a server that already runs"
            raise PluginError(problem, hint="remove it, or write run", part=[name])
    used = any(f"{{{_PORT}}}" in word for word in run)
    if run and url is None and not used:
        hint = "write the option of its port, such as --port, '{port}', or url"
        raise PluginError("run does not name {port}", hint=hint, part=["run"])


def _url_of(url: Any, starts: bool) -> str:  # noqa: FBT001 - a private helper
    problem = ""
    try:
        parts = urlsplit(str(url).replace(f"{{{_PORT}}}", "1" if starts else ""))
        if parts.scheme not in ("http", "https") or not parts.hostname or "{" in parts.netloc:
            problem = "is no URL"
        elif parts.username or parts.password:
            problem = "holds a credential"
        _ = parts.port
    except ValueError:
        problem = "is no URL"
    if problem:
        shown = "url" if problem == "holds a credential" else f"url {url!r}"
        hint = "write http://127.0.0.1:8000, and api_key_env for a key"
        raise PluginError(f"{shown} {problem}", hint=hint, part=["url"])
    return str(url).rstrip("/").removesuffix("/v1")
