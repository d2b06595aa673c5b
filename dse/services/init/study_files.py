"""Writer of the files of a first study; it writes all of them or, if they are invalid, none."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

from dse.errors import DseError, SpecError, SpecErrors, StorageError, StudyError
from dse.report.schemas.pages import BegunFolder
from dse.services.init.answers import (
    EXAMPLE_METRICS,
    EXAMPLE_PARAMETERS,
    QUESTION,
    InitAnswers,
    Measuring,
    parse_metric,
    parse_parameter,
)
from dse.services.init.templates import files


def init(  # noqa: PLR0913 - its options are its arguments
    folder: str | Path = ".",
    *,
    name: str | None = None,
    question: str = QUESTION,
    measured: Measuring = "command",
    parameters: Sequence[str] = (),
    metrics: Sequence[str] = (),
    model: str | None = None,
    data: str | None = None,
    quality: str | None = None,
    chip: bool = False,
) -> BegunFolder:
    """Write the commented files of a first study that runs, as a starting point for editing.

    Example:
        ``init("kernels", parameters=["threads = 1..16"], metrics=["minimize time ms"])``

    Args:
        folder: target folder; created if it does not exist.
        name: name of the study; by default that of the folder.
        question: the question that the study answers, as a sentence.
        measured: how designs are measured: by a program (``command``), from a ``table`` of designs,
            or by a ``formula``.
        parameters: each a line such as ``"threads = 1..16"`` or ``"format = int8, fp16"``; by
            default an example.
        metrics: each a line such as ``"minimize time ms"``; by default an example.
        model: a model to compress, instead of the above: ``"net.onnx"``, a folder, or
            ``"net.py:make"``.
        data: the examples to run the model on, such as ``"data.npz"``.
        quality: the model's quality metric; by default accuracy if the data has classes.
        chip: whether the study also chooses a systolic array that runs the model.

    Raises:
        StudyError: one of the files exists already.
        SpecError: a line cannot be parsed, a name occurs twice, or arguments exclude one another.
        SpecErrors: the answers do not form a valid study.
        StorageError: the folder cannot be written.
    """
    place = Path(folder)
    if model is not None or data is not None or quality is not None or chip:
        # Imported here: few studies begin so, and an import of dse brings little.
        from dse.services.init.model_study import MODEL_QUESTION, ModelAnswer, write_model_study

        if parameters or metrics or measured != "command":
            problem = "a study of a model has its own parameters, metrics and evaluator"
            raise SpecError(problem, hint="leave out parameters, metrics and measured")
        if model is None or data is None:
            missing = "model" if model is None else "data"
            raise SpecError(f"a study of a model needs its {missing}", hint=f"name {missing}=")
        check_free(place)
        answer = ModelAnswer(model=model, data=data, quality=quality, has_chip=chip)
        asked_here = MODEL_QUESTION if question == QUESTION else question
        label = name or usual_name(place)
        written = write_model_study(label, asked_here, answer, place)
        return {"study": label, "folder": str(place), "files": [*written]}
    asked = InitAnswers(
        name=name or usual_name(place),
        question=question,
        measuring=measured,
        axes=tuple(map(parse_parameter, parameters)) or EXAMPLE_PARAMETERS,
        metrics=tuple(map(parse_metric, metrics)) or EXAMPLE_METRICS,
    )
    return {"study": asked.name, "folder": str(place), "files": [*write_study_files(asked, place)]}


def usual_name(folder: Path) -> str:
    """Return the default study name: that of its folder, with ``-`` for invalid characters."""
    return re.sub(r"[^\w.-]", "-", folder.resolve().name).lstrip("-.") or "mine"


def check_free(folder: Path, names: Sequence[str] = ("space.yaml", "study.yaml")) -> None:
    """Raise StudyError if one of these files exists in the folder already."""
    taken = [name for name in names if (folder / name).exists()]
    if taken:
        raise StudyError(
            f"{folder / taken[0]} is there already",
            hint="name another folder: dse init FOLDER",
        )


def write_study_files(asked: InitAnswers, folder: Path) -> Mapping[str, str]:
    """Write the files of a new study, unless they are invalid; return their texts by file name.

    Raises:
        StudyError: one of the files exists already.
        SpecErrors: the answers do not form a valid study, for example because a unit is unknown.
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
    """Raise SpecErrors unless the generated files form a valid study.

    The errors have no file or line, since the user did not write these files.
    """
    from dse.schema.study.plan import plan_of

    with TemporaryDirectory() as folder:
        for name, text in texts.items():
            (Path(folder) / name).write_text(text, encoding="utf-8")
        try:
            plan_of((Path(folder) / "study.yaml").resolve())
        except DseError as error:
            errors = error.errors if isinstance(error, SpecErrors) else (error,)
            raise SpecErrors([one.at("") for one in errors]) from error
