"""Random (not measured) fractions of the channels that convolutions keep after pruning.

The fractions of a trained network differ between layers; no published table has them, so they
are drawn at random. The blocks of a residual stage sum their outputs, so a channel that one block
keeps is kept in all: they all have the largest fraction drawn for the stage.

Source:
    S. Lym et al.: PruneTrain: Fast Neural Network Training by Dynamic Sparse Model
    Reconfiguration, 2019, for the union over residual blocks.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from dse.core.values import Floats
from dse_evaluators.accelerators.training.chains import Conv
from dse_evaluators.accelerators.training.training_products import Channels

SPREAD = 0.25
"""Half-width of the uniform distribution of shares around their mean; shares are 0.05 to 1."""

_LEAST = 0.05


class ChannelTables:
    """Number of channels left in each convolution, drawn at random with the seed ``draw``."""

    def __init__(self, convs: Sequence[Conv]) -> None:
        names = sorted({conv.reads for conv in convs} | {conv.writes for conv in convs})
        place = {name: row for row, name in enumerate(names)}
        self._reads = np.array([place[conv.reads] for conv in convs], dtype=np.intp)
        self._writes = np.array([place[conv.writes] for conv in convs], dtype=np.intp)
        self._inputs = np.array([[conv.channels] for conv in convs], dtype=np.float64)
        self._outputs = np.array([[conv.filters] for conv in convs], dtype=np.float64)
        self._free = np.array([[name != 0] for name in names])

    def channels(self, keep: Floats, draw: Floats) -> Channels:
        """Return the input and output channels left in each convolution after random pruning.

        Args:
            keep: (n,) mean fraction of channels kept; 1 prunes nothing.
            draw: (n,) integer seeds of the random draws.
        """
        numbers, place = np.unique(draw, return_inverse=True)
        drawn = np.stack([self._offsets(int(number)) for number in numbers], axis=1)  # (v, u)
        shares = np.clip(keep + SPREAD * drawn[:, place], _LEAST, 1.0)
        shares = np.where(self._free & (keep < 1.0), shares, 1.0)  # (v, n)
        return Channels(
            inputs=np.maximum(1.0, np.rint(self._inputs * shares[self._reads])),
            outputs=np.maximum(1.0, np.rint(self._outputs * shares[self._writes])),
        )

    def _offsets(self, number: int) -> Floats:
        """Return random offsets from the mean kept fraction, -1 to 1, for v sets of channels, (v,).

        Offsets are in units of ``SPREAD``. A set that several convolutions write takes the largest
        of their draws.
        """
        drawn = np.random.default_rng(number).uniform(-1.0, 1.0, len(self._writes))  # one per conv
        offsets: Floats = np.full(len(self._free), -1.0)
        np.maximum.at(offsets, self._writes, drawn)
        return offsets
