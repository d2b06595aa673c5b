"""Tensors of a file in the format ``safetensors``, read without its package."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np

from dse.errors import EvaluationError
from dse_evaluators.formats.arrays import Single

_LENGTH_BYTES = 8
_SINGLE = "F32"


def singles(path: Path) -> dict[str, Single]:
    """The tensors in single precision, in the order of their names; others are left out.

    Source:
        https://huggingface.co/docs/safetensors, "Format": eight bytes that count the header's,
        the header as JSON, the numbers.

    Raises:
        EvaluationError: the file is cut or no such file.
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
