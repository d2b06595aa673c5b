"""Detection of a plug-in option of the wrong type, once the plug-in failed on it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, get_type_hints

from pydantic import ConfigDict, TypeAdapter, ValidationError
from pydantic.errors import PydanticUserError

from dse.registry import options_of

_AS_WRITTEN = ConfigDict(strict=True, arbitrary_types_allowed=True)


def find_mistyped_option(plugin: Any, options: Mapping[str, Any]) -> tuple[str, str] | None:
    """Return the first option whose value has a wrong type, with the type it takes.

    The result is ``None`` if all options have the right type.

    Types that cannot be judged, such as those of somebody else's plug-in, are passed over.
    """
    for name, parameter in options_of(plugin).items():
        if name in options and not _fits(plugin, name, options[name]):
            return name, str(parameter.annotation).strip("'")
    return None


def _fits(plugin: Any, name: str, value: Any) -> bool:
    """True unless the value is certain to be of another type."""
    try:
        of_class = get_type_hints(plugin)  # of a dataclass its fields, of a function its options
        own = get_type_hints(vars(plugin).get("__init__", plugin)) if _is_class(plugin) else {}
        kind = {**of_class, **own}[name]
        TypeAdapter(kind, config=_AS_WRITTEN).validate_python(value)
    except ValidationError:
        return False
    except (KeyError, NameError, TypeError, AttributeError, PydanticUserError):
        return True
    return True


def _is_class(plugin: Any) -> bool:
    return isinstance(plugin, type)
