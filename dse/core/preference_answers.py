"""Recorded answers of a user to the question which of two trials is better, as study events."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from dse.core.trial import Event

PREFERENCE = "preference"
WITHDRAWN = "preference withdrawn"
"""Kinds of the events that record an answer, and its withdrawal."""

TOWARD = "toward"
"""Kind of the events that record the goal of the remaining trials: a favourite or the front."""

_ANSWER = re.compile(r"trial (\d+) is (preferred to|as good as) trial (\d+)")
_NUMBER = re.compile(r"answer (\d+)\b")
_STEERED = re.compile(r"from trial (\d+): toward the (favourite, as |front)(.*)")


@dataclass(frozen=True, slots=True, kw_only=True)
class PreferenceAnswer:
    """Recorded answer: trial ``first`` is preferred to, or as good as, trial ``second``.

    ``number`` counts the recorded answers of the study from 1, withdrawn ones included.
    """

    number: int
    first: int
    second: int
    equal: bool = False

    @property
    def text(self) -> str:
        """Answer as the text of its event, such as ``trial 3 is preferred to trial 7``."""
        words = "as good as" if self.equal else "preferred to"
        return f"trial {self.first} is {words} trial {self.second}"

    @staticmethod
    def parse(text: str, number: int = 0) -> PreferenceAnswer | None:
        """Parse a preference answer from an event's text; ``None`` if the text is not an answer.

        Args:
            text: text of the event.
            number: the answer's number.
        """
        words = _ANSWER.fullmatch(text)
        if words is None:
            return None
        first, relation, second = words.groups()
        equal = relation == "as good as"
        return PreferenceAnswer(number=number, first=int(first), second=int(second), equal=equal)


def read_answers(events: Sequence[Event]) -> tuple[PreferenceAnswer, ...]:
    """Return the valid answers of a study's events, oldest first.

    Withdrawn answers are left out, and so are answers about a pair that has a later answer.
    """
    found: dict[int, PreferenceAnswer] = {}
    count = 0
    for event in events:
        if event.kind == PREFERENCE:
            answer = PreferenceAnswer.parse(event.text, count + 1)
            if answer is None:
                continue
            count += 1
            pair = {answer.first, answer.second}
            found = {n: one for n, one in found.items() if {one.first, one.second} != pair}
            found[count] = answer
        elif event.kind == WITHDRAWN and (words := _NUMBER.match(event.text)):
            found.pop(int(words[1]), None)
    return tuple(found.values())


@dataclass(frozen=True, slots=True, kw_only=True)
class Steering:
    """Recorded request of a user to steer the search from trial number ``first`` on.

    With preference answers, the search stays near the favourite design that the answers imply;
    without answers, it approaches the complete Pareto front.
    """

    first: int
    answers: tuple[PreferenceAnswer, ...] = ()

    @property
    def text(self) -> str:
        """Request to steer the search, as text that :func:`read_steering` reads."""
        known = "; ".join(answer.text for answer in self.answers)
        return (
            f"from trial {self.first}: toward the {f'favourite, as {known}' if known else 'front'}"
        )

    def renumber(self, number: Mapping[int, int]) -> Steering | None:
        """Return the request to steer with new trial numbers, for a copied study.

        The result is ``None`` if one of the trials is not copied.

        Args:
            number: new numbers of the trials by their old numbers.
        """
        named = {self.first, *(n for one in self.answers for n in (one.first, one.second))}
        if not named <= number.keys():
            return None
        answers = [
            replace(one, first=number[one.first], second=number[one.second]) for one in self.answers
        ]
        return Steering(first=number[self.first], answers=tuple(answers))


def read_steering(events: Iterable[Event]) -> list[Steering]:
    """Return the recorded requests of users to steer the search, oldest first."""
    found = []
    for event in events:
        words = _STEERED.fullmatch(event.text) if event.kind == TOWARD else None
        if words is not None:
            answers = [PreferenceAnswer.parse(text) for text in words[3].split("; ") if text]
            known = tuple(answer for answer in answers if answer is not None)
            found.append(Steering(first=int(words[1]), answers=known))
    return found


def answers_at(steering: Sequence[Steering], first: int) -> tuple[PreferenceAnswer, ...]:
    """Return the preference answers that apply to the trials numbered from ``first`` on."""
    return next((one.answers for one in reversed(steering) if one.first <= first), ())
