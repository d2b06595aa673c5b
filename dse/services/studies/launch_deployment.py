"""Deployment of a trial's settings: the flags of a program that runs the design."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from dse.core.batch import Batch
from dse.core.trial import Trial
from dse.core.values import Value
from dse.errors import StorageError, StudyError, nearest
from dse.interop.launch.flag_rules import (
    FlagRule,
    LaunchSettings,
    decode_settings,
    encode_settings,
    program_rules,
    read_rules,
)
from dse.interop.launch.launch_files import (
    LAUNCHERS,
    OWN_TABLE,
    Launcher,
    decode_flags,
    encode_flags,
    extension_of,
)
from dse.report.json.atomic_file import write_whole
from dse.study.study_engine import StudyEngine


@dataclass(frozen=True, slots=True, kw_only=True)
class Program:
    """Program that runs a design, such as vLLM, with rules that turn settings into flags."""

    name: str
    rules: tuple[FlagRule, ...]
    launcher: Launcher


def find_program(to: str) -> Program | None:
    """Return the program for a name or a CSV table of flags; ``None`` if ``to`` is neither.

    Raises:
        SpecError: the table cannot be read.
    """
    if to in LAUNCHERS:
        return Program(name=to, rules=program_rules(to), launcher=LAUNCHERS[to])
    if to.endswith(".csv"):
        return Program(name=to, rules=read_rules(Path(to)), launcher=OWN_TABLE)
    return None


def express_settings(
    study: StudyEngine, program: Program, trial: Trial, evaluator: str | None
) -> LaunchSettings:
    """Return the flags of a trial's settings, read back from the file that would hold them.

    Args:
        study: the study.
        program: the program.
        trial: the trial.
        evaluator: the evaluator whose inputs are the settings; default: the parameters of the
            space, by the last part of their names.

    Raises:
        StudyError: two settings need the same flag, there is no such evaluator, or no setting of
            the design can be expressed.
    """
    settings = _settings_of(study, trial, evaluator)
    made = encode_settings(program.rules, settings, program.name)
    if not made.flags:
        raise StudyError(
            f"no setting of trial {trial.number} has a flag of {program.name}",
            hint=f"settings: {', '.join(settings)}; flags are known of "
            f"{', '.join(sorted({rule.setting for rule in program.rules}))}",
        )
    return made


def write_settings(program: Program, made: LaunchSettings, file: Path) -> None:
    """Write the flags to a file, after a check that they read back equal.

    Raises:
        StudyError: the program reads no such file, or the file would give other settings.
        StorageError: the file cannot be written.
    """
    extension = extension_of(file)
    content = encode_flags(made.flags, program.launcher, extension)
    flags = decode_flags(content, extension, program.launcher.manifest)
    back = decode_settings(program.rules, flags, list(made.expressed))
    changed = [name for name, value in made.expressed.items() if back.get(name) != value]
    if changed:
        raise StudyError(
            f"{program.name} would read {changed[0]} = {back.get(changed[0])} in place of "
            f"{made.expressed[changed[0]]}",
            hint="two rows of the table of flags stand for one value: make them distinct",
        )
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise StorageError(f"{file.parent} cannot be made: {error.strerror}") from error
    write_whole(file, content)
    if extension == ".sh":
        file.chmod(0o755)


def _settings_of(study: StudyEngine, trial: Trial, evaluator: str | None) -> dict[str, Value]:
    if evaluator is not None:
        bound = {one.name: one for one in study.plan.pipeline.bound}
        if evaluator not in bound:
            raise StudyError(
                f"{study.name!r} has no evaluator {evaluator!r}", hint=nearest(evaluator, bound)
            )
        known: Mapping[str, Value] = {**trial.design, **trial.metrics}
        return dict(bound[evaluator].own_inputs(Batch.of([known])).row(0))
    settings: dict[str, Value] = {}
    for name, value in trial.design.items():
        last = name.rpartition(".")[2]
        if last in settings:
            raise StudyError(
                f"two parameters of {study.name!r} are called {last}",
                hint="name with --evaluator the evaluator whose inputs are the settings",
            )
        settings[last] = value
    return settings
