"""The `toolgym` command: it finds its commands, and it turns errors into sentences; nothing else.

A command is an entry point in the group `toolgym.commands`: its name is the command's name, its
value a typed function with a docstring that typer turns into options and help, or a `typer.Typer`
of several such functions (`toolgym tasks check`). What the `Args:` of a docstring say of an option
or argument is its help, if it has no other. So any installed package can add one, and a
command is imported only when it runs, or when a page that lists all of them is shown.

Exit status: 0 success; 2 the user's mistake, told with its cure; 1 the machine's fault or ours, or
a verdict that is no; 130 interrupted; 141 whoever read the output went away. A traceback is shown
only where `TOOLGYM_TRACEBACK=1` asks for it.
"""

from __future__ import annotations

import functools
import inspect
import io
import os
import re
import signal
import sys
import traceback
from collections.abc import Callable, Sequence
from copy import copy
from importlib.metadata import version
from textwrap import dedent
from typing import Annotated, Any, NoReturn, get_args

import typer
from typer.models import ParameterInfo

from toolgym.commands import say
from toolgym.commands.completion import being_completed, is_completing
from toolgym.commands.progress import watched
from toolgym.errors import ConfigurationError, EnvironmentFault, TaskRefused
from toolgym.plugins import COMMANDS, PluginError, find_plugins

SUCCESS, FAILURE, MISUSE, INTERRUPTED, READER_LEFT = 0, 1, 2, 130, 141
_THEIR_OWN = (typer.Exit, typer.Abort, typer.BadParameter)  # typer ends these well
_EXAMPLE = re.compile(r"^(Examples?:\n(?:[ \t]+\S.*\n?)+)", re.M)
_ARGS = re.compile(r"^(?:Args|Arguments):[ \t]*\n((?:[ \t]*\n|[ \t]+\S.*(?:\n|\Z))+)", re.M)
_ARGUMENT = re.compile(r"^(\w+)(?:[ \t]*\([^)\n]*\))?:(?=\s)", re.M)


def main(arguments: Sequence[str] | None = None) -> NoReturn:
    """Run the command line and exit.

    Args:
        arguments: What follows `toolgym`; None means `sys.argv[1:]`.
    """
    words = list(sys.argv[1:] if arguments is None else arguments)
    if isinstance(sys.stdout, io.TextIOWrapper):  # as Python has it for stderr: a terminal that
        sys.stdout.reconfigure(errors="backslashreplace")  # lacks a character must not end the run
    wanted = words[0] if words else None
    if is_completing(os.environ):
        wanted = being_completed(os.environ)
        sys.stderr = open(os.devnull, "w")  # noqa: SIM115  # a person is typing there
    try:
        app = application(wanted)
        status = app(words, prog_name="toolgym", standalone_mode=False) or SUCCESS
        if status == INTERRUPTED and arguments is None:  # pressed again, while the process ends
            signal.signal(signal.SIGINT, signal.SIG_IGN)
        sys.exit(status)
    except KeyboardInterrupt:
        _say("interrupted.")
        sys.exit(INTERRUPTED)
    except typer.Abort:
        _say("aborted: the input ended before it was answered.")
        sys.exit(FAILURE)
    except SystemExit as end:
        if isinstance(end.__context__, BrokenPipeError):  # typer says 1, while it prints a help
            _drop_output()
            sys.exit(READER_LEFT)
        raise
    except Exception as mistake:
        # What typer raises has moved between its releases from one package to another.
        if not hasattr(mistake, "format_message"):
            raise
        sys.exit(_tell_misuse(mistake))


def _tell_misuse(mistake: Any) -> int:
    """Say in one line what is wrong with the command line, and where its help is.

    Returns:
        The exit status.
    """
    context, near = getattr(mistake, "ctx", None), getattr(mistake, "possibilities", None)
    if type(mistake).__name__ == "NoArgsIsHelpError":
        mistake.show()
        return MISUSE
    text = " ".join(str(mistake.message if near else mistake.format_message()).split())
    text = f"{text[:1].lower()}{text[1:]}".rstrip(".")
    ending = "" if text.endswith(("?", "!")) else "."
    if near:
        text, ending = f"{text}; did you mean {' or '.join(sorted(near))}", "?"
    where = f" See {context.command_path if context is not None else 'toolgym'} --help."
    _say(f"{text}{ending}{where}")
    return int(mistake.exit_code)


def _drop_output() -> None:
    """Send what is left of stdout nowhere, so that its last flush does not fail."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, sys.__stdout__.fileno() if sys.__stdout__ is not None else 1)
    os.close(nowhere)


def application(only: str | None = None) -> typer.Typer:
    """The typer application with the one command that is wanted, or else with all of them.

    A command that cannot be loaded is left out with one line on stderr; if it is the wanted one,
    that is a failure.

    Raises:
        SystemExit: The wanted command cannot be loaded.
    """
    app = typer.Typer(
        no_args_is_help=True,
        rich_markup_mode=None,
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["--help", "-h"], "max_content_width": 100},
    )
    app.callback()(_about)
    plugins = find_plugins(COMMANDS)
    chosen = {only: plugins[only]} if only in plugins else plugins
    if only == "--version":
        chosen = {}
    for name, plugin in chosen.items():
        try:
            loaded = plugin.load()
        except PluginError as problem:
            _say(f"{problem} See `toolgym doctor`.")
            if name == only:
                sys.exit(FAILURE)
            continue
        if isinstance(loaded, typer.Typer):
            app.add_typer(_guarded_group(loaded), name=name)
        else:
            app.command(name, help=help_text(loaded))(told_in_sentences(loaded))
    return app


def _guarded_group(group: typer.Typer) -> typer.Typer:
    """The same commands under the same boundary as those that stand alone."""
    guarded = typer.Typer(help=group.info.help, no_args_is_help=True, rich_markup_mode=None)
    for command in group.registered_commands:
        function = command.callback
        if function is not None:
            guarded.command(command.name, help=help_text(function))(told_in_sentences(function))
    return guarded


def help_text(function: Callable[..., Any]) -> str:
    """A command's docstring without its `Args:`, its examples marked so that they stay lines."""
    text = inspect.getdoc(function) or ""
    if _with_help(function) is not None:
        text = _ARGS.sub("", text).strip()
    return _EXAMPLE.sub("\b\n\\1", text)


def _with_help(function: Callable[..., Any]) -> inspect.Signature | None:
    """The signature with what `Args:` say of a parameter as its help, where it has none.

    Returns:
        None if there is no such block, or it or the types cannot be read.
    """
    block = _ARGS.search(inspect.getdoc(function) or "")
    pieces = _ARGUMENT.split(dedent(block[1])) if block else []
    if len(pieces) < 3 or pieces[0].strip():
        return None
    texts = {
        name: " ".join(text.split()) for name, text in zip(pieces[1::2], pieces[2::2], strict=True)
    }
    try:
        signature = inspect.signature(function, eval_str=True)
    except (NameError, AttributeError, TypeError, SyntaxError):
        return None
    parameters = signature.parameters.values()
    return signature.replace(
        parameters=[_told_of(each, texts.get(each.name, "")) for each in parameters]
    )


def _told_of(parameter: inspect.Parameter, text: str) -> inspect.Parameter:
    """A parameter whose help is this text, if it is an option or argument and has none."""
    kind, default = parameter.annotation, parameter.default
    bases = {base.__name__ for base in getattr(kind, "__mro__", ())}
    is_given = parameter.kind not in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD)
    if not text or not is_given or bases & {"Context", "Parameter"}:  # typer fills these in itself
        return parameter
    if isinstance(default, ParameterInfo):
        return parameter.replace(default=_helped(default, text))
    marks = getattr(kind, "__metadata__", ())
    if any(isinstance(mark, ParameterInfo) for mark in marks):
        marks = tuple(_helped(m, text) if isinstance(m, ParameterInfo) else m for m in marks)
        return parameter.replace(annotation=Annotated[(get_args(kind)[0], *marks)])
    has_default = default is not parameter.empty
    if kind is parameter.empty:  # typer takes the type from the default
        told = typer.Option(default, help=text) if has_default else typer.Argument(help=text)
        return parameter.replace(default=told)
    info = typer.Option if has_default else typer.Argument
    return parameter.replace(annotation=Annotated[kind, info(help=text)])


def _helped(info: ParameterInfo, text: str) -> ParameterInfo:
    """The same, with this help if it has none."""
    told = copy(info)
    told.help = info.help or text
    return told


def told_in_sentences(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function with the one boundary around it that turns exceptions into exit statuses."""

    @functools.wraps(function)
    def guarded(*args: Any, **kwargs: Any) -> None:
        try:
            with watched(quiet=bool(kwargs.get("quiet"))):
                function(*args, **kwargs)
        except _THEIR_OWN:
            raise
        except BrokenPipeError:
            _drop_output()
            raise typer.Exit(READER_LEFT) from None
        except KeyboardInterrupt:
            _stop("interrupted.", INTERRUPTED)
        except (ConfigurationError, TaskRefused) as mistake:
            _stop(str(mistake), MISUSE)
        except EnvironmentFault as fault:
            _stop(str(fault), FAILURE)
        except Exception as problem:  # noqa: BLE001 - the boundary: the user gets a sentence
            message = f"failed: {type(problem).__name__}: {problem}"
            if not os.environ.get("TOOLGYM_TRACEBACK"):
                message += "\nSet TOOLGYM_TRACEBACK=1 to see where."
            _stop(message, FAILURE)

    signature = _with_help(function)
    if signature is not None:
        guarded.__signature__ = signature  # type: ignore[attr-defined]
    return guarded


def _stop(message: str, status: int) -> NoReturn:
    if os.environ.get("TOOLGYM_TRACEBACK"):
        traceback.print_exc()
    _say(message)
    raise typer.Exit(status)


def _say(message: str) -> None:
    """A message for the user on stderr, without the blank lines that libraries like."""
    separator = " " if message.startswith("failed:") else ": "
    lines = [line.rstrip() for line in message.splitlines() if line.strip()]
    say("toolgym" + separator + "\n".join(lines), err=True)


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
    """Environments in which a language model learns to use tools."""
