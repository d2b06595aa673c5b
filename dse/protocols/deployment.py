"""Interface of evaluators that can give the compressed model of a design, to write it to a file."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from dse.core.values import Value
from dse.protocols.capability import Capability

Single = NDArray[np.float32]
ScaleType = Literal["float16", "bfloat16", "float32"]
"""Type that holds every scale of a tensor without rounding."""

PlainType = Literal["float16", "bfloat16", "float32"]
"""Type that holds every value of an unquantized tensor without rounding."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Quantization:
    """Numbers and scales of a quantized tensor, as a table with a row for each output.

    A weight is ``(number - zero_point) * scale``, computed in float32. Each ``group`` consecutive
    numbers of a row share a scale; if ``group`` is ``None``, all numbers of a row share one scale.
    With ``group_rows``, that many consecutive rows share their scales, too.

    Args:
        element: type of the numbers: ``int2`` to ``int8``, ``fp8_e4m3`` or ``fp8_e5m2``.
        numbers: the numbers before scaling, (rows, columns). Integers of b bits are in
            [-2^(b-1), 2^(b-1) - 1] without zero points, and in [0, 2^b - 1] with them.
        scales: (rows, groups in a row), with ``group_rows`` (groups of rows, groups in a row), or
            (1, 1) if all numbers of the tensor share one scale.
        zero_points: whole numbers in the shape of ``scales``; ``None`` without zero points.
        group: numbers of a row that share a scale.
        group_rows: rows that share a scale.
        scale_type: the narrowest type that holds the scales without rounding.
        scale_rule: ``full-range`` if each scale is the range of its weights over the number of
            steps between codes, each zero point the lower end over the scale, and each number the
            nearest, as torchao computes them from the original weights; empty otherwise.
    """

    element: str
    numbers: Single
    scales: Single
    zero_points: Single | None = None
    group: int | None = None
    scale_type: ScaleType = "float32"
    scale_rule: Literal["full-range", ""] = ""
    group_rows: int = 1

    @property
    def bits(self) -> int:
        """Number of bits of a quantized number."""
        return 8 if self.element.startswith("fp8") else int(self.element.removeprefix("int"))

    @property
    def granularity(self) -> str:
        """Name of the set of numbers that share a scale, such as ``channel`` or ``group=32``."""
        if self.group is not None and self.group_rows > 1:
            return f"block={self.group_rows}x{self.group}"
        if self.group is not None:
            return f"group={self.group}"
        return "tensor" if len(self.scales) == 1 < len(self.numbers) else "channel"

    def spread(self, sides: Single) -> Single:
        """Repeat scales or zero points so that each number has its own, (rows, columns)."""
        rows, columns = self.numbers.shape
        if self.group is not None:
            sides = np.repeat(sides, self.group, axis=1)[:, :columns]
        if self.group_rows > 1:
            sides = np.repeat(sides, self.group_rows, axis=0)[:rows]
        return np.broadcast_to(sides, (rows, columns))

    def decode(self) -> Single:
        """Return the weights that the numbers represent, (rows, columns), computed in float32."""
        numbers = self.numbers
        if self.zero_points is not None:
            numbers = numbers - self.spread(self.zero_points)
        return numbers * self.spread(self.scales)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class DeployedTensor:
    """Tensor of a compressed model: the values that were measured, and how they are stored.

    Args:
        values: the values with which the metrics were measured, float32, in the tensor's shape.
        stored: the quantized numbers and scales; or the type that holds the values without
            rounding; or ``None`` if the values come from another method, such as a low-rank
            product.
        recipe: the method, as the study names it, for messages: ``format int4:group=32``.
    """

    values: Single
    stored: Quantization | PlainType | None = "float32"
    recipe: str = ""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class DeployedModel:
    """Compressed model of one design.

    Args:
        tensors: all parameters of the model, by name, in the order of the model; the first axis of
            a weight indexes the outputs of its layer. None if ``onnx`` returns the compressed model
            itself, which then can only be written as an ONNX file.
        size_metric: the evaluator's metric that counts the model's bytes; empty if it has none.
        size_bytes: bytes that the metric counts, by purpose: ``codes``, ``scales``,
            ``unquantized``, ``headers``.
        notes: what the file does not hold but the metrics depend on, such as rounded activations.
        onnx: returns the uncompressed model as an ONNX file, whose initializers have the tensors'
            names and shapes, or, without tensors, the compressed model; ``None`` if there is none.
    """

    tensors: Mapping[str, DeployedTensor]
    size_metric: str = ""
    size_bytes: Mapping[str, float] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    onnx: Callable[[], bytes] | None = None


@runtime_checkable
class HasDeployedModel(Protocol, metaclass=Capability):
    """Evaluator that can return the compressed model whose metrics it measures.

    The model of a design is the one whose metrics :meth:`Evaluator.evaluate` returns. The values of
    a quantized tensor equal, bit for bit, what its stored integers and scales represent; ``dse
    deploy`` checks it.
    """

    def deployed_model(self, design: Mapping[str, Value]) -> DeployedModel:
        """Return the compressed model of a design.

        Args:
            design: values of the evaluator's inputs, by its own names.

        Raises:
            DseError: the model cannot be compressed by this design.
        """
        ...


@runtime_checkable
class HasFolderCompression(Protocol, metaclass=Capability):
    """Evaluator that compresses a model's folder tensor by tensor, without a study."""

    def compress_folder(
        self,
        folder: Path,
        recipe: str,
        *,
        others: str,
        data: Path | None,
        rotation: str,
        sequential: bool,
    ) -> Iterator[tuple[str, DeployedTensor]]:
        """Yield the compressed tensors of a folder with their names.

        Args:
            folder: the folder with ``config.json`` and safetensors.
            recipe: compression recipe of the layers in the model's blocks, such as ``gptq
                int4:group=32``.
            others: compression recipe of the embeddings and the head; ``keep`` leaves them
                unchanged.
            data: file of token ids, (n, t), that calibrate the layers.
            rotation: rotation to fold into the weights before compression, or ``none``.
            sequential: whether a block is calibrated by the outputs of compressed blocks.

        Raises:
            DseError: the model cannot be read, or cannot be compressed by the recipe.
        """
        ...
