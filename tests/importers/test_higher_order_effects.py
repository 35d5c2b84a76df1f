# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Operators with effects: their order stays, and the tokens that PyTorch orders them by go."""

from __future__ import annotations

import pytest
import torch
from eager import exported

from torch_mlir import backends, fx

effects = pytest.importorskip(
    "torch._higher_order_ops.effects", reason="this PyTorch has no effects"
)
# Where the function is differs; older releases take the kind of effect by another name.
register = getattr(
    torch.library,
    "_register_effectful_op",
    getattr(effects, "_register_effectful_op", None),
)
if register is None:
    pytest.skip("this PyTorch does not let operators be registered", allow_module_level=True)
kinds = (
    getattr(effects, "_EffectType", None)
    or pytest.importorskip("torch._library.effects").EffectType
)

records: list[tuple[float, ...]] = []
library = torch.library.Library("effectful", "FRAGMENT")
library.define("note(Tensor x) -> Tensor")
library.define("say(Tensor x, *, int times) -> ()")
library.define("split(Tensor x) -> (Tensor, Tensor)")


def recorded(name):
    def register_function(function):
        library.impl(name, function, "CompositeExplicitAutograd")
        return function

    return register_function


@recorded("note")
def note(x):
    records.append(("note", x.sum().item()))
    return x * 2


@recorded("say")
def say(x, *, times):
    records.append(("say", x.sum().item(), times))


@recorded("split")
def split(x):
    records.append(("split", x.sum().item()))
    return x + 1, x - 1


torch.library.impl(library, "note", "Meta")(torch.empty_like)
torch.library.impl(library, "say", "Meta")(lambda x, *, times: None)
torch.library.impl(library, "split", "Meta")(lambda x: (torch.empty_like(x), torch.empty_like(x)))
for packet in (torch.ops.effectful.note, torch.ops.effectful.say, torch.ops.effectful.split):
    register(packet.default, kinds.ORDERED)


class Records(torch.nn.Module):
    """Effects whose results decide what follows, or are not read at all."""

    def forward(self, x):
        ops = torch.ops.effectful
        y = ops.note(x)
        ops.say(y, times=3)
        larger, smaller = ops.split(y + 1)
        ops.note(smaller)
        return ops.note(larger) + y


def imported(way, program):
    importer = fx.FxImporter()
    getattr(importer, way)(program)
    return importer.module


@pytest.mark.parametrize("way", ["import_frozen_program", "import_program"])
def test_effects_happen_in_order(way, operations):
    x = torch.ones(3)
    program = exported(Records(), (x,))
    targets = [getattr(node.target, "__name__", "") for node in program.graph.nodes]
    assert targets.count("with_effects") == 5
    module = imported(way, program)
    names = [
        str(operation.attributes["name"]) for operation in operations(module, "torch.operator")
    ]
    assert names == [
        f'"torch.effectful.{name}"' for name in ("note", "say", "split", "note", "note")
    ]
    reference = backends.get("reference")
    run = reference.load(reference.compile(module))
    records.clear()
    got = run(x)
    actual = list(records)
    records.clear()
    torch.testing.assert_close(got, Records()(x))
    assert actual == records and len(actual) == 5


@pytest.mark.parametrize("way", ["import_frozen_program", "import_program"])
def test_tokens_are_no_inputs_or_results(way):
    module = imported(way, exported(Records(), (torch.ones(3),)))
    signature = "func.func @main(%arg0: !torch.vtensor<[3],f32>) -> !torch.vtensor<[3],f32>"
    assert signature in str(module)


printed = pytest.mark.skipif(
    not hasattr(torch.ops.higher_order, "print")
    or not isinstance(torch.ops.higher_order.print, torch._ops.HigherOrderOperator),
    reason="this PyTorch has no print operator",
)


class Prints(torch.nn.Module):
    def forward(self, x, n):
        more = n.item() + 1
        torch.ops.higher_order.print("{n} of {{x}}, {{}}: {more}!", more=more, n=n.item())
        torch.ops.higher_order.print("done")
        return x + 1


@printed
@pytest.mark.parametrize("way", ["import_frozen_program", "import_program"])
def test_print(way, capsys):
    inputs = torch.ones(3), torch.tensor(7)
    program = exported(Prints(), inputs)
    reference = backends.get("reference")
    run = reference.load(reference.compile(imported(way, program)))
    capsys.readouterr()
    result = run(*inputs)
    actual = capsys.readouterr().out
    assert torch.equal(result, Prints()(*inputs))
    assert actual == capsys.readouterr().out == "7 of {x}, {}: 8!\ndone\n"


@printed
def test_a_format_that_is_not_imported_is_refused():
    class Rounds(torch.nn.Module):
        def forward(self, x, n):
            torch.ops.higher_order.print("{n:5d}", n=n.item())
            return x + 1

    program = exported(Rounds(), (torch.ones(3), torch.tensor(7)))
    message = r"the field 'n' of the format '\{n:5d\}' is not imported \(at \S+_effects.py:\d+"
    with pytest.raises(fx.TorchMlirCompilerError, match=message):
        fx.export_and_import(program, decomposition_table={})
