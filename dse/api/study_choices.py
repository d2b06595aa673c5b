"""Choice of one design of a study in Python: further limits, and the user's preferences."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from pathlib import Path

    from dse.api.front import Front
    from dse.core.trial import Trial
    from dse.services.studies.deploy import Deployment
    from dse.services.studies.recorded_preferences import Favourite
    from dse.study.study_engine import StudyEngine


class StudyChoices:
    """Methods of :class:`~dse.api.study.Study` that help to choose one design of many."""

    engine: StudyEngine

    def front_at(self, *limits: str, best: str | None = None) -> Front:
        """Return the front of the designs that satisfy further limits, or the best by one metric.

        All finished trials are searched, also those that are not on the study's front.

        Example:
            ``study.front_at("chip.latency <= 20 ms", best="chip.area")[0].design``

        Args:
            limits: limits on metrics and parameters, as under ``constraints`` of a study file.
            best: return only the best designs by this objective, metric with a goal, or formula
                after ``minimize:`` or ``maximize:``; of equal ones, the non-dominated ones.

        Returns:
            The designs; empty if none satisfies every limit.

        Raises:
            SpecError: a limit or the formula is invalid, or has an unknown name.
            StudyError: no design that satisfies every limit has a value of ``best``.
        """
        from dse.api.front import Front
        from dse.services.studies.best_designs import find_best_designs

        chosen = find_best_designs(self.engine, limits, best)
        return Front(self.engine.name, chosen.found, proof=chosen.proof, among=chosen.trials)

    def prefer(self, better: Trial | int, other: Trial | int, *, equal: bool = False) -> None:
        """Record that the user prefers one design of the study to another.

        The latest answer on a pair counts. ``dse choose NAME --list`` lists the answers.

        Example:
            ``study.prefer(3, 7)``

        Args:
            better: the trial that is preferred, or its number.
            other: the other trial, or its number.
            equal: whether both are equally good.

        Raises:
            StudyError: both are the same trial, or one is not a feasible finished trial.
        """
        from dse.api.tell import number_of
        from dse.services.studies.recorded_preferences import record_preference

        record_preference(self.engine, number_of(better), number_of(other), equal=equal)

    def choose(
        self,
        answer: Callable[[Trial, Trial], Literal["first", "second", "equal"] | None],
        *,
        questions: int = 8,
    ) -> Favourite:
        """Ask which of two designs is better, at most ``questions`` times; return the favourite.

        Each answer is stored in the study at once. The questions end once the favourite is clear.

        Example:
            ``study.choose(lambda a, b: "first" if a.metrics["cost"] < 5 else "second").trial``

        Args:
            answer: called with two trials of the front; returns which of them is better
                (``"first"``, ``"second"`` or ``"equal"``), or ``None`` to skip the pair.
            questions: the maximum number of questions.

        Returns:
            The favourite (``trial``), with the ``probability`` that it loses at most 1 % of utility
            to the best design of the front.

        Raises:
            StudyError: the study has fewer than two objectives, or no feasible trial.
            SpecError: ``answer`` returns none of these values.
        """
        from dse.services.studies.recorded_preferences import ask_preferences

        return ask_preferences(self.engine, answer, questions).favourite

    def favourite(self) -> Favourite:
        """Return the design that fits the user's answers best, and the probability of that.

        Example:
            ``study.favourite().trial.design``

        Raises:
            StudyError: the study has fewer than two objectives, or no feasible trial.
        """
        from dse.services.studies.recorded_preferences import Preferences

        return Preferences.of(self.engine).favourite

    def steer(self, toward: Literal["favourite", "front"]) -> None:
        """Spend further trials toward the favourite of the recorded answers, or the front.

        The choice holds until the next call, also for other processes. Answers given after this
        call have no effect before the next one.

        Example:
            ``study.steer("favourite")``, then ``study.run(measurements=60)``

        Args:
            toward: ``favourite``: the design that fits the user's answers best; ``front``: the
                Pareto front, as at first.

        Raises:
            StudyError: no answer is recorded, or the optimizer cannot search for a favourite.
        """
        from dse.services.studies.steer import steer

        steer(self.engine, toward)

    def deploy(
        self,
        to: str,
        file: str | Path,
        *,
        trial: Trial | int | None = None,
        evaluator: str | None = None,
    ) -> Deployment:
        """Write the compressed model of a trial, or its settings, as a file for other programs.

        For a model, ``FILE.recipe.json`` records the design and the format of each tensor.

        Example:
            ``study.deploy("safetensors", "model.safetensors", trial=3)``

        Args:
            to: the file format of a model: ``safetensors``, ``onnx``, ``gguf``, ``torch`` or
                ``torchao``; the program of settings: ``vllm``, ``sglang``, ``llama.cpp`` or
                ``deepspeed``; or a CSV file of flags.
            file: the file to write.
            trial: the trial, or its number; default: the only design of the front, or the user's
                favourite.
            evaluator: the name of the evaluator that compressed the model, or whose inputs are the
                settings.

        Returns:
            The written ``files``. For a model, also their ``sizes`` next to the size that the study
            measured; for settings, the ``flags`` and the settings that no flag expresses.

        Raises:
            StudyError: no evaluator can return its compressed model, it is not clear which trial is
                meant, or the file format cannot hold a tensor; the hint names the nearest format
                that it can.
            StorageError: a file cannot be written.
        """
        from pathlib import Path

        from dse.api.tell import number_of
        from dse.services.studies.deploy import deploy_trial

        number = None if trial is None else number_of(trial)
        return deploy_trial(self.engine, to, Path(file), number=number, evaluator=evaluator)
