#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Write table.txt from the operators of an installed PyTorch.

Run it by its path with the interpreter that has the newest PyTorch of the matrix, and
PyYAML. Which operators go in is decided by namespace (NAMESPACES and LEFT_OUT below);
their schemas and flags are PyTorch's own: nothing is listed operator by operator.
"""

from __future__ import annotations

import argparse
import importlib
import os
import re
import sys
import textwrap
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any

# Run by path there is no package around this file.
sys.path.insert(0, str(Path(__file__).resolve().parent))

from _table import TABLE_PATH, SchemaError, load, parse

# Namespaces whose operators a saved or exported program may hold, and why.
NAMESPACES = {
    "aten": "the tensor library, and the builtins of TorchScript's containers and numbers",
    "prim": "the primitives of TorchScript that have a schema",
    "prims": "what decompositions end in",
    "quantized": "quantised eager and TorchScript models",
    "_quantized": "quantised models of mobile and server builds",
    "quantization": "quantisation of distributed payloads, which scripts may call",
    "sparse": "quantised linear layers with sparse weights",
    "quantized_decomposed": "PT2E quantisation of exported programs",
    "mkldnn_prepacked": "TorchScript after the rewrite that packs convolutions",
    "onnx": "the two ONNX operators that scripts may call",
    "profiler": "record_function in exported programs and in scripts",
    "export": "torch.export's own",
    "rngprims": "functional random numbers of traced programs",
    "_c10d_functional": "collectives of exported programs",
    "_c10d_functional_autograd": "collectives of exported programs, with gradients",
    "c10d_functional": "collectives of programs that older releases exported",
    "_dtensor": "DTensor's redistribution in exported programs",
}

# Namespaces that PyTorch registers and programs don't hold, and why.
LEFT_OUT = {
    "_native": "kernel overrides chosen at dispatch",
    "_native_aot": "kernel overrides chosen at dispatch",
    "_test": "PyTorch's own tests",
    "c10d": "takes process group objects; programs hold _c10d_functional",
    "coor": "the current device of a compiled region",
    "cuda": "registered by CUDA builds only",
    "debug_mode_ops": "marks of a debugging mode",
    "debugprims": "loads the tensors of a minifier's repro",
    "flex_gemm": "kernels of a template",
    "fsdp": "FSDP's runtime",
    "inductor": "what Inductor puts into its own graphs",
    "inductor_prims": "what Inductor puts into its own graphs",
    "mkl": "what Inductor puts into its own graphs",
    "mkldnn": "what Inductor puts into its own graphs",
    "onednn": "what Inductor puts into its own graphs",
    "static_runtime": "what the static runtime rewrites graphs to, in memory",
    "symm_mem": "device memory shared between processes",
}

# Modules that register operators when they are imported.
REGISTERING_MODULES = (
    "torch._prims",
    "torch.ao.quantization.fx._decomposed",
    "torch.distributed._functional_collectives",
    "torch.export",
)

# Namespaces whose operators are there for an effect: other processes take part in a
# collective (one that leaves a call out blocks the rest), a profiler takes the time.
EFFECTFUL_NAMESPACES = frozenset(
    {
        *("_c10d_functional", "_c10d_functional_autograd", "c10d_functional", "_dtensor"),
        "profiler",
    }
)

# What these are of happens at another time or place.
ASYNCHRONOUS_TYPES = frozenset({"Await", "Future", "RRef"})

# A promise about torch.compile that nearly every operator makes; it tells nothing here.
UNINFORMATIVE_TAGS = frozenset({"pt2_compliant_tag"})

# Each of these tags of native_functions.yaml rules purity out.
IMPURE_TAGS = frozenset({"nondeterministic_seeded", "maybe_aliasing_or_mutating"})

HEADER = """\
The operators of PyTorch {version}; written by regenerate.py.

One a line, sorted: the schema as PyTorch prints it; where it has flags, a tab and the flags
with spaces between.

The flag `pure`: the operator writes to no operand, draws no random number, may not alias
or mutate against its schema, involves no other process and nothing asynchronous, and has no
effect that PyTorch's own dead code elimination keeps it for. Its results are all there is to it, and depend on nothing but the operands
and what the operands refer to: where that can change (tensors in memory, lists, dicts),
two equal calls may differ if something is written in between.

The other flags are PyTorch's tags (at::Tag): {tags}.

Operators by namespace: {counts}.
"""


class Unusable(Exception):
    """This interpreter can't write the table; the message says what would."""


def import_torch() -> Any:
    """The ``torch`` module."""
    try:
        torch = importlib.import_module("torch")
    except ModuleNotFoundError as error:
        if error.name != "torch":
            raise
        raise Unusable(
            f"{sys.executable} has no PyTorch: run this with an interpreter that has the "
            "newest PyTorch of pkgs/matrix"
        ) from error
    except (ImportError, OSError) as error:
        raise Unusable(
            f"PyTorch doesn't load: {error}\n"
            "A CUDA build wants NVIDIA's libraries; pkgs/torch makes stand-ins for them"
        ) from error
    return torch


def release(version: str) -> tuple[int, ...]:
    """``"2.15.0+cu132"`` to ``(2, 15, 0)``."""
    found = re.match(r"\d+(\.\d+)*", version)
    if found is None:
        raise Unusable(f"{version!r} is not a version")
    return tuple(map(int, found[0].split(".")))


def table_version(path: Path) -> str | None:
    """The PyTorch version in a table's header, None where there is no table."""
    if not path.exists():
        return None
    found = re.search(r"PyTorch (\d[\d.]*\d)", load(path).header[0])
    if found is None:
        raise Unusable(f"{path}: the first line names no PyTorch version")
    return found[1]


def full_name(schema: Any) -> str:
    """``aten::add.Tensor`` of a ``torch._C.FunctionSchema``."""
    return schema.name + (f".{schema.overload_name}" if schema.overload_name else "")


def namespace_of(name: str) -> str:
    return name.partition("::")[0]


def registered(torch: Any) -> dict[str, Any]:
    """Every operator of NAMESPACES that PyTorch registers, by full name."""
    for name in REGISTERING_MODULES:
        importlib.import_module(name)
    schemas = {full_name(s): s for s in torch._C._jit_get_all_schemas()}
    unknown = Counter(map(namespace_of, schemas)) - Counter(
        {n: len(schemas) for n in (*NAMESPACES, *LEFT_OUT)}
    )
    if unknown:
        raise Unusable(
            f"namespaces that this program doesn't know: {', '.join(sorted(unknown))}\n"
            "Put each into NAMESPACES or into LEFT_OUT, with the reason"
        )
    return {n: s for n, s in sorted(schemas.items()) if namespace_of(n) in NAMESPACES}


def native_functions() -> dict[str, tuple[str, frozenset[str]]]:
    """Full name to schema and tags, from the native_functions.yaml that PyTorch ships."""
    import torchgen
    import yaml

    path = Path(torchgen.__file__).parent / "packaged/ATen/native/native_functions.yaml"
    with path.open(encoding="utf-8") as file:
        entries = yaml.load(file, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))
    found = {}
    for entry in entries:
        tags = entry.get("tags", [])
        text = "aten::" + entry["func"]
        found[text.partition("(")[0]] = (text, frozenset([tags] if isinstance(tags, str) else tags))
    return found


def check_native_functions(torch: Any, schemas: dict[str, Any]) -> None:
    """Hold what is registered against native_functions.yaml: same schema, same tags."""
    for name, (text, tags) in native_functions().items():
        if name not in schemas:
            raise Unusable(f"{name} stands in native_functions.yaml and isn't registered")
        declared = str(torch._C.parse_schema(text))
        if declared != str(schemas[name]):
            raise Unusable(f"native_functions.yaml: {declared}\nregistered: {schemas[name]}")
        missing = tags - tags_of(torch, schemas[name])
        if missing:
            raise Unusable(f"{name} is registered without its tags {sorted(missing)}")


def tags_of(torch: Any, schema: Any) -> frozenset[str]:
    """The tags of an operator (``at::Tag``): those it was registered with, and those that
    Python code has set on its overload since (torch._prims does)."""
    _, _, tags = torch._C._get_operation_overload(schema.name, schema.overload_name)
    namespace, _, name = schema.name.partition("::")
    packet = getattr(getattr(torch.ops, namespace), name)
    # Not so for prim::name: `torch.ops.prim.name` is a string.
    if isinstance(packet, torch._ops.OpOverloadPacket):
        tags = [*tags, *getattr(packet, schema.overload_name or "default").tags]
    return frozenset(tag.name for tag in tags)


def graph_of_call(torch: Any, schema: Any) -> tuple[Any, list[Any]]:
    """A TorchScript graph of one call of an operator, and the call's operands."""
    graph = torch._C.Graph()
    operands = []
    for argument in schema.arguments:
        operand = graph.addInput()
        operand.setType(argument.type)
        operands.append(operand)
    node = graph.create(schema.name, operands, len(schema.returns))
    graph.appendNode(node)
    for output, result in zip(node.outputs(), schema.returns, strict=True):
        output.setType(result.type)
    return graph, operands


def is_kept_without_uses(torch: Any, schema: Any) -> bool:
    """Whether TorchScript's dead code elimination keeps a call that nothing uses.

    It knows ``Node::hasSideEffects`` and which operators were registered without a
    promise about aliasing, for all namespaces.
    """
    graph, _ = graph_of_call(torch, schema)
    try:
        torch._C._jit_pass_dce(graph)
    except RuntimeError as error:
        # Where a ScalarType operand, an int by now, fits no overload, the pass can't tell
        # which operator this is. Such operators are kernels of ATen: it asks only
        # about aliasing then, which the schema says.
        if "maybeOperator" not in str(error) and "kind_.is_prim()" not in str(error):
            raise
        return bool(schema.is_mutable)
    return any(True for _ in graph.nodes())


def effectful_in_fx(torch: Any) -> frozenset[str]:
    """The operators that ``torch.fx`` keeps though nothing uses their results."""
    fx = importlib.import_module("torch.fx.node")
    return frozenset(
        full_name(entry._schema)
        for entry in fx._side_effectful_functions
        if isinstance(entry, torch._ops.OpOverload)
    )


def is_pure(torch: Any, schema: Any, tags: frozenset[str], effectful: frozenset[str]) -> bool:
    """The rule behind the ``pure`` flag."""
    parsed = parse(str(schema))
    return not (
        parsed.is_mutable
        # Nothing to compute for: assertions, printing, constraints on symbols.
        or (not parsed.results and not parsed.is_varret)
        # A generator has a state that is read and moved on.
        or any("Generator" in str(a.type) for a in parsed.arguments)
        or tags & IMPURE_TAGS
        or any(a.type.name in ASYNCHRONOUS_TYPES for a in parsed.arguments)
        or parsed.namespace in EFFECTFUL_NAMESPACES
        or full_name(schema) in effectful
        or is_kept_without_uses(torch, schema)
    )


def rows(torch: Any) -> Iterable[tuple[str, frozenset[str]]]:
    """Each operator's schema and flags, in the table's order."""
    schemas = registered(torch)
    check_native_functions(torch, schemas)
    effectful = effectful_in_fx(torch)
    for schema in schemas.values():
        tags = tags_of(torch, schema)
        flags = tags - UNINFORMATIVE_TAGS
        if is_pure(torch, schema, tags, effectful):
            flags |= {"pure"}
        yield str(schema), flags


def table_text(torch: Any) -> str:
    """The whole file."""
    found = list(rows(torch))
    counts = Counter(namespace_of(schema) for schema, _ in found)
    header = HEADER.format(
        version=".".join(map(str, release(torch.__version__))),
        tags=", ".join(sorted(frozenset().union(*(f for _, f in found)) - {"pure"})),
        counts=", ".join(f"{name} {count}" for name, count in counts.most_common()),
    )
    comment = "".join(
        f"# {line}".rstrip() + "\n"
        for paragraph in header.split("\n\n")
        for line in (*textwrap.wrap(paragraph, 96, break_on_hyphens=False), "")
    ).removesuffix("#\n")
    lines = ("\t".join(filter(None, (text, " ".join(sorted(flags))))) for text, flags in found)
    return comment + "".join(f"{line}\n" for line in lines)


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("-o", "--output", type=Path, default=TABLE_PATH)
    parser.add_argument("--check", action="store_true", help="only compare; 1 if it differs")
    arguments = parser.parse_args(argv)
    output: Path = arguments.output
    try:
        previous = table_version(output)
        torch = import_torch()
        if previous is not None and release(torch.__version__) < release(previous):
            raise Unusable(
                f"{output} was written from PyTorch {previous}; this one is "
                f"{torch.__version__}, which lacks operators that the table has. Run this "
                f"with PyTorch {previous} or newer"
            )
        text = table_text(torch)
        if arguments.check:
            if output.read_text(encoding="utf-8") != text:
                print(f"regenerate: {output} isn't what this PyTorch gives", file=sys.stderr)
                return 1
            return 0
        part = output.with_name(output.name + ".part")
        part.write_text(text, encoding="utf-8")
        os.replace(part, output)
    except (OSError, SchemaError, Unusable) as error:
        print(f"regenerate: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
