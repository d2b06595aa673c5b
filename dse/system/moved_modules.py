"""Names of modules before 0.2, for plug-ins that import them; they go with version 0.3."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Sequence
from functools import partial
from importlib import import_module
from importlib.machinery import ModuleSpec
from types import ModuleType

MOVED = {
    "dse.assets": "dse.resources",
    "dse.assets.asset": "dse.resources.asset",
    "dse.assets.environment": "dse.resources.environment",
    "dse.checkpoints": "dse.evaluation.checkpoints",
    "dse.early": "dse.evaluation.reporting",
    "dse.supplies": "dse.services.resources",
}
"""What documentation named, before and now."""


class MovedModules:
    """Find a module under the name that it had before, with a warning that names the new one.

    A finder and loader without their base classes: ``importlib.abc`` imports twenty modules more.
    """

    def find_spec(
        self,
        fullname: str,
        path: Sequence[str] | None = None,  # noqa: ARG002 - of the protocol
        target: ModuleType | None = None,  # noqa: ARG002
    ) -> ModuleSpec | None:
        """Return how to load a module that has moved; ``None`` for any other."""
        if fullname not in MOVED:
            return None
        return ModuleSpec(fullname, self, is_package=True)  # type: ignore[arg-type]

    def create_module(self, spec: ModuleSpec) -> None:
        """Let Python make an empty module."""

    def exec_module(self, module: ModuleType) -> None:
        """Let the module answer with what the moved one has."""
        new = MOVED[module.__name__]
        warnings.warn(f"{module.__name__} is {new} now", DeprecationWarning, stacklevel=2)
        module.__getattr__ = partial(getattr, import_module(new))  # type: ignore[method-assign]


def find_moved_modules() -> None:
    """Have Python look here for what it finds nowhere else."""
    if not any(isinstance(one, MovedModules) for one in sys.meta_path):
        sys.meta_path.append(MovedModules())
