"""``dse verify``: the record is replayed, and proved or not."""

from __future__ import annotations

from typing import Any

import typer

from dse.cli.options import Format, FormatOption, NameArgument, StorageOption, show_json

FELL_SHORT = 1


def verify(
    name: NameArgument,
    *,
    storage: StorageOption = None,
    output: FormatOption = Format.TABLE,
) -> None:
    """Prove that each design of a study is what its optimizer asks, told what was known then.

    Exit code 1 says that something could not be proved.

    Example: dse verify quickstart
    """
    from dse.cli.bar import replaying
    from dse.study import Study
    from dse.verify import Replay

    study = Study.load(name, storage)
    with replaying(quiet=output is not Format.TABLE) as on_progress:
        proof = Replay(study, on_progress=on_progress).proof()
    if output is Format.TABLE:
        typer.echo(_words(proof))
    else:
        show_json(_plain(study.name, proof))
    if not proof.whole:
        raise typer.Exit(FELL_SHORT)


def _words(proof: Any) -> str:
    wrong = proof.mismatch
    carried = f", beside {proof.carried} from another study" if proof.carried else ""
    if wrong is not None:
        lines = [
            f"trial {wrong.trial} does not follow from the record: {wrong.reason}",
            *(_designs(wrong.expected, wrong.found)),
            f"  before it {proof.asks} asks and {proof.trials} trials are proved{carried}",
        ]
        lines += [f"  {n} was {a} then and is {b} here" for n, (a, b) in wrong.versions.items()]
        return "\n".join(lines)
    proved = f"proved: {proof.asks} asks, {proof.trials} trials{carried}"
    if not proof.unknown:
        return proved
    others = "somebody added them by hand, or another program or an older version wrote them"
    return f"{proved}\nnot proved: {proof.unknown} trials, of which no ask is kept; {others}"


def _designs(expected: Any, found: Any) -> list[str]:
    if expected is None and found is None:
        return []
    return [f"  expected: {_design(expected)}", f"  found:    {_design(found)}"]


def _design(design: Any) -> str:
    return "nothing" if design is None else ", ".join(f"{k}={v}" for k, v in design.items())


def _plain(study: str, proof: Any) -> dict[str, Any]:
    wrong = proof.mismatch
    return {
        "study": study,
        "proved": proof.whole,
        "asks": proof.asks,
        "trials": proof.trials,
        "carried": proof.carried,
        "unknown": proof.unknown,
        "mismatch": wrong
        and {
            "trial": wrong.trial,
            "reason": wrong.reason,
            "expected": wrong.expected and dict(wrong.expected),
            "found": wrong.found and dict(wrong.found),
            "versions": {name: list(pair) for name, pair in wrong.versions.items()},
        },
    }
