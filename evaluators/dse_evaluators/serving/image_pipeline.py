"""The evaluator ``serving.image-pipeline``: decode, resize and infer, timed on this machine."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from typing import ClassVar

import numpy as np

from dse.core.batch import Batch
from dse.core.metric import Metric, Metrics
from dse.core.values import Value
from dse.errors import EvaluationError, InfeasibleError, PluginError
from dse_evaluators.declared_evaluator import DeclaredEvaluator
from dse_evaluators.generic.call_clock import CallTiming, time_by
from dse_evaluators.kernels.measured.kernel_timing import (
    count_processors,
    settings_of,
)
from dse_evaluators.one_by_one import Found, one_by_one
from dse_evaluators.reading_table import Flag, NumberInput, Reading, one_of
from dse_evaluators.serving.image_network import ImageNetwork, check_network, read_network
from dse_evaluators.serving.image_requests import (
    PHOTOS,
    digest_files,
    encode_photos,
    list_images,
    read_images,
    shrink,
)
from dse_evaluators.serving.pipeline_stages import ImageServer, Preprocessing

_PLACES = ("server", "decoder", "client")
_FILTERS = ("nearest", "box", "bilinear", "bicubic", "lanczos")
_INPUTS: Mapping[str, Reading] = {
    "image_width": NumberInput(32, 16384, default=500, whole=True),
    "jpeg_quality": NumberInput(1, 100, default=90, whole=True),
    "resize_at": one_of(_PLACES, "server"),
    "resampling": one_of(_FILTERS, "bilinear"),
    "batch": NumberInput(1, 4096, default=1, whole=True),
    "threads": NumberInput(1, 1024, default=1, whole=True),
    "workers": NumberInput(1, 1024, default=1, whole=True),
    "overlap": Flag(default=False),
}
_METRICS = (
    Metric(name="latency", unit="s", goal="minimize"),
    Metric(name="throughput", unit="1/s", goal="maximize"),
    Metric(name="preprocessing_share", goal="minimize"),
    Metric(name="preprocessing_time", unit="s", goal="minimize"),
    Metric(name="decode_time", unit="s", goal="minimize"),
    Metric(name="inference_time", unit="s", goal="minimize"),
    Metric(name="request_size", unit="B", goal="minimize"),
)
_TIMED = ("step", "preprocessing_time", "decode_time", "inference_time")
_UNCERTAIN = ("latency", "throughput", *_TIMED[1:])


class ImagePipeline(
    DeclaredEvaluator, reads=_INPUTS, provides=_METRICS, version="1", kind="measured"
):
    """Latency, throughput and share of preprocessing of an image server on this machine.

    A batch of encoded images is decoded, resized to the input of the network and normalised by
    Pillow and NumPy, and run by onnxruntime. ``latency`` is the time until a whole batch is
    answered, ``throughput`` the images per second. ``preprocessing_time`` (decoding included),
    ``decode_time`` and ``inference_time`` are those of a batch, each timed alone;
    ``preprocessing_share`` is the first over the sum of the first and the last. With ``overlap``
    the next batch is preprocessed while the network runs: a batch takes two such steps.
    ``request_size`` is the mean size of an encoded image.

    Args:
        images: a folder of your images, in any format that Pillow reads; or ``photos``, two
            photographs that scikit-learn ships, encoded in ``image_width`` and ``jpeg_quality``.
        model: an ONNX file of yours with one input (n, 3, h, w) or (n, h, w, 3), of floats or
            bytes; or a network that the package onnx ships, with the published graph and constant
            weights: ``resnet50``, ``squeezenet``, ``shufflenet``, ``densenet121``,
            ``inception-v1``, ``inception-v2``, ``alexnet``, ``vgg19`` or ``zfnet512``.
        side: height and width of the network's input, only for a file that leaves them free.
        count: the most images of the folder that are used, first by name.
        clock: ``wall``, or ``processor`` for processor time, to which other programs add little;
            only with one thread and one worker, and without overlap.
        precision: relative half-width of the 95 % interval of each time at which timing ends.
        limit: time limit of each of the four timings of a design: seconds, or a text.

    Inputs:
        image_width: width of the photographs; the height is three quarters of it. Only ``photos``.
        jpeg_quality: quality of their JPEG files, or of those that a client resizes.
        resize_at: ``server`` decodes all of the image and resizes it; ``decoder`` lets the JPEG
            decoder halve the image up to three times on its way; ``client`` sends images that have
            the network's size already.
        resampling: filter of the resizing.
        batch: images that the network runs at once.
        threads: threads of the network.
        workers: threads that preprocess; they share the images of a batch.
        overlap: whether the next batch is preprocessed while the network runs.

    Limits:
        One process without a network connection, queue or broker. Images are squeezed to the
        network's size, not cropped. A client's work is not timed. Times of constant weights are
        those of trained ones, as long as a processor multiplies all numbers equally fast.

    Error:
        The standard errors are of medians of readings on this machine.

    Source:
        AbouElhamayed et al.: Beyond Inference, DAC 2024: the stages. Pillow, Image.draft.

    Example:
        options: {model: squeezenet, limit: 50 ms, precision: 0.5}
        parameters: {image_width: [64, 128], resize_at: [server, decoder]}

    Raises:
        PluginError: an option is invalid, or no shipped network has this name.
        SpecError: the folder or the file does not exist, or has no image.
    """

    user_options: ClassVar[Sequence[str]] = ("images", "model")

    images: str = PHOTOS
    model: str = "resnet50"
    side: int | None = None
    count: int = 16
    image_width: int | None = None
    jpeg_quality: int | None = None
    resize_at: str | None = None
    resampling: str | None = None
    batch: int | None = None
    threads: int | None = None
    workers: int | None = None
    overlap: bool | None = None
    clock: str = "wall"
    precision: float = 0.03
    limit: float | str = "2 s"

    def __post_init__(self) -> None:
        self._timing = CallTiming.of(self.clock, self.precision, self.limit)
        for name in ("images", "model"):
            if not isinstance(getattr(self, name), str):
                problem = f"{name} is {getattr(self, name)!r}"
                raise PluginError(problem, hint="write a path or a name", part=[name])
        for name in ("side", "count"):
            number = getattr(self, name)
            if number is None and name == "side":
                continue
            if isinstance(number, bool) or not isinstance(number, int) or number < 1:
                problem = f"{name} is {number!r}"
                raise PluginError(problem, hint="write a whole number of 1 or more", part=[name])
        self._files = list_images(self.images, self.count)
        network = check_network(self.model)
        self.version = f"{type(self).version}-{network}-{digest_files(self._files)}"
        super().__post_init__()

    @property
    def missing(self) -> str:
        """Reason why the pipeline cannot run on this machine; empty if it can."""
        for package, extra in (("PIL", "images"), ("onnx", "onnx"), ("onnxruntime", "onnx")):
            if find_spec(package) is None:
                return f"it needs the package {package}: pip install 'dse-engine[{extra}]'"
        return ""

    def evaluate(self, batch: Batch) -> Metrics:
        """Time n designs, one at a time; return metrics, (n,)."""
        return one_by_one(batch, tuple(self.provides), self._measure, uncertain=_UNCERTAIN)

    def _measure(self, design: Mapping[str, Value]) -> Found:
        chosen = settings_of(self.readings, design)
        self._refuse_without_effect(design, str(chosen["resize_at"]))
        network = read_network(self.model, self.side)
        problem = _misfit(chosen, network.input.batch, self.clock)
        if problem:
            raise InfeasibleError(problem)
        requests = self._requests(chosen, network)
        with ImageServer(
            requests=requests,
            preprocessing=Preprocessing(
                input=network.input,
                scales_in_decoder=chosen["resize_at"] == "decoder",
                resampling=str(chosen["resampling"]),
            ),
            session=network.session(int(chosen["threads"])),
            batch=int(chosen["batch"]),
            workers=int(chosen["workers"]),
        ) as server:
            step = server.answer_overlapped if chosen["overlap"] else server.answer
            calls = (step, server.preprocess, server.decode, server.infer)
            timings = dict(zip(_TIMED, (time_by(one, self._timing) for one in calls), strict=True))
        request_bytes = float(np.mean([len(one) for one in requests]))
        return _describe(
            timings, int(chosen["batch"]), 2 if chosen["overlap"] else 1, request_bytes
        )

    def _requests(self, chosen: Mapping[str, Value], network: ImageNetwork) -> tuple[bytes, ...]:
        quality = int(chosen["jpeg_quality"])
        if self._files:
            found = read_images(self._files)
        else:
            found = encode_photos(int(chosen["image_width"]), quality)
        if chosen["resize_at"] == "client":
            return shrink(found, (network.input.width, network.input.height), quality)
        return found

    def _refuse_without_effect(self, design: Mapping[str, Value], place: str) -> None:
        """Reject inputs without effect on the user's own images.

        Raises:
            EvaluationError: the design has such an input.
        """
        if not self._files:
            return
        given = {**design, **self.readings.settled}
        if "image_width" in given:
            raise EvaluationError(
                "image_width has no effect on images of a folder", hint="remove it, or the folder"
            )
        if "jpeg_quality" in given and place != "client":
            hint = "write jpeg_quality: {..., when: resize_at == 'client'} in the space"
            raise EvaluationError("jpeg_quality has no effect on images of a folder", hint=hint)


def _describe(
    timings: Mapping[str, tuple[float, float]], batch: int, steps: int, request_bytes: float
) -> Found:
    """Return the metrics of a design.

    Args:
        timings: median and standard error of the steps, [s], by name.
        batch: images of a batch.
        steps: steps that a batch takes: two if they overlap with those of its neighbours.
        request_bytes: mean size of an encoded image.
    """
    values = {name: median_s for name, (median_s, _) in timings.items()}
    errors = {name: error_s for name, (_, error_s) in timings.items()}
    step_s, step_error_s = values.pop("step"), errors.pop("step")
    rate = batch / step_s
    both_s = values["preprocessing_time"] + values["inference_time"]
    return Found(
        values={
            **values,
            "latency": steps * step_s,
            "throughput": rate,
            "preprocessing_share": values["preprocessing_time"] / both_s,
            "request_size": request_bytes,
        },
        errors={
            **errors,
            "latency": steps * step_error_s,
            "throughput": rate * step_error_s / step_s,
        },
    )


def _misfit(chosen: Mapping[str, Value], fixed: int | None, clock: str) -> str:
    """Return why a design cannot run; empty if it can.

    Args:
        chosen: the inputs of the design.
        fixed: number of images that the network's file demands; ``None`` if it is free.
        clock: the clock of the timings.
    """
    batch, threads, workers = (int(chosen[name]) for name in ("batch", "threads", "workers"))
    if fixed is not None and batch != fixed:
        return f"batch is {batch}, and the file of the network takes {fixed} images at once"
    if workers > batch:
        return f"{workers} workers, and a batch of {batch}"
    processors = count_processors()
    busy = threads + workers if chosen["overlap"] else max(threads, workers)
    if clock == "processor" and busy > 1:
        return f"{busy} threads at the same time, whose processor time is no latency"
    if busy > processors:
        return f"{busy} threads at the same time, and {processors} processors"
    return ""
