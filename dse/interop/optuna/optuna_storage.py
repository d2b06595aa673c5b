"""Export of studies to Optuna storages, for its dashboard, and import of Optuna studies.

Optuna has neither expressions nor metrics: objectives become ``values`` in their own units and
directions, metrics ``user_attrs``, and limits the attribute ``constraints`` of its samplers, whose
values are at most zero for a feasible design. Times are synthetic: the trials follow one another
from 1970 on, each with its cost as the duration.

Source:
    https://optuna.readthedocs.io/en/stable/reference/storages.html
"""

from __future__ import annotations

import json
import logging
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np

from dse.core.problem import Problem
from dse.core.trial import State, Trial
from dse.errors import PluginError, StorageError, nearest
from dse.interop.found_trials import ExternalTrial, header
from dse.interop.optuna.distributions import write
from dse.system.credentials import mask_url

_BEGINNING = datetime(1970, 1, 1, tzinfo=UTC).replace(tzinfo=None)  # Optuna's times have no zone
_STATES: Mapping[State, str] = {
    State.PENDING: "WAITING",
    State.RUNNING: "WAITING",
    State.DONE: "COMPLETE",
    State.SCREENED: "PRUNED",
    State.STOPPED: "PRUNED",
    State.INFEASIBLE: "FAIL",
    State.FAILED: "FAIL",
    State.OUTSIDE: "FAIL",
}
_ENDS: Mapping[str, State] = {
    "COMPLETE": State.DONE,
    "PRUNED": State.STOPPED,
    "FAIL": State.FAILED,
}
_NUMBER, _STATE = "dse:trial", "dse:state"
_REASON, _COST = "dse:reason", "dse:cost [s]"


def write_study(problem: Problem, finished: Sequence[Trial], name: str, url: str) -> list[str]:
    """Write a study into an Optuna storage, and return warnings on what Optuna cannot represent.

    Args:
        problem: the study's problem.
        finished: the study's finished trials, in the order in which they finished.
        name: name of the study in Optuna.
        url: ``sqlite:///optuna.db``, another SQLAlchemy URL, or the path of a journal file.

    Raises:
        PluginError: Optuna is not installed.
        StorageError: the storage cannot be written, or has a study of that name already.
    """
    optuna = _optuna()
    exported = write(problem.space, drop_rules=True)
    distributions = {
        parameter: optuna.distributions.json_to_distribution(text)
        for parameter, text in json.loads(exported.text).items()
    }
    with _storage(url) as storage:
        try:
            study = optuna.create_study(
                storage=storage,
                study_name=name,
                directions=[objective.goal for objective in problem.objectives],
            )
        except optuna.exceptions.DuplicatedStudyError as error:
            problem_ = f"{url} has a study {name!r} already"
            raise StorageError(problem_, hint="take another name: --name NAME") from error
        study.set_metric_names([objective.text for objective in problem.objectives])
        study.set_user_attr("units", {o.text: o.unit for o in problem.objectives})
        study.add_trials(list(_theirs(problem, finished, distributions)))
    return list(exported.warnings)


def read_study(name: str | None, url: str, goals: Sequence[str]) -> tuple[str, list[ExternalTrial]]:
    """Return the name of an Optuna study and its finished trials, in the order they finished.

    Args:
        name: name of the Optuna study; ``None`` if there is only one.
        url: as in :func:`write_study`.
        goals: ``minimize`` or ``maximize``, in the order of the importing study's objectives.

    Raises:
        PluginError: Optuna is not installed.
        StorageError: the storage cannot be read, has no such study, or the goals differ.
    """
    optuna = _optuna()
    file = Path(url.removeprefix("sqlite:///"))
    if (url.startswith("sqlite:///") or "://" not in url) and not file.is_file():
        raise StorageError(f"there is no file {file}")
    with _storage(url) as storage:
        names = optuna.get_all_study_names(storage)
        chosen = name if name is not None else names[0] if len(names) == 1 else ""
        if chosen not in names:
            raise StorageError(f"{url} has no study {chosen!r}", hint=nearest(chosen, names))
        study = optuna.load_study(study_name=chosen, storage=storage)
        theirs = [direction.name.lower() for direction in study.directions]
        if theirs != list(goals):
            raise StorageError(
                f"the goals of {chosen!r} are {', '.join(theirs)}, but here {', '.join(goals)}",
                hint="the objectives must be the same, in the same order",
            )
        ended = [t for t in study.trials if t.state.is_finished()]
        ended.sort(key=lambda trial: (trial.datetime_complete, trial.number))
    return chosen, [_read_trial(trial) for trial in ended]


def _theirs(
    problem: Problem, finished: Sequence[Trial], distributions: Mapping[str, Any]
) -> Iterator[Any]:
    """Yield the study's trials as Optuna trials, ordered by number.

    Their synthetic end times encode the order in which the trials finished.
    """
    from optuna.trial import TrialState

    ends = _ends(finished)
    by_number = sorted(range(len(finished)), key=lambda place: finished[place].number)
    trials = [finished[place] for place in by_number]
    values = problem.losses(problem.columns(trials), len(trials))
    signs = np.array([o.sign for o in problem.objectives])
    slacks = problem.slacks(problem.columns(trials), len(trials))
    for place, trial in enumerate(trials):
        known = bool(np.isfinite(values[place]).all())
        state = _STATES[trial.state] if known or trial.state is not State.DONE else "FAIL"
        start, end = ends[trial.number]
        yield _frozen(
            state=TrialState[state],
            values=(signs * values[place]).tolist() if state == "COMPLETE" else None,
            params=_params(trial, distributions),
            distributions=distributions,
            user_attrs=_attributes(problem, trial),
            system_attrs=_constraints(slacks[place]),
            times=(start, end),
        )


def _frozen(
    *,
    params: Mapping[str, Any],
    distributions: Mapping[str, Any],
    times: tuple[datetime, datetime],
    **fields: Any,
) -> Any:
    from optuna.trial import FrozenTrial

    return FrozenTrial(
        number=-1,
        trial_id=-1,
        value=None,
        params=dict(params),
        distributions={name: distributions[name] for name in params},
        intermediate_values={},
        datetime_start=times[0],
        datetime_complete=times[1],
        **fields,
    )


def _ends(finished: Sequence[Trial]) -> dict[int, tuple[datetime, datetime]]:
    """Return the synthetic start and end time of each trial, by number.

    No two trials overlap, so that their order can be recovered.
    """
    found = {}
    now = _BEGINNING
    for trial in finished:
        end = now + timedelta(seconds=trial.cost_s) + timedelta(microseconds=1)
        found[trial.number] = (now, end)
        now = end
    return found


def _params(trial: Trial, distributions: Mapping[str, Any]) -> dict[str, Any]:
    """Return the values of a design that Optuna's distributions contain.

    A trial from before a change of the space may have other values.
    """
    found = {}
    for name, value in trial.design.items():
        kind = distributions.get(name)
        try:
            inside = kind is not None and kind._contains(kind.to_internal_repr(value))  # noqa: SLF001 - it has no other test
        except ValueError:
            inside = False
        if inside:
            found[name] = value
    return found


def _attributes(problem: Problem, trial: Trial) -> dict[str, Any]:
    units = {name: metric.unit for name, metric in problem.metrics.items()}
    attributes: dict[str, Any] = {
        f"{name} [{units[name]}]" if units.get(name) else name: value
        for name, value in trial.metrics.items()
    }
    attributes |= {_NUMBER: trial.number, _STATE: trial.state.value, _COST: trial.cost_s}
    if trial.failure is not None:
        attributes[_REASON] = (
            trial.failure.reason.encode("utf-8", "replace").decode().replace("\0", "")
        )
    return attributes


def _constraints(slacks: Any) -> dict[str, Any]:
    known = len(slacks) and np.isfinite(slacks).all()
    return {"constraints": (-slacks).tolist()} if known else {}


def _read_trial(trial: Any) -> ExternalTrial:
    attributes = dict(trial.user_attrs)
    state = str(attributes.pop(_STATE, ""))
    ours = state in {one.value for one in State if one.finished}
    reason, cost_s = attributes.pop(_REASON, ""), attributes.pop(_COST, None)
    headers = {key: header(str(key)) for key in attributes}
    spent = trial.duration.total_seconds() if trial.duration is not None else 0.0
    return ExternalTrial(
        values={**{headers[key][0]: value for key, value in attributes.items()}, **trial.params},
        units={name: unit for name, unit in headers.values() if unit},
        objectives=tuple(trial.values or ()) if trial.state.name == "COMPLETE" else (),
        state=State(state) if ours else _ENDS[trial.state.name],
        reason=str(reason),
        cost_s=float(spent if cost_s is None else cost_s),
    )


def _optuna() -> Any:  # Optuna is an extra
    try:
        import optuna
    except ImportError as error:
        hint = "it comes with: pip install 'dse-engine[optuna]'"
        raise PluginError("Optuna is not installed", hint=hint) from error
    return optuna


@contextmanager
def _storage(url: str) -> Iterator[Any]:
    """Open Optuna's storage with its log output silenced; raise its errors as StorageError."""
    optuna = _optuna()
    from sqlalchemy.exc import SQLAlchemyError

    level = optuna.logging.get_verbosity()
    optuna.logging.set_verbosity(logging.WARNING)
    try:
        with warnings.catch_warnings(), closing(_Opened(url)) as opened:
            warnings.simplefilter("ignore", optuna.exceptions.ExperimentalWarning)
            yield opened.storage
    except (SQLAlchemyError, OSError, RuntimeError, ValueError) as error:
        place = mask_url(url)
        first = str(error).partition("\n")[0].replace(url, place)
        problem = f"the Optuna storage {place} cannot be used: {first}"
        raise StorageError(problem) from None  # the original message may contain the password
    finally:
        optuna.logging.set_verbosity(level)


class _Opened:
    """Optuna storage opened by a SQLAlchemy URL or the path of a journal file."""

    def __init__(self, url: str) -> None:
        from optuna.storages import JournalStorage, RDBStorage
        from optuna.storages.journal import JournalFileBackend

        self._database = RDBStorage(url) if "://" in url else None
        if self._database is None:
            _check_journal(Path(url))
        self.storage = self._database or JournalStorage(JournalFileBackend(url))

    def close(self) -> None:
        if self._database is not None:
            self._database.remove_session()
            self._database.engine.dispose()


def _check_journal(path: Path) -> None:
    """Raise StorageError unless the file is an Optuna journal, as Optuna would write into it."""
    if path.is_file() and path.stat().st_size:
        with path.open("rb") as opened:
            if opened.read(1) != b"{":
                hint = f"name a database by its URL: sqlite:///{path}"
                raise StorageError(f"{path} is no journal of Optuna", hint=hint)
