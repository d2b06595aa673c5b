"""Parsing of a program's result: the JSON object at the end of its stdout."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from dse.core.metric import Failure
from dse_evaluators.generic.answer import Answer, invalid, readings, shown

_BOM = "\ufeff"

_MOST_STARTS = 64
"""Maximum number of candidate first lines of the last object; keeps parsing linear in time."""


class _TwiceError(ValueError):
    """Raised where a JSON object repeats a key, so that one of the values would be lost."""


def printed_answer(stdout: str, names: Sequence[str]) -> Answer:
    """Return the metrics in the JSON object at the end of a program's output.

    An invalid object is a failure. The object may span several lines; a byte order mark before it
    is ignored.

    Args:
        stdout: the output of the program, or the end of it.
        names: the metrics that the object must have.
    """
    lines = [line.strip().removeprefix(_BOM).strip() for line in stdout.split("\n")]
    while lines and not lines[-1]:
        lines.pop()
    if not lines:
        return invalid("printed nothing; the last line of stdout must be a JSON object")
    try:
        printed = _last_value(lines)
    except _TwiceError as error:
        return invalid(f"the answer says {error}: {shown(lines[-1])}")
    except (ValueError, RecursionError) as error:
        mend = "; json.dumps(...) writes it" if lines[-1].startswith("{'") else ""
        return invalid(f"the last line of stdout is no JSON ({error}): {shown(lines[-1])}{mend}")
    if not isinstance(printed, dict):
        return invalid(f"the last line of stdout is JSON but no object: {shown(lines[-1])}")
    why = printed.get("infeasible", False)
    if why is not False and why is not None:
        reason = why if isinstance(why, str) and why else f"the program says {shown(why)}"
        return Failure(kind="infeasible", reason=reason)
    return readings(printed, names)


def refuse_constant(constant: str) -> Any:
    """Reject constants that Python parses but JSON does not have: ``NaN`` and ``Infinity``.

    Raises:
        ValueError: always.
    """
    raise ValueError(f"{constant} is no number of JSON")


def _last_value(lines: Sequence[str]) -> Any:
    """Return the JSON value on an output's last line, or the object that ends there.

    The object may begin on an earlier line.

    Raises:
        ValueError: there is neither; its message is that of parsing the last line.
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
