"""Deployment of a trial: its compressed model as a file that another program loads."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from dse.core.batch import Batch
from dse.core.trial import State, Trial
from dse.core.values import Value
from dse.errors import StorageError, StudyError, nearest
from dse.evaluation.bound_evaluator import Bound
from dse.interop.deployment.deployed_files import PURPOSES, DeployedFiles
from dse.interop.deployment.onnx_file import TARGET as ONNX
from dse.interop.deployment.targets import TARGETS, target_of
from dse.protocols import DeployedModel, DeployedTensor, HasDeployedModel, Quantization
from dse.report.json.atomic_file import write_whole
from dse.report.json.front_json import finite
from dse.services.studies.launch_deployment import (
    Program,
    express_settings,
    find_program,
    write_settings,
)
from dse.services.studies.recorded_preferences import Preferences
from dse.study.study_engine import StudyEngine
from dse.system.credentials import private_environment

_CONFIG = "config.json"
_LISTED = 12


@dataclass(frozen=True, slots=True, kw_only=True)
class SizeRow:
    """Bytes for one purpose, such as weights: as the study's metric counts them, and in the file.

    ``study_bytes`` is ``None`` if the evaluator has no metric of the size.
    """

    purpose: str
    study_bytes: float | None
    file_bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Deployment:
    """Files written for a deployed trial, with their sizes and the sizes that the study measured.

    Args:
        study: the study's name.
        trial: the trial.
        target: the target's name.
        files: the written files; the first one holds the weights.
        sizes: bytes by purpose, the total last.
        notes: how the files differ from what the study measured.
        flags: the flags of a program, for settings.
        missing: the value of each setting that no flag expresses, and why.
    """

    study: str
    trial: Trial
    target: str
    files: tuple[Path, ...]
    sizes: tuple[SizeRow, ...]
    notes: tuple[str, ...]
    flags: Mapping[str, Value] = field(default_factory=dict)
    missing: Mapping[str, str] = field(default_factory=dict)


def deploy_trial(
    study: StudyEngine,
    to: str,
    file: Path | None,
    *,
    number: int | None = None,
    evaluator: str | None = None,
) -> Deployment:
    """Write a trial's compressed model or settings as a file; return what was written.

    Args:
        study: the study.
        to: the target's name: a file format of :data:`dse.interop.deployment.targets.TARGETS`, a
            program of :data:`dse.interop.launch.launch_files.LAUNCHERS`, or a CSV file of flags.
        file: the file to write, in a folder that is made if it is missing; for a model,
            ``FILE.recipe.json`` is written, too. ``None`` writes nothing, for settings only.
        number: the trial; default: the only design of the front, or the user's favourite.
        evaluator: the evaluator's name in the study; default: the only one that can deploy.

    Raises:
        StudyError: no evaluator can return a compressed model, it is not clear which trial or
            evaluator is meant, or the target cannot hold a tensor.
        StorageError: a file cannot be written.
    """
    program = find_program(to)
    if program is not None:
        return _deploy_settings(study, program, file, choose_trial(study, number), evaluator)
    target = target_of(to)
    if file is None:
        raise StudyError(
            f"the weights of --to {to} need a file", hint=f"-o model{target.extension}"
        )
    _check_extension(file, to)
    study.check_runnable()
    bound = _choose_evaluator(study, evaluator)
    trial = choose_trial(study, number)
    with private_environment():
        model = _deployed_model(bound, trial)
        if not model.tensors and to != ONNX:
            raise StudyError(
                f"the evaluator {bound.name!r} gives an ONNX file, which --to {to} cannot hold",
                hint=f"--to {ONNX}",
            )
        encoded = target.write(model)
    return Deployment(
        study=study.name,
        trial=trial,
        target=to,
        files=_write_files(file, encoded, _recipe(study, trial, to, model)),
        sizes=_sizes(model, encoded, trial.metrics.get(bound.metric(model.size_metric))),
        notes=(*model.notes, *encoded.notes),
    )


def _deploy_settings(
    study: StudyEngine, program: Program, file: Path | None, trial: Trial, evaluator: str | None
) -> Deployment:
    made = express_settings(study, program, trial, evaluator)
    if file is not None:
        write_settings(program, made, file)
    return Deployment(
        study=study.name,
        trial=trial,
        target=program.name,
        files=() if file is None else (file,),
        sizes=(),
        notes=(),
        flags=made.flags,
        missing=made.missing,
    )


def choose_trial(study: StudyEngine, number: int | None) -> Trial:
    """Return the trial to deploy: by number, else the front's only trial or the favourite.

    Raises:
        StudyError: there is no such trial, the trial has no metrics, or no number is given and the
            front has no design, or several designs without a recorded favourite.
    """
    if number is not None:
        return _trial_of(study, number)
    front = study.front.trials
    if len(front) == 1:
        return front[0]
    if not front:
        raise StudyError(
            f"no finished trial of {study.name!r} satisfies every limit",
            hint="name one with --trial",
        )
    preferences = Preferences.of(study)
    if len(preferences.answers) > len(preferences.unused):
        return preferences.favourite.trial
    numbers = ", ".join(str(trial.number) for trial in front[:_LISTED])
    more = f" and {len(front) - _LISTED} more" if len(front) > _LISTED else ""
    raise StudyError(
        f"the front of {study.name!r} has {len(front)} designs: trials {numbers}{more}",
        hint=f"name one with --trial, or choose one: dse choose {study.name}",
    )


def _trial_of(study: StudyEngine, number: int) -> Trial:
    trials = study.trials
    if not 0 <= number < len(trials):
        raise StudyError(f"there is no trial {number}", hint=f"valid: 0 to {len(trials) - 1}")
    trial = trials[number]
    if trial.state is not State.DONE:
        raise StudyError(
            f"trial {number} is {trial.state.value} and has no metrics",
            hint=f"dse front {study.name} shows trials that can be deployed",
        )
    return trial


def _choose_evaluator(study: StudyEngine, name: str | None) -> Bound:
    """Return the evaluator that can return a compressed model, by name if one is given.

    Raises:
        StudyError: no evaluator can, no evaluator of this name can, or several can and no name is
            given.
    """
    able = {
        one.name: one
        for one in study.plan.pipeline.bound
        if isinstance(one.evaluator, HasDeployedModel)
    }
    if not able:
        names = ", ".join(sorted({one.name for one in study.plan.pipeline.bound}))
        raise StudyError(
            f"no evaluator of {study.name!r} can give a compressed model (it has: {names})",
            hint="compression.recipe can; another evaluator can with a method deployed_model",
        )
    if name is None and len(able) == 1:
        return next(iter(able.values()))
    if name is None:
        raise StudyError(
            f"{len(able)} evaluators of {study.name!r} can give a compressed model: "
            f"{', '.join(able)}",
            hint="name one with --evaluator",
        )
    if name not in able:
        raise StudyError(
            f"no evaluator {name!r} of {study.name!r} can give a compressed model",
            hint=nearest(name, able),
        )
    return able[name]


def _deployed_model(bound: Bound, trial: Trial) -> DeployedModel:
    known: Mapping[str, Value] = {**trial.design, **trial.metrics}
    evaluator = bound.evaluator
    assert isinstance(evaluator, HasDeployedModel)
    model = evaluator.deployed_model(bound.own_inputs(Batch.of([known])).row(0))
    for name, tensor in model.tensors.items():
        _check_tensor(bound.name, name, tensor)
    return model


def _check_tensor(evaluator: str, name: str, tensor: DeployedTensor) -> None:
    """Check that a tensor's quantized values and scales decode to its values, bit for bit.

    Raises:
        StudyError: the decoded values differ, or the values are not float32.
    """
    values, stored = tensor.values, tensor.stored
    problem = "" if values.dtype == np.float32 else f"has values of type {values.dtype}"
    if isinstance(stored, Quantization) and not problem:
        same = stored.numbers.size == values.size
        same = same and np.array_equal(stored.decode().ravel(), values.ravel())
        problem = "" if same else "has values that its numbers and scales do not represent"
    if problem:
        raise StudyError(
            f"the tensor {name!r} of the evaluator {evaluator!r} {problem}",
            hint="its method deployed_model must return values in float32, as Quantization.decode "
            "returns them",
        )


def _check_extension(file: Path, to: str) -> None:
    """Raise StudyError if the file has the extension of another target."""
    others = {one.extension: name for name, one in TARGETS.items() if name != to}
    if file.suffix in others and file.suffix != TARGETS[to].extension:
        wanted = file.with_suffix(TARGETS[to].extension)
        raise StudyError(
            f"{file} has the extension of --to {others[file.suffix]}, not of --to {to}",
            hint=f"-o {wanted}",
        )


def _write_files(file: Path, encoded: DeployedFiles, recipe: Mapping[str, Any]) -> tuple[Path, ...]:
    """Write the file, its recipe and, if there are settings, the folder's config.json.

    Raises:
        StorageError: a file or its folder cannot be written.
    """
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise StorageError(f"{file.parent} cannot be made: {error.strerror}") from error
    contents: dict[Path, bytes] = {file: encoded.content}
    if encoded.settings:
        config = file.with_name(_CONFIG)
        contents[config] = _json({**_read_config(config), **encoded.settings})
    contents[file.with_name(f"{file.name}.recipe.json")] = _json(recipe)
    for path, content in contents.items():
        write_whole(path, content)
    return tuple(contents)


def _read_config(path: Path) -> Mapping[str, Any]:
    """Return the keys of an existing config.json, which the written file will keep.

    Raises:
        StudyError: the file is not a JSON object.
    """
    if not path.exists():
        return {}
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        hint = "write to another folder"
        raise StudyError(f"{path} cannot be read: {error}", hint=hint) from error
    if not isinstance(found, dict):
        raise StudyError(f"{path} is not a JSON object", hint="write to another folder")
    return found


def _json(value: Mapping[str, Any]) -> bytes:
    return (json.dumps(value, indent=2, allow_nan=False, default=list) + "\n").encode()


def _recipe(study: StudyEngine, trial: Trial, to: str, model: DeployedModel) -> dict[str, Any]:
    """Return what was deployed: the trial, its design and metrics, and each tensor's format."""
    return {
        "study": study.name,
        "trial": trial.number,
        "target": to,
        "design": dict(trial.design),
        "metrics": {name: finite(value) for name, value in trial.metrics.items()},
        "tensors": {
            name: {
                "shape": list(tensor.values.shape),
                "recipe": tensor.recipe,
                "stored": _stored_words(tensor.stored),
            }
            for name, tensor in model.tensors.items()
        },
        "notes": list(model.notes),
    }


def _stored_words(stored: Quantization | str | None) -> str:
    if isinstance(stored, Quantization):
        zeros = "" if stored.zero_points is None else ",asym"
        return f"{stored.element}:{stored.granularity}{zeros}"
    return stored or "decoded"


def _sizes(
    model: DeployedModel, encoded: DeployedFiles, measured: float | None
) -> tuple[SizeRow, ...]:
    """Return the bytes by purpose, as the study counts them and in the file, the total last."""
    in_file = encoded.bytes_by_purpose
    rows = [
        SizeRow(purpose=name, study_bytes=model.size_bytes.get(name), file_bytes=in_file[name])
        for name in PURPOSES
    ]
    total = SizeRow(purpose="total", study_bytes=measured, file_bytes=len(encoded.content))
    return (*rows, total)
