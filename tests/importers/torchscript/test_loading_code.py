# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Code of an archive's that libtorch runs while it loads the archive ends, whatever it says.

A hang or a crash of the process is how these tests fail, besides the usual way.
"""

from __future__ import annotations

import math
import subprocess
import sys

import pytest
from test_archives_safety import (
    CLASS,
    archive,
    error_of,
    found,
    integer,
    pickled,
    with_attribute,
)

from torch_mlir import torchscript
from torch_mlir.torchscript import TorchMlirCompilerError

LEAST = "-9223372036854775807 - 1"
STEPS = "more than the limit 'loading_steps' allows"
BYTES = "more than the limit 'loading_bytes' allows"


def lines(*statements: str) -> str:
    return "".join(f"    {statement}\n" for statement in statements)


def with_setstate(
    *body: str, more: str = "", default: str = "", kind: str = "int", state: bytes | None = None
) -> bytes:
    """An archive of M, whose attribute `k` is what `body` makes of `state`, which is 5."""
    source = (
        CLASS + f"  k : {kind}\n"
        "  def forward(self: __torch__.M,\n    x: Tensor" + default + ") -> Tensor:\n    return x\n"
        "  def __getstate__(self: __torch__.M) -> int:\n    return 1\n"
        "  def __setstate__(self: __torch__.M,\n    state: int) -> NoneType:\n"
        + lines(*body)
        + "    return None\n"
        + more
    )
    data = pickled(found("__torch__", "M"), b")\x81", state or integer(5), b"b")
    return archive({"code/__torch__.py": source, "data.pkl": data})


def made(*body: str, kind: str = "int", more: str = "") -> str:
    """The module of an archive whose `__setstate__` is `body`."""
    return str(torchscript.import_archive(with_setstate(*body, kind=kind, more=more)))


@pytest.mark.parametrize(
    ("expression", "value"),
    [
        ("torch.add(state, 1)", 6),
        ("torch.remainder(-7, state)", -7 % 5),
        ("torch.floordiv(-7, state)", -7 // 5),
        ("torch.remainder(-7, -1)", 0),
        ("torch.floordiv(-7, -1)", 7),
        ("torch.gcd(-12, 18)", math.gcd(-12, 18)),
        ("torch.factorial(state)", math.factorial(5)),
        ('torch.count("banana", "an")', "banana".count("an")),
        ('torch.count("banana", "")', "banana".count("")),
        ('torch.find("banana", "nan")', "banana".find("nan")),
        ("torch.len([0, 1, 2])", 3),
        # Quotients that are no int64: what wraps around.
        (f"torch.floordiv({LEAST}, -1)", -(2**63)),
        (f"torch.remainder({LEAST}, -1)", 0),
    ],
)
def test_setstate_calculates_as_python_does(expression, value):
    assert f"torch.constant.int {value}\n" in made(f"self.k = {expression}")


@pytest.mark.parametrize(
    ("expression", "value"),
    [
        ('torch.rsplit("a,bc,d", ",", 1)', ["a,bc", "d"]),
        ('torch.rsplit("a,bc,d", ",")', ["a", "bc", "d"]),
        ('[torch.replace("banana", "an", "ana"), ""]', ["banana".replace("an", "ana"), ""]),
        ('[torch.replace("banana", "a", "", 2), ""]', ["banana".replace("a", "", 2), ""]),
        ('torch.sorted(["b", "a", "c"])', ["a", "b", "c"]),
    ],
)
def test_setstate_makes_of_texts_what_python_does(expression, value):
    module = made(f'self.k = torch.join("|", {expression})', kind="str")
    assert f'torch.constant.str "{"|".join(value)}"' in module


@pytest.mark.parametrize(
    ("statement", "message"),
    [
        ("self.k = torch.remainder(state, 0)", "division by 0"),
        ("self.k = torch.floordiv(state, 0)", "division by 0"),
        ("self.k = torch.__round_to_zero_floordiv(state, 0)", "division by 0"),
        ("_0, self.k = torch.divmod(state, 0)", "division"),
        ('self.k = torch.len(torch.replace("a", "", "b"))', "nothing to replace"),
        ('self.k = torch.len(torch.rsplit("a", ""))', "empty separator"),
        ("self.k = torch.len([1, 2][0:2:0])", "non-zero step"),
    ],
)
def test_what_has_no_result_is_an_error(statement, message):
    assert message in error_of(with_setstate(statement))


def test_sorting_without_an_order_ends_with_the_same_elements():
    numbers = ["a = [1., 2., 3.]", "for i in range(500):"]
    numbers += [
        "  _0 = torch.append(a, torch.remainder(i, 7.))",
        '  _1 = torch.append(a, float("nan"))',
    ]
    for reverse in ("True", "False"):
        module = made(*numbers, f"torch.sort(a, {reverse})", "self.k = torch.len(a)")
        assert "torch.constant.int 1003\n" in module


def test_sorting_by_a_comparison_that_is_always_true_ends():
    more = (
        "class C:\n  n : int\n"
        "  def __init__(self: __torch__.C,\n    n: int) -> NoneType:\n"
        "    self.n = n\n    return None\n"
        "  def __lt__(self: __torch__.C,\n    other: __torch__.C) -> bool:\n    return True\n"
    )
    module = made(
        "a = annotate(List[__torch__.C], [])",
        "for i in range(100):",
        "  _0 = torch.append(a, __torch__.C(i))",
        "torch.sort(a)",
        "self.k = torch.len(a)",
        more=more,
    )
    assert "torch.constant.int 100\n" in module


DOUBLED = "for i in range(60):"


@pytest.mark.parametrize(
    ("message", "body"),
    [
        (STEPS, ["while True:", "  self.k = 1"]),
        (STEPS, ['a = "x"', DOUBLED, "  a = torch.add(a, a)", "self.k = torch.len(a)"]),
        (STEPS, ["a = [0]", DOUBLED, "  a = torch.add(a, a)", "self.k = torch.len(a)"]),
        (BYTES, ["self.k = torch.len(torch.mul([0], 1000000000000))"]),
        (STEPS, ['self.k = torch.len(torch.ljust("x", 1000000000000))']),
        (STEPS, ['self.k = torch.len(torch.expandtabs("\\t", 1000000000000))']),
        (
            STEPS,
            [
                "a = [0]",
                "for i in range(1000000000000):",
                "  _0 = torch.append(a, 1)",
                "self.k = torch.len(a)",
            ],
        ),
        (
            STEPS,
            [
                "for i in range(1000000):",
                "  self.k = torch.factorial(torch.add(2147483000, torch.remainder(i, 2)))",
            ],
        ),
        (
            STEPS,
            [
                'a = torch.ljust("x", 3000000, "x")',
                'b = torch.add(torch.ljust("x", 1000000, "x"), "y")',
                "self.k = torch.find(a, b)",
            ],
        ),
        (
            STEPS,
            ['a = [torch.ljust("x", 1000000)]', "for i in range(30):", "  a = torch.add(a, a)"]
            + ["_0 = torch.sort(a)", "self.k = torch.len(a)"],
        ),
        (
            STEPS,
            [
                "a = torch.empty_strided([1000000, 1000000], [0, 0])",
                "b = torch.clone(a)",
                "self.k = torch.len(torch.size(b))",
            ],
        ),
        (BYTES, ["a = torch.empty([100000, 100000, 100])", "self.k = torch.len(torch.size(a))"]),
    ],
)
def test_code_without_end_is_stopped(message, body):
    assert message in error_of(with_setstate(*body), loading_steps=1 << 20)


def test_default_arguments_without_end_are_stopped():
    more = "def g() -> int:\n  while True:\n    a = 1\n  return 1\n"
    bad = with_setstate("self.k = 1", more=more, default=",\n    y: int=__torch__.g()")
    assert STEPS in error_of(bad)


@pytest.mark.parametrize(
    "expression",
    [
        'torch.ljust("x", 1000000000000)',
        "str(" + "torch.factorial(2147483647) + " * 20 + "0)",
    ],
)
def test_operators_on_constants_of_a_method_are_bounded(expression):
    source = (
        CLASS + "  def forward(self: __torch__.M,\n    x: Tensor) -> str:\n"
        f"    a = {expression}\n    return a\n"
    )
    bad = archive({"code/__torch__.py": source})
    assert STEPS in error_of(bad, loading_steps=1 << 20)


def test_a_limit_is_an_option():
    bad = with_setstate("for i in range(2000):", "  self.k = i")
    assert "torch.constant.int 1999\n" in str(torchscript.import_archive(bad))
    with pytest.raises(TorchMlirCompilerError, match="'loading_steps'"):
        torchscript.import_archive(bad, limits={"loading_steps": 1000})
    large = with_setstate('self.k = torch.len(torch.ljust("x", 10000000))')
    assert "torch.constant.int 10000000\n" in str(torchscript.import_archive(large))
    with pytest.raises(TorchMlirCompilerError, match="'loading_bytes'"):
        torchscript.import_archive(large, limits={"loading_bytes": 1 << 20})


def test_after_a_load_that_was_stopped_others_are_not():
    assert STEPS in error_of(with_setstate("while True:", "  self.k = 1"))
    assert "torch.constant.int 6\n" in made("self.k = torch.add(state, 1)")


def test_code_that_would_run_in_another_thread_is_refused():
    more = "def g(a: int) -> int:\n  while True:\n    a = 1\n  return 1\n"
    bad = with_setstate("_0 = fork(__torch__.g, state)", "self.k = torch.wait(_0)", more=more)
    assert "forks while it is loaded" in error_of(bad)


def test_what_code_prints_while_it_is_loaded_is_dropped(capfd):
    assert "torch.constant.int 1\n" in made('print("hello")', "self.k = 1")
    assert capfd.readouterr() == ("", "")


# Nested tuples: alias analysis looked at each level's type twice if it holds nothing mutable.


def nested_tuples(depth: int) -> bytes:
    kind = "Tuple[" * depth + "int" + "]" * depth
    return with_attribute(f"Optional[{kind}]", b"N")


@pytest.mark.parametrize(
    "given",
    [
        nested_tuples(10),
        nested_tuples(40),
        archive({"code/__torch__.py": "import "}),
        archive({"code/__torch__.py": CLASS + "import ("}),
    ],
    ids=["10 nested tuples", "40 nested tuples", "an import without end", "one after a class"],
)
def test_reading_the_source_ends(given, tmp_path):
    """A process of its own: what takes for ever can't be stopped from within."""
    path = tmp_path / "model.pt"
    path.write_bytes(given)
    program = (
        "import sys; from torch_mlir import torchscript as ts\n"
        "try: print(ts.import_archive(sys.argv[1]))\n"
        "except ts.TorchMlirCompilerError as error: print('refused:', error)\n"
    )
    done = subprocess.run(
        [sys.executable, "-P", "-c", program, str(path)],
        check=False,
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    assert "torch.optional" in done.stdout or "refused: " in done.stdout
