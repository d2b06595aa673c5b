"""The evaluator ``serving.llama-cpp``: the real server of llama.cpp under the user's traffic."""

from __future__ import annotations

import json
import shutil
import sys
import weakref
from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from tempfile import mkdtemp
from typing import Any, ClassVar

from dse.core.batch import Batch
from dse.core.metric import Failure, Kind, Metric, Metrics
from dse.core.values import Value
from dse.errors import PluginError, nearest
from dse_evaluators.generic.answer import Answer, MetricValue, columns_of
from dse_evaluators.generic.options import seconds_of
from dse_evaluators.generic.process import Program
from dse_evaluators.outside.external_inputs import Knob, SimulatorInputs
from dse_evaluators.outside.servers.free_port import find_free_port
from dse_evaluators.outside.servers.random_gguf import (
    SHAPE,
    WEIGHT_FORMATS,
    shape_of,
    write_random_model,
)
from dse_evaluators.outside.servers.request_draws import Requests
from dse_evaluators.outside.servers.request_times import METRICS, check_load, measure, repeats_of
from dse_evaluators.outside.servers.server_process import KeptServer, ServerError, ServerProcess
from dse_evaluators.outside.servers.streaming_client import Endpoint

_WORKER = Path(__file__).parents[1] / "workers" / "llama_server.py"
_KV_TYPES = ("f32", "f16", "bf16", "q8_0", "q5_1", "q5_0", "q4_1", "q4_0")
_UNQUANTIZED = ("f32", "f16", "bf16")
_LAUNCH = (
    Knob(name="threads", default=1),
    Knob(name="batch_threads", default=0),
    Knob(name="context", default=4096),
    Knob(name="batch", default=2048),
    Knob(name="ubatch", default=512),
    Knob(name="parallel", default=1),
    Knob(name="kv_type_k", default="f16", words=_KV_TYPES),
    Knob(name="kv_type_v", default="f16", words=_KV_TYPES),
    Knob(name="flash_attention", default="auto", words=("off", "on", "auto")),
)
_REQUEST_SIDE = (Knob(name="clients", default=1), Knob(name="rate", unit="1/s", default=0.0))
_FORMAT = "weight_format"
_SIZE = Metric(name="model_size", unit="B", goal="minimize")
_WHOLE = ("threads", "batch_threads", "context", "batch", "ubatch", "parallel")


class LlamaCpp:
    """Latency, throughput and memory of llama.cpp's own server, measured under the user's traffic.

    The server is restarted when a design differs from the last one in a launch setting, but not for
    other values of ``clients`` and ``rate``. Sort a study's designs accordingly, or let one worker
    measure, to save starts. ``tpot`` is the time per output token after the first one, in seconds,
    ``throughput`` the output tokens per second, ``memory`` the resident set of the server,
    ``model_size`` the size of the GGUF file. Energy is not measured.

    Args:
        model: the user's GGUF file; or the shape of a model of random weights, such as
            ``{layers: 4, width: 256, heads: 4, kv_heads: 2, ffn: 768, context: 8192}``, the
            default.
        models: instead of ``model``, the user's GGUF files of one model by the formats of their
            weights, which the input ``weight_format`` selects: ``{q8_0: a.gguf, q4_k: b.gguf}``.
        traffic: ``requests``, ``prompt_tokens`` and ``output_tokens`` (a length, or two ends of a
            uniform distribution) and ``seed``; or ``file``, a CSV file with the columns
            ``prompt_tokens`` and ``output_tokens``. Prompts are random token ids from ``first_id``
            to ``last_id``.
        repeats: number of measured repeats of the traffic, after a warm-up of one request per
            client. Values are medians; with two or more repeats they have a standard error.
        timeout: time limit of each repeat: seconds, or a text such as ``5 min``.
        start: time limit until the server is ready, in the same form.
        inputs: inputs that are fixed and not read from the design, such as ``{threads: 2}``.

    Inputs:
        weight_format: format of the weights: of random ones ``f16`` (the default), ``q8_0``,
            ``q5_0`` or ``q4_0``; of ``models``, a name among them. The file of a ``model`` has its
            own.

    Limits:
        CPU only. Needs the extra ``llama``: ``pip install 'dse-engine[llama]'``.

    Source:
        llama.cpp, tools/server/README.md: the settings.

    Example:
        options:
          model: {layers: 2, width: 64, heads: 4, kv_heads: 2, ffn: 128}
          traffic: {requests: 4, prompt_tokens: [8, 32], output_tokens: 8}
        parameters: {ubatch: [16, 32], clients: [1, 2]}

    Raises:
        PluginError: an option has an invalid value.
    """

    kind: Kind = "measured"
    version = "1"
    user_options: ClassVar[Sequence[str]] = ("model", "models.*", "traffic")

    def __init__(
        self,
        *,
        model: str | Mapping[str, int] | None = None,
        models: Mapping[str, str] | None = None,
        traffic: Mapping[str, Any] | None = None,
        repeats: int = 3,
        timeout: float | str = "5 min",
        start: float | str = "5 min",
        inputs: Mapping[str, Any] | None = None,
    ) -> None:
        self._model = _model_of(model) if models is None else _models_of(models, model)
        knobs = (*_LAUNCH, *_REQUEST_SIDE, *_format_knob(self._model, is_drawn=models is None))
        fixed = _known(inputs, [knob.name for knob in knobs])
        self._inputs = SimulatorInputs(knobs, fixed)
        self.reads, self.optional = self._inputs.reads, self._inputs.optional
        self.units = self._inputs.units
        self.provides = {metric.name: metric for metric in (*METRICS, _SIZE)}
        self._traffic = Requests(traffic)
        self._repeats = repeats_of(repeats)
        self._timeout_s = seconds_of("timeout", timeout)
        self._start_s = seconds_of("start", start)
        self._kept = KeptServer()
        self._endpoint: Endpoint | None = None
        self._random_files: dict[str, str] = {}
        self._is_drawn = models is None and not isinstance(self._model, str)

    @property
    def missing(self) -> str:
        """Reason why the server cannot run on this machine; empty if it can."""
        if find_spec("xllamacpp") is None:
            return "it needs the package xllamacpp: pip install 'dse-engine[llama]'"
        return ""

    @property
    def starts(self) -> tuple[str, ...]:
        """Description, for users, of the server that an evaluation starts."""
        if self._is_drawn:
            return ("the server of llama.cpp, with a model of random weights",)
        files = [self._model] if isinstance(self._model, str) else self._model.values()
        return tuple(f"the server of llama.cpp, with {file}" for file in files)

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_random_files": {}}

    def check_values(self, values: Mapping[str, Sequence[Value]]) -> None:
        self._inputs.check(values)

    def evaluate(self, batch: Batch) -> Metrics:
        """Return the metrics of n designs, (n,) by name; equal launch settings share a server."""
        settings = [self._inputs.of(batch.row(row)) for row in range(len(batch))]
        order = sorted(range(len(batch)), key=lambda row: json.dumps(_launch_of(settings[row])))
        answers: dict[int, Answer] = {row: self._measure(settings[row]) for row in order}
        return columns_of([answers[row] for row in range(len(batch))], tuple(self.provides))

    def close(self) -> None:
        """End the llama.cpp server, if one runs; the next evaluation starts it again."""
        self._kept.close()

    def _measure(self, settings: Mapping[str, Value]) -> Answer:
        problem = _misfit(settings, self._traffic.longest)
        if problem:
            return Failure(kind="infeasible", reason=problem)
        launch = _launch_of(settings)
        try:
            file = self._model_file(str(launch.get(_FORMAT, "")))
            server = self._kept.get(launch, lambda: self._start(launch, file))
            assert self._endpoint is not None
        except ServerError as error:
            self.close()
            return error.failure
        answer = measure(
            self._endpoint,
            self._traffic,
            clients=int(settings["clients"]),
            rate=float(settings["rate"]),
            repeats=self._repeats,
            timeout_s=self._timeout_s,
            server=server,
        )
        if isinstance(answer, Failure):
            self.close()  # it may still work on the requests of this design
            return answer
        return {**answer, _SIZE.name: MetricValue(value=float(Path(file).stat().st_size))}

    def _start(self, launch: Mapping[str, Value], file: str) -> ServerProcess:
        """Start a server and wait until it has loaded the model.

        Raises:
            ServerError: it does not start, or is not ready in time.
        """
        port = find_free_port()
        settings = {name: value for name, value in launch.items() if name != _FORMAT}
        given = json.dumps({**settings, "model": file, "port": port})
        server = ServerProcess(Program(run=(sys.executable, str(_WORKER), given)), launch)
        self._endpoint = Endpoint(url=f"http://127.0.0.1:{port}", model="model")
        try:
            server.wait_ready(self._endpoint, self._start_s)
        except BaseException:
            server.close()
            raise
        return server

    def _model_file(self, weight_format: str) -> str:
        """Return the file of the model; random weights are drawn once for each format."""
        if isinstance(self._model, str):
            return self._model
        if not self._is_drawn:
            return str(self._model[weight_format])
        if weight_format not in self._random_files:
            folder = mkdtemp(prefix="dse-llama-")
            weakref.finalize(self, shutil.rmtree, folder, ignore_errors=True)
            path = Path(folder) / f"{weight_format}.gguf"
            shape = {name: int(number) for name, number in self._model.items()}
            write_random_model(path, shape, weight_format=weight_format)
            self._random_files[weight_format] = str(path)
        return self._random_files[weight_format]


def _launch_of(settings: Mapping[str, Value]) -> dict[str, Value]:
    names = [knob.name for knob in _LAUNCH] + [_FORMAT] * (_FORMAT in settings)
    return {name: int(settings[name]) if name in _WHOLE else settings[name] for name in names}


def _misfit(settings: Mapping[str, Value], longest: int) -> str:
    """Return why a design cannot be served; empty if it can.

    Source:
        llama.cpp: a quantized V cache requires flash attention (src/llama-context.cpp); each of
        the ``parallel`` slots has an equal share of the context (tools/server/README.md).
    """
    for name in _WHOLE:
        number = float(settings[name])
        if number != int(number) or number < (name != "batch_threads"):
            return f"{name} is {settings[name]}: it must be an integer of at least 1"
    if problem := check_load(settings):
        return problem
    if settings["kv_type_v"] not in _UNQUANTIZED and settings["flash_attention"] == "off":
        return f"kv_type_v {settings['kv_type_v']} needs flash_attention"
    if int(settings["ubatch"]) > int(settings["batch"]):
        return "ubatch is above batch, to which llama.cpp would reduce it"
    slot = int(settings["context"]) // int(settings["parallel"])
    if slot < longest:
        slots = f"{slot} tokens for each of {settings['parallel']} slots"
        return f"the context has {slots}, and the longest request {longest} tokens"
    return ""


def _format_knob(model: Mapping[str, Any] | str, *, is_drawn: bool) -> tuple[Knob, ...]:
    """Return the input that selects the format of the weights; none for a single file."""
    if isinstance(model, str):
        return ()
    if not is_drawn:
        return (Knob(name=_FORMAT, words=tuple(model)),)
    whole = all(model[name] % 32 == 0 for name in ("width", "ffn"))
    words = WEIGHT_FORMATS if whole else WEIGHT_FORMATS[:1]  # blocks of 32 weights have a scale
    return (Knob(name=_FORMAT, default=words[0], words=words),)


def _models_of(models: Any, model: object) -> dict[str, str]:
    """Return the files of a model by the formats of their weights.

    Raises:
        PluginError: there is no file, or a ``model`` is given, too.
    """
    if model is not None:
        hint = "remove one of them"
        raise PluginError("both model and models are given", hint=hint, part=["models"])
    if not isinstance(models, Mapping) or not models:
        hint = "write GGUF files by the formats of their weights: {q8_0: a.gguf, q4_k: b.gguf}"
        raise PluginError(f"models is {models!r}", hint=hint, part=["models"])
    return {str(name): _file_of(file, "models") for name, file in models.items()}


def _model_of(model: Any) -> str | dict[str, int]:
    if model is None or isinstance(model, Mapping):
        return shape_of(model or SHAPE)
    return _file_of(model, "model")


def _file_of(model: object, option: str) -> str:
    """Return the path of a GGUF file.

    Raises:
        PluginError: there is none.
    """
    if not isinstance(model, str) or not Path(model).is_file():
        hint = "write the path of a GGUF file, or a shape such as {layers: 4, width: 256}"
        raise PluginError(f"{option} is {model!r}, and no file", hint=hint, part=[option])
    with Path(model).open("rb") as file:
        if file.read(4) != b"GGUF":
            hint = "convert it with llama.cpp's convert_hf_to_gguf.py"
            raise PluginError(f"{model} is no GGUF file", hint=hint, part=[option])
    return str(Path(model).resolve())


def _known(inputs: Any, names: Sequence[str]) -> Mapping[str, Any]:
    if not isinstance(inputs, Mapping | None):
        raise PluginError(f"inputs is {inputs!r}", hint="write inputs: {threads: 2}")
    for name in inputs or {}:
        if name not in names:
            hint = nearest(str(name), names)
            raise PluginError(f"there is no input {name!r}", hint=hint, part=["inputs"])
    return inputs or {}
