"""Recorded answers of a user to which of two trials is better, as events of a study's record."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from dse.core.trial import Event

PREFERENCE = "preference"
WITHDRAWN = "preference withdrawn"
"""Kinds of the events that record an answer, and its withdrawal."""

_ANSWER = re.compile(r"trial (\d+) is (preferred to|as good as) trial (\d+)")
_NUMBER = re.compile(r"answer (\d+)\b")


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
        """Answer as the record has it: ``trial 3 is preferred to trial 7``."""
        words = "as good as" if self.equal else "preferred to"
        return f"trial {self.first} is {words} trial {self.second}"

    @staticmethod
    def parse(text: str, number: int = 0) -> PreferenceAnswer | None:
        """Parse a preference answer from an event's text; ``None`` if the text is none.

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

    Withdrawn answers are left out, and those on a pair that was answered again later.
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
