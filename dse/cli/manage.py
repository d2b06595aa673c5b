"""``dse plugins`` and ``dse studies``: what there is, and getting rid of a study."""

from __future__ import annotations

import inspect
import re
from typing import Annotated, Any

import typer

from dse.cli.options import (
    Format,
    FormatOption,
    NameArgument,
    StorageOption,
    say,
    show_json,
    study_path,
)

_RAISES = re.compile(r"^Raises:$", re.MULTILINE)


def list_plugins(*, output: FormatOption = Format.TABLE) -> None:
    """All plug-ins by kind, with the distribution that each comes from.

    Example: dse plugins list
    """
    from dse.registry import GROUPS, names

    found = [
        {"kind": group, "name": name, "from": point.dist.name if point.dist else "?"}
        for group in GROUPS
        for name, point in names(group).items()
    ]
    if output is Format.JSON:
        show_json(found)
        return
    wide = max(len(one["name"]) for one in found)
    for one in found:
        typer.echo(f"{one['kind']:<12}{one['name']:<{wide}}  {one['from']}")


def show_plugin(
    name: Annotated[str, typer.Argument(help="A plug-in's name.", show_default=False)],
    *,
    output: FormatOption = Format.TABLE,
) -> None:
    """What a plug-in is, its options, and for an evaluator what it reads and provides.

    Example: dse plugins show accelerators.systolic
    """
    from dse.errors import PluginError, nearest
    from dse.registry import GROUPS, load, names

    found = [(group, load(group, name)) for group in GROUPS if name in names(group)]
    if not found:
        every = [known for group in GROUPS for known in names(group)]
        raise PluginError(f"there is no plug-in {name!r}", hint=nearest(name, every))
    told = [_facts(group, name, plugin) for group, plugin in found]
    if output is Format.JSON:
        show_json(told)
        return
    for one in told:
        typer.echo(f"{name} ({one['kind'][:-1]}): {one['about']}")
        for line in one["more"]:
            typer.echo(f"  {line}".rstrip())
        for option in one["options"]:
            typer.echo(f"  option   {option}")
        for reading in one.get("reads", []):
            typer.echo(f"  reads    {reading}")
        for metric in one.get("provides", []):
            typer.echo(f"  provides {metric}")


def list_studies(*, storage: StorageOption = None, output: FormatOption = Format.TABLE) -> None:
    """The studies of a storage.

    Example: dse studies list
    """
    from dse.study import DEFAULT_STORAGE, opened_storage

    opened = opened_storage(storage or DEFAULT_STORAGE)
    rows = [_study_row(opened, name) for name in opened.studies()]
    if output is Format.JSON:
        show_json(rows)
        return
    if not rows:
        say(f"no studies in {storage or DEFAULT_STORAGE}; begin one with: dse run STUDY.yaml")
    for row in rows:
        typer.echo(f"{row['study']:<28}{row['trials']:>6} trials  {row['question']}")


def delete_study(
    name: NameArgument,
    *,
    storage: StorageOption = None,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
) -> None:
    """Forget a study and all its trials.

    Example: dse studies delete quickstart --yes
    """
    from dse.errors import StudyError, nearest
    from dse.study import DEFAULT_STORAGE, opened_storage

    opened = opened_storage(storage or DEFAULT_STORAGE)
    if name not in opened.studies():
        raise StudyError(f"there is no study {name!r}", hint=nearest(name, opened.studies()))
    if not yes:
        typer.confirm(f"forget {name!r} and its {len(opened.trials(name))} trials?", abort=True)
    opened.delete(name)
    say(f"{name} is forgotten")


def migrate_study(
    name: NameArgument,
    file: Annotated[
        str, typer.Argument(help="The study file with the new space.", metavar="STUDY")
    ],
    *,
    to: Annotated[
        str | None,
        typer.Option("--to", help="The new study's name.", show_default="NAME-2, -3 ..."),
    ] = None,
    set_: Annotated[
        list[str] | None,
        typer.Option("--set", help="What the old trials had in a new parameter: name=value."),
    ] = None,
    storage: StorageOption = None,
    output: FormatOption = Format.TABLE,
) -> None:
    """Begin a study with a changed space from the trials of an old one.

    Trials that are still legal count as its own; the others are marked as outside, and surrogates
    learn from them. The old study stays as it is.

    Example: dse studies migrate quickstart wider.yaml --set chip.voltage=0.9
    """
    from dse.cli.settings import settings
    from dse.migration import migrated
    from dse.schema.plan import plan_of
    from dse.study import DEFAULT_STORAGE

    path = study_path(file)
    fixed = settings(set_ or [], plan_of(path).problem.space)
    carried = migrated(name, path, to=to, settings=fixed, storage=storage or DEFAULT_STORAGE)
    facts = {"study": carried.study.name, "inside": carried.inside, "outside": carried.outside}
    if output is Format.JSON:
        show_json(facts)
        return
    say(f"{facts['study']}: {carried.inside} trials carried over, {carried.outside} outside")
    say(f"go on with it: dse resume {facts['study']}")


def _facts(group: str, name: str, plugin: Any) -> dict[str, Any]:
    from dse.registry import options_of

    about, *more = (inspect.getdoc(plugin) or "").split("\n")
    told = _RAISES.split("\n".join(more).replace("``", ""))[0].strip("\n")
    options = [_option(parameter) for parameter in options_of(plugin).values()]
    facts: dict[str, Any] = {"kind": group, "name": name, "about": about, "options": options}
    facts["more"] = ["", *told.split("\n"), ""] if told else []
    if group != "evaluators":
        return facts
    try:
        made = plugin()
    except Exception:  # noqa: BLE001 - it needs options, so what it reads depends on them
        return facts
    wanted = [(r, "") for r in sorted(made.reads)] + [(r, "?") for r in sorted(made.optional)]
    facts["reads"] = [f"{r}{mark} [{made.units.get(r, '')}]" for r, mark in wanted]
    facts["provides"] = [f"{own} [{metric.unit}]" for own, metric in made.provides.items()]
    return facts


def _option(parameter: inspect.Parameter) -> str:
    """The option with its type and default, as a study's file would have them."""
    kind = str(parameter.annotation).strip("'")
    if parameter.default is parameter.empty:
        return f"{parameter.name}: {kind}"
    made = "<factory>" in str(parameter.default)  # a mapping or list that is empty, as a rule
    return f"{parameter.name}: {kind}" + ("" if made else f" = {parameter.default!r}")


def _study_row(storage: Any, name: str) -> dict[str, Any]:
    spec = storage.spec(name) or {}
    trials = storage.trials(name)
    return {
        "study": name,
        "trials": len(trials),
        "finished": int(trials.over.sum()),
        "question": spec.get("question", ""),
    }
