"""Random studies end with the front, the counts and the claims that plain Python finds."""

import math
from io import StringIO

import pytest
from rich.console import Console

from dse import InfeasibleError, Study, evaluator
from dse.core.trial import State
from dse.errors import StudyError
from dse.report.text.trial_tables import front_table
from dse.services.studies.status import ended_json, status_json
from dse.storage.memory import MemoryStorage
from tests import brute_force as brute

SEED = 20_260_500
"""Where the proof begins; its thousand studies are those of this seed and the next."""

EVERY = {"exhaustive", "decompose", "auto", "random"}

REFUSED = "cannot be decomposed", "may go either way", "combinations are left"
"""What decompose says of a problem that it leaves to others."""


def function(one):
    @evaluator(*one.metrics, kind=one.kind, reads=one.reads, version="1")
    def tells(**read):
        told = one.table[tuple(read.get(name) for name in one.reads)]
        if told == brute.RAISE:
            raise ValueError("drawn so")
        if told == brute.IMPOSSIBLE:
            raise InfeasibleError("drawn so")
        return told

    return tells


def formulas(one):
    return {
        "use": "expression",
        "metrics": {name: {"formula": brute.text(tree)} for name, tree in one.formulas.items()},
    }


def space_of(question):
    space = {name: {"ordinal": sorted(values)} for name, values in question.values.items()}
    if question.when is not None:
        child, parent, wanted = question.when
        space[child]["when"] = f"{parent} == {wanted}"
    return space


def run(question, optimizer):
    study = Study(
        f"s{question.seed}",
        space_of(question),
        {one.name: function(one) if one.table else formulas(one) for one in question.evaluators},
        minimize=[brute.text(tree) for goal, tree in question.objectives if goal == "minimize"],
        maximize=[brute.text(tree) for goal, tree in question.objectives if goal == "maximize"],
        constraints=[f"{brute.text(tree)} {word} {bound}" for tree, word, bound in question.limits],
        optimizer=optimizer,
        budget={"trials": 20} if optimizer == "random" else {},
        storage=MemoryStorage("memory://"),
    )
    return study, study.run(progress=False, on_error="keep")


def found_by(question):
    """The study as it ran; what decompose refuses is searched design by design."""
    try:
        return *run(question, question.optimizer), question.optimizer
    except StudyError as error:
        if question.optimizer != "decompose" or not any(part in str(error) for part in REFUSED):
            raise
        return *run(question, "exhaustive"), "exhaustive"


def key(trial):
    return tuple(sorted(trial.design.items()))


def shown(study):
    out = StringIO()
    front_table(
        study.front.found,
        study.trials,
        proof=study.front.proof,
        console=Console(file=out, width=200),
    )
    return out.getvalue()


def in_order(question, vector):
    """The losses as the study has them: what is minimised stands first."""
    pairs = list(zip((goal for goal, _ in question.objectives), vector, strict=True))
    return tuple(loss for goal, loss in pairs if goal == "minimize") + tuple(
        loss for goal, loss in pairs if goal == "maximize"
    )


def mismatches(seed):
    """What a study says that is not true, each in a sentence."""
    question = brute.drawn(seed)
    truth = brute.truth(question)
    study, ended, optimizer = found_by(question)
    told = {"front": told_front(study), **told_claims(study, ended)}
    vectors = {design: in_order(question, vector) for design, vector in truth.vectors.items()}
    searched = optimizer != "random"
    if searched:
        wanted = {in_order(question, vector) for vector in truth.front}
        failed, over = (
            truth.failed,
            truth.total - (truth.impossible + truth.failed if truth.failed else 0),
        )
    else:
        tried = {key(trial): vectors[key(trial)] for trial in study.trials if key(trial) in vectors}
        points = set(tried.values())
        wanted = {one for one in points if not any(brute.beats(other, one) for other in points)}
        failed = sum(key(trial) in truth.lost for trial in study.trials)
        over = None
    exact = searched and not failed
    expected = {"front": wanted, **claims(exact, failed, over, truth, question, study, searched)}
    differing = [
        f"{name}: {told[name]!r}, and not {expected[name]!r}"
        for name in expected
        if told[name] != expected[name]
    ]
    return [
        f"study {seed} by {optimizer}: {one}"
        for one in [*differing, *odd_rows(study, truth, vectors)]
    ], optimizer


def told_front(study):
    return {tuple(float(loss) + 0.0 for loss in row) for row in study.front.found.losses}


def told_claims(study, ended):
    status, end, table = status_json(study.engine), ended_json(study.engine, ended), shown(study)
    return {
        "failed": study.front.failed,
        "over": study.front.proof.over,
        "exact": study.front.exact,
        "status": (status["exact"], status["failed"], status["exact_over"]),
        "end": (end["exact"], end["failed"], end["exact_over"]),
        "words of the end": ended.startswith("exact over all "),
        "words of the table": "the exact front" in table,
        "words of Python": "exact front" in repr(study.front),
        "events": [event.kind for event in study.engine.events if event.kind.startswith("exact")],
        "an example": bool(study.front.proof.example),
        "feasible": feasible_words(ended),
    }


def feasible_words(ended):
    return (
        ended.partition(" keep every limit")[0].rpartition(" ")[2]
        if " keep every limit" in ended
        else None
    )


def claims(exact, failed, over, truth, question, study, searched):
    by_groups = any("parameters cover all" in event.text for event in study.engine.events)
    counted = question.limits and truth.feasible and not by_groups
    modelled = not study.problem.measured
    front = exact and bool(study.front)
    return {
        "failed": failed,
        "over": over,
        "exact": exact,
        "status": (exact, failed, over),
        "end": (exact, failed, over),
        "words of the end": exact,
        "words of the table": front,
        "words of Python": exact,
        "events": [] if not searched else ["exact"] if exact else ["exact over"],
        "an example": failed > 0,
        "feasible": f"{truth.feasible:,}" if searched and counted and modelled else None,
    }


def odd_rows(study, truth, vectors):
    """Trials that say something else of a design than is true."""
    for trial in study.trials:
        if trial.state is State.DONE:
            known = truth.metrics.get(key(trial), {})
            wrong = {
                n: v
                for n, v in trial.metrics.items()
                if n in known and not math.isclose(v, known[n])
            }
            blank = known.keys() ^ trial.metrics.keys() if known else ()
            if wrong or blank:
                yield f"trial {trial.number} has {wrong or blank}"
        feasible = bool(study.problem.feasible([trial])[0])
        if feasible != (key(trial) in vectors):
            yield f"trial {trial.number} is {'' if feasible else 'not '}an answer"


def found_in(seeds):
    told, used = [], []
    for seed in seeds:
        found, optimizer = mismatches(seed)
        told += found
        used.append(optimizer)
    return told, {name: used.count(name) for name in sorted(set(used))}


def test_sixty_studies_say_what_is_true():
    told, used = found_in(range(60))
    assert told == []
    assert {name for name, count in used.items() if count >= 5} == EVERY, used


@pytest.mark.proof
@pytest.mark.parametrize("part", range(10))
def test_a_thousand_studies_say_what_is_true(part):
    told, _ = found_in(range(SEED + 100 * part, SEED + 100 * part + 100))
    assert told == []
