# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The operator table read by itself: neither PyTorch nor MLIR is needed."""

from __future__ import annotations

import subprocess
import sys

import pytest

from torch_mlir import operators
from torch_mlir.operators import SchemaError, Table, Type, load, lookup, parse


def test_every_line_parses_and_has_its_own_key() -> None:
    table = load()
    for key, schema in table.items():
        assert schema.key == key
        assert str(schema).startswith(f"{schema.namespace}::{schema.name}")
    assert len(table) > 4000


def test_what_was_parsed_writes_the_schema_again() -> None:
    # Annotations stand where they stood, so they are taken out of both texts.
    def plain(text: str, notes: tuple[str, ...]) -> str:
        for note in notes:
            text = text.replace(f"({note})", "", 1)
        return text

    for schema in load().values():
        parts = []
        kwarg_only = False
        for argument in schema.arguments:
            if argument.kwarg_only and not kwarg_only:
                parts.append("*")
                kwarg_only = True
            default = "" if argument.default is None else f"={argument.default}"
            parts.append(f"{argument.type} {argument.name}{default}")
        parts += ["..."] * schema.is_vararg
        results = [f"{r.type} {r.name}".rstrip() for r in schema.results]
        if schema.is_varret and not results:
            written = "..."
        elif len(results) == 1 and schema.results[0].type.name != "Tuple":
            written = results[0]
        else:
            written = f"({', '.join(results)})"
        text = f"{schema.text.partition('(')[0]}({', '.join(parts)}) -> {written}"
        notes = tuple(n for a in (*schema.arguments, *schema.results) for n in a.annotations)
        # ((t, t)[]): PyTorch wraps any single result that begins with a parenthesis.
        expected = plain(schema.text, notes)
        if schema.results and str(schema.results[0].type).startswith("(") and len(results) == 1:
            text = text.replace(written, f"({results[0]})")
        assert text == expected


def test_lines_are_sorted_as_the_header_says() -> None:
    names = [s.text.partition("(")[0] for s in load().values()]
    assert names == sorted(names)


def test_the_header_names_the_version_and_every_flag() -> None:
    header = " ".join(load().header)
    assert header.startswith("The operators of PyTorch 2.15.0")
    described = set(header.replace(",", " ").replace(".", " ").replace("`", " ").split())
    assert frozenset().union(*(s.flags for s in load().values())) <= described


def test_an_operator_with_everything() -> None:
    schema = lookup("aten.add.out")
    assert (schema.namespace, schema.name, schema.overload) == ("aten", "add", "out")
    assert [(a.name, str(a.type), a.default, a.kwarg_only) for a in schema.arguments] == [
        ("self", "Tensor", None, False),
        ("other", "Tensor", None, False),
        ("alpha", "Scalar", "1", True),
        ("out", "Tensor", None, True),
    ]
    assert [a.is_write for a in schema.arguments] == [False, False, False, True]
    assert schema.results[0].alias_sets == schema.arguments[3].alias_sets == {"a"}
    assert schema.is_mutable and schema.is_aliasing and not schema.is_pure


@pytest.mark.parametrize(
    ("key", "index", "type"),
    [
        ("aten.index.Tensor", 1, Type("List", (Type("Optional", (Type("Tensor"),)),))),
        ("aten.conv2d", 3, Type("List", (Type("SymInt"),), 2)),
        ("aten.sum.dim_IntList", 1, Type("Optional", (Type("List", (Type("int"),), 1),))),
        ("aten.keys.str", 0, Type("Dict", (Type("str"), Type("t")))),
        ("aten.wait", 0, Type("Future", (Type("t"),))),
        (
            "aten.dict.int",
            0,
            Type("List", (Type("Tuple", (Type("int"), Type("tVal"))),)),
        ),
        (
            "quantized.linear",
            1,
            Type("__torch__.torch.classes.quantized.LinearPackedParamsBase"),
        ),
    ],
)
def test_types(key: str, index: int, type: Type) -> None:
    assert lookup(key).arguments[index].type == type


@pytest.mark.parametrize(
    ("key", "name", "value"),
    [
        ("aten.add.Tensor", "alpha", 1),
        ("aten.batch_norm_update_stats", "momentum", ValueError),
        ("aten.conv2d", "padding", [0, 0]),
        ("aten.max_pool2d", "stride", []),
        ("aten.linalg_matrix_norm", "dim", [-2, -1]),
        ("aten.native_dropout", "p", ValueError),
        ("aten.softmax.int", "dtype", None),
        ("aten.gelu", "approximate", "none"),
        ("aten.layer_norm", "eps", 1e-5),
        ("prims.var", "correction", 1.0),
        ("aten.strip", "chars", " \n\t\f\v"),
    ],
)
def test_defaults(key: str, name: str, value: object) -> None:
    argument = next(a for a in lookup(key).arguments if a.name == name)
    if value is ValueError:
        with pytest.raises(ValueError, match=f"'{name}' has no default"):
            _ = argument.default_value
    else:
        assert argument.default_value == value
        assert type(argument.default_value) is type(value)


def test_variable_numbers_of_operands_and_results() -> None:
    assert lookup("prim.Print").is_vararg
    assert not lookup("prim.Print").is_varret
    assert lookup("prim.TupleUnpack").is_varret
    assert [a.name for a in lookup("aten.format").arguments] == ["self"]
    assert lookup("aten.format").is_vararg


def test_other_spellings_of_a_key() -> None:
    relu = lookup("aten.relu")
    for spelling in ("aten::relu", "torch.aten.relu", "aten.relu.default"):
        assert lookup(spelling) is relu
    assert lookup("aten::add.Tensor") is lookup("torch.aten.add.Tensor")


@pytest.mark.parametrize("key", ["aten.add.Nonsense", "aten.nonsense", "", "torch.constant.int"])
def test_an_unknown_operator_is_a_key_error_that_names_it(key: str) -> None:
    with pytest.raises(KeyError, match=f"{key}: not in the operator table"):
        lookup(key)


def test_overloads_of_a_name() -> None:
    overloads = load().overloads
    assert "aten.add.Tensor" in overloads["aten.add"]
    assert overloads["aten.relu"] == ("aten.relu", "aten.relu.out")
    assert sum(map(len, overloads.values())) == len(load())


def test_mutating_operators_are_never_pure() -> None:
    mutating = [s for s in load().values() if s.is_mutable]
    assert len(mutating) > 1000
    assert [s.key for s in mutating if s.is_pure] == []


def test_random_operators_are_never_pure() -> None:
    random = [
        s
        for s in load().values()
        if "nondeterministic_seeded" in s.flags
        or any("Generator" in str(a.type) for a in s.arguments)
    ]
    assert {"aten.rand", "aten.native_dropout", "prims.uniform"} <= {s.key for s in random}
    assert [s.key for s in random if s.is_pure] == []


def test_operators_without_results_are_never_pure() -> None:
    silent = [s for s in load().values() if not s.results and not s.is_varret]
    assert {"aten.warn", "aten._assert_async.msg", "prim.RaiseException"} <= {s.key for s in silent}
    assert [s.key for s in silent if s.is_pure] == []


@pytest.mark.parametrize(
    "key",
    [
        "aten.manual_seed",
        "aten.save",
        "prim.Print",
        "prim.PythonOp",
        "prim.TimePoint",
        "aten.is_grad_enabled",
        "profiler._record_function_enter",
        "profiler._call_end_callbacks_on_jit_fut",
        "aten.to_here",
        "_c10d_functional.all_reduce",
        "_c10d_functional.wait_tensor",
        "aten.batch_norm",  # updates the running statistics when it trains
        "aten.copy_",
        "aten.append.t",
        "aten.sort.int",
    ],
)
def test_effects_rule_purity_out(key: str) -> None:
    assert not lookup(key).is_pure


@pytest.mark.parametrize(
    "key",
    [
        "aten.add.Tensor",
        "aten.view",
        "aten.zeros",
        "aten.convolution",
        "aten.item",
        "aten.__getitem__.t",
        "aten.format",
        "prim.NumToTensor.Scalar",
        "prims.convert_element_type",
        "quantized_decomposed.quantize_per_tensor",
    ],
)
def test_computation_is_pure(key: str) -> None:
    assert lookup(key).is_pure


def test_tags_that_native_functions_yaml_is_known_for() -> None:
    assert {"core", "pointwise"} <= lookup("aten.add.Tensor").flags
    assert "dynamic_output_shape" in lookup("aten.nonzero").flags
    assert "data_dependent_output" in lookup("aten.item").flags
    assert "inplace_view" in lookup("aten.transpose_").flags
    assert "view_copy" in lookup("aten.view_copy").flags


def test_tags_that_python_code_sets_on_overloads() -> None:
    assert "nondeterministic_seeded" in lookup("prims.uniform").flags
    assert "pointwise" in lookup("prims.maximum").flags


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("aten::add(Tensor self -> Tensor", "expected ', ' or '\\)' at column 22"),
        ("aten::add(Tensor self) Tensor", "expected ' -> ' at column 23"),
        ("aten.add(Tensor self) -> Tensor", "expected '::'"),
        ("aten::(Tensor self) -> Tensor", "expected namespace::name"),
        ("aten::add(Tensor(a! self) -> Tensor", "expected"),
        ("aten::add(=1) -> Tensor", "expected a type"),
        ("aten::add(Tensor self) -> Tensor, Tensor", "unexpected text at column 33"),
        ("aten::add(Tensor[ self) -> Tensor", "expected '\\]'"),
    ],
)
def test_a_schema_that_is_none_says_where(text: str, message: str) -> None:
    with pytest.raises(SchemaError, match=message):
        parse(text)


def test_a_bad_line_of_a_table_says_which() -> None:
    with pytest.raises(SchemaError, match=r"t\.txt:2: not an operator: 'nonsense'"):
        Table("# header\nnonsense\n", "t.txt")
    with pytest.raises(SchemaError, match=r"t\.txt:3: aten\.x stands twice"):
        Table("# h\naten::x() -> ()\naten::x() -> ()\tpure\n", "t.txt")


def test_importing_needs_the_standard_library_alone_and_reads_nothing() -> None:
    code = (
        "import sys; import torch_mlir.operators as o;"
        "print([m for m in sys.modules if m.split('.')[0] in ('torch', 'numpy')],"
        "'torch_mlir.ir' in sys.modules, o.load.cache_info().currsize)"
    )
    result = subprocess.run(
        [sys.executable, "-P", "-c", code], check=True, capture_output=True, text=True
    )
    assert result.stdout.strip() == "[] False 0"


def test_what_is_offered_is_there() -> None:
    assert [name for name in operators.__all__ if not hasattr(operators, name)] == []
