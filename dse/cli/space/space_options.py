"""Options that the ``dse space`` commands share, and functions that read a space."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Annotated, Any

import typer

from dse.cli import completion as completing
from dse.cli.options import study_path
from dse.system.broken_pipes import raise_without_reader

SpaceFile = Annotated[
    str,
    typer.Argument(
        autocompletion=completing.space_files,
        help="A space file, or library:spaces/... for a shipped one.",
        show_default=False,
    ),
]
SetOption = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        "-s",
        help="Only designs with this value, such as tp=8 or buffer='64 KiB'; may be repeated.",
        metavar="K=V",
    ),
]
SeedOption = Annotated[
    int, typer.Option("--seed", min=0, help="The same seed gives the same designs.")
]


def space_at(file: str, *, may_be_empty: bool = False) -> Any:
    """Return the space that a file describes.

    Args:
        file: the path as the user gave it.
        may_be_empty: accept a space without any legal design.

    Raises:
        SpecError: the file is a study.
        SpecErrors: the file has mistakes; the error lists all of them.
    """
    from dse.schema.space.space_loader import space_document, space_of
    from dse.schema.yaml.files import Files

    sys.set_int_max_str_digits(0)  # a count may have more than Python's limit of 4,300 digits
    path, files = study_path(file), Files()
    space_document(path, files)
    return space_of(path, files, may_be_empty=may_be_empty)


def title_of(file: str) -> dict[str, str]:
    """Return the name and the description of a file's space, by keyword."""
    from dse.schema.yaml.files import Files

    value = Files().source(study_path(file)).value
    return {"name": str(value["space"]), "description": str(value.get("description") or "")}


def part_of(space: Any, pairs: Sequence[str] | None) -> Any:
    """Return the subspace whose designs have these ``parameter=value`` settings."""
    from dse.cli.settings import settings
    from dse.core.inspection.rule_conflicts import narrow_space

    return narrow_space(space, settings(pairs, space)) if pairs else space


@contextmanager
def allow_early_close() -> Iterator[None]:
    """Ignore that a reader such as ``head`` closes the output stream inside the block."""
    raise_without_reader()
    with suppress(BrokenPipeError):
        yield
        sys.stdout.flush()
