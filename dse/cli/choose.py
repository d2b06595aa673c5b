"""``dse choose``: find the design that a user likes best, by questions on pairs of designs."""

from __future__ import annotations

import sys
from itertools import count
from typing import TYPE_CHECKING, Annotated

import typer

from dse.cli.options import (
    JsonOrTableOption,
    NameArgument,
    OutputFormat,
    StorageOption,
    show,
    show_json,
)

if TYPE_CHECKING:
    from dse.core.trial import Trial
    from dse.core.utility_posterior import Response
    from dse.services.studies.recorded_preferences import Preferences
    from dse.study.study_engine import StudyEngine

_PROMPT = "Which is better? 1, 2, = (equal), s (skip), q (quit): "
_KEYS: dict[str, Response | None] = {"1": "first", "2": "second", "=": "equal", "s": None}


def choose(
    name: NameArgument,
    *,
    questions: Annotated[int, typer.Option(min=0, help="The most questions to ask.")] = 8,
    prefer: Annotated[
        list[str] | None,
        typer.Option(
            help="Record an answer without asking: 3:7, trial 3 is better; 3=7, equally good.",
            metavar="A:B",
        ),
    ] = None,
    forget: Annotated[
        list[int] | None,
        typer.Option(help="Withdraw the answer of this number; repeatable.", metavar="ANSWER"),
    ] = None,
    listed: Annotated[bool, typer.Option("--list", help="List the recorded answers.")] = False,
    storage: StorageOption = None,
    output: JsonOrTableOption = OutputFormat.TABLE,
) -> None:
    """Choose a design of the Pareto front by questions on which of two designs is better.

    The answers are stored in the study, and the questions stop by themselves once the favourite is
    clear. With --prefer, --forget, --list or --format json nothing is asked.

    Example: dse choose quickstart --questions 5
    """
    from dse.services.studies.recorded_preferences import (
        Preferences,
        record_preference,
        withdraw_answers,
    )
    from dse.study.study_engine import StudyEngine

    study = StudyEngine.load(name, storage)
    pairs = [_parse_pair(text) for text in prefer or []]
    forgotten = withdraw_answers(study, forget or [])
    for first, second, equal in pairs:
        record_preference(study, first, second, equal=equal)
    preferences = Preferences.of(study)
    if output is OutputFormat.JSON:
        from dse.services.studies.choice_json import choice_json

        show_json(choice_json(name, preferences, [one.number for one in forgotten]))
        return
    for one in forgotten:
        show(f"withdrawn: answer {one.number}, {one.text}")
    if listed:
        _print_answers(preferences)
    elif not (pairs or forgotten):
        preferences = _converse(study, preferences, questions)
    _print_favourite(preferences)


def _parse_pair(text: str) -> tuple[int, int, bool]:
    """Parse ``3:7`` or ``3=7`` into two trial numbers and whether they are equally good.

    Raises:
        StudyError: the text is not of this form.
    """
    from dse.errors import StudyError

    equal = "=" in text
    first, _, second = (word.strip() for word in text.partition("=" if equal else ":"))
    if not (first.isascii() and first.isdigit() and second.isascii() and second.isdigit()):
        raise StudyError(
            f"--prefer {text!r}: expected two trial numbers",
            hint="--prefer 3:7 (trial 3 is better than trial 7) or --prefer 3=7 (equally good)",
        )
    return int(first), int(second), equal


class _Quit(Exception):  # noqa: N818 - no error: the user has enough
    """Exception that ends the questions because the user quits or the input has ended."""


def _converse(study: StudyEngine, preferences: Preferences, questions: int) -> Preferences:
    """Ask questions until the favourite is clear, or the user quits; each answer is stored."""
    from dse.report.text.pair_table import pair_table
    from dse.services.studies.recorded_preferences import Preferences, ask_preferences

    asked = count(1)

    def answer(first: Trial, second: Trial) -> Response | None:
        show(f"question {next(asked)} of at most {questions}")
        pair_table(preferences.problem, first, second)
        return _read_answer()

    try:
        return ask_preferences(study, answer, questions)
    except _Quit:
        return Preferences.of(study)


def _read_answer() -> Response | None:
    """Return the user's answer from standard input; ``None`` skips the pair.

    Raises:
        _Quit: the user quits, or the input has ended.
    """
    while True:
        sys.stdout.write(_PROMPT)
        sys.stdout.flush()
        line = sys.stdin.readline()
        if not line:
            show()
        key = line.strip().lower() if line else "q"
        if key == "q":
            raise _Quit
        if key in _KEYS:
            return _KEYS[key]
        show(f"{line.strip()!r} is no answer: type 1, 2, =, s or q, then Enter")


def _print_answers(preferences: Preferences) -> None:
    if not preferences.answers:
        show("no answer is recorded")
    for one in preferences.answers:
        unused = (
            " (not used: one of them is no longer feasible)" if one in preferences.unused else ""
        )
        show(f"answer {one.number}: {one.text}{unused}")


def _print_favourite(preferences: Preferences) -> None:
    from dse.core.pareto import ParetoSet
    from dse.core.proof import Proof
    from dse.report.text.pair_table import favourite_words
    from dse.report.text.trial_tables import front_table

    favourite = preferences.favourite
    used = len(preferences.answers) - len(preferences.unused)
    words = favourite_words(favourite.trial, favourite.probability, used)
    losses = preferences.problem.trial_losses([favourite.trial])
    shown = ParetoSet(
        problem=preferences.problem, trials=(favourite.trial,), losses=losses, reference=None
    )
    front_table(shown, proof=Proof(), heading=words)
