"""The audit finds nothing in a good wheel, and each thing it checks where it is spoiled.

Every test compiles or edits a wheel so that exactly one promise is broken, and asserts
the codes of all findings: a check that also fires elsewhere fails the test.
"""

from __future__ import annotations

import io
import json
import os
import random
import re
import struct
import subprocess
import sys
import zipfile
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from archive import read_wheel, write_wheel
from audit import policy
from audit.command import main
from audit.findings import CHECKS
from audit.wheel import Wheel
from elftools.elf.elffile import ELFFile
from small_wheel import (
    AGGREGATE,
    AGGREGATE_SOURCE,
    EXTENSION,
    EXTENSION_SOURCE,
    LIBS,
    ROOT,
    compile_object,
    library_stub,
)

DIST_INFO = "torch_mlir_static-0.1.0+torch2.13.dist-info"
METADATA = f"{DIST_INFO}/METADATA"
BILL = f"{DIST_INFO}/sboms/torch-mlir-static.cdx.json"
ENTRY_POINTS = f"{DIST_INFO}/entry_points.txt"


@dataclass
class Spoiler:
    """A good wheel's files to edit, and a folder to compile in."""

    files: dict[str, bytes]
    name: str
    folder: Path
    objects: dict[str, bytes] = field(default_factory=dict)

    def replace(self, name: str, old: str, new: str) -> None:
        text = self.files[name].decode()
        assert old in text, f"{name} holds no {old!r}"
        self.files[name] = text.replace(old, new).encode()

    def retag(self, platform: str) -> None:
        """Claims another platform, in the file name and in WHEEL."""
        old = self.name.removesuffix(".whl").split("-")[-1]
        self.name = self.name.replace(old, platform)
        self.replace(f"{DIST_INFO}/WHEEL", old, platform)

    def extension(self, source: str, *flags: str, rpath: str | None = "$ORIGIN") -> None:
        """Compiles the extension anew, with more source and flags."""
        (self.folder / "lib.so").write_bytes(self.files[AGGREGATE])
        more = [f"-Wl,-rpath,{rpath}"] if rpath is not None else []
        self.files[EXTENSION] = compile_object(
            self.folder, EXTENSION_SOURCE + source, "lib.so", *more, *flags
        )

    def calls_glibc(self, version: str) -> None:
        """Makes the extension call a function of a certain glibc."""
        stub = self.folder / "glibc"
        library_stub(stub, "libc.so.6", "void spoil(void) {}", f"GLIBC_{version}")
        self.extension(
            "extern void spoil(void); void *keep(void) { spoil(); return keep; }"
            '__attribute__((visibility("default"))) extern void *PyInit__mlir(void);'
            "__attribute__((constructor)) static void start(void) { spoil(); }",
            "glibc/stub.so",
        )

    def needs(self, soname: str, *, rpath: str | None = "$ORIGIN") -> None:
        """Makes the extension need a library, for a C function of it."""
        library_stub(self.folder / "other", soname, "void other(void) {}", "OTHER_1")
        self.extension(
            "extern void other(void);"
            "__attribute__((constructor)) static void start(void) { other(); }",
            "other/stub.so",
            rpath=rpath,
        )

    def lazy_backend(self, source: str, soname: str) -> None:
        """Adds the one module that may need PyTorch, and a library beside the wheel for it."""
        library_stub(self.folder / "beside", soname, "void _ZN3c105ErrorC1Ev(void) {}")
        self.files[f"{LIBS}/_lazy_backend.so"] = compile_object(
            self.folder,
            f"extern void _ZN3c105ErrorC1Ev(void); {source}"
            "__attribute__((constructor)) static void start(void) { _ZN3c105ErrorC1Ev(); }",
            "beside/stub.so",
        )

    def bill(self) -> dict:
        return json.loads(self.files[BILL])

    def set_bill(self, bill: dict) -> None:
        self.files[BILL] = json.dumps(bill).encode()

    def component(self, name: str, **fields: object) -> None:
        """Replaces fields of a component of the bill, or removes them if None."""
        bill = self.bill()
        component = next(c for c in bill["components"] if c["name"] == name)
        for key, value in fields.items():
            if value is None:
                del component[key]
            else:
                component[key] = value
        self.set_bill(bill)


Audit = Callable[[Path], tuple[int, set[str], str]]


@pytest.fixture
def spoiler(row_wheel_path: Path, tmp_path: Path) -> Spoiler:
    folder = tmp_path / "objects"
    folder.mkdir()
    return Spoiler(read_wheel(row_wheel_path), row_wheel_path.name, folder)


@pytest.fixture
def audit(capsys: pytest.CaptureFixture[str]) -> Audit:
    """Runs the command: its exit code, the codes of its findings and what it printed."""

    def run(path: Path) -> tuple[int, set[str], str]:
        code = main([str(path)])
        output = capsys.readouterr().out
        lines = output.splitlines()[:-1]
        return code, {line.split(":")[0] for line in lines}, output

    return run


def packed(spoiler: Spoiler, folder: Path) -> Path:
    path = folder / spoiler.name
    write_wheel(path, spoiler.files, DIST_INFO)
    return path


# --- what each spoiler does, under the codes that the audit has to give -------------------

Spoil = Callable[[Spoiler], None]
SPOILS: list[tuple[str, set[str], str, Spoil]] = []


def spoils(title: str, codes: str, message: str) -> Callable[[Spoil], Spoil]:
    """Registers a way to spoil a wheel; ``message`` is a regular expression."""

    def register(function: Spoil) -> Spoil:
        SPOILS.append((title, set(codes.split()), message, function))
        return function

    return register


@spoils(
    "claims an older platform than it runs on",
    "platform-tag",
    r"manylinux_2_12_x86_64 is claimed, but auditwheel says manylinux_2_27_x86_64: "
    r"needs GLIBC_2.27 of libc.so.6",
)
def _(s: Spoiler) -> None:
    s.calls_glibc("2.27")
    s.retag("manylinux_2_12_x86_64")


@spoils(
    "runs on a newer platform than the policy's",
    "platform-tag symbol-version",
    r"the tag manylinux_2_31_x86_64 is newer than the policy's manylinux_2_28",
)
def _(s: Spoiler) -> None:
    s.calls_glibc("2.30")
    s.retag("manylinux_2_31_x86_64")


@spoils("has a plain linux tag", "platform-tag", r"linux_x86_64 is newer than the policy's")
def _(s: Spoiler) -> None:
    s.retag("linux_x86_64")


@spoils(
    "has a tag that nobody knows", "platform-tag", r"knows no platform tag manylinux_9_9_x86_64"
)
def _(s: Spoiler) -> None:
    s.retag("manylinux_9_9_x86_64")


@spoils("claims any platform", "platform-tag", r"tag any is claimed, but the wheel holds shared")
def _(s: Spoiler) -> None:
    s.retag("any")


@spoils(
    "calls a function of a newer glibc",
    "platform-tag symbol-version",
    r"_mlir\S+: needs GLIBC_2.30 for spoil; manylinux_2_28_x86_64 ends at GLIBC_2.28",
)
def _(s: Spoiler) -> None:
    s.calls_glibc("2.30")


@spoils(
    "needs a library that no policy promises",
    "needed platform-tag",
    r"needs libfoo.so.1, which manylinux_2_28_x86_64 doesn't promise",
)
def _(s: Spoiler) -> None:
    s.needs("libfoo.so.1")


@spoils(
    "can't find its own library",
    "needed platform-tag",
    r"needs libTorchMLIRAggregateCAPI.so of this wheel, but no RUNPATH entry leads to it",
)
def _(s: Spoiler) -> None:
    s.extension("", rpath=None)


@spoils("has an absolute RPATH", "rpath", r"RPATH entry /opt/lib leads out of the wheel")
def _(s: Spoiler) -> None:
    s.extension("", rpath="/opt/lib:$ORIGIN")


@spoils("has an RPATH above the wheel", "rpath", r"RPATH entry \$ORIGIN/\.\./\.\./\.\. leads out")
def _(s: Spoiler) -> None:
    s.extension("", rpath="$ORIGIN:$ORIGIN/../../..")


@spoils("has an RPATH to another package", "rpath", r"\$ORIGIN/../../torch/lib leads to no folder")
def _(s: Spoiler) -> None:
    s.extension("", rpath="$ORIGIN:$ORIGIN/../../torch/lib")


@spoils("needs libstdc++", "forbidden-library", r"needs libstdc\+\+.so.6, which is forbidden")
def _(s: Spoiler) -> None:
    s.needs("libstdc++.so.6")


@spoils(
    "needs PyTorch",
    "forbidden-library needed platform-tag",
    r"needs libtorch_cpu.so, which is forbidden",
)
def _(s: Spoiler) -> None:
    s.needs("libtorch_cpu.so")


@spoils("bundles a library", "forbidden-library", r"libc10.so: is bundled, but forbidden")
def _(s: Spoiler) -> None:
    s.files[f"{LIBS}/libc10.so"] = b"not even a library\n"


@spoils(
    "vendors a renamed library",
    "forbidden-library",
    r"libharmless.so: is libtorch.so, which is forbidden",
)
def _(s: Spoiler) -> None:
    s.files[f"{LIBS}/libharmless.so"] = compile_object(
        s.folder, "static int unused;", "-Wl,-soname,libtorch.so"
    )


@spoils("exports from an extension", "export", r"_mlir\S+: exports helper$")
def _(s: Spoiler) -> None:
    s.extension('__attribute__((visibility("default"))) void helper(void) {}')


@spoils(
    "exports more than its C API",
    "export",
    r"libTorchMLIRAggregateCAPI.so: exports _ZN4llvm3fooEv$",
)
def _(s: Spoiler) -> None:
    s.files[AGGREGATE] = compile_object(
        s.folder,
        AGGREGATE_SOURCE + "ENTRY void _ZN4llvm3fooEv(void) {}",
        "-Wl,-soname,libTorchMLIRAggregateCAPI.so",
    )


@spoils("exports a data symbol weakly", "export", r"_mlir\S+: exports state$")
def _(s: Spoiler) -> None:
    s.extension('__attribute__((visibility("default"), weak)) int state = 1;')


@spoils("has a process-wide symbol", "unique-symbol export", r"has STB_GNU_UNIQUE symbols shared")
def _(s: Spoiler) -> None:
    s.extension(
        '__asm__(".data\\n.globl shared\\n.type shared, @gnu_unique_object\\n'
        '.size shared, 4\\nshared: .long 0\\n.text");'
    )


@spoils(
    "wants PyTorch's C++ from its process",
    "undefined-symbol unresolved-symbol",
    r"leaves _ZN3c1010TensorImplC1Ev undefined",
)
def _(s: Spoiler) -> None:
    s.extension(
        "extern void _ZN3c1010TensorImplC1Ev(void);"
        "__attribute__((constructor)) static void start(void) { _ZN3c1010TensorImplC1Ev(); }"
    )


@spoils(
    "has a lazy backend with a newer C++ runtime",
    "undefined-symbol unresolved-symbol",
    r"_lazy_backend.so: leaves _ZSt28__throw_bad_array_new_lengthv undefined",
)
def _(s: Spoiler) -> None:
    s.lazy_backend(
        "extern void _ZSt28__throw_bad_array_new_lengthv(void);"
        "__attribute__((destructor)) static void stop(void) { _ZSt28__throw_bad_array_new_lengthv(); }",
        "libc10.so",
    )


@spoils(
    "has a lazy backend for CUDA alone",
    "forbidden-library needed platform-tag",
    r"_lazy_backend.so: needs libc10_cuda.so, which is forbidden",
)
def _(s: Spoiler) -> None:
    s.lazy_backend("", "libc10_cuda.so")


@spoils("has a lazy backend that exports", "export", r"_lazy_backend.so: exports helper$")
def _(s: Spoiler) -> None:
    s.lazy_backend('__attribute__((visibility("default"))) void helper(void) {}', "libc10.so")


@spoils("wants what nobody has", "unresolved-symbol", r"_mlir\S+: nothing defines nobodys_function")
def _(s: Spoiler) -> None:
    s.extension(
        "extern void nobodys_function(void);"
        "__attribute__((constructor)) static void start(void) { nobodys_function(); }"
    )


@spoils("has an executable stack", "executable-stack", r"makes the process's stacks executable")
def _(s: Spoiler) -> None:
    data = bytearray(s.files[EXTENSION])
    elf = ELFFile(io.BytesIO(data))
    index = [p.header.p_type for p in elf.iter_segments()].index("PT_GNU_STACK")
    # p_flags is the second word of a program header; 7 is read, write, execute.
    struct.pack_into("<I", data, elf["e_phoff"] + index * elf["e_phentsize"] + 4, 7)
    s.files[EXTENSION] = bytes(data)


@spoils("doesn't say what stack it wants", "executable-stack", r"_mlir\S+: makes the process's")
def _(s: Spoiler) -> None:
    data = bytearray(s.files[EXTENSION])
    elf = ELFFile(io.BytesIO(data))
    index = [p.header.p_type for p in elf.iter_segments()].index("PT_GNU_STACK")
    # PT_NULL: the loader ignores the header.
    struct.pack_into("<I", data, elf["e_phoff"] + index * elf["e_phentsize"], 0)
    s.files[EXTENSION] = bytes(data)


@spoils("has text relocations", "text-relocation", r"_mlir\S+: has text relocations")
def _(s: Spoiler) -> None:
    s.extension('__asm__(".text\\n.quad PyInit__mlir");', "-Wl,-z,notext")


@spoils("holds build leftovers", "junk", r"csrc/dialect.tablegen: is junk by the pattern csrc")
def _(s: Spoiler) -> None:
    s.files["torch_mlir/csrc/dialect.tablegen"] = b"def x;\n"


@spoils("holds C++ beside Python", "junk", r"torch_mlir/Types.cpp: is junk by the pattern \*\.cpp")
def _(s: Spoiler) -> None:
    s.files["torch_mlir/Types.cpp"] = b"int x;\n"


@spoils("holds byte code", "junk contents", r"check-wheel-contents W001: .*\.pyc")
def _(s: Spoiler) -> None:
    s.files["torch_mlir/__pycache__/cli.cpython-311.pyc"] = b"\0" * 16


@spoils(
    "tells of a store path",
    "embedded-path",
    r"_mlir\S+: holds the path /nix/store/0123456789abcdfghijklmnpqrsvwxyz-zig-0.17$",
)
def _(s: Spoiler) -> None:
    s.extension(
        "extern int puts(const char *);"
        "__attribute__((constructor)) static void start(void) {"
        '  puts("/nix/store/0123456789abcdfghijklmnpqrsvwxyz-zig-0.17/lib"); }'
    )


@spoils("tells of a build folder", "embedded-path", r"_config.py: holds the path /build/src/mlir$")
def _(s: Spoiler) -> None:
    s.files["torch_mlir/_config.py"] = b'SOURCES = "/build/src/mlir"\n'


@spoils("has no py.typed", "typed", r"torch_mlir: has no py.typed")
def _(s: Spoiler) -> None:
    del s.files["torch_mlir/py.typed"]


@spoils("has no stub", "stub", r"has no stub torch_mlir/_mlir_libs/_mlir.pyi")
def _(s: Spoiler) -> None:
    del s.files[f"{LIBS}/_mlir.pyi"]


@spoils("has no stub of a second module", "stub", r"has no stub torch_mlir/_mlir_libs/_more.pyi")
def _(s: Spoiler) -> None:
    s.extension('__attribute__((visibility("default"))) void PyInit__more(void) {}')


@spoils("has a broken stub", "stub", r"_mlir.pyi: doesn't parse: ")
def _(s: Spoiler) -> None:
    s.files[f"{LIBS}/_mlir.pyi"] = b"def create( -> object: ...\n"


@spoils("lacks its command", "entry-point", r"lacks torch-mlir in \[console_scripts\]")
def _(s: Spoiler) -> None:
    del s.files[ENTRY_POINTS]


@spoils(
    "lacks its backend of torch.compile",
    "entry-point",
    r"lacks torch_mlir in \[torch_dynamo_backends\]",
)
def _(s: Spoiler) -> None:
    s.replace(ENTRY_POINTS, "[torch_dynamo_backends]", "[other]")


@spoils("has a command to no module", "entry-point", r"leads to torch_mlir.main, which isn't in")
def _(s: Spoiler) -> None:
    s.replace(ENTRY_POINTS, "torch_mlir.cli:main", "torch_mlir.main:main")


@spoils("has a command to no function", "entry-point", r"torch_mlir.cli:run, not defined there")
def _(s: Spoiler) -> None:
    s.replace(ENTRY_POINTS, "torch_mlir.cli:main", "torch_mlir.cli:run")


@spoils("has unreadable entry points", "entry-point", r"entry_points.txt: can't be read: ")
def _(s: Spoiler) -> None:
    s.files[ENTRY_POINTS] = b"torch-mlir = torch_mlir.cli:main\n"


@spoils("lacks a license text", "license", r"licenses/nanobind/LICENSE: is named, but missing")
def _(s: Spoiler) -> None:
    del s.files[f"{DIST_INFO}/licenses/nanobind/LICENSE"]


@spoils("has an empty license text", "license", r"licenses/nanobind/LICENSE: is empty")
def _(s: Spoiler) -> None:
    s.files[f"{DIST_INFO}/licenses/nanobind/LICENSE"] = b"\n"


@spoils("has a license text that nothing names", "license", r"licenses/zlib: isn't named by a")
def _(s: Spoiler) -> None:
    s.files[f"{DIST_INFO}/licenses/zlib"] = b"Terms.\n"


@spoils("has no license expression", "license sbom", r"METADATA: has no License-Expression")
def _(s: Spoiler) -> None:
    text = s.files[METADATA].decode()
    s.files[METADATA] = re.sub(r"License-Expression: .*\n", "", text).encode()


@spoils("names no license text", "license sbom", r"METADATA: names no License-File")
def _(s: Spoiler) -> None:
    head, _, body = s.files[METADATA].decode().partition("\n\n")
    s.files[METADATA] = (re.sub(r"\nLicense-File: .*", "", head) + "\n\n" + body).encode()
    for name in [n for n in s.files if n.startswith(f"{DIST_INFO}/licenses/")]:
        del s.files[name]


@spoils(
    "has a license that SPDX doesn't know",
    "license sbom twine",
    r"License-Expression 'Apache-2.0 WITH LLVM-exception AND Nice",
)
def _(s: Spoiler) -> None:
    s.replace(METADATA, "LLVM-exception AND", "LLVM-exception AND Nice-1.0 AND")
    s.replace(METADATA, "AND MIT", "")


@spoils("has no bill of materials", "sbom", r"sboms/: holds no bill of materials")
def _(s: Spoiler) -> None:
    del s.files[BILL]


@spoils("has a bill that isn't JSON", "sbom", r"cdx.json: isn't JSON: ")
def _(s: Spoiler) -> None:
    s.files[BILL] = b"{"


@spoils("has a bill of another format", "sbom", r"cdx.json: isn't a CycloneDX bill")
def _(s: Spoiler) -> None:
    s.set_bill({**s.bill(), "bomFormat": "SPDX"})


@spoils("has a bill of an unknown version", "sbom", r"has the specVersion '0.9'")
def _(s: Spoiler) -> None:
    s.set_bill({**s.bill(), "specVersion": "0.9"})


@spoils("has another wheel's bill", "sbom", r"is about another distribution or version")
def _(s: Spoiler) -> None:
    s.replace(BILL, '"version": "0.1.0+torch2.13"', '"version": "0.1.0+torch2.1"')


@spoils("leaves a part out of its bill", "sbom", r"no bill of materials names nanobind")
def _(s: Spoiler) -> None:
    bill = s.bill()
    bill["components"] = [c for c in bill["components"] if c["name"] != "nanobind"]
    s.set_bill(bill)


@spoils("bills a part without version", "sbom", r"nanobind has no version")
def _(s: Spoiler) -> None:
    s.component("nanobind", version=None)


@spoils("bills a part without hash", "sbom", r"nanobind has no SHA-256 hash")
def _(s: Spoiler) -> None:
    s.component("nanobind", hashes=None)


@spoils("bills a part with half a hash", "sbom", r"nanobind has no SHA-256 hash")
def _(s: Spoiler) -> None:
    s.component("nanobind", hashes=[{"alg": "SHA-256", "content": "abc"}])


@spoils("bills a part without license", "sbom", r"nanobind has no license expression")
def _(s: Spoiler) -> None:
    s.component("nanobind", licenses=None)


@spoils("bills a license it doesn't declare", "sbom", r"nanobind is under Zlib, which License-Exp")
def _(s: Spoiler) -> None:
    s.component("nanobind", licenses=[{"expression": "Zlib"}])


@spoils("bills a part without license text", "sbom", r"nanobind names no license text")
def _(s: Spoiler) -> None:
    s.component("nanobind", properties=None)


@spoils("bills a license text that isn't there", "sbom", r"license text zlib, which is no License-")
def _(s: Spoiler) -> None:
    s.component("nanobind", properties=[{"name": "license-file", "value": "zlib"}])


@spoils("has no description", "twine", r"twine check: .*long_description. missing")
def _(s: Spoiler) -> None:
    s.files[METADATA] = s.files[METADATA].partition(b"\n\n")[0] + b"\n"


@spoils("has a second top-level folder", "typed contents", r"check-wheel-contents W010: .*data")
def _(s: Spoiler) -> None:
    s.files["data/notes.txt"] = b"Notes.\n"


@spoils("holds a file twice", "contents", r"check-wheel-contents W002: .*torch_mlir/c")
def _(s: Spoiler) -> None:
    s.files["torch_mlir/copy.py"] = s.files["torch_mlir/cli.py"]


@spoils("is too large", "size", r"size: the wheel is 18\.\d MB, the limit is 18\.0")
def _(s: Spoiler) -> None:
    s.files["torch_mlir/table.bin"] = random.Random(0).randbytes(18_200_000)


@spoils("installs too much", "size", r"size: what it installs is 60\.\d MB, the limit is 60\.0")
def _(s: Spoiler) -> None:
    s.files["torch_mlir/table.bin"] = bytes(60_100_000)


@spoils("has another name in its metadata", "identity", r"Name is 'torch-mlir', the")
def _(s: Spoiler) -> None:
    s.replace(METADATA, "Name: torch-mlir-static", "Name: torch-mlir")


@spoils("has another version in its metadata", "identity", r"Version is '0.2.0', the file")
def _(s: Spoiler) -> None:
    s.replace(METADATA, "Version: 0.1.0+torch2.13", "Version: 0.2.0")


@spoils("has other tags in WHEEL", "identity", r"WHEEL: has the tags cp312-cp312-")
def _(s: Spoiler) -> None:
    s.replace(f"{DIST_INFO}/WHEEL", "cp311-cp311", "cp312-cp312")


@spoils("calls itself pure", "identity", r"Root-Is-Purelib is 'true', but there are shared")
def _(s: Spoiler) -> None:
    s.replace(f"{DIST_INFO}/WHEEL", "Root-Is-Purelib: false", "Root-Is-Purelib: true")


@spoils("is of an unknown wheel version", "identity", r"Wheel-Version is '9.0', not '1.0'")
def _(s: Spoiler) -> None:
    s.replace(f"{DIST_INFO}/WHEEL", "Wheel-Version: 1.0", "Wheel-Version: 9.0")


@pytest.mark.parametrize(
    ("codes", "message", "spoil"), [s[1:] for s in SPOILS], ids=[s[0] for s in SPOILS]
)
def test_finds_that_a_wheel(
    codes: set[str], message: str, spoil: Spoil, spoiler: Spoiler, audit: Audit, tmp_path: Path
) -> None:
    spoil(spoiler)
    code, found, output = audit(packed(spoiler, tmp_path))
    assert re.search(message, output, re.MULTILINE), output
    assert found == codes, output
    assert code == 1


def test_the_lazy_backend_takes_pytorch_from_beside(
    spoiler: Spoiler, audit: Audit, tmp_path: Path
) -> None:
    exported = "_ZN10torch_mlir4lazy7Backend4makeEv"
    spoiler.lazy_backend(
        f'__attribute__((visibility("default"))) void {exported}(void) {{}}', "libc10.so"
    )
    code, _, output = audit(packed(spoiler, tmp_path))
    assert code == 0, output


# --- what can't be spoiled through write_wheel, which gets RECORD and the archive right ----


def rewritten(source: Path, target: Path, edit: Callable[[zipfile.ZipInfo, bytes], bytes]) -> Path:
    """Copies a wheel, entry by entry; ``edit`` may change the entry too."""
    with zipfile.ZipFile(source) as old, zipfile.ZipFile(target, "w") as new:
        for entry in old.infolist():
            data = edit(entry, old.read(entry))
            new.writestr(entry, data)
    return target


@pytest.mark.parametrize(
    ("edit", "codes", "message"),
    [
        (
            lambda e, d: d + b"#" if e.filename == "torch_mlir/cli.py" else d,
            {"record"},
            r"torch_mlir/cli.py: isn't what RECORD's hash says\n.*is 33 bytes, RECORD says 32",
        ),
        (
            lambda e, d: d.replace(b"torch_mlir/cli.py,", b"torch_mlir/gone.py,"),
            {"record"},
            r"cli.py: isn't in RECORD\n.*gone.py: is in RECORD but not in the archive",
        ),
        (
            lambda e, d: d + b"torch_mlir/cli.py,,\n" if e.filename.endswith("RECORD") else d,
            {"record", "contents"},
            r"torch_mlir/cli.py: is in RECORD 2 times",
        ),
        (
            lambda e, d: re.sub(rb"(?m)^(torch_mlir/cli.py),sha256=.*$", rb"\1,md5=abc,32", d),
            {"record"},
            r"cli.py: has no sha256 or stronger hash in RECORD, but 'md5=abc'",
        ),
    ],
    ids=["changed", "unlisted", "listed-twice", "weak-hash"],
)
def test_finds_that_record_is_wrong(
    edit: Callable[[zipfile.ZipInfo, bytes], bytes],
    codes: set[str],
    message: str,
    row_wheel_path: Path,
    audit: Audit,
    tmp_path: Path,
) -> None:
    path = rewritten(row_wheel_path, tmp_path / row_wheel_path.name, edit)
    code, found, output = audit(path)
    assert re.search(message, output), output
    assert found == codes, output
    assert code == 1


def test_finds_that_a_file_would_be_installed_outside(
    spoiler: Spoiler, audit: Audit, tmp_path: Path
) -> None:
    spoiler.files["torch_mlir/../../evil.py"] = b"x = 1\n"
    code, found, output = audit(packed(spoiler, tmp_path))
    assert "evil.py: would be installed outside the environment" in output
    assert "record" in found and code == 1


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"date_time": (2024, 1, 2, 3, 4, 6)}, "its files have 2 different times"),
        ({"external_attr": 0o100664 << 16}, "its files have the permissions 0o664"),
    ],
    ids=["times", "permissions"],
)
def test_finds_that_packing_depends_on_the_machine(
    change: dict[str, object], message: str, row_wheel_path: Path, audit: Audit, tmp_path: Path
) -> None:
    def edit(entry: zipfile.ZipInfo, data: bytes) -> bytes:
        if entry.filename == "torch_mlir/cli.py":
            for key, value in change.items():
                setattr(entry, key, value)
        return data

    path = rewritten(row_wheel_path, tmp_path / row_wheel_path.name, edit)
    code, found, output = audit(path)
    assert message in output
    assert (code, found) == (1, {"reproducible"})


def test_finds_that_files_are_in_no_order(
    row_wheel_path: Path, audit: Audit, tmp_path: Path
) -> None:
    path = tmp_path / row_wheel_path.name
    with zipfile.ZipFile(row_wheel_path) as old, zipfile.ZipFile(path, "w") as new:
        for entry in sorted(old.infolist(), key=lambda e: e.filename[::-1]):
            new.writestr(entry, old.read(entry))
    code, found, output = audit(path)
    assert "its files are in no fixed order" in output
    assert (code, found) == (1, {"reproducible"})


# --- the command --------------------------------------------------------------------------


def test_finds_nothing_in_a_good_wheel(row_wheel_path: Path, audit: Audit) -> None:
    code, found, output = audit(row_wheel_path)
    assert (code, found) == (0, set()), output
    number = len(policy.load()["torch-mlir-static"].checks)
    assert (
        output
        == f"{row_wheel_path.name}: no findings by the {number} checks of torch-mlir-static\n"
    )


def test_every_check_is_asked_for_and_spoiled() -> None:
    spoiled = {"record", "reproducible"}.union(*(codes for _, codes, _, _ in SPOILS))
    assert set(policy.load()["torch-mlir-static"].checks) == set(CHECKS) == spoiled


def test_other_wheels_have_the_generic_checks(
    spoiler: Spoiler, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    # Someone else's: no stubs, no bill of materials, other exports.
    other = "other-1.0.dist-info"
    files = {
        name.replace(DIST_INFO, other).replace("torch_mlir/", "other/"): data
        for name, data in spoiler.files.items()
        if not name.endswith(("cdx.json", ".pyi", "py.typed", "entry_points.txt"))
    }
    files[f"{other}/METADATA"] = (
        files[f"{other}/METADATA"]
        .replace(b"Name: torch-mlir-static", b"Name: other")
        .replace(b"Version: 0.1.0+torch2.13", b"Version: 1.0")
    )
    path = tmp_path / spoiler.name.replace("torch_mlir_static-0.1.0+torch2.13", "other-1.0")
    write_wheel(path, files, other)
    assert main([str(path)]) == 0
    assert capsys.readouterr().out.endswith("checks of any\n")
    assert main(["--profile", "torch-mlir-static", "--json", str(path)]) == 1
    (report,) = json.loads(capsys.readouterr().out)
    assert report["profile"] == "torch-mlir-static"
    assert {f["code"] for f in report["findings"]} == {"typed", "stub", "sbom", "entry-point"}


def test_pure_wheel_passes_the_generic_checks(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    metadata = "Metadata-Version: 2.1\nName: pure\nVersion: 1\nSummary: s\n"
    metadata += "Description-Content-Type: text/plain\n\nText.\n"
    tag = "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
    files = {"pure.py": b"x = 1\n"}
    files |= {
        "pure-1.dist-info/METADATA": metadata.encode(),
        "pure-1.dist-info/WHEEL": tag.encode(),
    }
    write_wheel(tmp_path / "pure-1-py3-none-any.whl", files, "pure-1.dist-info")
    assert main([str(tmp_path / "pure-1-py3-none-any.whl")]) == 0
    files["pure-1.dist-info/WHEEL"] = tag.replace("any", "manylinux_2_28_x86_64").encode()
    platform = tmp_path / "pure-1-py3-none-manylinux_2_28_x86_64.whl"
    write_wheel(platform, files, "pure-1.dist-info")
    capsys.readouterr()
    assert main([str(platform)]) == 1
    assert "manylinux_2_28_x86_64 is claimed, but nothing is compiled" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("notes.txt", b"text", "Invalid wheel filename"),
        ("a-1-py3-none-any.whl", b"no archive", "File is not a zip file"),
        ("b-1-py3-none-any.whl", None, "No such file or directory"),
    ],
)
def test_what_is_no_wheel_gives_exit_code_2(
    name: str,
    content: bytes | None,
    message: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    if content is not None:
        (tmp_path / name).write_bytes(content)
    assert main([str(tmp_path / name)]) == 2
    captured = capsys.readouterr()
    assert message in captured.err and name in captured.err
    assert captured.out == ""


def test_damaged_shared_object_gives_exit_code_2(
    spoiler: Spoiler, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    spoiler.files[EXTENSION] = b"\x7fELF\x01\x01" + bytes(100)
    assert main([str(packed(spoiler, tmp_path))]) == 2
    assert "is not a 64-bit little-endian ELF file" in capsys.readouterr().err


def test_policy_is_data(
    row_wheel_path: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "policy.json"
    path.write_text(
        json.dumps({"profiles": {"any": {"checks": {"size": {"wheel": 1, "installed": 2}}}}})
    )
    assert main(["--policy", str(path), str(row_wheel_path)]) == 1
    output = capsys.readouterr().out
    assert output.count("size: ") == 2
    assert output.endswith("2 findings by the 1 checks of any\n")


@pytest.mark.parametrize(
    ("document", "message"),
    [
        ("{", "JSONDecodeError"),
        ('{"profiles": {"any": {"checks": {"luck": {}}}}}', "there is no check 'luck'"),
        ('{"profiles": {"ours": {"checks": {}}}}', "has no profile 'any'"),
        (
            '{"profiles": {"any": {"extends": "all", "checks": {}}}}',
            "profile any can't extend all",
        ),
    ],
)
def test_wrong_policy_gives_exit_code_2(
    document: str, message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "policy.json"
    path.write_text(document)
    assert main(["--policy", str(path), "x.whl"]) == 2
    assert message in capsys.readouterr().err


def test_unknown_profile_is_named_with_those_there_are(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--profile", "theirs", "x.whl"]) == 2
    message = capsys.readouterr().err
    assert "no profile 'theirs', only any, torch-mlir-static" in message


def test_list_explains_every_check(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--list"]) == 0
    output = capsys.readouterr().out
    for code, function in CHECKS.items():
        assert f"  {code:18} {function.__doc__.strip().splitlines()[0]}\n" in output


def test_runs_as_a_module(row_wheel_path: Path) -> None:
    def run(argument: str) -> tuple[int, str, str]:
        result = subprocess.run(
            [sys.executable, "-m", "audit", argument],
            env={**os.environ, "PYTHONPATH": str(ROOT / "pkgs" / "wheel")},
            capture_output=True,
            text=True,
            check=False,
        )
        return result.returncode, result.stdout, result.stderr

    code, output, errors = run(str(row_wheel_path))
    assert (code, errors) == (0, "")
    assert "no findings" in output
    assert run("--version") == (0, "audit 1\n", "")


def test_libraries_of_the_host_play_no_part(spoiler: Spoiler, tmp_path: Path) -> None:
    """A library that this machine has is no more promised than another."""
    from audit.tools import verdict

    spoiler.needs("libsqlite3.so.0")
    path = packed(spoiler, tmp_path)
    analysis = verdict(path)
    assert analysis is not None
    assert analysis.overall_policy == analysis.policies.linux
    libraries = analysis.external_refs[analysis.policies.lowest.name].libs
    assert libraries == {"libsqlite3.so.0": None}
    assert len(Wheel(path).shared_objects) == 2
