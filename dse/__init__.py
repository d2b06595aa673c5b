"""A design-space-exploration engine for ML systems: the public Python API.

A program starts with ``from dse import Space, Study, Metric, evaluator``. Each name is imported
on first use, so that ``dse --help`` starts fast; ``__init__.pyi`` declares the names for type
checkers.
"""

from importlib import import_module

from dse.system.moved_modules import find_moved_modules

__version__ = "0.2.0"

_WHERE = {
    "Comparison": "dse.api.study_comparison",
    "Design": "dse.core.design",
    "DseError": "dse.errors",
    "Front": "dse.api.front",
    "InfeasibleError": "dse.errors",
    "Metric": "dse.core.metric",
    "Space": "dse.api.design_space",
    "Study": "dse.api.study",
    "Trial": "dse.core.trial",
    "calibrate_collectives": "dse.services.resources.calibrate_devices",
    "calibrate_devices": "dse.services.resources.calibrate_devices",
    "calibrate_serving": "dse.services.resources.calibrate_devices",
    "calibrate_training": "dse.services.resources.calibrate_devices",
    "check": "dse.api.program",
    "compare": "dse.api.study_comparison",
    "compress": "dse.services.studies.compress_folder",
    "current_trial": "dse.evaluation.checkpoints",
    "doctor": "dse.api.program",
    "evaluator": "dse.api.function_evaluators",
    "import_study": "dse.api.storages",
    "init": "dse.services.init.study_files",
    "learn": "dse.services.studies.learn_model",
    "live_view": "dse.api.live_view",
    "merge": "dse.api.storages",
    "plugin": "dse.api.program",
    "plugins": "dse.api.program",
    "reproduce": "dse.api.reproduce",
    "studies": "dse.api.storages",
    "sweep": "dse.api.study_sweep",
    "time_call": "dse.evaluation.timing.call_time",
}
_MODULES = {"report": "dse.report", "supplies": "dse.services.resources"}
"""Modules offered under a public name; ``dse.report`` is also callable."""

__all__ = [*_WHERE, *_MODULES]  # noqa: PLE0604 - the unpacked keys are strings

find_moved_modules()


def __getattr__(name: str) -> object:
    """Import a public name on first use."""
    if name in _MODULES:
        return import_module(_MODULES[name])
    if name not in _WHERE:
        raise AttributeError(f"module 'dse' has no attribute {name!r}")
    return getattr(import_module(_WHERE[name]), name)


def __dir__() -> list[str]:
    """Return the public names, without the subpackages of ``dse``."""
    return sorted({*__all__, *(name for name in globals() if name.startswith("__"))})
