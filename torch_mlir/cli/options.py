# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Options that several commands take, so that they mean the same everywhere."""

from __future__ import annotations

import argparse

from ..version import __version__
from .inputs import parse_input

INPUTS_HELP = """\
inputs:
  --input SPEC gives one argument, in order; --input NAME=SPEC gives one by its name.
    1x3x224x224xf32        a tensor of random numbers (--seed), spelt as MLIR spells it;
                           integers are 0 or 1, which index into anything
    f32                    a tensor without dimensions
    2x2xi64=1,2,3,4        a tensor of these elements; a single one fills all of it
    ?x128xi64              a size that stays open
    [batch]x[seq=2:512]xi64
                           open sizes with a name, and with bounds; where a name comes twice,
                           the sizes are equal. [batch@4] makes the example 4 large
    i64=3  f64=0.5  true   an int, a float, a bool; also none, 3, 0.5, "text", [1, 2]
    @x.npy  @x.npz:key     the contents of a file: .npy, .npz, .pt or .safetensors; without
    @x.pt                  a key, everything in it, in its order
  Shells want quotes around ?, [ and ".
"""

MODELS_HELP = """\
models:
  model.pt2                a program that torch.export.save wrote; - reads one from a pipe
  model.pt                 TorchScript that torch.jit.save wrote, or -; no PyTorch is needed
  module:Class             a torch.nn.Module of an importable module; arguments are Python
                           literals, as in 'torch.nn:Linear(3, out_features=4, bias=False)'
  script.py:function       what a function in a file returns: a module, a tuple (module,
                           example_args[, example_kwargs[, dynamic_shapes]]), or an
                           ExportedProgram; the name of a class or an object will do too
  Weights are random (--seed) unless the script loads some. Modules are put into evaluation
  mode unless --train is given. What the script prints goes to the standard error.
"""

ANY_MODEL = "a .pt2, .pt, .mlir or .mlirbc file, module:Class or script.py:function"
"""What MODEL is for the commands that read MLIR too; their epilog tells more."""

ANY_MODEL_HELP = f"""\
{MODELS_HELP}  model.mlir  model.mlirbc  MLIR in the Torch dialect, text or bytecode

{INPUTS_HELP}"""


def common_options(parser: argparse.ArgumentParser) -> None:
    """`--version` and `--debug`."""
    parser.add_argument("--version", action="version", version=f"torch-mlir {__version__}")
    parser.add_argument(
        "--debug",
        action="store_true",
        # A command's own default must not undo what was said before its name.
        default=argparse.SUPPRESS if parser.prog.count(" ") else False,
        help="on an error, show where it arose (also with TORCH_MLIR_DEBUG=1)",
    )


def model_options(parser: argparse.ArgumentParser, model_help: str) -> None:
    """The model, and how a PyTorch program is made of it."""
    parser.add_argument("model", metavar="MODEL", help=model_help)
    group = parser.add_argument_group("making the program")
    group.add_argument(
        "--input",
        dest="inputs",
        action="append",
        default=[],
        metavar="SPEC",
        type=parse_input,
        help="an argument of the model, see below; repeated for each",
    )
    group.add_argument(
        "--seed",
        type=int,
        default=0,
        metavar="N",
        help="of random weights and inputs (default: %(default)s)",
    )
    group.add_argument("--train", action="store_true", help="keep modules in training mode")
    group.add_argument(
        "--strict", action="store_true", help="export with TorchDynamo, not by running Python"
    )
    group.add_argument(
        "--preload",
        action="append",
        default=[],
        metavar="MODULE",
        help="import this Python module first, one that registers custom operators",
    )
    group.add_argument(
        "--no-decompose", action="store_true", help="keep the program's operators as they are"
    )
    group.add_argument(
        "--mutation",
        action="store_true",
        help="import writes to inputs as such, not as additional results",
    )
    _torchscript_options(parser)


def _torchscript_options(parser: argparse.ArgumentParser) -> None:
    """How TorchScript is read and imported."""
    group = parser.add_argument_group("reading TorchScript")
    group.add_argument(
        "--method",
        dest="methods",
        action="append",
        default=[],
        metavar="NAME",
        help="a method to import, forward by default; repeated for several. "
        "--input is about the first",
    )
    group.add_argument(
        "--no-freeze",
        action="store_true",
        help="keep parameters as global variables rather than constants",
    )
    group.add_argument(
        "--torch-version",
        metavar="X.Y",
        help="the PyTorch that saved it, e.g. 2.6 (default: the installed one's, else the newest "
        "that has its operators)",
    )
    group.add_argument(
        "--schema",
        dest="schemas",
        action="append",
        default=[],
        metavar="SCHEMA",
        help="an operator that it calls and no PyTorch has, e.g. "
        "'goofy::twist(Tensor x, int by=1) -> Tensor'; repeated for several",
    )


def output_option(parser: argparse.ArgumentParser, help: str) -> None:
    """`-o FILE`."""
    parser.add_argument("-o", "--output", default="-", metavar="FILE", help=help)


def command_parser(
    commands: argparse._SubParsersAction[argparse.ArgumentParser],
    name: str,
    help: str,
    description: str,
    epilog: str = "",
) -> argparse.ArgumentParser:
    """A command's parser, with the options that all have."""
    parser = commands.add_parser(
        name,
        help=help,
        description=description,
        epilog=epilog,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    common_options(parser)
    return parser
