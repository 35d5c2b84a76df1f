# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The rules for operators' results: their file, and what the build makes of it."""

from __future__ import annotations

import ast
import importlib.util
import re
import sys
from pathlib import Path
from types import ModuleType

import pytest

OPERATORS = Path(__file__).parents[2] / "torch_mlir" / "operators"
# An installed package has none of this.
if not (OPERATORS / "_results.py").exists():
    pytest.skip("no source tree", allow_module_level=True)


def load(name: str) -> ModuleType:
    """A program or a module of the operators' folder, by its path as the build runs it."""
    spec = importlib.util.spec_from_file_location(f"result_rules_{name}", OPERATORS / f"{name}.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


results = load("_results")
table = load("_table")


def test_each_result_of_an_operator_has_its_rules():
    schemas = table.load(OPERATORS / "table.txt")
    rules = results.parse((OPERATORS / "results.tsv").read_text(encoding="utf-8"))
    assert len(rules) > 600
    known = 0
    for name, own in rules.items():
        key = name.replace("::", ".", 1)
        if key not in schemas:
            continue  # one that the table's release hasn't any more
        known += 1
        schema = schemas[key]
        assert len(own) == 2 * len(schema.results), name
        # What rules are about are the operator's arguments.
        names = {argument.name for argument in schema.arguments}
        for rule in own:
            for used in re.findall(r"(?<=[(,])([a-z]\w*)(?=[,)])", rule):
                constant = used in ("bool", "float32", "int64")
                function = rule.startswith(f"function({used}")
                assert used in names or constant or function, f"{name}: {rule}"
    assert known > 0.95 * len(rules)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("aten::relu\tof(self)\n", "r.tsv:1: two rules are wanted for each result of aten::relu"),
        ("# a comment\n\naten::relu\n", "r.tsv:3: two rules are wanted"),
        ("aten::relu\t-\t-\naten::relu\t-\t-\n", "r.tsv:2: aten::relu stands there twice"),
        ("aten::relu\t-\té\n", "r.tsv:1: aten::relu isn't plain ASCII"),
    ],
)
def test_a_line_that_cannot_be_read_is_named(text, problem):
    with pytest.raises(results.RulesError, match=re.escape(problem)):
        results.parse(text, "r.tsv")


def test_what_is_written_reads_as_it_was():
    rules = {"aten::b": ["of(self)", "-"], "aten::a": ["-", "scalar", "int64", "of(x)"]}
    text = results.text_of(rules, "A header.\n\nOf two lines.")
    assert text.startswith("# A header.\n#\n# Of two lines.\naten::a\t-\tscalar")
    assert results.parse(text) == rules


def test_the_build_packs_the_rules():
    sys.path.insert(0, str(OPERATORS))
    try:
        emit = load("emit_results_cpp")
    finally:
        sys.path.remove(str(OPERATORS))
    rules = "aten::relu\tof(self)\tof(self)\naten::b\t-\tscalar\n"
    text = emit.emit(f"# ...\n{rules}", "r.tsv")
    literals = re.findall(r"^    (\".*\");?$", text, re.MULTILINE)
    assert "".join(ast.literal_eval(literal) for literal in literals) == rules
