"""The ``dse`` command: its subcommands and the handling of errors at the top level."""

from __future__ import annotations

import errno
import inspect
import os
import sys
import warnings
from functools import cache
from typing import Any

import typer
from typer.core import TyperGroup

from dse.cli import (
    attach_command,
    calibrate_command,
    check,
    choose,
    compare,
    compress_command,
    deploy_command,
    doctor,
    effects_command,
    evaluate,
    init,
    judge_command,
    learn_command,
    plugins,
    report,
    resource_commands,
    run,
    serve,
    sweep,
    verify,
)
from dse.cli import completion as completing
from dse.cli import results as inspect_study
from dse.cli import studies as manage
from dse.cli import transfer as portability
from dse.cli.interrupts import (
    INTERRUPTED,
    STATUS,
    handled_by,
    interruptible,
    leave,
)
from dse.cli.options import say
from dse.cli.space import convert as exchange
from dse.cli.space import count as space
from dse.cli.space import describe as space_describe
from dse.cli.space import explain as space_explain
from dse.cli.space import legal_designs as space_designs
from dse.system.credentials import mask

_THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
USER_ERROR = 2
_UsageError: type[Exception] = typer.BadParameter.__mro__[1]
"""Class of the parser's usage errors, which typer does not export."""


class Commands(TyperGroup):
    """Group of commands; for a subcommand without its group, the error suggests the full path."""

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        groups = {name: getattr(one, "commands", {}) for name, one in self.commands.items()}
        deeper = [f"'dse {name} {args[0]}'" for name, own in groups.items() if args[0] in own]
        if deeper and not ctx.resilient_parsing and args[0] not in self.commands:
            ctx.fail(f"No such command '{args[0]}'. Did you mean {' or '.join(deeper)}?")
        return super().resolve_command(ctx, args)

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        from dse.cli.renamed_words import rename_words

        return super().parse_args(ctx, rename_words(args))

    def invoke(self, ctx: Any) -> Any:
        warnings.showwarning = _show_warning
        try:
            with interruptible():
                return super().invoke(ctx)
        except _UsageError as error:
            from dse.cli.usage import mend_usage

            mend_usage(error)
            raise
        except KeyboardInterrupt:
            typer.echo(INTERRUPTED, err=True)
            raise typer.Exit(STATUS) from None


app = typer.Typer(
    name="dse",
    cls=Commands,
    help="Explore design spaces of ML systems: state space and objectives, get the Pareto front.",
    epilog="Start with: dse run library:studies/quickstart.yaml",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)
studies = typer.Typer(help="Manage the studies of a storage.", no_args_is_help=True)
plugged = typer.Typer(
    help="Inspect evaluators, optimizers, executors and storages.", no_args_is_help=True
)
spaces = typer.Typer(help="Inspect, sample and convert design spaces.", no_args_is_help=True)
data = typer.Typer(help="Manage models and data sets for measurements.", no_args_is_help=True)
calibrated = typer.Typer(help="Fit models to your own measurements.", no_args_is_help=True)
apart = typer.Typer(help="Manage virtual environments of external programs.", no_args_is_help=True)

app.command("init")(init.init)
app.command("run")(run.run)
app.command("resume")(run.resume)
app.command("verify")(verify.verify)
app.command("status")(inspect_study.status)
app.command("front")(inspect_study.front)
app.command("choose")(choose.choose)
app.command("judge")(judge_command.judge)
app.command("deploy")(deploy_command.deploy)
app.command("compress")(compress_command.compress)
app.command("learn")(learn_command.learn)
app.command("trials")(inspect_study.trials)
app.command("compare")(compare.compare)
app.command("sweep")(sweep.sweep)
app.command("effects")(effects_command.effects)
app.command("report")(report.report)
app.command("serve")(serve.serve)
app.command("check")(check.check)
app.command("doctor")(doctor.doctor)
app.command("evaluate")(evaluate.evaluate)
app.command("attach")(attach_command.attach)
spaces.command("count")(space.count)
spaces.command("describe")(space_describe.describe)
spaces.command("explain")(space_explain.explain)
spaces.command("sample")(space_designs.sample)
spaces.command("neighbours")(space_designs.neighbours)
spaces.command("enumerate")(space_designs.enumerate_)
spaces.command("export")(exchange.export)
spaces.command("import")(exchange.import_)
spaces.command("diff")(exchange.diff)
plugged.command("list")(plugins.list_plugins)
plugged.command("show")(plugins.show_plugin)
studies.command("list")(manage.list_studies)
studies.command("delete")(manage.delete_study)
studies.command("migrate")(manage.migrate_study)
studies.command("export")(portability.export_study)
studies.command("import")(portability.import_study)
studies.command("trust")(portability.trust_study)
studies.command("merge")(portability.merge_studies)
data.command("list")(resource_commands.list_assets)
data.command("install")(resource_commands.install_assets)
data.command("where")(resource_commands.where_assets)
data.command("remove")(resource_commands.remove_assets)
calibrated.command("collectives")(calibrate_command.calibrate_collectives)
calibrated.command("devices")(calibrate_command.calibrate_devices)
calibrated.command("serving")(calibrate_command.calibrate_serving)
calibrated.command("training")(calibrate_command.calibrate_training)
apart.command("list")(resource_commands.list_environments)
apart.command("install")(resource_commands.install_environments)
apart.command("where")(resource_commands.where_environments)
apart.command("remove")(resource_commands.remove_environments)
for group in (app, spaces, plugged, studies, data, calibrated, apart):
    for command in group.registered_commands:  # without it typer truncates the first sentence
        command.short_help = (inspect.getdoc(command.callback) or "").partition("\n\n")[0]
app.add_typer(spaces, name="space")
app.add_typer(plugged, name="plugins")
app.add_typer(studies, name="studies")
app.add_typer(data, name="assets")
app.add_typer(calibrated, name="calibrate")
app.add_typer(apart, name="environments")


@app.callback(invoke_without_command=True)
def version(
    *,
    show: bool = typer.Option(False, "--version", help="Print the version and stop."),  # noqa: FBT003
) -> None:
    """Explore design spaces of ML systems: state space and objectives, get the Pareto front."""
    if show:
        from dse import __version__

        typer.echo(__version__)
        raise typer.Exit


def _text(word: str) -> str:
    """Return a command-line argument decoded as UTF-8, regardless of the locale's encoding.

    An argument that names an existing file is returned unchanged, because the file is opened with
    the locale's encoding.

    Raises:
        SpecError: the bytes are not valid UTF-8.
    """
    from dse.errors import SpecError

    try:
        text = os.fsencode(word).decode()
    except UnicodeError as error:
        raise SpecError(f"{word!a} is not valid UTF-8", hint="write it in UTF-8") from error
    return word if text == word or os.path.exists(word) else text  # noqa: PTH110 - no path, mostly


def _show_warning(
    message: Warning | str, category: type[Warning], *_: object, **__: object
) -> None:
    """Print a user warning as one line; drop developer warnings, such as deprecations."""
    if issubclass(category, FutureWarning | UserWarning):
        say(f"warning: {message}")


def _show_error(error: Exception) -> None:
    from dse.errors import SpecErrors, unchecked_words

    if not isinstance(error, SpecErrors):
        say(f"error: {error}")
        return
    for one in error.errors:
        say(f"error: {one}")
    if error.unchecked:
        say(unchecked_words(error.unchecked, len(error.errors)))


@cache
def build_command() -> Any:
    """Return the program's command; building all its subcommands takes longer than most of them."""
    return typer.main.get_command(app)


def main() -> None:
    """Run the command; report a user's mistake by a message and exit status, not a traceback."""
    for variable in _THREADS:  # before libraries start threads: workers of a study fill the cores
        os.environ.setdefault(variable, "1")
    try:
        with handled_by(leave):
            words = [_text(word) for word in sys.argv[1:]]
            if completing.VARIABLE in os.environ:
                completing.complete(app)
            sys.argv[1:] = map(mask, words)  # workers get a copy of them
            build_command()(words)
    except Exception as error:  # noqa: BLE001 - _status re-raises unknown errors
        sys.exit(_status(error))


def _status(error: Exception) -> int:
    """Print an error and return the exit status that corresponds to it.

    Raises:
        Exception: the error itself, if it is a defect of this program.
    """
    from dse.errors import DseError

    if isinstance(error, DseError):
        _show_error(error)
        return USER_ERROR
    if isinstance(error, OSError) and error.errno == errno.ENOSPC:  # storages raise a StorageError
        typer.echo(f"error: the output cannot be written: {error.strerror}", err=True)
        sys.stdout = None  # flushing the rest at exit would fail again
        return USER_ERROR
    raise error
