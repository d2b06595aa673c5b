"""Steering of a study: its further trials search for the user's favourite, or for the front."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress

from dse.core.preference_answers import TOWARD, PreferenceAnswer, Steering, read_steering
from dse.core.trial import Event
from dse.errors import DseError, StudyError, nearest
from dse.protocols import SeeksFavourite
from dse.registry import load, names
from dse.schema.study.plugin_checks import AUTO
from dse.services.studies.recorded_preferences import Preferences
from dse.study.proposers import find_auto_choice, suggesting
from dse.study.study_engine import StudyEngine

FAVOURITE, FRONT = "favourite", "front"


def steer(study: StudyEngine, toward: str) -> None:
    """Record what the study's next trials search for, unless it is recorded already.

    In a search for the favourite, the study's optimizer gets the answers that are recorded now.
    Later answers count only after another call.

    Args:
        study: the study.
        toward: ``favourite``, the design that fits the user's answers best; or ``front``, as
            without steering.

    Raises:
        StudyError: ``toward`` is neither, no answer is recorded, or the optimizer cannot search for
            a favourite.
    """
    if toward not in (FAVOURITE, FRONT):
        raise StudyError(
            f"trials are not spent toward {toward!r}", hint=nearest(toward, (FAVOURITE, FRONT))
        )
    events = study.events
    last = next(reversed(read_steering(events)), Steering(first=0))
    answers: tuple[PreferenceAnswer, ...] = ()
    if toward == FAVOURITE:
        _check_optimizer(study)
        preferences = Preferences.of(study)
        answers = tuple(one for one in preferences.answers if one not in preferences.unused)
        if not answers:
            raise StudyError(
                f"no answer is recorded from which the favourite of {study.name!r} follows",
                hint=f"dse choose {study.name} asks which of two designs is better",
            )
    now = Steering(first=len(study.trials), answers=answers)
    if [one.text for one in now.answers] != [one.text for one in last.answers]:
        event = Event(kind=TOWARD, text=now.text, told=len(study.finished))
        study.storage.record(study.name, [event])


def _check_optimizer(study: StudyEngine) -> None:
    """Check that the study's optimizer can search for a favourite.

    Raises:
        StudyError: the optimizer cannot, or ``auto`` has not chosen an optimizer yet.
    """
    use = study.plan.optimizer.use
    use = find_auto_choice(study.events) if use == AUTO else use
    if use and isinstance(suggesting(study.plan, use), SeeksFavourite):
        return
    if not use:
        raise StudyError(
            f"'auto' has not chosen an optimizer of {study.name!r} yet",
            hint=f"dse resume {study.name} without --toward",
        )
    raise StudyError(
        f"the optimizer {use!r} cannot search for a favourite",
        hint=f"{', '.join(_list_able())} can: dse studies migrate {study.name} FILE carries the "
        "trials over to a study with that optimizer",
    )


def _list_able() -> Iterator[str]:
    """Iterate over the names of the installed optimizers that can search for a favourite."""
    for name in sorted(names("optimizers")):
        with suppress(DseError):  # it cannot be loaded here
            if isinstance(load("optimizers", name), SeeksFavourite):
                yield name
