"""Workload ``shakespeare-lm``: a character-level language model with its evaluation text."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from dse.core.metric import Metric
from dse.core.values import Ints
from dse.errors import EvaluationError
from dse_evaluators.formats.arrays import Single
from dse_evaluators.workloads import character_network as network
from dse_evaluators.workloads import judging
from dse_evaluators.workloads.resampling import expand_examples
from dse_evaluators.workloads.shakespeare import CHUNK, CONTEXT, Codes, plays, windows
from dse_evaluators.workloads.taps import Taps, pass_through, rounding, watching
from dse_evaluators.workloads.torch_scope import deterministic
from dse_evaluators.workloads.workload import Parameters, Signals, Split

CHECKPOINT = Path(__file__).with_name("shakespeare_lm.npz")
QUALITY = ("bits_per_character", *judging.CLASSIFIER)
_STARTS = (0, 2048)  # of the windows in a held-out chunk: 64 windows, 8,192 characters
_WINDOWS = (CHUNK - 1) // CONTEXT  # windows of a training chunk that do not overlap
_CALIBRATING = 40  # one of this many training chunks supplies a calibration window


@dataclass(frozen=True, kw_only=True)
class CharacterLm:
    """Workload of next-character prediction by a transformer of 348,576 weights.

    Blocks, attentions, feed-forward networks, heads and neurons may be removed, and the residual
    stream narrowed; see ``character_network.logits``. ``loss`` and ``divergence`` are in nats per
    character. Calibration has no inputs for ``embed``, since these are characters. Activations are
    rounded position by position; so are keys and values, separately for each head.
    """

    name: str = "shakespeare-lm"
    parameters: Parameters = field(default_factory=lambda: checkpoint(CHECKPOINT))
    metrics: Mapping[str, Metric] = field(
        default_factory=lambda: {name: judging.METRICS[name] for name in QUALITY}, init=False
    )

    @property
    def compressible(self) -> tuple[str, ...]:
        """Names of all matrices, which are all parameters but the gains of the norms."""
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
            return _run(parameters, self._judging(split), rounding(signals, network.BLOCKS))
        except (KeyError, RuntimeError) as error:
            raise EvaluationError(f"{self.name} does not run on these weights: {error}") from error

    def count_examples(self, split: Split) -> int:
        return len(self._judging(split))

    def quality(
        self, outputs: Single, reference: Single, split: Split, chosen: Ints | None = None
    ) -> Mapping[str, float]:
        labels = self._judging(split)[:, 1:].ravel()
        rows = expand_examples(chosen, len(labels), self.count_examples(split))
        outputs, reference, labels = outputs[rows], reference[rows], labels[rows]
        return {
            "bits_per_character": judging.bits_per_character(outputs, labels),
            **judging.measure_classifier(outputs, reference, labels),
        }

    @property
    def learnt(self) -> tuple[str, ...]:
        """Names of all trainable parameters: the matrices and the gains of the norms."""
        return tuple(self.parameters)

    def count_training_examples(self) -> int:
        return len(plays().train) * _WINDOWS

    def training_outputs(self, parameters: Mapping[str, Tensor], rows: Ints) -> Tensor:
        codes = torch.tensor(_training_windows(rows)[:, :-1])
        return network.logits(parameters, codes, pass_through()).flatten(0, 1)

    def training_targets(self, rows: Ints) -> Tensor:
        return torch.tensor(_training_windows(rows)[:, 1:].ravel())

    @staticmethod
    def _judging(split: Split) -> Codes:
        return windows(plays().held_out[split], _STARTS, CONTEXT)


def _training_windows(rows: Ints) -> Codes:
    """Return neighbouring windows of the training text, (n, CONTEXT + 1)."""
    starts = rows % _WINDOWS * CONTEXT
    return plays().train[(rows // _WINDOWS)[:, None], starts[:, None] + np.arange(CONTEXT + 1)]


def character_lm() -> CharacterLm:
    """Return the workload ``shakespeare-lm``, a language model of characters with its plays."""
    return CharacterLm()


def checkpoint(path: Path) -> Parameters:
    """Load the weights of an ``.npz`` file as read-only float32 arrays, by name."""
    with np.load(path, allow_pickle=False) as archive:
        arrays = {name: archive[name].astype(np.float32) for name in archive.files}
    for array in arrays.values():
        array.flags.writeable = False
    return arrays


def _run(
    parameters: Parameters, codes: Codes, taps: Taps
) -> np.ndarray[tuple[int, int], np.dtype[np.float32]]:
    """Return the logits of the next character at all but the last position, (n, symbols)."""
    tensors = {name: torch.tensor(array) for name, array in parameters.items()}
    with deterministic(), torch.inference_mode():
        found: np.ndarray[tuple[int, int], np.dtype[np.float32]] = (
            network.logits(tensors, torch.tensor(codes[:, :-1]), taps).flatten(0, 1).numpy()
        )
    return found
