# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Scripts as users of upstream's torch_mlir write them; they run under either package.

Run by a Python that has upstream's torch-mlir installed, it regenerates the data beside it:

    python -P tests/extras/programs.py > tests/extras/upstream_modules.json

Each function gives a module and, where hooks are called, what they were called with.
"""

from __future__ import annotations

import importlib.metadata
import json
import re
import sys
from collections.abc import Callable
from typing import Any

import torch
from torch import nn

from torch_mlir import fx, ir
from torch_mlir.dialects import torch as torch_dialect
from torch_mlir.extras.fx_decomp_util import get_decomposition_table
from torch_mlir.extras.fx_importer import FxImporter, FxImporterHooks, GraphNodeImporter

PROGRAMS: dict[str, Callable[[], tuple[Any, list[str]]]] = {}


def program(build: Callable[[], Any]) -> Callable[[], Any]:
    def run() -> tuple[Any, list[str]]:
        torch.manual_seed(0)
        made = build()
        return made if isinstance(made, tuple) else (made, [])

    PROGRAMS[build.__name__] = run
    return build


def new_context(unregistered: bool = False) -> ir.Context:
    context = ir.Context()
    torch_dialect.register_dialect(context)
    context.allow_unregistered_dialects = unregistered
    return context


@program
def multilayer_perceptron():
    model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 2))
    return fx.export_and_import(model, torch.randn(3, 4))


@program
def convolutions():
    model = nn.Sequential(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.ReLU(), nn.MaxPool2d(2)).eval()
    return fx.export_and_import(model, torch.randn(1, 3, 8, 8), func_name="net")


@program
def recurrent_cell():
    return fx.export_and_import(nn.GRUCell(4, 6), torch.randn(2, 4), torch.randn(2, 6))


@program
def tied_embedding():
    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.embedding = nn.Embedding(7, 4)
            self.head = nn.Linear(4, 7, bias=False)
            self.head.weight = self.embedding.weight

        def forward(self, tokens):
            hidden = nn.functional.layer_norm(self.embedding(tokens), (4,))
            return nn.functional.log_softmax(self.head(hidden), -1)

    return fx.export_and_import(Model(), torch.tensor([[1, 2, 3]]))


@program
def views_and_lists():
    class Model(nn.Module):
        def forward(self, x):
            return (
                x.view(2, 6).t(),
                x[:, ::2],
                torch.cat([x, x], 0),
                x.expand(2, 3, 4),
                x.split(2, 1),
                x.max(1),
                x.topk(2),
            )

    return fx.export_and_import(Model(), torch.randn(3, 4))


@program
def constants_of_many_kinds():
    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("scale", torch.arange(6.0).reshape(2, 3))
            self.register_buffer("mask", torch.tensor([True, False, True]))
            self.shift = nn.Parameter(torch.ones(1))

        def forward(self, x):
            x = x * self.scale + self.shift + torch.tensor([1.0, 2.0, 3.0])
            return torch.where(self.mask, x, 0.0), None, 3

    return fx.export_and_import(Model(), torch.randn(2, 3))


@program
def nested_arguments():
    class Model(nn.Module):
        def forward(self, x, *, parts, flag=True, times=2):
            return {"sum": parts["y"] + x, "list": [x * times, (x,)]}

    return fx.export_and_import(
        Model(), torch.randn(2), parts={"y": torch.randn(2)}, flag=False, times=4
    )


@program
def symbolic_shapes():
    class Model(nn.Module):
        def forward(self, x, y):
            return torch.cat([x, y], 0), x.view(x.shape[0] * 2, -1), x.shape[0] + 1

    sizes = {"x": {0: torch.export.Dim("n", min=2, max=100)}, "y": {0: torch.export.Dim("m")}}
    return fx.export_and_import(
        Model(),
        torch.randn(3, 4),
        torch.randn(5, 4),
        dynamic_shapes=sizes,
        import_symbolic_shape_expressions=True,
    )


@program
def open_sizes():
    class Model(nn.Module):
        def forward(self, x):
            return torch.relu(x).unsqueeze(1), x * x.shape[0]

    sizes = ({0: torch.export.Dim("n")},)
    return fx.export_and_import(Model(), torch.randn(3, 4), dynamic_shapes=sizes)


class Doubled(nn.Module):
    def forward(self, x):
        x.mul_(2)
        return x + 1


@program
def written_input():
    return fx.export_and_import(Doubled(), torch.randn(3), experimental_support_mutation=True)


@program
def written_input_frozen():
    return fx.export_and_import(Doubled(), torch.randn(3))


class Counter(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("total", torch.zeros(3))
        self.weight = nn.Parameter(torch.ones(3))

    def forward(self, x):
        self.total.add_(x)
        return self.total * self.weight


class Globals(FxImporterHooks):
    """Parameters and buffers become globals that are loaded and stored."""

    def __init__(self):
        self.calls = []

    def prepare_module(self, module_op):
        self.calls.append(f"prepare {module_op.name}")
        module_op.context.allow_unregistered_dialects = True

    def resolve_input(self, gni, value, info):
        spec = info.input_spec
        self.calls.append(
            f"input {spec.target} {spec.kind.name} {info.node.name} {info.ir_type} "
            f"{info.mutable_producer_node_name} {info.store_producer_node} {tuple(value.shape)}"
        )
        attributes = {"name": ir.StringAttr.get(spec.target)}
        return ir.Operation.create(
            "globals.load", results=[info.ir_type], attributes=attributes
        ).result

    def store_produced_value(self, gni, py_value, produced_ir_value, info):
        self.calls.append(f"store {info.input_spec.target} {produced_ir_value.type}")
        attributes = {"name": ir.StringAttr.get(info.input_spec.target)}
        ir.Operation.create("globals.store", operands=[produced_ir_value], attributes=attributes)


@program
def buffers_as_globals():
    hooks = Globals()
    module = fx.export_and_import(
        Counter(), torch.randn(3), experimental_support_mutation=True, hooks=hooks
    )
    return module, hooks.calls


@program
def buffers_frozen():
    return fx.export_and_import(Counter(), torch.randn(3))


@program
def literals_from_outside():
    class Outside(FxImporterHooks):
        def prepare_module(self, module_op):
            module_op.context.allow_unregistered_dialects = True

        def resolve_literal(self, gni, literal, info):
            if not isinstance(literal, torch.Tensor):
                return None
            element = gni._cc.dtype_to_type(literal.dtype)
            builtin = ir.RankedTensorType.get(list(literal.shape), element)
            loaded = ir.Operation.create("outside.load", results=[builtin]).result
            wanted = gni._cc.tensor_to_vtensor_type(literal)
            return ir.Operation.create("outside.cast", results=[wanted], operands=[loaded]).result

    return fx.export_and_import(nn.Linear(4, 2), torch.randn(1, 4), hooks=Outside())


@program
def several_programs_in_one_module():
    importer = FxImporter(context=new_context())
    linear = torch.export.export(nn.Linear(4, 2), (torch.randn(3, 4),))
    relu = torch.export.export(nn.ReLU(), (torch.randn(3),))
    importer.import_frozen_program(
        linear.run_decompositions(get_decomposition_table()), func_name="linear"
    )
    importer.import_program(relu, func_name="relu", func_visibility="private")
    importer.import_frozen_program(relu, func_name="relu")
    names = [str(operation.attributes["sym_name"]) for operation in importer.module.body]
    return importer.module, [importer.module_op.name, *names]


@program
def callers_module():
    from torch.fx.experimental.proxy_tensor import make_fx

    module = ir.Module.parse("module { func.func private @other() }", new_context())
    importer = FxImporter(module=module)
    graph = make_fx(lambda x: torch.sigmoid(x) + 1, tracing_mode="fake")(torch.randn(2))
    importer.import_graph_module(graph, func_name="graph")
    return module, [str("other" in importer.symbol_table), str("graph" in importer.symbol_table)]


@program
def stateless_graph():
    from torch.fx.experimental.proxy_tensor import make_fx

    graph = make_fx(lambda x: x.view(x.shape[0] * x.shape[1]) + x.shape[0], tracing_mode="symbolic")
    return fx.stateless_fx_import(graph(torch.randn(2, 3)), model_name="graph")


@program
def subclass_that_imports_an_operator():
    class Importer(GraphNodeImporter):
        def _import_torch_op_overload(self, loc, node, concrete_target=None):
            if node.target is not torch.ops.aten.relu.default:
                super()._import_torch_op_overload(loc, node, concrete_target)
                return
            operand = self._import_argument(loc, node.args[0])
            result = self._cc.node_val_to_type(node)
            made = ir.Operation.create("own.relu", [result], [operand], loc=loc)
            self.bind_node_value(node, made.result)

    importer = FxImporter(context=new_context(True), graph_node_importer_cls=Importer)
    model = nn.Sequential(nn.ReLU(), nn.Sigmoid())
    return fx.export_and_import(model, torch.randn(3), fx_importer=importer)


@program
def decomposition_table():
    wanted = [torch.ops.aten.gelu, torch.ops.aten.softmax, torch.ops.aten._softmax]
    table = torch._decomp.get_decompositions(wanted)
    model = nn.Sequential(nn.Sigmoid(), nn.Softmax(-1))
    return fx.export_and_import(model, torch.randn(2, 3), decomposition_table=table)


@program
def no_decompositions():
    return fx.export_and_import(nn.Linear(4, 2), torch.randn(3, 4), decomposition_table={})


@program
def exported_program():
    exported = torch.export.export(nn.Softmax(-1), (torch.randn(2, 3),))
    return fx.export_and_import(exported, output_type="raw")


def main() -> int:
    modules = {}
    for name, run in PROGRAMS.items():
        module, calls = run()
        # The contents of literals are left out.
        text = re.sub(r"(?s)\{-#.*#-\}\s*", "", str(module))
        modules[name] = {"module": text.splitlines(), "calls": calls}
    told = {"torch-mlir": importlib.metadata.version("torch-mlir"), "torch": torch.__version__}
    json.dump({**told, "modules": modules}, sys.stdout, indent=1)
    print()
    return 0


if __name__ == "__main__":
    sys.exit(main())
