"""Reader of files in the ``safetensors`` format that does not need its package."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np

from dse.errors import EvaluationError
from dse_evaluators.formats.arrays import Single

_LENGTH_BYTES = 8
_SINGLE = "F32"


def singles(path: Path) -> dict[str, Single]:
    """Return the float32 tensors of a file, sorted by name; other types are left out.

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
