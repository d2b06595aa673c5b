"""GPTQ: columns are quantized in order, each compensating the errors of those before it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dse.core.values import Floats, Ints, Mask
from dse.errors import EvaluationError
from dse_evaluators.compression.operators import dense
from dse_evaluators.compression.operators.calibrated_masks import MaskSelection, SparsityPattern
from dse_evaluators.compression.operators.column_pass import AT_ONCE, compensate_columns
from dse_evaluators.compression.operators.inputs import check_inputs, inverse_factor, moments
from dse_evaluators.compression.operators.masked_codes import of_kept_codes
from dse_evaluators.compression.operators.masks import MaskCode
from dse_evaluators.compression.operators.record import Record, table_of
from dse_evaluators.formats.arrays import Single, Words
from dse_evaluators.formats.format import Encoded, Format
from dse_evaluators.formats.lattice import Lattice
from dse_evaluators.formats.layout import BlockLayout
from dse_evaluators.formats.names import format_of


@dataclass(frozen=True, slots=True)
class Gptq:
    """GPTQ encoder: rounds a layer to a number format so that its outputs change little.

    Size and decoding speed are those of plain rounding to the format. Scales are computed from the
    original weights; then columns are rounded in order, and each column's rounding error is
    compensated in the later columns.

    Args:
        text: a format with a scale per tensor, channel, group or block, such as
            ``int4:group=32,asym``.
        damping: fraction of the inputs' mean second moment that is added to each of these moments.
        act_order: whether columns are rounded in descending order of their inputs' second moments
            (the diagonal of the Hessian matrix), instead of from left to right. Groups and scales
            stay those of neighbouring columns, so that codes are stored without an index of groups.

    Source:
        Frantar et al., GPTQ: Accurate Post-Training Quantization for Generative Pre-trained
        Transformers, 2023, algorithm 1 (there, a group's scales are computed on reaching it).
        Activation order: the options ``--act-order`` and ``--static-groups`` of the paper's code.
    """

    text: str
    damping: float = 0.01
    act_order: bool = False

    def __call__(self, weight: Single, inputs: Single) -> Record:
        """Encode a layer's weights, (outputs, ...), by calibration inputs, (n, inputs).

        Raises:
            EvaluationError: the inputs do not fit, or the format has no fixed scales per column.
        """
        form, encoded, _ = self._encode(weight, inputs, None)
        axis = dense.axis_of(weight.shape)
        whole = Encoded(shape=weight.shape, axis=axis, codes=encoded.codes, sides=encoded.sides)
        return dense.of_codes(form, whole)

    def encode_kept(
        self, weight: Single, inputs: Single, keep: SparsityPattern | Mask, places: MaskCode
    ) -> Record:
        """Prune and quantize in one pass; the kept weights compensate both errors.

        Args:
            weight: weights before pruning, (outputs, ...).
            inputs: calibration inputs, (n, inputs).
            keep: the mask, (outputs, inputs), or the pattern of a mask that SparseGPT selects.
            places: encoder of the mask.

        Source:
            Frantar, Alistarh: SparseGPT: Massive Language Models Can Be Accurately Pruned in
            One-Shot, ICML 2023, section 3.5 (joint sparsification and quantization).

        Raises:
            EvaluationError: the inputs do not fit, the format has no fixed scales per column, or
                a mask is to be selected in activation order.
        """
        if self.act_order and isinstance(keep, SparsityPattern):
            raise EvaluationError(
                "sparsegpt selects its mask from left to right, not in activation order",
                hint="'gptq', or a mask by magnitude or wanda",
            )
        form, encoded, mask = self._encode(weight, inputs, keep)
        return of_kept_codes(form, encoded, places(mask), weight.shape)

    def _encode(
        self, weight: Single, inputs: Single, keep: SparsityPattern | Mask | None
    ) -> tuple[Format, Encoded, Mask]:
        """Return the format, the codes of the layer as a table, and the mask of kept weights."""
        table = table_of(weight)
        check_inputs(table, inputs)
        if isinstance(keep, SparsityPattern):
            keep.check(table.shape[1])
        form = format_of(self.text)
        axis = dense.axis_of(table.shape)
        layout = BlockLayout.of(table.shape, axis, form.scaling.span, short=form.short)
        scaled = np.where(keep, table, np.float32(0)) if isinstance(keep, np.ndarray) else table
        sides, lattice = form.scaling.fit(layout.table(scaled), form.grid)
        grid = _Columns(form=form, lattice=lattice, layout=layout, table=table)
        second = moments(inputs)
        order = np.arange(len(second))
        if self.act_order:
            order = np.argsort(-np.diag(second), kind="stable")
        factor = inverse_factor(second[np.ix_(order, order)], self.damping)
        mask = grid.choose(factor, order, keep)
        encoded = Encoded(shape=table.shape, axis=axis, codes=grid.codes.T.ravel(), sides=sides)
        if not np.array_equal(np.where(mask, form.decode(encoded), 0), grid.given.T):
            raise EvaluationError(f"gptq cannot use {self.text!r}: it has no fixed grid per column")
        return form, encoded, mask


class _Columns:
    """Columns of a layer during quantization: adjusted weights, codes and decoded values.

    Arrays are (inputs, outputs), so that a column of the layer is contiguous in memory.
    """

    def __init__(
        self, *, form: Format, lattice: Lattice, layout: BlockLayout, table: Single
    ) -> None:
        self._lattice = lattice
        whole = form.scaling.span == "tensor"
        self._height = len(table) if whole else layout.height  # outputs that share a scale
        self._block = table.shape[1] if whole else layout.block
        self._across = 1 if whole else layout.across
        self._left = np.ascontiguousarray(table.T, dtype=np.float64)
        self.given: Single = np.zeros(self._left.shape, dtype=np.float32)
        self.codes: Words = np.zeros(self._left.shape, dtype=np.uint32)

    def choose(
        self,
        factor: Floats,  # (inputs, inputs), upper, in the order of the columns
        order: Ints,  # (inputs,)
        keep: SparsityPattern | Mask | None,
    ) -> Mask:
        """Quantize the columns in order; compensate each column's error in the later columns.

        Returns:
            The mask of the kept weights, (outputs, inputs).
        """
        self._left = left = self._left[order]
        selection = None
        mask = np.ones(left.shape, dtype=np.bool_)
        if isinstance(keep, SparsityPattern):
            selection = MaskSelection(keep, left, np.diag(factor))
            mask = selection.mask
        elif keep is not None:
            mask = np.ascontiguousarray(keep.T[order])

        def settle(place: int) -> Floats:
            kept = mask[place] if selection is None else selection.kept(place)
            return self._snap(left[place], int(order[place]), kept)

        at_once = AT_ONCE if selection is None else selection.at_once
        compensate_columns(left, factor, settle, at_once=at_once)
        return np.asarray(mask[np.argsort(order)].T)

    def _snap(self, wanted: Floats, column: int, kept: Mask) -> Floats:
        """Round the kept weights of one column, (outputs,), to the nearest values of the format."""
        rows = slice(column // self._block, None, self._across)
        values = wanted.astype(np.float32)
        if missing := -len(wanted) % self._height:
            values = np.pad(values, (0, missing))
        values = values.reshape(-1, self._height)
        if self._lattice.into is not None:
            values = values * self._lattice.into[rows]
        self._lattice.snap(values, rows, None)
        self.codes[column] = self._lattice.codes(values, rows).ravel()[: len(wanted)]
        if self._lattice.back is not None:
            values = values * self._lattice.back[rows]
        self.given[column] = np.where(kept, values.ravel()[: len(wanted)], np.float32(0))
        return self.given[column].astype(np.float64)
