"""A first study put into a folder: all of its files, or none."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

from dse.errors import DseError, SpecErrors, StorageError, StudyError
from dse.report.schemas.pages import BegunFolder
from dse.services.init.answers import (
    EXAMPLE_AXES,
    EXAMPLE_WISHES,
    QUESTION,
    Beginning,
    Measuring,
    axis_of,
    wish_of,
)
from dse.services.init.templates import files


def init(
    folder: str | Path = ".",
    *,
    name: str | None = None,
    question: str = QUESTION,
    measured: Measuring = "command",
    parameters: Sequence[str] = (),
    metrics: Sequence[str] = (),
) -> BegunFolder:
    """Write a commented space, a study and an evaluator that run, to be changed into one's own.

    Example:
        ``init("kernels", parameters=["threads = 1..16"], metrics=["minimize time ms"])``

    Args:
        folder: where to; made if it is not there.
        name: the study's; the folder's without one.
        question: what is asked, in words.
        measured: by a program (``command``), from a ``table`` of designs, or by a ``formula``.
        parameters: each a line such as ``"threads = 1..16"`` or ``"format = int8, fp16"``; an
            example without any.
        metrics: each a line such as ``"minimize time ms"``; an example without any.

    Raises:
        StudyError: there is such a file already.
        SpecError: a line cannot be read, or a name stands twice.
        SpecErrors: what was told makes no study.
        StorageError: the folder cannot be written.
    """
    place = Path(folder)
    asked = Beginning(
        name=name or usual_name(place),
        question=question,
        measuring=measured,
        axes=tuple(map(axis_of, parameters)) or EXAMPLE_AXES,
        wishes=tuple(map(wish_of, metrics)) or EXAMPLE_WISHES,
    )
    return {"study": asked.name, "folder": str(place), "files": [*write_study_files(asked, place)]}


def usual_name(folder: Path) -> str:
    """Return the default name of a study: the name of its folder, or ``mine`` without one.

    Characters that a name cannot have become ``-``.
    """
    return re.sub(r"[^\w.-]", "-", folder.resolve().name).lstrip("-.") or "mine"


def check_free(folder: Path, names: Sequence[str] = ("space.yaml", "study.yaml")) -> None:
    """Nothing, if no file of the folder would be overwritten.

    Raises:
        StudyError: one would be.
    """
    taken = [name for name in names if (folder / name).exists()]
    if taken:
        raise StudyError(
            f"{folder / taken[0]} is there already",
            hint="name another folder: dse init FOLDER",
        )


def write_study_files(asked: Beginning, folder: Path) -> Mapping[str, str]:
    """Write the files of a new study and return their texts by file name.

    Nothing is written if they do not form a valid study.

    Raises:
        StudyError: there is such a file already.
        SpecErrors: what was told makes no study, such as an unknown unit.
        StorageError: the folder cannot be written.
    """
    texts = files(asked)
    check_free(folder, [*texts])
    _check(texts)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for name, text in texts.items():
            (folder / name).write_text(text, encoding="utf-8")
    except OSError as error:
        raise StorageError(f"{folder} cannot be written: {error.strerror}") from error
    return texts


def _check(texts: Mapping[str, str]) -> None:
    """Nothing, if the texts make a study.

    Raises:
        SpecErrors: they do not; no line is told, since the user has not written any.
    """
    from dse.schema.study.plan import plan_of

    with TemporaryDirectory() as folder:
        for name, text in texts.items():
            (Path(folder) / name).write_text(text, encoding="utf-8")
        try:
            plan_of((Path(folder) / "study.yaml").resolve())
        except DseError as error:
            told = error.errors if isinstance(error, SpecErrors) else (error,)
            raise SpecErrors([one.at("") for one in told]) from error
