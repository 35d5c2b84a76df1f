# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What the importer itself says of shapes and dtypes, without PyTorch, held against PyTorch."""

from __future__ import annotations

import io
import json
import re
import subprocess
import sys
import warnings
from collections.abc import Sequence
from typing import Any

import pytest
import torch
from archives import CASES
from eager_calls import hold, inputs_of

from torch_mlir import ir, torchscript
from torch_mlir._mlir_libs import _jit_ir_importer as native
from torch_mlir.backends import reference
from torch_mlir.dtypes import DTYPE_TO_INT
from torch_mlir.importers.torchscript.arguments import TensorArgument

F32, F64, I64, I32, BOOL = (
    DTYPE_TO_INT[dtype]
    for dtype in (torch.float32, torch.float64, torch.int64, torch.int32, torch.bool)
)


def archive_of_module(module: torch.nn.Module) -> bytes:
    buffer = io.BytesIO()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.jit.save(torch.jit.script(module.eval()), buffer)
    return buffer.getvalue()


def imported(archive: bytes, inputs: Any) -> ir.Module:
    with warnings.catch_warnings():
        # What callers do not see of a function's writes.
        warnings.simplefilter("ignore")
        return torchscript.import_archive(archive, output_type="torch", inputs=inputs, refine=False)


def program_of(module: ir.Module) -> Any:
    backend = reference.ReferenceBackend()
    return backend.load(backend.compile(module))


def result_types(module: ir.Module, method: str = "forward") -> list[str]:
    for view in module.body.operations:
        operation = view.operation
        if operation.name != "func.func":
            continue
        if ir.StringAttr(operation.attributes["sym_name"]).value == method:
            kind = ir.FunctionType(ir.TypeAttr(operation.attributes["function_type"]).value)
            return [str(result) for result in kind.results]
    raise KeyError(method)


def names_of(module: ir.Module) -> list[str]:
    names: list[str] = []

    def visit(operation: Any) -> Any:
        names.append(operation.name)
        return ir.WalkResult.ADVANCE

    module.operation.walk(visit)
    return names


def tensor_types(module: ir.Module) -> list[str]:
    """The types of all tensors that operations give."""
    found: list[str] = []

    def visit(operation: Any) -> Any:
        found.extend(str(result.type) for result in operation.results)
        return ir.WalkResult.ADVANCE

    module.operation.walk(visit)
    return [kind for kind in found if kind.startswith("!torch.vtensor")]


def opened(inputs: dict[str, list[Any]]) -> dict[str, list[Any]]:
    """The same arguments, of any sizes."""
    return {
        method: [
            value
            if value is None
            else TensorArgument((-1,) * value.dim(), str(value.dtype).removeprefix("torch."))
            for value in values
        ]
        for method, values in inputs.items()
    }


def described(case: Any, archive: bytes) -> dict[str, list[Any]]:
    """The arguments of the first call of each method; none of those that have no type."""
    return {
        method: [None if value is None or value.is_quantized else value for value in values]
        for method, values in inputs_of(case, archive).items()
    }


# The reference backend holds each value that it computes against its type.
@pytest.mark.parametrize("sizes", ["known", "open"])
def test_what_is_said_of_each_value_holds(value_case, archive_of, sizes):
    archive = archive_of(value_case)
    inputs = described(value_case, archive)
    if sizes == "open":
        inputs = opened(inputs)
    program = program_of(imported(archive, inputs))
    hold(value_case, archive, lambda method, args: program.function(method)(*args), flat=True)


def test_most_of_all_archives_is_known(archive_of):
    known, total = 0, 0
    for case in CASES.values():
        if case.refused is not None or case.functional is not True or case.unavailable():
            continue
        archive = archive_of(case)
        types = tensor_types(imported(archive, described(case, archive)))
        total += len(types)
        known += sum("?" not in kind and "<" in kind and "*" not in kind for kind in types)
    print(f"{known} of {total} tensors")
    assert total > 500
    assert known / total > 0.8


class ConvNet(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.stem = torch.nn.Conv2d(3, 16, 7, stride=2, padding=3, bias=False)
        self.norm = torch.nn.BatchNorm2d(16)
        self.pool = torch.nn.MaxPool2d(3, stride=2, padding=1)
        self.grouped = torch.nn.Conv2d(16, 16, 3, padding=1, groups=4)
        self.down = torch.nn.Conv2d(16, 32, 1, stride=2)
        self.average = torch.nn.AdaptiveAvgPool2d((1, 1))
        self.head = torch.nn.Linear(32, 10)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.pool(torch.relu(self.norm(self.stem(x))))
        x = x + torch.relu(self.grouped(x))
        x = torch.nn.functional.relu6(self.down(x))
        return torch.softmax(self.head(torch.flatten(self.average(x), 1)), -1)


class Encoder(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        layer = torch.nn.TransformerEncoderLayer(32, 4, 64, dropout=0.0, batch_first=True)
        self.embed = torch.nn.Embedding(50, 32)
        self.encoder = torch.nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        return self.encoder(self.embed(tokens)).mean(1)


@pytest.mark.parametrize(
    ("module", "described", "expected", "examples"),
    [
        (
            ConvNet(),
            "?x3x?x?xf32",
            "!torch.vtensor<[?,10],f32>",
            [torch.ones(2, 3, 32, 32), torch.ones(3, 3, 45, 38)],
        ),
        (
            ConvNet(),
            "2x3x32x32xf32",
            "!torch.vtensor<[2,10],f32>",
            [torch.rand(2, 3, 32, 32)],
        ),
    ],
)
def test_models_have_the_types_that_pytorch_gives(module, described, expected, examples):
    archive = archive_of_module(module)
    found = imported(archive, [described])
    assert result_types(found) == [expected]
    program = program_of(found)
    for example in examples:
        with torch.no_grad():
            torch.testing.assert_close(program.function("forward")(example), module(example))


@pytest.mark.parametrize("kind", ["LSTM", "GRU"])
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"bidirectional": True},
        {"batch_first": True, "num_layers": 2},
        {"batch_first": True, "bidirectional": True, "num_layers": 2, "bias": False},
        {"proj_size": 2, "bidirectional": True},
    ],
)
def test_recurrent_networks_have_the_types_that_pytorch_gives(kind, options):
    if "proj_size" in options and kind != "LSTM":
        pytest.skip("LSTMs alone have projections")
    module = getattr(torch.nn, kind)(4, 3, **options).eval()
    example = torch.ones(2, 5, 4)
    with torch.no_grad():
        output, hidden = module(example)
        archive = io.BytesIO()
        torch.jit.save(torch.jit.trace(module, example), archive)
    tensors = [output, *(hidden if isinstance(hidden, tuple) else [hidden])]
    expected = [f"!torch.vtensor<[{','.join(map(str, each.shape))}],f32>" for each in tensors]
    types = ",".join(result_types(imported(archive.getvalue(), ["2x5x4xf32"])))
    found = re.findall(r"!torch\.vtensor<[^>]*>", types)
    assert found == expected


def test_what_stays_unknown_in_a_transformer_is_named_with_its_line():
    module = Encoder()
    told = []
    found = torchscript.import_archive(
        archive_of_module(module), output_type="torch", inputs=["?x?xsi64"], refine=False,
        unrefined=told.append,
    )  # fmt: skip
    # One operator that PyTorch has for transformers alone, and what follows from it.
    assert "aten::_native_multi_head_attention" in [operator.name for operator in told]
    assert len(told) <= 3
    files = [operator.location[0] for operator in told]
    assert all("/torch/nn/" in name for name in files)
    assert "!torch.vtensor<[?,?,32],f32>" in str(found)
    tokens = torch.randint(0, 50, (2, 7))
    with torch.no_grad():
        result = program_of(found).function("forward")(tokens)
        torch.testing.assert_close(result, module(tokens))


def test_sizes_that_are_known_take_branches_and_unroll_loops():
    class Branches(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            if x.dim() != 3 or len(x.shape) != 3:
                raise ValueError("three dimensions are wanted")
            y = x.transpose(0, 1)
            if y.size(0) == x.shape[1] and y.dtype == torch.float32:
                y = y + 1
            if not y.is_floating_point() or y.is_complex() or y.numel() == 7:
                y = y * 2
            for i in range(y.size(0)):
                y = y + i
            return y

    found = imported(archive_of_module(Branches()), ["2x3x4xf32"])
    assert not {"torch.prim.If", "torch.prim.Loop"} & {*names_of(found)}
    assert result_types(found) == ["!torch.vtensor<[3,2,4],f32>"]


def test_open_sizes_stay_open_where_a_branch_depends_on_them():
    class Depends(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            y = x
            if x.size(0) > 2:
                y = torch.cat([x, x])
            return torch.relu(y)

    found = imported(archive_of_module(Depends()), ["?x5xf32"])
    assert "torch.prim.If" in names_of(found)
    assert result_types(found) == ["!torch.vtensor<[?,5],f32>"]
    program = program_of(found)
    assert program.function("forward")(torch.ones(3, 5)).shape == (6, 5)
    assert program.function("forward")(torch.ones(1, 5)).shape == (1, 5)


def test_what_a_loop_carries_has_what_all_iterations_have_in_common():
    class Loops(torch.nn.Module):
        def forward(self, x: torch.Tensor, n: int) -> tuple[torch.Tensor, torch.Tensor]:
            grows, stays = x, x
            for _ in range(n):
                grows = torch.cat([grows, x], 1)
                stays = stays * 2
            return grows, stays

    found = imported(archive_of_module(Loops()), ["2x5xf32", None])
    assert result_types(found) == ["!torch.vtensor<[2,?],f32>", "!torch.vtensor<[2,5],f32>"]
    program = program_of(found)
    assert program.function("forward")(torch.ones(2, 5), 3)[0].shape == (2, 20)


def infer(schema: str, operands: Sequence[Any]) -> list[tuple[list[int] | None, int | None]]:
    return native.infer_results(schema, list(operands))


@pytest.mark.parametrize(
    ("left", "right", "expected"),
    [
        (([2, 3], I64), ([2, 3], F32), F32),
        (([2, 3], I64), ([], F64), F64),
        (([2, 3], F32), ([], F64), F32),
        (([2, 3], I32), ([], I64), I32),
        (([], I32), ([], I64), I64),
        ((None, F32), ([], F64), None),
        ((None, I32), ([1], I32), I32),
        (([2, 3], None), ([], F64), None),
        (([2, 3], BOOL), ([], I64), I64),
    ],
)
def test_dtypes_promote_by_category(left, right, expected):
    schema = "aten::add.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor"
    assert infer(schema, [left, right, 1])[0][1] == expected
    if expected is not None and None not in (left[0], right[0]):
        dtypes = {number: dtype for dtype, number in DTYPE_TO_INT.items()}
        tensors = [torch.ones(sizes, dtype=dtypes[dtype]) for sizes, dtype in (left, right)]
        assert DTYPE_TO_INT[torch.result_type(*tensors)] == expected


@pytest.mark.parametrize(
    ("left", "right", "expected"),
    [
        ([2, 1, 4], [3, 1], [2, 3, 4]),
        ([-1, 3], [5, 1], [5, 3]),
        ([-1, 3], [1, 1], [-1, 3]),
        ([-1, -1], [-1], [-1, -1]),
        ([2, 3], [2, 4], None),
        (None, [2], None),
    ],
)
def test_open_sizes_broadcast(left, right, expected):
    schema = "aten::mul.Tensor(Tensor self, Tensor other) -> Tensor"
    assert infer(schema, [(left, F32), (right, F32)])[0][0] == expected


def sizes_by(
    rule: str, overload: Any, operands: Sequence[Any], real: torch.Tensor
) -> tuple[int, int]:
    """Whether a rule tells some of a result's sizes, and all; none may be wrong."""
    facts = [fact_of(operand) for operand in operands]
    schema = str(overload._schema)
    right, told, complete = native.check_rule(rule, "sizes", 0, schema, [facts], [list(real.shape)])
    assert right
    return told, complete


@pytest.mark.parametrize(
    ("equation", "shapes"),
    [
        ("ij,jk->ik", [(2, 3), (3, 4)]),
        ("ij,jk", [(2, 3), (3, 4)]),
        ("ba", [(2, 3)]),
        ("bA,A", [(2, 3), (3,)]),
        ("ii->i", [(3, 3)]),
        ("ii", [(3, 3)]),
        ("i,j->", [(3,), (4,)]),
        ("...ij,...jk->...ik", [(5, 2, 3), (7, 1, 3, 4)]),
        ("... i j, j -> i ...", [(6, 5, 2, 3), (3,)]),
        ("...i,i", [(4, 3), (3,)]),
        ("b...,b...->...", [(2, 3), (2, 5, 3)]),
        ("ij,jk->ki", [(2, 1), (3, 4)]),
        ("i...->...", [(3,)]),
        ("bhqd,bhkd->bhqk", [(2, 3, 4, 5), (2, 3, 6, 5)]),
    ],
)
def test_equations_of_einsum_tell_sizes(equation, shapes):
    tensors = [torch.ones(shape) for shape in shapes]
    real = torch.einsum(equation, *tensors)
    overload, rule = torch.ops.aten.einsum.default, "einsum(equation,tensors)"
    assert sizes_by(rule, overload, [equation, tensors, None], real) == (1, 1)


@pytest.mark.parametrize(
    ("equation", "operands", "expected"),
    [
        ("ij,jk->ik", [([-1, 3], F32), ([3, 5], F32)], (1, 0)),
        ("ij,jk->ik", [([2, 3], F32), ([3, -1], F32)], (1, 0)),
        ("ij,jk->ik", [([2, 3], F32), ([-1, 5], F32)], (1, 1)),
        ("ij,jk->ik", [([2, 3], F32), ([4, 5], F32)], (0, 0)),
        ("ij,jk->ik", [([2, 3], F32)], (0, 0)),
        ("ij->ik", [([2, 3], F32)], (0, 0)),
        ("ij", [(None, F32)], (0, 0)),
        ("ij", [([2, 3, 4], F32)], (0, 0)),
        ("i*->i", [([2, 3], F32)], (0, 0)),
        ("i.j->i", [([2, 3], F32)], (0, 0)),
        ("ij->i..", [([2, 3], F32)], (0, 0)),
        (..., [([2, 3], F32)], (0, 0)),
    ],
)
def test_einsum_of_what_is_open_or_wrong_tells_no_more_than_holds(equation, operands, expected):
    schema = str(torch.ops.aten.einsum.default._schema)
    found = native.check_rule(
        "einsum(equation,tensors)", "sizes", 0, schema, [[equation, operands, None]], [[2, 5]]
    )
    assert found == (True, *expected)


@pytest.mark.parametrize(
    ("shape", "indices"),
    [
        ((4, 5, 6), [torch.zeros(2, 3, dtype=torch.int64)]),
        ((4, 5, 6), [None, torch.zeros(2, 3, dtype=torch.int64)]),
        ((4, 5, 6), [torch.zeros(2, 1, dtype=torch.int64), torch.zeros(3, dtype=torch.int64)]),
        ((4, 5, 6, 7), [None, torch.zeros(2, dtype=torch.int64), torch.tensor(1)]),
        ((4, 5, 6, 7), [torch.zeros(2, dtype=torch.int64), None, torch.tensor([1, 2])]),
        ((4, 5, 6, 7), [None, torch.zeros(2, dtype=torch.int32), None, torch.tensor([[1], [2]])]),
        ((4, 5), [torch.tensor(3)]),
        ((4, 5), [torch.zeros(0, dtype=torch.int64)]),
        ((4, 5, 6), [torch.ones(4, 5, dtype=torch.bool)]),
        ((4, 5, 6), [None, torch.tensor([True, False, True, False, True])]),
        ((4, 5, 6), [torch.ones(4, dtype=torch.bool), None, torch.tensor([1])]),
        ((4, 5, 6), [torch.ones(4, dtype=torch.bool), torch.tensor([1, 2, 3, 4])]),
    ],
)
def test_indexing_with_tensors_tells_sizes(shape, indices):
    tensor = torch.ones(shape)
    real = torch.ops.aten.index.Tensor(tensor, indices)
    has_mask = any(index is not None and index.dtype == torch.bool for index in indices)
    told, complete = sizes_by(
        "index(self,indices)", torch.ops.aten.index.Tensor, [tensor, indices], real
    )
    # How many elements a mask has set isn't known, but where another index says it.
    assert told == 1
    assert complete or has_mask


@pytest.mark.parametrize("shape", [(2, 3, 9, 8), (3, 9, 8)])
@pytest.mark.parametrize(
    ("kernel", "dilation", "padding", "stride"),
    [
        ((2, 3), (1, 1), (0, 0), (1, 1)),
        ((3, 3), (2, 1), (1, 2), (2, 3)),
        ((1, 4), (1, 2), (3, 0), (4, 1)),
    ],
)
def test_windows_as_columns_have_the_sizes_that_pytorch_gives(
    shape, kernel, dilation, padding, stride
):
    image = torch.ones(shape)
    options = [list(kernel), list(dilation), list(padding), list(stride)]
    columns = torch.ops.aten.im2col(image, *options)
    rule = "columns(self,kernel_size,dilation,padding,stride)"
    assert sizes_by(rule, torch.ops.aten.im2col.default, [image, *options], columns) == (1, 1)
    back = torch.ops.aten.col2im(columns, [9, 8], *options)
    rule = "image(self,output_size,kernel_size)"
    given = [columns, [9, 8], *options]
    assert sizes_by(rule, torch.ops.aten.col2im.default, given, back) == (1, 1)


@pytest.mark.parametrize("number", [3, 2.5, True, 1 + 2j])
def test_tensors_of_numbers_have_the_numbers_dtype(number):
    schema = torch.ops.prim.NumToTensor.Scalar._schema
    real = torch.ops.prim.NumToTensor.Scalar(number)
    found = native.check_rule(
        "number(a)", "dtype", 0, str(schema), [[number]], [DTYPE_TO_INT[real.dtype]]
    )
    assert found == (True, 1, 1)


def test_shape_functions_run_on_sizes_that_are_open():
    conv2d = (
        "aten::conv2d(Tensor input, Tensor weight, Tensor? bias=None, int[2] stride=1, "
        "int[2] padding=0, int[2] dilation=1, int groups=1) -> Tensor"
    )
    rest = [None, [2, 1], [0, 1], [1, 1], 1]
    weight = ([8, 3, 3, 3], F32)
    assert infer(conv2d, [([-1, 3, 9, -1], F32), weight, *rest]) == [([-1, 8, 4, -1], F32)]
    assert infer(conv2d, [(None, F32), weight, *rest])[0] == (None, F32)
    # Strides that aren't known.
    assert infer(conv2d, [([2, 3, 9, 9], F32), weight, None, ..., *rest[2:]])[0][0] in (
        None,
        [2, 8, -1, -1],
    )
    view = "aten::view(Tensor(a) self, int[] size) -> Tensor(a)"
    assert infer(view, [([2, 6], F32), [3, -1]]) == [([3, 4], F32)]
    assert infer(view, [([2, -1], F32), [4, -1]]) == [([4, -1], F32)]
    assert infer(view, [([2, 6], F32), [5, -1]])[0][0] is None
    assert infer(view, [([2, 6], F32), ...])[0][0] is None
    slices = (
        "aten::slice.Tensor(Tensor(a) self, int dim=0, int? start=None, int? end=None, "
        "int step=1) -> Tensor(a)"
    )
    assert infer(slices, [([7, 5], F32), 0, 1, 100, 2]) == [([3, 5], F32)]
    assert infer(slices, [([-1, 5], F32), 0, 1, None, 2]) == [([-1, 5], F32)]
    assert infer(slices, [([7, 5], F32), 0, ..., None, 1]) == [([-1, 5], F32)]


def test_a_rule_that_cannot_be_read_is_refused():
    for rule in ("", "of(self", "of(self))", "of()"):
        with pytest.raises(ValueError):
            native.check_rule(rule, "dtype", 0, "aten::relu(Tensor self) -> Tensor", [], [])
    with pytest.raises(ValueError, match="expected ident"):
        native.infer_results("aten::relu(Tensor", [])


# The operators of one in so many of PyTorch's samples, of other numbers than the rules are from.
@pytest.mark.parametrize("part", range(8))
def test_rules_hold_for_pytorchs_samples(part):
    from torch.testing._internal.common_methods_invocations import op_db
    from torch.utils._python_dispatch import TorchDispatchMode

    said = 0

    class Held(TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            nonlocal said
            result = func(*args, **(kwargs or {}))
            schema = func._schema
            if schema.is_mutable or any(str(each.type) != "Tensor" for each in schema.returns):
                return result
            operands = [
                args[i]
                if i < len(args)
                else (kwargs or {}).get(
                    each.name, each.default_value if each.has_default_value() else None
                )
                for i, each in enumerate(schema.arguments)
            ]
            results = result if isinstance(result, tuple) else (result,)
            if len(results) != len(schema.returns):
                return result  # a kernel that gives less than it says
            for real, (sizes, dtype) in zip(
                results, infer(str(schema), [fact_of(each) for each in operands]), strict=True
            ):
                if not isinstance(real, torch.Tensor) or real.layout is not torch.strided:
                    continue
                told = f"{schema}: {[fact_of(each) for each in operands]}"
                if dtype is not None:
                    said += 1
                    assert dtype == DTYPE_TO_INT[real.dtype], told
                if sizes is not None:
                    said += 1
                    assert len(sizes) == real.dim(), told
                    pairs = zip(sizes, real.shape, strict=True)
                    assert all(size in (-1, own) for size, own in pairs), told
            return result

    for info in op_db[part::24]:
        if "jiterator" in info.name:
            continue  # for GPUs alone
        for dtype in (torch.float32, torch.float64, torch.int64):
            if dtype not in info.supported_dtypes("cpu"):
                continue
            torch.manual_seed(part + 1000)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                for index, sample in enumerate(info.sample_inputs("cpu", dtype)):
                    if index % 3 == 0:
                        with torch.no_grad(), Held():
                            info.op(sample.input, *sample.args, **sample.kwargs)
    assert said > 200


def fact_of(value: Any) -> Any:
    if isinstance(value, torch.Tensor):
        return (list(value.shape), DTYPE_TO_INT[value.dtype])
    if isinstance(value, torch.dtype):
        return DTYPE_TO_INT[value]
    if isinstance(value, (list, tuple)):
        return [fact_of(each) for each in value]
    if value is None or isinstance(value, (bool, int, float, complex, str)):
        return value
    return ...


def test_a_process_without_pytorch_imports_with_shapes(tmp_path):
    path = tmp_path / "net.pt"
    path.write_bytes(archive_of_module(ConvNet()))
    program = """
import json, sys

class Blocked:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] == "torch":
            raise ImportError(f"{name} is blocked")

sys.meta_path.insert(0, Blocked())
from torch_mlir import torchscript
module = torchscript.import_archive(sys.argv[1], output_type="torch", inputs=["?x3x32x32xf32"])
assert not any(name.partition(".")[0] == "torch" for name in sys.modules)
(line,) = (line for line in str(module).splitlines() if "func.func" in line)
print(json.dumps(line))
"""
    done = subprocess.run(
        [sys.executable, "-P", "-c", program, str(path)],
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    assert "-> !torch.vtensor<[?,10],f32>" in json.loads(done.stdout)
