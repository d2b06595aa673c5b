"""Draw docstrings and sentences of the pages for a reading: how many are clear at once.

    python benchmarks/clarity.py --seed N [--docstrings 60] [--sentences 40] [--format json]

Docstrings are those of the public functions, classes and methods of ``dse`` and
``dse_evaluators``; sentences are those of README and docs, without code, tables, images and
headings. All are equally likely. A reader who knows machine learning systems, and not this project,
judges each by itself: clear at once, or not. A seed serves one reading; changed text needs a new
seed.
"""

from __future__ import annotations

import argparse
import ast
import json
import random
import re
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

ROOT = Path(__file__).parents[1]
PACKAGES = (ROOT / "dse", ROOT / "evaluators" / "dse_evaluators")
PAGES = (ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md")))

WORDS = 5
"""A sentence has at least this many words; shorter ones are labels."""

_FENCE = re.compile(r"\s*(```|~~~)")
_NOT_PROSE = re.compile(r"\s*(\||#|<|!\[|={3}|!!!|\[[^\]]+\]:)")
_CODE = re.compile(r"`[^`]*`")
_ITEM = re.compile(r"^\s*([-*+]|\d\.)\s+")
_END = re.compile(r"(?<=[.!?])\s+(?=[A-Z`*\[\"(])")

Definition = ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(frozen=True, kw_only=True)
class Passage:
    """A text that is read by itself, and where it stands."""

    place: str  # file:line
    name: str  # signature of the definition; empty for a sentence
    text: str


def list_docstrings(folder: Path) -> Iterator[Passage]:
    """Yield the docstring of each public function, class and method of a package."""
    for path in sorted(folder.rglob("*.py")):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        for name, node in list_public(tree, ""):
            text = ast.get_docstring(node)
            if text:
                yield Passage(place=f"{path.relative_to(ROOT)}:{node.lineno}", name=name, text=text)


def list_public(parent: ast.Module | ast.ClassDef, prefix: str) -> Iterator[tuple[str, Definition]]:
    """Yield the public definitions of a module or a class, each with its signature."""
    for node in parent.body:
        if not isinstance(node, Definition) or node.name.startswith("_"):
            continue
        name = f"{prefix}{node.name}"
        if isinstance(node, ast.ClassDef):
            yield f"class {name}", node
            yield from list_public(node, f"{name}.")
        else:
            returned = f" -> {ast.unparse(node.returns)}" if node.returns else ""
            yield f"{name}({ast.unparse(node.args)}){returned}", node


def list_sentences(page: Path) -> Iterator[Passage]:
    """Yield the sentences of a page, each at the line on which its paragraph begins."""
    for number, paragraph in list_paragraphs(page.read_text(encoding="utf-8")):
        for sentence in _END.split(paragraph):
            if len(sentence.split()) >= WORDS and not _CODE.fullmatch(sentence):
                place = f"{page.relative_to(ROOT)}:{number}"
                yield Passage(place=place, name="", text=sentence)


def list_paragraphs(text: str) -> Iterator[tuple[int, str]]:
    """Yield the paragraphs and list items of a page, with the number of their first line."""
    begin, lines, is_code, is_image = 0, [], False, False
    for number, line in enumerate([*text.splitlines(), ""], 1):
        is_fence = bool(_FENCE.match(line))
        is_code ^= is_fence
        is_image = line.startswith("![") or (is_image and bool(line.strip()))
        is_other = is_code or is_fence or is_image or bool(_NOT_PROSE.match(line))
        is_prose = bool(line.strip()) and not is_other
        if lines and (not is_prose or _ITEM.match(line)):
            yield begin, " ".join(lines)
            lines = []
        if is_prose:
            begin = begin if lines else number
            lines.append(_ITEM.sub("", line, count=1).strip())


def draw(passages: Sequence[Passage], count: int, chance: random.Random) -> list[Passage]:
    """Return this many of the passages without repetition, in the order of their places."""
    chosen = set(chance.sample(range(len(passages)), count))
    return [passage for index, passage in enumerate(passages) if index in chosen]


def main() -> None:
    """Draw and print."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--seed", type=int, required=True)
    parser.add_argument("--docstrings", type=int, default=60)
    parser.add_argument("--sentences", type=int, default=40)
    parser.add_argument("--format", choices=("text", "json"), default="text")
    options = parser.parse_args()
    chance = random.Random(options.seed)
    docstrings = [passage for folder in PACKAGES for passage in list_docstrings(folder)]
    sentences = [passage for page in PAGES for passage in list_sentences(page)]
    drawn = draw(docstrings, options.docstrings, chance)
    drawn += draw(sentences, options.sentences, chance)
    if options.format == "json":
        print(json.dumps([asdict(passage) for passage in drawn], indent=1, ensure_ascii=False))
        return
    for number, passage in enumerate(drawn, 1):
        text = "\n".join(filter(None, (passage.name, passage.text)))
        indented = text.replace("\n", "\n    ")
        print(f"{number}. {passage.place}\n    {indented}\n")


if __name__ == "__main__":
    main()
