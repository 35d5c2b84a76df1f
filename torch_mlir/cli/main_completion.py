# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`torch-mlir completion`: what completes this command line in a shell.

source <(torch-mlir completion bash)
"""

from __future__ import annotations

import argparse
import shlex
from collections.abc import Iterator
from dataclasses import dataclass

from .options import command_parser, output_option
from .streams import check_output, write_text


@dataclass(frozen=True)
class Option:
    """An option: its spellings, what it takes (None: nothing), and its help."""

    names: tuple[str, ...]
    choices: tuple[str, ...] | None
    takes_value: bool
    help: str


@dataclass(frozen=True)
class Command:
    """A command: its name, its help, its options, and the choices of its argument."""

    name: str
    help: str
    options: tuple[Option, ...]
    choices: tuple[str, ...]


def configure_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the command's parser."""
    command = command_parser(
        commands,
        "completion",
        help="print a shell's completion",
        description="Print what completes this command line in a shell.",
        epilog="bash:  source <(torch-mlir completion bash)\n"
        "zsh:   source <(torch-mlir completion zsh)\n"
        "fish:  torch-mlir completion fish | source\n",
    )
    command.add_argument("shell", choices=tuple(_SHELLS), help="which shell")
    output_option(command, "where to write it, - for standard output (default)")
    command.set_defaults(execute=execute)


def execute(arguments: argparse.Namespace) -> None:
    """Carry the command out."""
    check_output(arguments.output)
    commands = tuple(commands_of(arguments.parser))
    write_text(arguments.output, _SHELLS[arguments.shell](commands))


def commands_of(parser: argparse.ArgumentParser) -> Iterator[Command]:
    """What the command line's parser offers."""
    for action in parser._actions:
        if not isinstance(action, argparse._SubParsersAction):
            continue
        helps = {choice.dest: choice.help or "" for choice in action._choices_actions}
        for name, command in action.choices.items():
            options = tuple(_options(command))
            choices = [
                str(choice)
                for argument in command._actions
                if not argument.option_strings
                for choice in argument.choices or ()
            ]
            yield Command(name, helps.get(name, ""), options, tuple(choices))


def _options(parser: argparse.ArgumentParser) -> Iterator[Option]:
    for action in parser._actions:
        if not action.option_strings:
            continue
        choices = None if action.choices is None else tuple(map(str, action.choices))
        text = (action.help or "").replace("%(default)s", str(action.default)).replace("%%", "%")
        yield Option(tuple(action.option_strings), choices, action.nargs != 0, text)


def _bash(commands: tuple[Command, ...]) -> str:
    cases = []
    for command in commands:
        names = " ".join(name for option in command.options for name in option.names)
        cases.append(f"    {command.name}) words={shlex.quote(names)} ;;")
    values = []
    for command in commands:
        for option in command.options:
            if option.choices:
                pattern = "|".join(f"{command.name}:{name}" for name in option.names)
                values.append(f"    {pattern}) choices={shlex.quote(' '.join(option.choices))} ;;")
            elif option.takes_value:
                pattern = "|".join(f"{command.name}:{name}" for name in option.names)
                values.append(f'    {pattern}) COMPREPLY=($(compgen -f -- "$word")); return ;;')
    arguments = [
        f"    {command.name}) choices={shlex.quote(' '.join(command.choices))} ;;"
        for command in commands
        if command.choices
    ]
    listed = shlex.quote(" ".join(command.name for command in commands))
    return "\n".join(
        [
            "# Completes torch-mlir in bash.",
            "_torch_mlir() {",
            '  local word="${COMP_WORDS[COMP_CWORD]}" before="${COMP_WORDS[COMP_CWORD-1]}"',
            '  local command="${COMP_WORDS[1]}" words="" choices=""',
            "  COMPREPLY=()",
            '  if [ "$COMP_CWORD" -eq 1 ]; then',
            f'    COMPREPLY=($(compgen -W {listed} -- "$word")); return',
            "  fi",
            '  case "$command:$before" in',
            *values,
            "  esac",
            '  if [ -n "$choices" ]; then',
            '    COMPREPLY=($(compgen -W "$choices" -- "$word")); return',
            "  fi",
            '  case "$command" in',
            *cases,
            "  esac",
            '  if [ "${word#-}" != "$word" ]; then',
            '    COMPREPLY=($(compgen -W "$words" -- "$word")); return',
            "  fi",
            '  case "$command" in',
            *(arguments or ["    *) ;;"]),
            "  esac",
            '  if [ -n "$choices" ]; then',
            '    COMPREPLY=($(compgen -W "$choices" -- "$word"))',
            "  else",
            '    COMPREPLY=($(compgen -f -- "$word"))',
            "  fi",
            "}",
            "complete -o filenames -F _torch_mlir torch-mlir",
            "",
        ]
    )


def _zsh(commands: tuple[Command, ...]) -> str:
    lines = [
        "#compdef torch-mlir",
        "# Completes torch-mlir in zsh.",
        "_torch_mlir() {",
        "  local -a commands",
        "  commands=(",
        *(f"    {shlex.quote(f'{command.name}:{command.help}')}" for command in commands),
        "  )",
        "  if (( CURRENT == 2 )); then _describe command commands; return; fi",
        '  case "$words[2]" in',
    ]
    for command in commands:
        lines.append(f"    {command.name})")
        lines.append("      shift words; (( CURRENT-- ))")
        specs = [spec for option in command.options for spec in _zsh_option(option)]
        specs.append(
            f"*:argument:({' '.join(command.choices)})" if command.choices else "*:model:_files"
        )
        lines.append("      _arguments \\")
        lines += [f"        {shlex.quote(spec)} \\" for spec in specs[:-1]]
        lines.append(f"        {shlex.quote(specs[-1])} ;;")
    return "\n".join([*lines, "  esac", "}", "compdef _torch_mlir torch-mlir", ""])


def _zsh_option(option: Option) -> Iterator[str]:
    about = option.help.replace("[", r"\[").replace("]", r"\]").replace(":", r"\:")
    for name in option.names:
        value = ""
        if option.choices:
            value = f":value:({' '.join(option.choices)})"
        elif option.takes_value:
            value = ":value:_files"
        yield f"*{name}[{about}]{value}"


def _fish(commands: tuple[Command, ...]) -> str:
    lines = ["# Completes torch-mlir in fish."]
    for command in commands:
        lines.append(
            "complete -c torch-mlir -n __fish_use_subcommand -f "
            f"-a {command.name} -d {_fish_quoted(command.help)}"
        )
    for command in commands:
        seen = f"'__fish_seen_subcommand_from {command.name}'"
        if command.choices:
            lines.append(
                f"complete -c torch-mlir -n {seen} -f -a {_fish_quoted(' '.join(command.choices))}"
            )
        for option in command.options:
            parts = [f"complete -c torch-mlir -n {seen}"]
            for name in option.names:
                parts.append(f"-l {name[2:]}" if name.startswith("--") else f"-s {name[1:]}")
            if option.choices:
                parts.append(f"-x -a {_fish_quoted(' '.join(option.choices))}")
            elif option.takes_value:
                parts.append("-r")
            parts.append(f"-d {_fish_quoted(option.help)}")
            lines.append(" ".join(parts))
    return "\n".join([*lines, ""])


def _fish_quoted(text: str) -> str:
    escaped = text.replace("\\", r"\\").replace("'", r"\'")
    return f"'{escaped}'"


_SHELLS = {"bash": _bash, "zsh": _zsh, "fish": _fish}
