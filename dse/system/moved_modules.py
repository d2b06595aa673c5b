"""Import hook for module names before version 0.2, used by plug-ins; to be removed in 0.3."""

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
    "dse.schema.space.space": "dse.schema.space.space_loader",
    "dse.supplies": "dse.services.resources",
}
"""New name of each moved module that the documentation mentioned, by old name."""


class MovedModules:
    """Import hook that loads moved modules by their old names, with a warning.

    The class does not derive from the base classes in ``importlib.abc``, because that module
    imports twenty more modules.
    """

    def find_spec(
        self,
        fullname: str,
        path: Sequence[str] | None = None,  # noqa: ARG002 - of the protocol
        target: ModuleType | None = None,  # noqa: ARG002
    ) -> ModuleSpec | None:
        """Return the spec of a moved module; ``None`` for any other module."""
        if fullname not in MOVED:
            return None
        return ModuleSpec(fullname, self, is_package=True)  # type: ignore[arg-type]

    def create_module(self, spec: ModuleSpec) -> None:
        """Return ``None``, so that Python creates an empty module."""

    def exec_module(self, module: ModuleType) -> None:
        """Forward attribute access to the module under its new name, and warn."""
        new = MOVED[module.__name__]
        warnings.warn(f"{module.__name__} is {new} now", DeprecationWarning, stacklevel=2)
        module.__getattr__ = partial(getattr, import_module(new))  # type: ignore[method-assign]


def find_moved_modules() -> None:
    """Register the import hook, once, after all other finders."""
    if not any(isinstance(one, MovedModules) for one in sys.meta_path):
        sys.meta_path.append(MovedModules())
