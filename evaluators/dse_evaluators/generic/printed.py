"""Answer in a program's output: the JSON object at its end."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from dse.core.metric import Fault
from dse_evaluators.generic.answer import Answer, invalid, readings, shown

_BOM = "\ufeff"

_MOST_STARTS = 64
"""So many lines that may begin the last object are tried: reading stays linear in the output."""


class _TwiceError(ValueError):
    """A key stands twice in one object, so that one of its values would be lost."""


def printed_answer(stdout: str, names: Sequence[str]) -> Answer:
    """Return the metrics in the object at the end of an output, or the fault that there is none.

    The object may be spread over several lines; a byte order mark before it is passed over.

    Args:
        stdout: what the program printed, or the end of it.
        names: the metrics that it has to tell.
    """
    lines = [line.strip().removeprefix(_BOM).strip() for line in stdout.split("\n")]
    while lines and not lines[-1]:
        lines.pop()
    if not lines:
        return invalid("printed nothing; the last line of stdout must be a JSON object")
    try:
        said = _last_value(lines)
    except _TwiceError as error:
        return invalid(f"the answer says {error}: {shown(lines[-1])}")
    except (ValueError, RecursionError) as error:
        mend = "; json.dumps(...) writes it" if lines[-1].startswith("{'") else ""
        return invalid(f"the last line of stdout is no JSON ({error}): {shown(lines[-1])}{mend}")
    if not isinstance(said, dict):
        return invalid(f"the last line of stdout is JSON but no object: {shown(lines[-1])}")
    why = said.get("infeasible", False)
    if why is not False and why is not None:
        reason = why if isinstance(why, str) and why else f"the program says {shown(why)}"
        return Fault(kind="infeasible", reason=reason)
    return readings(said, names)


def refuse_constant(constant: str) -> Any:
    """Refuse what Python reads and JSON does not have: ``NaN`` and ``Infinity``.

    Raises:
        ValueError: always.
    """
    raise ValueError(f"{constant} is no number of JSON")


def _last_value(lines: Sequence[str]) -> Any:
    """Return the value on the last line, or the object that ends there and begins above.

    Raises:
        ValueError: there is neither; the error is that of the last line.
    """
    try:
        return _parse_json(lines[-1])
    except _TwiceError:
        raise
    except (ValueError, RecursionError):
        if not lines[-1].endswith("}"):
            raise
        starts = [place for place, line in enumerate(lines[:-1]) if line.startswith("{")]
        for place in reversed(starts[-_MOST_STARTS:]):
            try:
                return _parse_json("\n".join(lines[place:]))
            except _TwiceError:
                raise
            except (ValueError, RecursionError):
                continue
        raise


def _parse_json(text: str) -> Any:
    return json.loads(text, parse_constant=refuse_constant, object_pairs_hook=_each_once)


def _each_once(pairs: Sequence[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        keys = [key for key, _ in pairs]
        twice = next(key for place, key in enumerate(keys) if key in keys[:place])
        raise _TwiceError(f"{shown(twice)} twice")
    return found
