"""Files of launch settings: configurations in YAML or JSON, and shell scripts."""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from dse.core.values import Value
from dse.errors import StudyError
from dse.interop.launch.manifests import Manifest, decode_manifest, encode_manifest


@dataclass(frozen=True, slots=True, kw_only=True)
class Launcher:
    """Program that is started with flags or with a configuration file.

    Args:
        command: the words before the flags; the user's arguments follow the flags.
        extensions: extensions of the files that the program reads, the usual one first.
        negates: whether a false switch is ``--no-FLAG`` and not the absence of the flag.
        engine: another program, whose flags this one accepts as well.
        manifest: the kind of Kubernetes manifest that is written in place of a configuration.
        required: keys that each configuration has, unless a setting gives them.
        implied: a prefix of flags, and a key with its value that such flags need.
    """

    command: tuple[str, ...]
    extensions: tuple[str, ...]
    negates: bool = False
    engine: str = ""
    manifest: Manifest | None = None
    required: Mapping[str, Value] = field(default_factory=dict)
    implied: tuple[str, str, Value] | None = None

    def complete(self, flags: Mapping[str, Value]) -> dict[str, Value]:
        """Return the flags, completed by the keys that a configuration file requires."""
        whole = {**self.required, **flags}
        if self.implied and any(name.startswith(self.implied[0]) for name in flags):
            whole[self.implied[1]] = self.implied[2]
        return whole


_LITERALS: Mapping[str, Value] = {"true": True, "false": False}

LAUNCHERS: Mapping[str, Launcher] = {
    "vllm": Launcher(command=("vllm", "serve"), extensions=(".yaml", ".sh"), negates=True),
    "sglang": Launcher(
        command=("python3", "-m", "sglang.launch_server"), extensions=(".yaml", ".sh")
    ),
    "llama.cpp": Launcher(command=("llama-server",), extensions=(".sh",)),
    "tensorrt-llm": Launcher(command=("trtllm-serve",), extensions=(".sh",)),
    "megatron": Launcher(command=(), extensions=(".sh",)),
    "deepspeed": Launcher(command=(), extensions=(".json",), negates=True),
    "accelerate": Launcher(
        command=(),
        extensions=(".yaml",),
        negates=True,
        required={
            "compute_environment": "LOCAL_MACHINE",
            "distributed_type": "MULTI_GPU",
            "mixed_precision": "no",
            "use_cpu": False,
            "debug": False,
        },
        implied=("deepspeed_config.", "distributed_type", "DEEPSPEED"),
    ),
    "kubernetes": Launcher(
        command=(), extensions=(".yaml",), negates=True, engine="vllm", manifest="kubernetes"
    ),
    "dynamo": Launcher(
        command=(), extensions=(".yaml",), negates=True, engine="vllm", manifest="dynamo"
    ),
}
"""Programs whose flags are in ``flags.csv``, by the name that ``dse deploy --to`` takes."""

OWN_TABLE = Launcher(command=(), extensions=(".yaml", ".json", ".sh"))
"""Program of a user's table of flags; its command is an argument of the script."""


def encode_flags(flags: Mapping[str, Value], launcher: Launcher, extension: str) -> bytes:
    """Return the contents of a script, configuration file or table with the given flags.

    Raises:
        StudyError: the program reads no file with this extension.
    """
    if extension not in launcher.extensions:
        raise StudyError(
            f"no launch settings are written as {extension or 'a file without extension'}",
            hint=f"-o FILE{' or -o FILE'.join(launcher.extensions)}",
        )
    if launcher.manifest:
        return encode_manifest(flags, launcher.manifest)
    given = {
        name: one
        for name, one in launcher.complete(flags).items()
        if launcher.negates or one is not False
    }
    if extension == ".sh":
        return _script(given, launcher.command)
    nested = _nest(given)
    text = (
        json.dumps(nested, indent=2) + "\n"
        if extension == ".json"
        else yaml.safe_dump(nested, sort_keys=False)
    )
    return text.encode()


def decode_flags(
    content: bytes, extension: str, manifest: Manifest | None = None
) -> dict[str, Value]:
    """Return the flags in the contents of a file that :func:`encode_flags` made."""
    if manifest:
        return _flags_of_manifest(content, manifest)
    if extension == ".sh":
        return _flags_of_words(shlex.split(content.decode(), comments=True))
    return dict(_flatten(yaml.safe_load(content) or {}, ()))


def _script(flags: Mapping[str, Value], command: Sequence[str]) -> bytes:
    words = ["exec", *(shlex.quote(one) for one in command)]
    lines = [" ".join(words) if command else 'exec "$@"']
    for name, value in flags.items():
        if value is False:
            lines.append(f"--no-{name}")
        else:
            lines.append(f"--{name}" if value is True else f"--{name} {shlex.quote(str(value))}")
    if command:
        lines.append('"$@"')
    return ("#!/bin/sh\n" + " \\\n  ".join(lines) + "\n").encode()


def _flags_of_words(words: Sequence[str]) -> dict[str, Value]:
    found: dict[str, Value] = {}
    for word, after in zip(words, [*words[1:], "--"], strict=True):
        if word.startswith("--no-"):
            found[word.removeprefix("--no-")] = False
        elif word.startswith("--"):
            is_switch = after.startswith(("--", "$")) or after == "\n"
            found[word.removeprefix("--")] = True if is_switch else literal_of(after)
    return found


def _flags_of_manifest(content: bytes, manifest: Manifest) -> dict[str, Value]:
    found: dict[str, Value] = {}
    for name, part in decode_manifest(content, manifest).items():
        group = name.removesuffix("words")
        if isinstance(part, int):
            found[name] = part
        else:
            found |= {f"{group}{flag}": one for flag, one in _flags_of_words(part).items()}
    return found


def literal_of(text: str) -> Value:
    """Return the Boolean, number or string that a word of a script or table stands for."""
    if text in _LITERALS:
        return _LITERALS[text]
    for number in (int, float):
        try:
            return number(text)
        except ValueError:
            continue
    return text


def _nest(flags: Mapping[str, Value]) -> dict[str, Any]:
    nested: dict[str, Any] = {}
    for name, value in flags.items():
        *folders, last = name.split(".")
        place = nested
        for one in folders:
            place = place.setdefault(one, {})
        place[last] = value
    return nested


def _flatten(nested: Mapping[str, Any], path: tuple[str, ...]) -> list[tuple[str, Value]]:
    found: list[tuple[str, Value]] = []
    for key, value in nested.items():
        deeper = (*path, str(key))
        if isinstance(value, Mapping):
            found += _flatten(value, deeper)
        else:
            found.append((".".join(deeper), value))
    return found


def extension_of(file: Path) -> str:
    """Return the extension of a file in lower case, with ``.yml`` as ``.yaml``."""
    return {".yml": ".yaml"}.get(file.suffix.lower(), file.suffix.lower())
