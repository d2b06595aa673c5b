"""GPTQ: columns are quantized in order, each compensating the errors of those before it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dse.core.values import Floats, Ints
from dse.errors import EvaluationError
from dse_evaluators.compression.operators import dense
from dse_evaluators.compression.operators.inputs import check_inputs, inverse_factor, moments
from dse_evaluators.compression.operators.record import Record, table_of
from dse_evaluators.formats.arrays import Single, Words
from dse_evaluators.formats.format import Encoded, Format
from dse_evaluators.formats.lattice import Lattice
from dse_evaluators.formats.layout import BlockLayout
from dse_evaluators.formats.names import format_of

_AT_ONCE = 64


@dataclass(frozen=True, slots=True)
class Gptq:
    """GPTQ encoder: stores a layer in a format with a small output error.

    Size and decoding speed are those of plain rounding to the format. Scales are computed from the
    original weights; then columns are rounded in order, and each column's rounding error is
    compensated in the later columns.

    Args:
        text: a format with a scale per tensor, channel or group, such as ``int4:group=32,asym``.
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
        table = table_of(weight)
        check_inputs(table, inputs)
        form = format_of(self.text)
        axis = dense.axis_of(table.shape)
        layout = BlockLayout.of(table.shape, axis, form.scaling.span, short=form.short)
        sides, lattice = form.scaling.fit(layout.table(table), form.grid)
        grid = _Columns(form=form, lattice=lattice, layout=layout, table=table)
        second = moments(inputs)
        order = np.arange(len(second))
        if self.act_order:
            order = np.argsort(-np.diag(second), kind="stable")
        grid.choose(inverse_factor(second[np.ix_(order, order)], self.damping), order)
        encoded = Encoded(shape=table.shape, axis=axis, codes=grid.codes.T.ravel(), sides=sides)
        if not np.array_equal(form.decode(encoded), grid.given.T):
            raise EvaluationError(f"gptq cannot use {self.text!r}: it has no fixed grid per column")
        whole = Encoded(
            shape=weight.shape,
            axis=dense.axis_of(weight.shape),
            codes=encoded.codes,
            sides=sides,
        )
        return dense.of_codes(form, whole)


class _Columns:
    """Columns of a layer during quantization: adjusted weights, codes and decoded values.

    Arrays are (inputs, outputs), so that a column of the layer is contiguous in memory.
    """

    def __init__(
        self, *, form: Format, lattice: Lattice, layout: BlockLayout, table: Single
    ) -> None:
        self._lattice = lattice
        self._whole = form.scaling.span == "tensor"
        self._block = layout.block
        self._across = -(-layout.length // layout.block)  # blocks in a row
        self._left = np.ascontiguousarray(table.T, dtype=np.float64)
        self.given: Single = np.zeros(self._left.shape, dtype=np.float32)
        self.codes: Words = np.zeros(self._left.shape, dtype=np.uint32)

    def choose(
        self,
        factor: Floats,  # (inputs, inputs), upper, in the order of the columns
        order: Ints,  # (inputs,)
    ) -> None:
        """Quantize the columns in order; compensate each column's error in the later columns."""
        count, outputs = self._left.shape
        self._left = self._left[order]
        for start in range(0, count, _AT_ONCE):
            end = min(start + _AT_ONCE, count)
            errors = np.zeros((end - start, outputs))
            for place in range(start, end):
                values = self._snap(self._left[place], int(order[place]))
                error = (self._left[place] - values) / factor[place, place]
                errors[place - start] = error
                after = slice(place + 1, end)
                self._left[after] -= np.outer(factor[place, after], error)
            self._left[end:] -= factor[start:end, end:].T @ errors

    def _snap(self, wanted: Floats, column: int) -> Single:
        """Round the weights of one column, (outputs,), to the nearest values of the format."""
        rows = slice(0, 1) if self._whole else slice(column // self._block, None, self._across)
        values = wanted.astype(np.float32)
        values = values[None, :] if self._whole else values[:, None]
        if self._lattice.into is not None:
            values = values * self._lattice.into[rows]
        self._lattice.snap(values, rows, None)
        self.codes[column] = self._lattice.codes(values, rows).ravel()
        if self._lattice.back is not None:
            values = values * self._lattice.back[rows]
        self.given[column] = values.ravel()
        return self.given[column]
