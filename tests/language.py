"""How the code speaks: shares of names and sentences that the field does not use.

Run: python tests/language.py [--list]

prints a line for each measure; ``--list`` also what is counted by it.
"""

from __future__ import annotations

import argparse
import ast
import re
import sys
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

ROOT = Path(__file__).parents[1]
PACKAGES = {"dse": ROOT / "dse", "dse_evaluators": ROOT / "evaluators" / "dse_evaluators"}

_WORD = re.compile(r"[A-Za-z]+")
_DIALECT = re.compile(r"\b(told|tells?|said|says?|nobody)\b", re.IGNORECASE)
_QUESTION = re.compile(r"(What|How|Which|Whose|Who|Where|When|Why|Whether)\b")
_PARTICIPLE = re.compile(
    r"_*(\w+ed|told|made|found|known|given|chosen|written|drawn|read|kept|held)$"
)
_VERBS = {"check", "is", "has", "list", "build", "compute", "keep", "end", "test", "find", "count"}
_NOUNS = {"seed", "speed", "need", "feed", "bed", "embed", "exceed", "proceed", "breed", "red"}


@dataclass(frozen=True)
class Source:
    """A package of Python files, parsed."""

    name: str
    folder: Path

    @cached_property
    def trees(self) -> Mapping[Path, ast.Module]:
        """Each file as a tree."""
        paths = sorted(self.folder.rglob("*.py"))
        return {path: ast.parse(path.read_text(encoding="utf-8")) for path in paths}

    @cached_property
    def definitions(self) -> Sequence[tuple[Path, ast.AST]]:
        """Every class and function with its file."""
        kinds = ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef
        return [
            (path, node)
            for path, tree in self.trees.items()
            for node in ast.walk(tree)
            if isinstance(node, kinds)
        ]

    def participles(self) -> Iterator[str]:
        """Yield functions that are named by a participle; properties are values."""
        for path, node in self.functions():
            first, _, last = node.name.strip("_").rpartition("_")
            led = first.partition("_")[0] in _VERBS  # check_installed, is_used: named by the verb
            if _PARTICIPLE.fullmatch(last) and last not in _NOUNS and not led:
                yield f"{path.relative_to(ROOT)}:{node.lineno} {node.name}"

    def functions(self) -> Iterator[tuple[Path, ast.FunctionDef | ast.AsyncFunctionDef]]:
        """Yield every function but properties and methods of Python."""
        for path, node in self.definitions:
            if isinstance(node, ast.ClassDef) or node.name.startswith("__"):
                continue
            marks = {ast.unparse(one).rpartition(".")[2] for one in node.decorator_list}
            if not marks & {"property", "cached_property", "setter"}:
                yield path, node

    def docstrings(self) -> Iterator[tuple[Path, str]]:
        """Yield the docstring of each module, class and function that has one."""
        nodes = [*self.trees.items(), *self.definitions]
        for path, node in nodes:
            text = ast.get_docstring(node)
            if text:
                yield path, text

    def questions(self) -> Iterator[str]:
        """Yield first lines of docstrings that begin like a question."""
        for path, text in self.docstrings():
            if _QUESTION.match(text):
                yield f"{path.relative_to(ROOT)}: {text.splitlines()[0]}"

    def classes(self) -> Counter[str]:
        """Count the public names of classes."""
        names = (node.name for _, node in self.definitions if isinstance(node, ast.ClassDef))
        return Counter(name for name in names if not name.startswith("_"))

    def files(self) -> Counter[str]:
        """Count the names of files."""
        return Counter(path.name for path in self.trees if not path.name.startswith("__"))

    def rooms(self) -> list[str]:
        """Return what stands at the top of the package."""
        return sorted(
            path.stem for path in self.folder.iterdir()
            if path.stem not in ("__pycache__", "__init__", "__main__")
            and (path.suffix == ".py" or (path / "__init__.py").exists())
        )  # fmt: skip


def measure(source: Source) -> dict[str, tuple[float, list[str]]]:
    """Return each measure of a package by its name, with what it counts."""
    functions, docstrings = len(list(source.functions())), list(source.docstrings())
    words = sum(len(_WORD.findall(text)) for _, text in docstrings)
    dialect = [word for _, text in docstrings for word in _DIALECT.findall(text)]
    participles, questions = list(source.participles()), list(source.questions())
    classes = [name for name, count in source.classes().items() if count > 1]
    files = [name for name, count in source.files().items() if count > 1]
    return {
        "entries at the top": (len(source.rooms()), source.rooms()),
        "functions named by a participle, %": (100 * len(participles) / functions, participles),
        "docstrings that open as a question, %": (
            100 * len(questions) / len(docstrings),
            questions,
        ),
        "told, tell, said, say, nobody per 1,000 words": (1000 * len(dialect) / words, dialect),
        "names of public classes used twice": (len(classes), classes),
        "names of files used twice": (len(files), files),
    }


def main() -> None:
    """Print the measures of both packages."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--list", action="store_true", help="what each measure counts")
    listed = parser.parse_args().list
    for name, folder in PACKAGES.items():
        for title, (value, counted) in measure(Source(name, folder)).items():
            sys.stdout.write(f"{name}: {title}: {value:.3g}\n")
            if listed:
                sys.stdout.writelines(f"  {one}\n" for one in counted)


if __name__ == "__main__":
    main()
