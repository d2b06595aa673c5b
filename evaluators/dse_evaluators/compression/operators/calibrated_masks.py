"""Pruning by calibration inputs: Wanda, and SparseGPT with compensation of the errors."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dse.core.values import Floats, Mask
from dse.errors import EvaluationError
from dse_evaluators.compression.operators.column_pass import AT_ONCE, compensate_columns
from dse_evaluators.compression.operators.inputs import check_inputs, inverse_factor, moments
from dse_evaluators.compression.operators.record import table_of
from dse_evaluators.formats.arrays import Single

DAMPING = 0.01

_COLUMNS = 128  # the paper's block of columns that share one selection


@dataclass(frozen=True, slots=True, kw_only=True)
class SparsityPattern:
    """Pattern of the weights that pruning keeps: a fraction, or ``kept`` of every ``of`` inputs.

    Args:
        density: fraction of the weights that is kept, where ``of`` is 0.
        kept: weights kept of every ``of`` consecutive inputs of an output.
        of: size of the groups of inputs; 0 for a fraction of all weights.
    """

    density: float = 1.0
    kept: int = 0
    of: int = 0

    def check(self, inputs: int) -> None:
        """Check that a layer with this number of inputs can have the pattern.

        Raises:
            EvaluationError: the inputs are not a multiple of ``of``, or ``kept`` exceeds ``of``.
        """
        if not self.of:
            if not 0 <= self.density <= 1:
                raise EvaluationError(
                    f"a share of {self.density} of the weights cannot stay", hint="0 to 1"
                )
            return
        if not 0 < self.kept <= self.of:
            raise EvaluationError(f"{self.kept} of {self.of} weights cannot be kept")
        if inputs % self.of:
            raise EvaluationError(f"{inputs} inputs are no multiple of {self.of}")

    @property
    def columns(self) -> int:
        """Number of consecutive columns for which SparseGPT selects the kept weights at once."""
        return self.of or _COLUMNS

    def select_by_row(self, scores: Floats) -> Mask:
        """Return the mask of the largest scores of each row, or of each group in it.

        Args:
            scores: importance of each weight, (outputs, inputs); of equal ones, later are kept.
        """
        groups = scores.reshape(-1, self.of or scores.shape[1])
        kept = self.kept if self.of else round(self.density * groups.shape[1])
        return _largest(groups, kept).reshape(scores.shape)

    def select_columns(self, scores: Floats) -> Mask:
        """Return the mask of the weights to keep in some columns, by largest score.

        The mask has shape (columns, outputs).
        """
        if self.of:
            return _largest(scores.T, self.kept).T
        flat = scores.reshape(1, -1)
        return _largest(flat, round(self.density * flat.size)).reshape(scores.shape)


def wanda(weight: Single, inputs: Single, pattern: SparsityPattern) -> Single:
    """Zero the weights with the smallest products of magnitude and norm of their input.

    The kept weights are unchanged. Weights of one output are compared with each other.

    Args:
        weight: weights of the layer, (outputs, ...).
        inputs: calibration inputs, (n, inputs).
        pattern: weights that are kept.

    Source:
        Sun et al., A Simple and Effective Pruning Approach for Large Language Models, ICLR 2024,
        eq. 1 and section 3.

    Raises:
        EvaluationError: the inputs or the pattern do not fit the layer.
    """
    table = table_of(weight)
    check_inputs(table, inputs)
    pattern.check(table.shape[1])
    norms = np.sqrt((inputs.astype(np.float64) ** 2).sum(axis=0))
    kept = pattern.select_by_row(np.abs(table) * norms)
    return np.where(kept, table, np.float32(0)).reshape(weight.shape)


def sparsegpt(weight: Single, inputs: Single, pattern: SparsityPattern) -> Single:
    """Zero the weights with the least effect on the outputs, and adapt the kept weights.

    Args:
        weight: weights of the layer, (outputs, ...).
        inputs: calibration inputs, (n, inputs).
        pattern: weights that are kept; a fraction is that of every 128 columns.

    Source:
        Frantar, Alistarh: SparseGPT: Massive Language Models Can Be Accurately Pruned in One-Shot,
        ICML 2023, algorithm 1; N:M: section 3.4.

    Raises:
        EvaluationError: the inputs or the pattern do not fit the layer.
    """
    table = table_of(weight)
    check_inputs(table, inputs)
    pattern.check(table.shape[1])
    factor = inverse_factor(moments(inputs), DAMPING)
    left = np.ascontiguousarray(table.T, dtype=np.float64)
    selection = MaskSelection(pattern, left, np.diag(factor))
    given = np.zeros_like(left)

    def settle(place: int) -> Floats:
        given[place] = left[place] * selection.kept(place)
        return np.asarray(given[place])

    compensate_columns(left, factor, settle, at_once=selection.at_once)
    return np.ascontiguousarray(given.T, dtype=np.float32).reshape(weight.shape)


class MaskSelection:
    """Selection of SparseGPT's mask for a chunk of columns, made when its first one is reached.

    Args:
        pattern: weights that are kept.
        left: weights with all compensations so far, (inputs, outputs), shared with the pass.
        diagonal: diagonal of the Cholesky factor of the inverse second moments, (inputs,).
    """

    def __init__(self, pattern: SparsityPattern, left: Floats, diagonal: Floats) -> None:
        self._pattern = pattern
        self._left = left
        self._diagonal = diagonal
        self.mask: Mask = np.zeros(left.shape, dtype=np.bool_)

    @property
    def at_once(self) -> int:
        """Columns per chunk of the pass, so that no selection crosses the end of a chunk."""
        return -(-AT_ONCE // self._pattern.columns) * self._pattern.columns

    def kept(self, place: int) -> Mask:
        """Return the mask of a column's weights that are kept, (outputs,)."""
        if place % self._pattern.columns == 0:
            now = slice(place, place + self._pattern.columns)
            scores = (self._left[now] / self._diagonal[now, None]) ** 2
            self.mask[now] = self._pattern.select_columns(scores)
        return self.mask[place]


def _largest(scores: Floats, kept: int) -> Mask:
    """Return the mask of the ``kept`` largest scores of each row; of equal ones, later stay."""
    mask = np.ones(scores.shape, dtype=np.bool_)
    dropped = np.argsort(scores, axis=1, kind="stable")[:, : scores.shape[1] - kept]
    np.put_along_axis(mask, dropped, values=False, axis=1)
    return mask
