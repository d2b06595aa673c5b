"""Stages of an image server: decoding, resizing, normalising and the network, by batch."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from io import BytesIO
from itertools import cycle
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dse.errors import DseError, EvaluationError
from dse_evaluators.formats.arrays import Single
from dse_evaluators.serving.image_network import ImageInput
from dse_evaluators.serving.image_requests import pillow
from dse_evaluators.workloads.onnx_runtime import Session


@dataclass(frozen=True, slots=True, kw_only=True)
class Preprocessing:
    """From an encoded image to the input of a network.

    ``scales_in_decoder`` lets the JPEG decoder omit frequencies: it halves the image as often as it
    stays no smaller than the input. Other file formats are decoded whole.
    """

    input: ImageInput
    scales_in_decoder: bool
    resampling: str

    def decode(self, content: bytes) -> Any:
        """Return a decoded image of Pillow, in the channels of the network."""
        mode = "RGB" if self.input.channels == 3 else "L"
        with pillow().open(BytesIO(content)) as image:
            if self.scales_in_decoder:
                image.draft(mode, (self.input.width, self.input.height))
            return image.convert(mode)

    def run(self, content: bytes) -> NDArray[Any]:
        """Return the network's input of an image, (channels, h, w) or (h, w, channels)."""
        image = self.decode(content)
        size = self.input.width, self.input.height
        if image.size != size:
            image = image.resize(size, pillow().Resampling[self.resampling.upper()])
        return self.input.normalise(np.asarray(image))


@dataclass(kw_only=True)
class ImageServer:
    """Server in this process that answers batches of encoded images, taken in turn.

    Args:
        requests: the encoded images.
        preprocessing: the stage before the network.
        session: the network.
        batch: images of a batch.
        workers: threads that preprocess the images of a batch.

    Raises:
        EvaluationError: the network cannot run on these inputs.
    """

    requests: Sequence[bytes]
    preprocessing: Preprocessing
    session: Session
    batch: int
    workers: int
    _pool: ThreadPoolExecutor = field(init=False)

    def __post_init__(self) -> None:
        self._pool = ThreadPoolExecutor(self.workers)
        self._ahead = ThreadPoolExecutor(1)
        self._turns = cycle(self.requests)
        self._ready = self.preprocess()

    def __enter__(self) -> ImageServer:
        return self

    def __exit__(self, *_: object) -> None:
        self._ahead.shutdown()
        self._pool.shutdown()

    def decode(self) -> None:
        """Decode the images of the next batch, and drop them."""
        self._map(self.preprocessing.decode)

    def preprocess(self) -> NDArray[Any]:
        """Return the network's input of the next batch, (batch, ...)."""
        return np.stack(self._map(self.preprocessing.run))

    def infer(self) -> list[Single]:
        """Run the network on one preprocessed batch, the same in each call."""
        return self._run(self._ready)

    def answer(self) -> list[Single]:
        """Preprocess the next batch, then run the network on it."""
        return self._run(self.preprocess())

    def answer_overlapped(self) -> list[Single]:
        """Run the network on a batch while the one after it is preprocessed; wait for both."""
        coming = self._ahead.submit(self.preprocess)
        found = self._run(self._ready)
        self._ready = coming.result()
        return found

    def _map(self, work: Callable[[bytes], Any]) -> list[Any]:
        batch = [next(self._turns) for _ in range(self.batch)]
        if self.workers == 1:
            return [work(one) for one in batch]
        return list(self._pool.map(work, batch))

    def _run(self, inputs: NDArray[Any]) -> list[Single]:
        try:
            return self.session.run(inputs)
        except DseError:
            raise
        except Exception as error:  # onnxruntime's errors have no class of their own
            first = str(error).strip().partition("\n")[0]
            raise EvaluationError(
                f"the network does not run on inputs of shape {inputs.shape}: {first:.300}",
                hint="export it with a dynamic first axis, or batch: 1",
            ) from error
