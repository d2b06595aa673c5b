"""Functions of the user's own Python files, which are checked as text and imported only to run."""

from __future__ import annotations

import ast
import hashlib
import importlib.util
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from dse.errors import EvaluationError, SpecError, nearest


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnFunction:
    """Function ``name`` of a Python file; ``edition`` is a hash of the file's text."""

    name: str
    edition: str
    file: Path = field(compare=False)

    @staticmethod
    def of(text: object) -> OwnFunction:
        """Parse ``FILE.py:function``, and check that the file defines it, without importing it.

        Args:
            text: the path of the file, a colon and the function's name.

        Raises:
            SpecError: the text has another form, or the file or the function does not exist.
        """
        file, _, name = str(text).rpartition(":")
        if not isinstance(text, str) or not file.endswith(".py") or not name.isidentifier():
            raise SpecError(f"{text!r} is no function", hint="as in {python: net.py:make}")
        path = Path(file)
        content = read_own_file(path)
        try:
            tree = ast.parse(content, filename=str(path))
        except (SyntaxError, ValueError) as error:
            line = getattr(error, "lineno", None) or 1
            problem = getattr(error, "msg", str(error))
            raise SpecError(f"{path}:{line}: not valid Python: {problem}") from error
        known = [name for node in tree.body for name in _defined(node)]
        if name not in known:
            hint = nearest(name, known) or "define it at the top of the file"
            raise SpecError(f"{path} defines no {name!r}", hint=hint)
        return OwnFunction(name=name, edition=digest(content), file=path)

    @property
    def text(self) -> str:
        """Description of the function, for lists of what a study runs."""
        return f"the Python function {self.name!r} of {self.file}"

    def load(self) -> Callable[..., Any]:
        """Import the user's file, and return the function.

        Raises:
            EvaluationError: importing the file fails, or the name is not callable.
        """
        module_name = f"dse_own_{self.edition}_{self.file.stem}"
        spec = importlib.util.spec_from_file_location(module_name, self.file)
        assert spec is not None
        assert spec.loader is not None
        if module_name not in sys.modules:
            module = importlib.util.module_from_spec(spec)
            sys.modules[module_name] = module  # data classes look their module up
            try:
                with _siblings(self.file.parent):
                    spec.loader.exec_module(module)
            except (Exception, SystemExit) as error:  # a program's sys.exit() is its failure
                del sys.modules[module_name]
                raise EvaluationError(
                    f"{self.file} cannot be imported: {type(error).__name__}: {error}",
                    hint="guard what is not for import: if __name__ == '__main__':",
                ) from error
        found = getattr(sys.modules[module_name], self.name, None)
        if not callable(found):
            raise EvaluationError(f"{self.name!r} of {self.file} is not a function")
        return found

    def call(self, *arguments: object) -> Any:
        """Call the user's function and return its result.

        Args:
            *arguments: the positional arguments.

        Raises:
            EvaluationError: the import or the call fails; the message names the function.
        """
        return call_own(self.load(), self.text, *arguments)


def call_own(function: Callable[..., Any], text: str, *arguments: object) -> Any:
    """Call a function of the user, and turn its exceptions into errors that name it.

    Args:
        function: the function.
        text: description of the function, for messages.
        *arguments: the positional arguments.

    Raises:
        EvaluationError: the function raises an exception.
    """
    try:
        return function(*arguments)
    except (Exception, SystemExit) as error:
        raise EvaluationError(f"{text} fails: {type(error).__name__}: {error}") from error


def read_own_file(path: Path) -> bytes:
    """Return the content of a regular file.

    Args:
        path: the file.

    Raises:
        SpecError: there is no such file, or it cannot be read.
    """
    if not path.is_file():
        raise missing_file(path)
    try:
        return path.read_bytes()
    except OSError as error:
        raise SpecError(f"{path} cannot be read: {error.strerror}") from error


def missing_file(path: Path) -> SpecError:
    """Return the error for a file that does not exist, with the nearest name in its folder."""
    try:
        near = [one.name for one in path.parent.iterdir()]
    except OSError:
        near = []
    return SpecError(f"there is no file {path}", hint=nearest(path.name, near))


def digest(*contents: bytes) -> str:
    """Return a hash of byte strings, as 16 hexadecimal digits."""
    found = hashlib.sha256()
    for content in contents:
        found.update(len(content).to_bytes(8, "little"))
        found.update(content)
    return found.hexdigest()[:16]


def _defined(node: ast.stmt) -> list[str]:
    """Return the names that a statement at the top of a file defines."""
    if isinstance(node, ast.FunctionDef | ast.ClassDef):
        return [node.name]
    if isinstance(node, ast.ImportFrom | ast.Import):
        return [one.asname or one.name for one in node.names]
    if isinstance(node, ast.Assign):
        return [one.id for one in node.targets if isinstance(one, ast.Name)]
    return []


@contextmanager
def _siblings(folder: Path) -> Iterator[None]:
    """Let a file import other files of its folder within the block."""
    sys.path.insert(0, str(folder))
    try:
        yield
    finally:
        sys.path.remove(str(folder))
