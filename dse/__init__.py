"""A design-space-exploration engine for ML systems.

``from dse import Space, Study, Metric, evaluator`` is Python's way in. Each name is imported when
it is first used, so that ``dse --help`` starts at once; ``__init__.pyi`` tells type checkers what
it is.
"""

from importlib import import_module

__version__ = "0.1.0"

_WHERE = {
    "Design": "dse.core.design",
    "DseError": "dse.errors",
    "Front": "dse.api.front",
    "InfeasibleError": "dse.errors",
    "Metric": "dse.core.metric",
    "Space": "dse.api.space",
    "Study": "dse.api.study",
    "Trial": "dse.core.trial",
    "evaluator": "dse.api.evaluators",
}
_MODULES = ("report",)
"""``dse.report`` is a package that can be called."""

__all__ = [*_WHERE, *_MODULES]  # noqa: PLE0604 - they are texts


def __getattr__(name: str) -> object:
    """A public name, imported when it is first used."""
    if name in _MODULES:
        return import_module(f"dse.{name}")
    if name not in _WHERE:
        raise AttributeError(f"module 'dse' has no attribute {name!r}")
    return getattr(import_module(_WHERE[name]), name)


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
