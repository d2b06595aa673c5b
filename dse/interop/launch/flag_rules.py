"""Rules between settings of a design and flags of a program: from a setting to a flag, and back."""

from __future__ import annotations

import csv
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Literal, get_args

from dse.core.values import Value
from dse.errors import SpecError, StudyError, nearest
from dse.interop.launch.launch_files import LAUNCHERS, literal_of

Kind = Literal["number", "switch", "inverse", "choice", "only", "all-or-one", "absent"]
Flags = Mapping[str, Value]

# Source: the parsers of vLLM 0.32 and SGLang 0.5.23; llama.cpp, tools/server/README.md;
# DeepSpeed 0.19, docs/_pages/config-json.md; TensorRT-LLM 1.0, commands/trtllm-serve;
# Accelerate 1.15, commands/config; NVIDIA Dynamo 1.6 and Kubernetes: see manifests.py;
# Megatron-LM of August 2026, megatron/training/arguments.py (full recomputation needs a method)
_TABLE = Path(__file__).with_name("flags.csv")
_COLUMNS = ("setting", "flag", "kind", "values")
_EVERY = "*"


@dataclass(frozen=True, slots=True, kw_only=True)
class FlagRule:
    """Rule that translates one setting, such as the tensor-parallel size, into a program's flag.

    Args:
        setting: the setting's name: a parameter of the space, or an input of an evaluator.
        flag: the flag's name without dashes; dots lead into nested mappings of a file.
        kind: ``number``: the same number, except those in ``values``; ``switch``: true or false;
            ``inverse``: true where the setting is false; ``choice``: one of ``values``; ``only``:
            like ``choice``, where further rules of the setting cover other values; ``all-or-one``:
            true where the setting is the product of the settings in ``values``, false where it is
            1; ``absent``: no flag is needed where the setting has this value.
        values: values of the setting with those of the flag; for ``all-or-one`` its factors.
    """

    setting: str
    flag: str
    kind: Kind
    values: Mapping[str, str] = field(default_factory=dict)

    def encode(self, settings: Mapping[str, Value]) -> Value | None:
        """Return the flag's value for the settings; ``None`` if the flag cannot express it."""
        value = settings[self.setting]
        text = _text_of(value)
        match self.kind:
            case "number":
                is_number = isinstance(value, int | float) and not isinstance(value, bool)
                return literal_of(self.values.get(text, text)) if is_number else None
            case "switch":
                return value if isinstance(value, bool) else None
            case "inverse":
                return not value if isinstance(value, bool) else None
            case "choice" | "only" | "absent":
                return literal_of(self.values[text]) if text in self.values else None
            case "all-or-one":
                full = math.prod(_number(settings.get(name, 1)) for name in self.values)
                return (value == full) if value in (1, full) else None

    def decode(self, flags: Flags, settings: Mapping[str, Value]) -> Value | None:
        """Return the setting's value for the flags; ``None`` if the flags do not determine it.

        Args:
            flags: the flags of a file.
            settings: the values of the settings that other rules have decoded already.
        """
        found = flags.get(self.flag)
        match self.kind:
            case "absent":
                return literal_of(next(iter(self.values)))
            case "switch":
                return bool(found)
            case "inverse":
                return not found
            case "all-or-one":
                full = math.prod(_number(settings.get(name, 1)) for name in self.values)
                return full if found else 1
            case "number" | "choice" | "only":
                back = {there: here for here, there in self.values.items()}
                text = None if found is None else _text_of(found)
                if text in back:
                    return literal_of(back[text])
                return found if self.kind == "number" else None


@dataclass(frozen=True, slots=True, kw_only=True)
class LaunchSettings:
    """Flags that express the settings of a design, and the settings that no flag expresses.

    Args:
        flags: each flag with its value.
        expressed: the settings that the flags express.
        missing: the value of each other setting, and why no flag expresses it.
    """

    flags: dict[str, Value]
    expressed: dict[str, Value]
    missing: dict[str, str]


def encode_settings(
    rules: Sequence[FlagRule], settings: Mapping[str, Value], program: str
) -> LaunchSettings:
    """Return the flags of a program that express the settings.

    Raises:
        StudyError: two settings need the same flag with different values.
    """
    made = LaunchSettings(flags={}, expressed={}, missing={})
    for name, value in settings.items():
        own = [rule for rule in rules if rule.setting == name]
        able = [(rule, found) for rule in own if (found := rule.encode(settings)) is not None]
        if not able:
            made.missing[name] = _why_missing(value, own, program)
            continue
        rule, found = able[0]
        if rule.kind != "absent":
            if made.flags.get(rule.flag, found) != found:
                raise StudyError(
                    f"{name} = {value} needs {rule.flag} = {found}, and another setting needs "
                    f"{made.flags[rule.flag]}",
                    hint="name with --evaluator the evaluator whose inputs are the settings",
                )
            made.flags[rule.flag] = found
        made.expressed[name] = value
    return made


def decode_settings(
    rules: Sequence[FlagRule], flags: Flags, names: Sequence[str]
) -> dict[str, Value]:
    """Return the values of the settings with these names, where the flags determine them.

    A setting that is a product of others (kind ``all-or-one``) is decoded last, from their values.
    """
    found: dict[str, Value] = {}
    wanted = [rule for rule in rules if rule.setting in names]
    for rule in sorted(wanted, key=lambda one: one.kind == "all-or-one"):
        value = rule.decode(flags, found)
        if value is not None:
            found.setdefault(rule.setting, value)
    return found


def _why_missing(value: Value, own: Sequence[FlagRule], program: str) -> str:
    text = _text_of(value)
    flags = ", ".join(dict.fromkeys(rule.flag for rule in own if rule.flag))
    if not flags:
        return f"{text}: no flag of {program} in the table"
    known = [one for rule in own if rule.kind in ("choice", "only") for one in rule.values]
    near = f"; {nearest(text, known)}" if known else ""
    return f"{text}: {flags} cannot express it{near}"


@cache
def program_rules(program: str) -> tuple[FlagRule, ...]:
    """Return the built-in rules that convert settings of a program to its flags."""
    with _TABLE.open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    targets = (program, LAUNCHERS[program].engine, _EVERY)
    own = sorted((row for row in rows if row["target"] in targets), key=_order(targets))
    return tuple(_rule(row, _TABLE, 0) for row in own)


def _order(targets: Sequence[str]) -> Callable[[Mapping[str, str]], int]:
    """Return a sort key for rows: the program's, then its engine's, then those of all programs."""
    return lambda row: targets.index(row["target"])


def read_rules(table: Path) -> tuple[FlagRule, ...]:
    """Return the rules in a user's CSV file with the columns setting, flag, kind and values.

    Raises:
        SpecError: the file cannot be read, has other columns, or an unknown kind.
    """
    try:
        with table.open(encoding="utf-8", newline="") as file:
            reader = csv.DictReader(file)
            rows = [(reader.line_num, row) for row in reader]
            columns = tuple(reader.fieldnames or ())
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise SpecError(f"{table} cannot be read: {error}", hint="a CSV file in UTF-8") from error
    if absent := [one for one in _COLUMNS[:3] if one not in columns]:
        raise SpecError(
            f"{table} has no column {absent[0]!r}", hint=f"columns: {', '.join(_COLUMNS)}"
        )
    if not rows:
        raise SpecError(f"{table} has no rows", hint="a row for each flag: tp,tensor-size,number,")
    return tuple(_rule(row, table, line) for line, row in rows)


def _rule(row: Mapping[str, str | None], table: Path, line: int) -> FlagRule:
    given = {key: (row.get(key) or "").strip() for key in _COLUMNS}
    kinds: tuple[Kind, ...] = get_args(Kind)
    kind = next((one for one in kinds if one == given["kind"]), None)
    if kind is None:
        raise SpecError(
            f"there is no kind of flag {given['kind']!r}",
            where=f"{table}:{line}",
            hint=nearest(given["kind"], kinds),
        )
    separator = "*" if kind == "all-or-one" else "|"
    pairs = (one.partition("=") for one in given["values"].split(separator) if one)
    values = {here.strip(): there.strip() or here.strip() for here, _, there in pairs}
    if kind in ("choice", "only", "all-or-one", "absent") and not values:
        raise SpecError(
            f"the {kind} of {given['setting']!r} has no values",
            where=f"{table}:{line}",
            hint="such as bf16=bfloat16|fp8 in the column values",
        )
    return FlagRule(setting=given["setting"], flag=given["flag"], kind=kind, values=values)


def _text_of(value: Value) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _number(value: Value) -> int:
    return int(value) if isinstance(value, int | float) else 1
