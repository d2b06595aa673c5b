"""Languages in which the measured kernels are written, and what each needs on this machine."""

from __future__ import annotations

from importlib.util import find_spec

from dse.errors import EvaluationError
from dse_evaluators.kernels.measured.compiled_c import find_compiler

LANGUAGES = ("c", "numba")
_NO_COMPILER = "there is no C compiler (cc, gcc, clang)"
_NO_NUMBA = "the package numba is not installed"
_INSTALL = "pip install 'dse-engine[kernels]'"


def missing_language(language: str | None) -> str:
    """Return the reason why no kernel can be compiled on this machine; empty if one can.

    Args:
        language: the language of all designs; ``None`` if designs choose.
    """
    lacking = {
        "c": "" if find_compiler() else f"{_NO_COMPILER}: install gcc",
        "numba": "" if find_spec("numba") is not None else f"{_NO_NUMBA}: {_INSTALL}",
    }
    if language in lacking:
        return lacking[language]
    return " and ".join(lacking.values()) if all(lacking.values()) else ""


def check_language(language: str) -> None:
    """Check that kernels in a programming language can be compiled on this machine.

    Raises:
        EvaluationError: the compiler is not installed.
    """
    if language == "c" and not find_compiler():
        raise EvaluationError(_NO_COMPILER, hint="install gcc, or use language: numba")
    if language == "numba" and find_spec("numba") is None:
        raise EvaluationError(_NO_NUMBA, hint=_INSTALL)
