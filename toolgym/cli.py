"""The `toolgym` command, which runs the commands of all installed packages.

Each command is defined by an entry point in the group `toolgym.commands`. The entry point refers to
a typed function, or to a `typer.Typer` with several functions (such as `toolgym tasks check`).
Typer derives the options of a command from the function's parameters, and the help text from its
docstring. A command is imported only when it runs or when all commands are listed. Errors are
reported in one line.

Exit status: 0 for success; 1 for a negative result, an infrastructure error or a bug; 2 for invalid
usage; 130 if interrupted; 141 if stdout was closed. `TOOLGYM_TRACEBACK=1` prints tracebacks.
"""

from __future__ import annotations

import io
import os
import re
import sys
import traceback
from collections.abc import Sequence
from functools import cached_property
from importlib.metadata import version
from typing import Annotated, Any, NoReturn

import typer
from typer.core import TyperCommand, TyperGroup

from toolgym.commands import nearest, say, with_remark
from toolgym.commands.progress import long_work_shown
from toolgym.errors import ConfigurationError, EnvironmentFault, TaskRefused, field_problem
from toolgym.plugins import COMMANDS, Plugin, PluginError, find_plugins

SUCCESS, FAILURE, MISUSE, INTERRUPTED, OUTPUT_CLOSED = 0, 1, 2, 130, 141
_KIND = re.compile(r"<(\w+) range>|<list\[(\w+)\]>")  # types in the help texts of Typer
_REMARKS = re.compile(r"\s*\[(required|(?:default: |x>=|[\d.]+<=x)[^\[\]]*)\]$")
_EXAMPLE = re.compile(r"^(Examples?:\n(?:[ \t]+\S.*\n?)+)", re.M)


class Command(TyperCommand):
    """A command whose help text has a section for each `rich_help_panel` of its options."""

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """Write the sections."""
        sections: dict[str, list[tuple[str, str]]] = {}
        for parameter in self.get_params(ctx):
            title = "Arguments" if parameter.param_type_name == "argument" else "Options"
            title = getattr(parameter, "rich_help_panel", None) or title
            record = parameter.get_help_record(ctx)
            if record is not None:
                sections.setdefault(title, []).append(_plain(*record))
        for title, records in sections.items():
            with formatter.section(title):
                formatter.write_dl(records)


def _plain(option: str, text: str) -> tuple[str, str]:
    """Return an option and its help text, with types, defaults and ranges in plain words.

    >>> _plain("--n <int range>", "Number of tasks.  [default: 9; x>=1]")
    ('--n <int>', 'Number of tasks (default: 9).')
    >>> _plain("--workers <int range>", "Number of processes (default: none).  [1<=x<=64]")
    ('--workers <int>', 'Number of processes (default: none; 1 to 64).')
    """
    option = _KIND.sub(lambda found: f"<{(found[1] or found[2]).lower()}>", option)
    remarks = _REMARKS.search(text)
    if remarks is None:
        return option, text
    kept = [each for each in remarks[1].split("; ") if not each.startswith("x>=")]
    kept = [re.sub(r"^([\d.]+)<=x<=([\d.]+)$", r"\1 to \2", each) for each in kept]
    text = text[: remarks.start()]
    if kept and text.endswith(")."):
        text = f"{text.removesuffix(').')}; {'; '.join(kept)})."
    elif kept:
        text = with_remark(text, "; ".join(kept))
    return option, text


class Commands(TyperGroup):
    """The commands of all installed packages."""

    @cached_property
    def plugins(self) -> dict[str, Plugin]:
        """The plug-ins of the commands, by name."""
        return find_plugins(COMMANDS)

    def list_commands(self, ctx: Any) -> list[str]:
        """Return the names of the commands."""
        return list(self.plugins)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """Import and return a command.

        Returns None if the command does not exist or cannot be imported. A failed import is
        reported on stderr.
        """
        if cmd_name not in self.commands and cmd_name in self.plugins:
            try:
                self.commands[cmd_name] = _command(cmd_name, self.plugins[cmd_name].load())
            except PluginError as problem:
                if not ctx.resilient_parsing:  # True when a shell completes a line
                    _say(f"{problem} Run `toolgym doctor`.")
        return self.commands.get(cmd_name)

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Return the command that the given command-line arguments select.

        Raises:
            Exit: The import of the command failed.
        """
        exists = args[0] in self.plugins
        if exists and self.get_command(ctx, args[0]) is None and not ctx.resilient_parsing:
            raise typer.Exit(FAILURE)
        if not exists and not args[0].startswith("-"):
            ctx.fail(f"No such command {args[0]!r}{_did_you_mean(args[0], self.plugins)}")
        return super().resolve_command(ctx, args)

    def invoke(self, ctx: Any) -> Any:
        """Run the command and turn exceptions into messages and exit statuses."""
        try:
            with long_work_shown(quiet="--quiet" in ctx.args):
                return super().invoke(ctx)
        except BrokenPipeError:
            _drop_output()
            raise typer.Exit(OUTPUT_CLOSED) from None
        except KeyboardInterrupt:
            _stop("interrupted.", INTERRUPTED)
        except (ConfigurationError, TaskRefused) as mistake:
            _stop(str(mistake), MISUSE)
        except EnvironmentFault as fault:
            _stop(str(fault), FAILURE)
        except Exception as problem:
            if isinstance(problem, typer.Exit) or hasattr(problem, "format_message"):
                raise  # an exit or a usage error, which Typer handles
            message = f"failed: {type(problem).__name__}: {problem}"
            if not os.environ.get("TOOLGYM_TRACEBACK"):
                message += "\nSet TOOLGYM_TRACEBACK=1 to print the traceback."
            _stop(message, FAILURE)


def _command(name: str, loaded: Any) -> Any:
    """Return the Typer command for a function, or for a `typer.Typer` with several functions."""
    if isinstance(loaded, typer.Typer):
        for function in loaded.registered_commands:
            function.cls = Command
        command: Any = typer.main.get_group(loaded)
        command.no_args_is_help = True
    else:
        app = typer.Typer(add_completion=False)
        app.command(name, cls=Command)(loaded)
        command = typer.main.get_command(app)
    for each in (command, *getattr(command, "commands", {}).values()):
        each.rich_markup_mode = None
        each.help = _EXAMPLE.sub("\b\n\\1", each.help or "")  # keeps the line breaks of examples
    return command


def application() -> typer.Typer:
    """Return the Typer application with the commands of all installed packages."""
    app = typer.Typer(
        cls=Commands,
        no_args_is_help=True,
        rich_markup_mode=None,
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["--help", "-h"], "max_content_width": 100},
    )
    app.callback()(_about)
    return app


def main(arguments: Sequence[str] | None = None) -> NoReturn:
    """Run the command line and exit.

    Args:
        arguments: The words after `toolgym`. Default: `sys.argv[1:]`.
    """
    if isinstance(sys.stdout, io.TextIOWrapper):  # the encoding may lack characters
        sys.stdout.reconfigure(errors="backslashreplace")
    words = list(sys.argv[1:] if arguments is None else arguments)
    try:
        sys.exit(application()(words, prog_name="toolgym", standalone_mode=False) or SUCCESS)
    except SystemExit as end:
        if isinstance(end.__context__, BrokenPipeError):  # Typer exits with 1 in a help text
            _drop_output()
            sys.exit(OUTPUT_CLOSED)
        raise
    except Exception as mistake:
        # The class of usage errors depends on the release of Typer.
        if not hasattr(mistake, "format_message"):
            raise
        sys.exit(_report_misuse(mistake))


def _report_misuse(mistake: Any) -> int:
    """Print one line about a usage error and return the exit status."""
    if type(mistake).__name__ == "NoArgsIsHelpError":
        mistake.show()
        return MISUSE
    context, option = mistake.ctx, getattr(mistake, "option_name", None)
    text = " ".join(mistake.format_message().split())
    if option is not None and context is not None:
        options = [name for each in context.command.params for name in each.opts]
        text = f"no such option: {option}{_did_you_mean(option, options)}"
    place, colon, reason = text.partition(": ")
    text = f"{place}{colon}{field_problem('', reason)}"
    text = text[:1].lower() + text[1:]
    if not text.endswith("?"):
        text = text.rstrip(".") + "."
    if getattr(getattr(mistake, "param", None), "name", None) == "env_id":
        from toolgym.registration import tool_env_ids

        text += f" Environments: {', '.join(tool_env_ids())}."
    _say(f"{text} See {context.command_path if context is not None else 'toolgym'} --help.")
    return int(mistake.exit_code)


def _did_you_mean(word: str, known: Any) -> str:
    near = nearest(word, known)
    return f"; did you mean {' or '.join(near)}?" if near else ""


def _drop_output() -> None:
    """Discard the rest of stdout, so that its last flush does not fail."""
    null = os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, sys.__stdout__.fileno() if sys.__stdout__ is not None else 1)
    os.close(null)


def _stop(message: str, status: int) -> NoReturn:
    if os.environ.get("TOOLGYM_TRACEBACK"):
        traceback.print_exc()
    _say(message)
    raise typer.Exit(status)


def _say(message: str) -> None:
    """Print a message on stderr without blank lines."""
    lines = [line.rstrip() for line in message.splitlines() if line.strip()]
    say("toolgym: " + "\n".join(lines), err=True)


def _show_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"toolgym {version('toolgym')}")
        raise typer.Exit


def _about(
    show_version: Annotated[
        bool,
        typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version."),
    ] = False,
) -> None:
    """Train and evaluate language models that use tools.

    ENV_ID is the id of an environment, such as sqlgym/Explore-v0 (`toolgym envs` lists them), or
    MODULE:ID for an environment in your own module.

    \b
    Example:
        toolgym play sqlgym/Explore-v0
        toolgym eval sqlgym/Explore-v0 --policy expert --n 20
        toolgym train sqlgym/Explore-v0
    """
