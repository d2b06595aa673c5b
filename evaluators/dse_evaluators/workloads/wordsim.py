"""Word pairs with human similarity ratings."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from dse_evaluators.workloads.assets import asset_folder
from dse_evaluators.workloads.workload import Split

_FILES = Path("gensim") / "test" / "test_data"


@dataclass(frozen=True, slots=True, kw_only=True)
class Pairs:
    """Word pairs, and the similarity that people assigned to each, from 0 to 10."""

    words: tuple[tuple[str, str], ...]
    likeness: tuple[float, ...]

    @property
    def vocabulary(self) -> tuple[str, ...]:
        """Distinct words of the pairs, in alphabetical order."""
        return tuple(sorted({word for pair in self.words for word in pair}))


@cache
def wordsim() -> Mapping[Split, Pairs]:
    """Return the 351 distinct pairs of WordSim-353, assigned to search and test in turn.

    Of two pairs that occur twice in the file, the first rating is used.

    Source:
        Finkelstein et al., Placing Search in Context: The Concept Revisited, 2002.

    Raises:
        PluginError: the asset ``gensim`` is not installed.
    """
    text = (asset_folder("gensim") / _FILES / "wordsim353.tsv").read_text(encoding="utf-8")
    rows: dict[frozenset[str], tuple[tuple[str, str], float]] = {}
    for line in text.splitlines():
        if not line.startswith("#"):
            one, other, likeness = line.split("\t")
            rows.setdefault(frozenset((one, other)), ((one, other), float(likeness)))
    found = list(rows.values())
    return {"search": _pairs(found[0::2]), "test": _pairs(found[1::2])}


@cache
def other_words() -> tuple[str, ...]:
    """Return the words of SimLex-999 that are in no pair of WordSim-353, alphabetically.

    Source:
        Hill, Reichart, Korhonen: SimLex-999: Evaluating Semantic Models with (Genuine) Similarity
        Estimation, 2015.

    Raises:
        PluginError: the asset ``gensim`` is not installed.
    """
    text = (asset_folder("gensim") / _FILES / "simlex999.txt").read_text(encoding="utf-8")
    lines = [line.split("\t") for line in text.splitlines() if not line.startswith("#")]
    judged = {word for pairs in wordsim().values() for word in pairs.vocabulary}
    return tuple(sorted({word for line in lines for word in line[:2]} - judged))


def _pairs(rows: list[tuple[tuple[str, str], float]]) -> Pairs:
    return Pairs(words=tuple(row[0] for row in rows), likeness=tuple(row[1] for row in rows))
