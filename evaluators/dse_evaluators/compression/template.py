"""Text templates with parameter names in braces, to be filled with a design's values."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice, product

from dse.core.values import Value
from dse.errors import EvaluationError, SpecError

_BRACES = re.compile(r"\{([^{}]*)\}")
_NAME = re.compile(r"[A-Za-z_][\w.-]*")
_MOST_TEXTS = 1_000
"""Maximum number of a template's texts checked before a run; others are checked during it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Template:
    """Text with placeholders for a design's values.

    ``format {bits}`` has ``names`` of ``("bits",)``.
    """

    text: str
    names: tuple[str, ...]

    @staticmethod
    def of(text: object) -> Template:
        """Parse a text such as ``format {bits}`` into a template.

        Raises:
            SpecError: it is not a text, or its braces are unbalanced or do not enclose a name.
        """
        if not isinstance(text, str):
            raise SpecError(f"a recipe cannot be {text!r}", hint="a text, as in 'format int8'")
        names = [name.strip() for name in _BRACES.findall(text)]
        wrong = next((name for name in names if not _NAME.fullmatch(name)), None)
        if wrong is not None or set("{}") & set(_BRACES.sub("", text)):
            raise SpecError(
                f"in {text!r} the braces hold no name", hint="as in 'format {weight_format}'"
            )
        return Template(text=text, names=tuple(dict.fromkeys(names)))

    def fill(self, values: Mapping[str, Value], place: int) -> str:
        """Fill the placeholders with a design's values; of list parameters, with one element.

        ``place`` is the index of that element.

        Raises:
            EvaluationError: the design has no value for a name.
        """
        found = {name: _value(values, name, place) for name in self.names}
        return self._with(found)

    def fillings(self, values: Mapping[str, Sequence[Value]], place: int) -> Iterator[str]:
        """Yield the filled template for all combinations of parameter values, at most 1,000.

        If a placeholder has no values, nothing is yielded. A list parameter uses its element
        ``place``.
        """
        each = [values.get(name, values.get(f"{name}[{place}]", ())) for name in self.names]
        for row in islice(product(*each), _MOST_TEXTS):
            yield self._with(dict(zip(self.names, row, strict=True)))

    def _with(self, values: Mapping[str, Value]) -> str:
        return _BRACES.sub(lambda found: _format_value(values[found[1].strip()]), self.text).strip()


def members(name: str, known: Sequence[str]) -> list[str]:
    """Return the ``known`` names that are elements of a list parameter, such as ``bits[0]``.

    The list parameter is one of the template's placeholders.
    """
    return [one for one in known if one.startswith(f"{name}[") and one.endswith("]")]


def _value(values: Mapping[str, Value], name: str, place: int) -> Value:
    for key in (name, f"{name}[{place}]"):
        if key in values:
            return values[key]
    raise EvaluationError(f"the design has no value for {name!r} at place {place}")


def _format_value(value: Value) -> str:
    """Format a parameter value for a template; whole numbers have no decimal point."""
    return str(int(value)) if isinstance(value, float) and value.is_integer() else str(value)
