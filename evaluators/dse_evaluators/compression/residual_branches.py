"""Residual branches of networks of the user: the parameters of each, by kind and block."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase

from dse.errors import SpecError, nearest

BranchPatterns = Mapping[str, str | Sequence[str]]
"""Patterns of module names by kind of branch, such as ``{ffn: [layers.*.fc1, layers.*.fc2]}``."""

_EXAMPLE = "branches: {attention: layers.*.attn, ffn: [layers.*.fc1, layers.*.fc2]}"

# Modules of a branch in files of transformers (Llama to GPT-2, then BERT) and of
# torch.nn.TransformerEncoderLayer. Norms after the sum of both are no part of a branch.
_KNOWN: Mapping[str, Sequence[str]] = {
    "attention": (
        r"(^|\.)\d+\.(self_attn|attn)\.",
        r"(^|\.)layer\.\d+\.attention\.(self|output\.dense)\.",
    ),
    "ffn": (
        r"(^|\.)\d+\.(mlp|block_sparse_moe|linear1|linear2)\.",
        r"(^|\.)layer\.\d+\.(intermediate|output\.dense)\.",
    ),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class ResidualBranches:
    """Names of the parameters of each residual branch, by kind and then by block, in order."""

    parameters: Mapping[str, tuple[tuple[str, ...], ...]]

    @property
    def depths(self) -> dict[str, int]:
        """Number of branches of each kind."""
        return {kind: len(blocks) for kind, blocks in self.parameters.items()}

    def names_of(self, removed: Iterable[tuple[str, int]]) -> set[str]:
        """Return the parameters of branches, each given by its kind and its place."""
        return {name for kind, place in removed for name in self.parameters[kind][place]}

    @staticmethod
    def of(names: Collection[str], patterns: BranchPatterns | None) -> ResidualBranches:
        """Find the branches of a network by the names of its parameters.

        A block is what has equal names up to the first number, such as ``layers.3``.

        Args:
            names: all parameters, in the order of the network.
            patterns: by kind, names of modules or of parameters with ``*``; by default those of
                transformers as the library ``transformers`` and ``torch.nn`` name them.

        Raises:
            SpecError: a pattern matches no parameter, or one without a number; or nothing matches.
        """
        if patterns is None:
            found = {kind: _match_known(names, some) for kind, some in _KNOWN.items()}
            found = {kind: some for kind, some in found.items() if some}
        else:
            found = {kind: _match(names, kind, some) for kind, some in patterns.items()}
        if not found:
            raise SpecError(
                "no residual branch is known by its name", hint=_EXAMPLE, part=["branches"]
            )
        return ResidualBranches(parameters={kind: _blocks(some) for kind, some in found.items()})


def _match_known(names: Collection[str], patterns: Sequence[str]) -> list[str]:
    return [name for name in names if any(re.search(one, name) for one in patterns)]


def _match(names: Collection[str], kind: str, patterns: str | Sequence[str]) -> list[str]:
    listed = [patterns] if isinstance(patterns, str) else list(patterns)
    found: set[str] = set()
    for pattern in listed:
        some = [name for name in names if _is_of(name, pattern)]
        if not some:
            starred = (re.sub(r"(^|\.)\d+(?=\.)", r"\1*", name) for name in names)
            modules = dict.fromkeys(name.rpartition(".")[0] for name in starred)
            problem = f"{kind}: {pattern!r} matches no parameter"
            raise SpecError(problem, hint=nearest(pattern, modules) or _EXAMPLE, part=["branches"])
        odd = next((name for name in some if _block_of(name) is None), None)
        if odd is not None:
            raise SpecError(
                f"{kind}: {pattern!r} matches {odd}, which is in no numbered block",
                hint=_EXAMPLE,
                part=["branches"],
            )
        found |= set(some)
    return [name for name in names if name in found]


def _is_of(name: str, pattern: str) -> bool:
    return fnmatchcase(name, pattern) or fnmatchcase(name, f"{pattern}.*")


def _blocks(names: Sequence[str]) -> tuple[tuple[str, ...], ...]:
    found: dict[str | None, list[str]] = {}
    for name in names:
        found.setdefault(_block_of(name), []).append(name)
    return tuple(map(tuple, found.values()))


def _block_of(name: str) -> str | None:
    match = re.match(r"(?:.*?\.)?\d+(?=\.)", name)
    return match[0] if match else None


def check_patterns(patterns: object) -> None:
    """Raise SpecError unless each kind of branch has a name pattern or a list of them."""
    ok = isinstance(patterns, Mapping) and bool(patterns)
    for one in patterns.values() if isinstance(patterns, Mapping) else ():
        some = [one] if isinstance(one, str) else one
        ok &= isinstance(some, list | tuple) and bool(some)
        ok &= all(isinstance(text, str) and text for text in some or ())
    if not ok:
        raise SpecError(
            f"branches cannot be {patterns!r}", hint=f"as in {_EXAMPLE}", part=["branches"]
        )
