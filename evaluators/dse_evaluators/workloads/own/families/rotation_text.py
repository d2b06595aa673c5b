"""Rotations of a decoder as a study names them."""

from __future__ import annotations

from dataclasses import dataclass

from dse.errors import SpecError
from dse_evaluators.formats.names import format_of
from dse_evaluators.workloads.own.families.decoder_rotation import rotation_seed

_LEARNED = "learned"
_MOST_STEPS = 10**5


@dataclass(frozen=True, slots=True, kw_only=True)
class RotationLearning:
    """Settings of a learned rotation: number of steps, seed of the start, number format."""

    steps: int
    seed: int
    format: str

    @staticmethod
    def of(text: str) -> RotationLearning:
        """Parse a text such as ``100/int4:channel`` or ``100,seed=1/int4:group=32``.

        Raises:
            SpecError: the text has another form, or the format is unknown.
        """
        words, _, form = text.partition("/")
        steps, _, setting = words.partition(",")
        name, _, seed = setting.partition("=")
        is_seeded = name.strip() == "seed" and seed.strip().isdecimal()
        if not (steps.strip().isdecimal() and form and (is_seeded or not setting)):
            raise SpecError(
                f"there is no rotation 'learned {text}'",
                hint="learned 100/int4:channel, or learned 100,seed=1/int4:channel",
                part=["rotation"],
            )
        if int(steps) > _MOST_STEPS:
            hint = f"at most {_MOST_STEPS:,}"
            raise SpecError(f"{steps} steps are too many", hint=hint, part=["rotation"])
        try:
            format_of(form)
        except SpecError as error:
            raise SpecError(error.problem, hint=error.hint, part=["rotation"]) from error
        return RotationLearning(steps=int(steps), seed=int(seed or 0), format=form)


def read_rotation(text: str) -> tuple[RotationLearning | None, int]:
    """Return how a rotation is learnt, None if it is random, and the seed of its start.

    Args:
        text: ``hadamard``, ``hadamard:7`` or ``learned 100/int4:channel``.

    Raises:
        SpecError: there is no such rotation.
    """
    name, _, rest = text.partition(" ")
    if name != _LEARNED:
        return None, rotation_seed(text) or 0
    learning = RotationLearning.of(rest)
    return learning, learning.seed
