"""Test for optional capabilities of an object, with equal results in all versions of Python."""

from __future__ import annotations

from typing import Any, Protocol

from typing_extensions import get_protocol_members


class Capability(type(Protocol)):  # type: ignore[misc] # it has no public name
    """Metaclass of optional interfaces: an object implements one if it has all its attributes.

    Attributes that ``__getattr__`` provides count, so that a proxy implements exactly the protocols
    of the object that it wraps. ``isinstance`` counts them, too, in Python 3.11, but no longer in
    Python 3.12. A method that is ``None`` counts as absent.
    """

    def __instancecheck__(cls, instance: Any) -> bool:
        """Return whether an object has the capability, or is of a class derived from it."""
        if cls in type(instance).__mro__:
            return True
        if not getattr(cls, "_is_protocol", False):
            return bool(super().__instancecheck__(instance))  # a class derived from a capability
        return all(cls._has(instance, name) for name in get_protocol_members(cls))

    def _has(cls, instance: Any, name: str) -> bool:
        if not callable(getattr(cls, name, None)):
            return hasattr(instance, name)
        return getattr(instance, name, None) is not None
