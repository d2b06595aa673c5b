"""The language model of Shakespeare's plays, with the text that judges it, as a workload."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import torch

from dse.core.metric import Metric
from dse.errors import EvaluationError
from dse_evaluators.formats.arrays import Single
from dse_evaluators.workloads import character_network as network
from dse_evaluators.workloads import judging
from dse_evaluators.workloads.shakespeare import Codes, plays, windows
from dse_evaluators.workloads.taps import Taps, rounding, watching
from dse_evaluators.workloads.torch_scope import deterministic
from dse_evaluators.workloads.workload import Parameters, Signals, Split

CHECKPOINT = Path(__file__).with_name("shakespeare_lm.npz")
CONTEXT = 128
"""Characters that are read at once."""

QUALITY = ("bits_per_character", *judging.CLASSIFIER)
_STARTS = (0, 2048)  # of the windows in a held-out chunk: 64 windows, 8,192 characters
_CALIBRATING = 40  # one training chunk of so many gives a window


@dataclass(frozen=True, kw_only=True)
class CharacterLm:
    """The next character of each place, by a transformer of 348,576 weights.

    Blocks and their parts, heads, neurons and numbers of the stream may be fewer; see
    ``character_network.logits``. ``loss`` and ``divergence`` are nats per character. The inputs
    of ``embed`` are characters, so calibration has none for it. Activations are rounded place by
    place, and so are keys and values, each head's by themselves.
    """

    name: str = "shakespeare-lm"
    parameters: Parameters = field(default_factory=lambda: checkpoint(CHECKPOINT))
    metrics: Mapping[str, Metric] = field(
        default_factory=lambda: {name: judging.METRICS[name] for name in QUALITY}, init=False
    )

    @property
    def compressible(self) -> tuple[str, ...]:
        """All but the norms' gains."""
        return tuple(name for name, array in self.parameters.items() if array.ndim == 2)

    def calibration(self) -> Mapping[str, Single]:
        seen: dict[str, Single] = {}
        codes = windows(plays().train[::_CALIBRATING], (0,), CONTEXT)
        _run(self.parameters, codes, watching(seen))
        return seen

    def outputs(
        self, parameters: Parameters, split: Split, signals: Signals
    ) -> np.ndarray[tuple[int, int], np.dtype[np.float32]]:
        try:
            return _run(parameters, self._judging(split), rounding(signals))
        except (KeyError, RuntimeError) as error:
            raise EvaluationError(f"{self.name} does not run on these weights: {error}") from error

    def quality(self, outputs: Single, reference: Single, split: Split) -> Mapping[str, float]:
        labels = self._judging(split)[:, 1:].ravel()
        return {
            "bits_per_character": judging.bits_per_character(outputs, labels),
            **judging.measure_classifier(outputs, reference, labels),
        }

    @staticmethod
    def _judging(split: Split) -> Codes:
        return windows(plays().held_out[split], _STARTS, CONTEXT)


def character_lm() -> CharacterLm:
    """The workload ``shakespeare-lm``."""
    return CharacterLm()


def checkpoint(path: Path) -> Parameters:
    """Return the weights of a file, in single precision and read-only."""
    with np.load(path, allow_pickle=False) as archive:
        arrays = {name: archive[name].astype(np.float32) for name in archive.files}
    for array in arrays.values():
        array.flags.writeable = False
    return arrays


def _run(
    parameters: Parameters, codes: Codes, taps: Taps
) -> np.ndarray[tuple[int, int], np.dtype[np.float32]]:
    """The logits of every place but the last of each window, (n, symbols)."""
    tensors = {name: torch.tensor(array) for name, array in parameters.items()}
    with deterministic(), torch.inference_mode():
        found: np.ndarray[tuple[int, int], np.dtype[np.float32]] = (
            network.logits(tensors, torch.tensor(codes[:, :-1]), taps).flatten(0, 1).numpy()
        )
    return found
