"""Checks of the paths that name the user's model files."""

from __future__ import annotations

from pathlib import Path

from dse.errors import SpecError
from dse_evaluators.workloads.own.own_function import missing_file

EXPORT = (
    "torch.export.save, torch.onnx.export, or safetensors.torch.save_file with a config.json, "
    "writes a file"
)
"""Hint on how to write a file that can be read."""

_PICKLED = (".pt", ".pth", ".pkl", ".pickle", ".bin", ".ckpt", ".joblib")


def names_file(text: str) -> bool:
    """Return whether a text names a file: it has a slash, or an ending such as ``.onnx``."""
    return "/" in text or "\\" in text or Path(text).suffix[1:2].isalpha()


def check_model_file(path: Path) -> None:
    """Check that a file exists, and that reading it can run no code.

    Args:
        path: the file or folder.

    Raises:
        SpecError: it does not exist, or it is a pickle, an archive of one, or a program.
    """
    if path.suffix in _PICKLED:
        problem = f"{path.name} is a pickle, which could run code, and is never read"
        raise SpecError(problem, hint=EXPORT)
    if path.suffix == ".py":
        raise SpecError(f"{path.name} is a program", hint=f"{{python: {path.name}:make}}")
    if not path.exists():
        raise missing_file(path)
