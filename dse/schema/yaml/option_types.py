"""Detection of a plug-in option of the wrong type, after the plug-in's constructor has failed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, get_type_hints

from pydantic import ConfigDict, TypeAdapter, ValidationError
from pydantic.errors import PydanticUserError

from dse.registry import options_of

_AS_WRITTEN = ConfigDict(strict=True, arbitrary_types_allowed=True)


def find_mistyped_option(plugin: Any, options: Mapping[str, Any]) -> tuple[str, str] | None:
    """Return the first option whose value has a wrong type, with the expected type.

    The result is ``None`` if all options have the right type. Annotations that cannot be resolved
    or validated, as in some third-party plug-ins, count as right.
    """
    for name, parameter in options_of(plugin).items():
        if name in options and not _fits(plugin, name, options[name]):
            return name, str(parameter.annotation).strip("'")
    return None


def _fits(plugin: Any, name: str, value: Any) -> bool:
    """Return whether the value fits the option's type; true if that cannot be determined."""
    try:
        of_class = get_type_hints(plugin)  # fields of a dataclass, options of a function
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
