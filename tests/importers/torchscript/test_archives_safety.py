# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Archives come from strangers: whatever is wrong with one is an error that says what and where.

A crash of the process is how these tests fail, besides the usual way. Archives are put together
here, record by record, since no PyTorch writes them.
"""

from __future__ import annotations

import io
import pickle
import resource
import struct
import subprocess
import sys
import textwrap
import threading
import warnings
import zipfile

import pytest
import torch

from torch_mlir import torchscript
from torch_mlir.torchscript import TorchMlirCompilerError

CLASS = "class M(Module):\n  __parameters__ = []\n  __buffers__ = []\n"
FORWARD = "  def forward(self: __torch__.M,\n    x: Tensor) -> Tensor:\n"
SOURCE = CLASS + FORWARD + "    return x\n"
WITH_ATTRIBUTE = CLASS + "  a : {}\n" + FORWARD + "    return x\n"


# Pickles, opcode by opcode.


def pickled(*parts: bytes) -> bytes:
    return b"\x80\x02" + b"".join(parts) + b"."


def string(text: str) -> bytes:
    data = text.encode()
    return b"X" + struct.pack("<I", len(data)) + data


def integer(number: int) -> bytes:
    return b"\x8a\x08" + struct.pack("<q", number)


def integers(*numbers: int) -> bytes:
    return b"(" + b"".join(map(integer, numbers)) + b"t"


def found(module: str, name: str) -> bytes:
    return f"c{module}\n{name}\n".encode()


def storage(key: str = "0", elements: int = 4, kind: str = "FloatStorage") -> bytes:
    of = string("storage") + found("torch", kind) + string(key) + string("cpu")
    return b"(" + of + integer(elements) + b"tQ"


def tensor(
    sizes: tuple[int, ...] = (4,),
    strides: tuple[int, ...] = (1,),
    offset: int = 0,
    of: bytes | None = None,
) -> bytes:
    place = (of or storage()) + integer(offset) + integers(*sizes) + integers(*strides)
    hooks = found("collections", "OrderedDict") + b")R"
    return found("torch._utils", "_rebuild_tensor_v2") + b"(" + place + b"\x89" + hooks + b"tR"


def module(*state: bytes) -> bytes:
    return pickled(found("__torch__", "M"), b")\x81}(", *state, b"ub")


def attribute(value: bytes) -> bytes:
    return module(string("a"), value)


EMPTY = module()
RECORDS = {
    "version": b"6\n",
    "constants.pkl": pickled(b")"),
    "data.pkl": EMPTY,
    "code/__torch__.py": SOURCE.encode(),
}


def archive(
    records: dict[str, bytes | str | None] | None = None,
    compression: int = zipfile.ZIP_STORED,
    folder: str = "m/",
) -> bytes:
    """An archive of RECORDS with `records` in their place, without those that are None."""
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", compression) as zipped:
        for name, data in {**RECORDS, **(records or {})}.items():
            if data is not None:
                zipped.writestr(folder + name, data)
    return file.getvalue()


def with_attribute(kind: str, value: bytes, **more: bytes) -> bytes:
    records = {"code/__torch__.py": WITH_ATTRIBUTE.format(kind), "data.pkl": attribute(value)}
    return archive({**records, **more})


def with_tensor(value: bytes, data: bytes = bytes(16)) -> bytes:
    return with_attribute("Tensor", value, **{"data/0": data})


def error_of(given: bytes, **limits: int) -> str:
    with pytest.raises(TorchMlirCompilerError) as caught:
        torchscript.import_archive(given, limits=limits)
    return str(caught.value)


def saved(module: torch.nn.Module) -> bytes:
    file = io.BytesIO()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.jit.save(torch.jit.script(module), file)
    return file.getvalue()


@pytest.fixture(scope="module")
def linear() -> bytes:
    torch.manual_seed(0)
    return saved(torch.nn.Linear(2, 3))


def test_what_the_tests_build_on_imports():
    assert "@__torch__.M.forward" in str(torchscript.import_archive(archive()))
    assert "tensor<4xf32>" in str(torchscript.import_archive(with_tensor(tensor())))


# The zip file.


@pytest.mark.parametrize("compression", [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED])
def test_archives_packed_by_other_tools_import_alike(linear, compression):
    file = io.BytesIO()
    with (
        zipfile.ZipFile(io.BytesIO(linear)) as old,
        zipfile.ZipFile(file, "w", compression) as new,
    ):
        for name in old.namelist():
            new.writestr(name, old.read(name))
    assert str(torchscript.import_archive(file.getvalue())) == str(
        torchscript.import_archive(linear)
    )


def test_archives_of_files_and_bytes_import_alike(linear, tmp_path):
    path = tmp_path / "linear.pt"
    path.write_bytes(linear)
    assert str(torchscript.import_archive(path)) == str(torchscript.import_archive(linear))


def test_truncation_at_every_offset_is_an_error(linear):
    for size in range(len(linear)):
        error_of(linear[:size])


def test_every_changed_byte_of_the_directory_imports_alike_or_is_an_error():
    good = archive()
    expected = str(torchscript.import_archive(good))
    start = good.index(b"PK\x01\x02")
    for at in range(start, len(good)):
        for bit in range(8):
            bad = bytearray(good)
            bad[at] ^= 1 << bit
            try:
                # Times, versions and attributes of files are nothing to us.
                assert str(torchscript.import_archive(bytes(bad))) == expected
            except TorchMlirCompilerError:
                pass


def test_damaged_records_are_told_by_their_checksums():
    bad = archive().replace(b"return x", b"return y")
    assert "code/__torch__.py': its bytes don't have the checksum" in error_of(bad)


def set_directory(given: bytes, offset: int, form: str, value: int) -> bytes:
    """`given` with a field of the last record's directory entry set."""
    at = given.rindex(b"PK\x01\x02") + offset
    return given[:at] + struct.pack(form, value) + given[at + struct.calcsize(form) :]


@pytest.mark.parametrize(
    ("offset", "form", "value", "message"),
    [
        (8, "<H", 1, "it is encrypted"),
        (10, "<H", 12, "it is compressed by bzip2"),
        (10, "<H", 77, "it is compressed by method 77"),
        (10, "<H", 8, "contradict each other about how it is stored"),
        (20, "<I", 7, "has two sizes"),
        (24, "<I", 100 << 20, "has two sizes"),
        (24, "<I", 0xFFFFFFFF, "its zip64 field is broken|has two sizes"),
        (42, "<I", 1, "its header isn't where the directory says"),
        (42, "<I", 0, "its header calls it"),
        (42, "<I", 0xFFFFFFF0, "beyond the archive's end"),
    ],
)
def test_directories_that_lie_are_found_out(offset, form, value, message):
    with pytest.raises(TorchMlirCompilerError, match=message):
        torchscript.import_archive(set_directory(archive(), offset, form, value))


def deflated(claimed: int, data: bytes) -> bytes:
    """A zip file whose one record is deflated, and claims `claimed` bytes."""
    name = b"m/data.pkl"
    wide = struct.pack("<HHQ", 1, 8, claimed)
    fields = struct.pack("<HHIIIIHH", 0, 8, 0, 0, len(data), 0xFFFFFFFF, len(name), len(wide))
    local = b"PK\x03\x04\x2d\x00" + fields + name + wide
    central = b"PK\x01\x02\x2d\x00\x2d\x00" + fields + bytes(14) + name + wide
    end = struct.pack("<HHII", 1, 1, len(central), len(local) + len(data))
    return local + data + central + b"PK\x05\x06\0\0\0\0" + end + b"\0\0"


def test_bombs_are_refused_before_they_are_inflated():
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    # More than these 8 kB can inflate to by the format's own bound, and as much as they can.
    assert "compressed ones can give" in error_of(deflated(100 << 30, bytes(8 << 10)))
    assert "record 'm/data.pkl': it inflates to" in error_of(deflated(3 << 30, bytes(3 << 20)))
    grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    assert grown < 64 << 10  # kB


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("../data/0", "leads out of the archive's folder"),
        ("data/../../x", "leads out of the archive's folder"),
        ("data//0", "leads out of the archive's folder"),
        ("./x", "leads out of the archive's folder"),
        ("a\\b", "backslash"),
        ("a\nb", "control character"),
        ("a\x1b[31mb", "control character"),
    ],
)
def test_names_that_lead_elsewhere_are_refused(name, message):
    with pytest.raises(TorchMlirCompilerError, match=message):
        torchscript.import_archive(archive({name: b""}))


def test_absolute_names_are_refused():
    for folder in ("/m/", "C:/m/"):
        assert "the name is an absolute path" in error_of(archive(folder=folder))


def test_names_that_arent_utf8_are_refused():
    bad = archive({"data/abc": b""}).replace(b"data/abc", b"data/\xff\xfeb")
    assert "the name isn't UTF-8" in error_of(bad)


def test_text_that_isnt_utf8_is_refused():
    bad = {"code/__torch__.py": SOURCE.encode() + b"# \xff\n"}
    assert "record 'code/__torch__.py': it isn't UTF-8" in error_of(archive(bad))
    value = b"X\x02\0\0\0\xed\xa0"
    assert "a string isn't UTF-8" in error_of(with_attribute("str", value))


def test_two_records_of_one_name_are_refused():
    bad = archive({"data/abc": b"", "data/abd": b""}).replace(b"data/abd", b"data/abc")
    assert "record 'm/data/abc': the archive has two records of this name" in error_of(bad)


def test_records_outside_of_the_folder_are_refused():
    file = io.BytesIO(archive())
    with zipfile.ZipFile(file, "a") as zipped:
        zipped.writestr("other/x", b"")
    assert "outside of the archive's folder 'm'" in error_of(file.getvalue())


def test_records_that_overlap_are_refused():
    # The last entry's header lies in the bytes of the one before.
    inner = b"PK\x03\x04\x14\0" + bytes(8) + struct.pack("<IIIHH", 0, 0, 0, 3, 0) + b"m/y"
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as zipped:
        for name, data in RECORDS.items():
            zipped.writestr("m/" + name, data)
        zipped.writestr("m/x", b"ab" + inner)
        zipped.writestr("m/y", b"")
    bad = file.getvalue()
    bad = set_directory(bad, 42, "<I", bad.index(b"ab" + inner) + 2)
    bad = set_directory(bad, 4, "<H", 20)
    assert "record 'm/y': it overlaps record 'm/x'" in error_of(bad)


# What it is instead.


def test_files_that_arent_archives_say_what_they_are(tmp_path):
    state = torch.nn.Linear(2, 3).state_dict()
    legacy, current, lite = io.BytesIO(), io.BytesIO(), tmp_path / "m.ptl"
    torch.save(state, legacy, _use_new_zipfile_serialization=False)
    torch.save(state, current)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.jit.script(torch.nn.Linear(2, 3))._save_for_lite_interpreter(str(lite))
    exported = io.BytesIO()
    torch.export.save(torch.export.export(torch.nn.Linear(2, 3), (torch.ones(1, 2),)), exported)
    for given, message in [
        (b"", "the file is empty"),
        (b"<html></html>" * 9, "it is no zip file"),
        (b"version https://git-lfs.github.com/spec/v1\n" * 2, "a Git LFS pointer"),
        (pickle.dumps({"a": 1}, protocol=2), "a bare Python pickle"),
        (legacy.getvalue(), "torch.save's legacy format"),
        (current.getvalue(), "a file of torch.save: a state_dict"),
        (lite.read_bytes(), "for the lite interpreter"),
        (exported.getvalue(), "a program of torch.export"),
        (archive({"constants.pkl": None}), "has no records data.pkl and constants.pkl"),
    ]:
        assert message in error_of(given)


@pytest.mark.parametrize(
    ("records", "message"),
    [
        ({"version": None}, "record 'version': the archive has no such record"),
        ({"version": b"six"}, "it should hold a version number"),
        ({"version": b"6" * 99}, "it should hold a version number"),
        ({"version": b"0"}, "older than the oldest that is read, 1"),
        ({"version": b"999"}, "version 999 of the format, newer than the newest"),
        ({"byteorder": b"big"}, "aren't little-endian"),
    ],
)
def test_versions_that_arent_read_are_refused(records, message):
    assert message in error_of(archive(records))


# Pickles.

NESTED = 100_000


@pytest.mark.parametrize(
    ("data", "message"),
    [
        pytest.param(data, message, id=message)
        for data, message in [
            (b"", "it ends in the middle of a value"),
            (b"\x80\x04N.", "it has protocol 4"),
            (pickled(), "it ends with 0 values"),
            (pickled(b"NN"), "it ends with 2 values"),
            (pickled(b"0"), "opcode 48 isn't one of TorchScript's"),
            (pickled(b"t"), "down to a mark that isn't there"),
            (pickled(b"N(\x85"), "takes more values than there are"),
            (pickled(b"l"), "down to a mark"),
            (pickled(b"(e"), "no list to append to"),
            (pickled(b"N(Ne"), "there is None in place of a list"),
            (pickled(b"}(Nu"), "a dictionary's last key has no value"),
            (pickled(b"h\x05"), "memo 5 isn't there"),
            (pickled(b"Nr\xff\xff\xff\xff"), "memo 4294967295 follows memo 0"),
            (pickled(b"X\xff\xff\xff\xff"), "it ends in the middle of a value"),
            (pickled(b"\x8d" + b"\xff" * 8), "it ends in the middle of a value"),
            (pickled(b"\x8a\xff"), "an int of 255 bytes"),
            (pickled(b"c__torch__"), "the name of a class isn't terminated"),
            (pickled(b"c(((((\nM\n"), "the name of a class isn't one"),
            (pickled(found("torch", "load")), "'torch.load' isn't known"),
            (pickled(integer(0) + b")R"), "there is an int in place of a class"),
            (pickled(found("torch", "FloatStorage") + b")R"), "FloatStorage' is called"),
            (pickled(found("__torch__", "M") + b"(Nt\x81"), "made with arguments"),
            (pickled(b"]" * NESTED + b"a" * (NESTED - 1)), "nested more deeply than the limit"),
            (pickled(b"(" * NESTED), "nested more deeply than the limit"),
            (pickled(b")" + b"\x85" * NESTED), "nested more deeply than the limit"),
            (pickled(b"]q\0h\0a"), "a value holds itself"),
            (pickled(b"]q\0}q\1(Nh\0uh\1a"), "list"),
            (pickled(b"]q\0}q\1(Nh\0u" + b"0"), "opcode 48"),
            (pickled(b")" + b"q\0h\0\x86" * 60), "share others"),
        ]
    ],
)
def test_broken_pickles_are_refused(data, message):
    assert message in error_of(archive({"data.pkl": data}))


def test_values_that_hold_one_another_are_refused():
    cycle = b"]q\0}q\1(" + string("k") + b"h\0u" + b"a"
    assert "a value holds itself" in error_of(archive({"data.pkl": pickled(cycle)}))


def test_python_in_a_pickle_is_not_run(tmp_path):
    marker = tmp_path / "marker"

    class Evil:
        def __reduce__(self):
            return (open, (str(marker), "w"))

    data = pickle.dumps(Evil(), protocol=2)
    error_of(archive({"data.pkl": data, "constants.pkl": data}))
    assert not marker.exists()


def test_dictionaries_whose_keys_collide_are_refused():
    # libtorch's hash map takes the upper bits of key * 11400714819323198485.
    inverse = pow(11400714819323198485, -1, 1 << 64)
    keys = [k * inverse % (1 << 64) for k in range(1, 200)]
    signed = [key - (1 << 64) if key >> 63 else key for key in keys]
    items = b"".join(integer(key) + b"N" for key in signed)
    bad = with_attribute("Dict[int, Optional[int]]", b"}(" + items + b"u")
    assert "a dictionary's keys were chosen to collide" in error_of(bad)


def test_dictionaries_with_many_keys_import():
    def items(keys):
        return b"".join(integer(key) + integer(1) for key in keys)

    for keys in (range(5000), range(0, 5000 << 32, 1 << 32), [k * k for k in range(3000)]):
        value = found("torch.jit._pickle", "restore_type_tag")
        value += b"}(" + items(keys) + b"u" + string("Dict[int, int]") + b"\x86R"
        torchscript.import_archive(with_attribute("Dict[int, int]", value))


# Tensors.


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (tensor(of=storage(key="7")), "the archive has no record 'data/7'"),
        (tensor(of=storage(key="../x")), "the archive has no record 'data/../x'"),
        (tensor(of=storage(elements=5)), "has 16 bytes, fewer than its 5 elements of 4 bytes"),
        (tensor(of=storage(elements=-1)), "its storage has -1 elements"),
        (tensor(of=storage(elements=1 << 62)), "fewer than its 4611686018427387904 elements"),
        (tensor(of=storage(elements=3, kind="ComplexDoubleStorage")), "elements of 16 bytes"),
        (tensor(of=storage(kind="per_tensor_affine")), "a storage's element type is"),
        (tensor(of=storage(kind="StringStorage")), "'torch.StringStorage' isn't known"),
        (tensor((5,)), "its elements 0 to 4 don't lie in its storage, which has 4"),
        (tensor((4,), (2,)), "its elements 0 to 6 don't lie"),
        (tensor((4,), (1,), 1), "its elements 1 to 4 don't lie"),
        (tensor((4,), (1,), -1), "its elements -1 to 2 don't lie"),
        (tensor((0,), (1,), 5), "its elements 5 to 5 don't lie"),
        (tensor((-1,)), "it has a negative size, -1"),
        (tensor((4,), (-1,)), "it has a negative stride, -1"),
        (tensor((2, 2), (2,)), "it has 2 sizes and 1 strides"),
        (tensor((1,) * 65, (0,) * 65), "it has 65 dimensions"),
        (tensor((1 << 40, 1 << 40), (0, 0)), "beyond all bounds"),
        (tensor((2, 2), (1 << 62, 1 << 62)), "beyond all bounds"),
        (tensor((0, 1 << 62, 4), (1, 1, 1)), "beyond all bounds"),
        (tensor((1 << 40,), (0,)), "share few bytes"),
        (tensor(of=integer(0)), "there is an int in place of a storage"),
        (found("torch._utils", "_rebuild_tensor_v2") + b")R", "it is made from 0 values"),
        (found("torch._utils", "_rebuild_sparse_tensor"), "it is sparse"),
        (found("torch._tensor", "_rebuild_from_type_v2"), "a Python subclass of torch.Tensor"),
    ],
)
def test_tensors_that_dont_lie_in_their_bytes_are_refused(value, message):
    error = error_of(with_tensor(value))
    assert message in error
    assert "record 'data.pkl'" in error


def test_errors_of_tensors_name_the_attribute():
    assert "tensor 'a': its elements 0 to 4" in error_of(with_tensor(tensor((5,))))


def test_expanded_tensors_within_the_limit_import():
    text = str(torchscript.import_archive(with_tensor(tensor((3, 4), (0, 1)))))
    assert "tensor<3x4xf32>" in text


# Enums.

ENUM = "class E(Enum):\n  A = 1\n  B = -2\n"


def with_enum(value: bytes) -> bytes:
    return with_attribute(
        "__torch__.E",
        found("__torch__", "E") + value + b"R",
        **{"code/__torch__.py": (ENUM + WITH_ATTRIBUTE.format("__torch__.E")).encode()},
    )


def test_members_of_enums_have_to_exist():
    for number in (1, -2):
        torchscript.import_archive(with_enum(integer(number)))
    for value in (integer(3), string("1"), b"N", b"G" + struct.pack(">d", 1.0)):
        assert "enum '__torch__.E' has no member" in error_of(with_enum(value))


@pytest.mark.parametrize("member", ["C : int", "C : a == b", "C == 1", 'C : "="', "C"])
def test_members_of_enums_have_to_have_values(member):
    bad = WITH_ATTRIBUTE.format("__torch__.E") + ENUM + f"  {member}\n"
    value = found("__torch__", "E") + integer(1) + b"R"
    error = error_of(archive({"code/__torch__.py": bad, "data.pkl": attribute(value)}))
    assert "a member of enum '__torch__.E' has no value" in error


# TorchScript.


def returning(expression: str) -> bytes:
    return archive({"code/__torch__.py": CLASS + FORWARD + f"    return {expression}\n"})


@pytest.mark.parametrize(
    ("expression", "message"),
    [
        ("(" * NESTED + "x" + ")" * NESTED, "nested more deeply than the limit"),
        ("[" * NESTED, "nested more deeply than the limit"),
        ("-" * NESTED + "x", "nested more deeply than the limit"),
        ("not " * NESTED + "x", "nested more deeply than the limit"),
        ("x" + "+x" * NESTED, "nested more deeply than the limit"),
        ("x" + ".x" * NESTED, "nested more deeply than the limit"),
        ("x" + "(x)" * NESTED, "nested more deeply than the limit"),
        ("x" + "[0]" * NESTED, "nested more deeply than the limit"),
        ("x if x else " * NESTED + "x", "nested more deeply than the limit"),
        ("(" * 200 + "x" + "+x+x)" * 200, "nested more deeply than the limit"),
        ("x)", "line 6: there is a ')' too many"),
        ("(x", "a ')' is missing"),
        ("(x]", "there is a ']' too many"),
        ("'x", "a string isn't terminated"),
        ("'''x\n\n", "a string isn't terminated"),
        ("x\0", "it holds a zero byte"),
        ("x[]", "a subscript without an index"),
        ("x.y()[ \n ]", "a subscript without an index"),
        ("'" + "\\n" * (1 << 19) + "'", "too many escapes"),
    ],
)
def test_expressions_beyond_the_parser_are_refused(expression, message):
    error = error_of(returning(expression))
    assert message in error
    assert "record 'code/__torch__.py': line" in error


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("".join(" " * (i + 4) + "if bool(x):\n" for i in range(200)), "its blocks are nested"),
        (
            "    if bool(x):\n      y = x\n" + "    elif bool(x):\n      y = x\n" * NESTED,
            "its blocks are nested",
        ),
        ("    def f(): " + "def f(): " * NESTED + "\n", "nested more deeply than the limit"),
        ("\n" * NESTED, "lines without code in a row"),
        ("# x\n" * NESTED, "lines without code in a row"),
        ("\\\n" * NESTED, "lines without code in a row"),
    ],
)
def test_blocks_beyond_the_parser_are_refused(body, message):
    source = CLASS + FORWARD + body + "    return x\n"
    assert message in error_of(archive({"code/__torch__.py": source}))


CHAIN = 20_000


@pytest.mark.parametrize(
    "chain",
    [
        "".join(
            f"def f{i}(x: Tensor) -> Tensor:\n  return __torch__.f{i + 1}(x)\n"
            for i in range(CHAIN)
        ),
        "".join(f"class C{i}:\n  a : Optional[__torch__.C{i + 1}]\n" for i in range(CHAIN)),
        "".join(f'class C{i}:\n  a : "__torch__.C{i + 1}"\n' for i in range(CHAIN)),
        "class C:\n"
        + "".join(
            f"  def m{i}(self: __torch__.C) -> int:\n    return self.m{i + 1}()\n"
            for i in range(CHAIN)
        ),
    ],
    ids=["functions", "classes", "strings", "methods"],
)
def test_definitions_that_need_too_many_others_are_refused(chain):
    assert "go deeper than the limit" in error_of(archive({"code/__torch__.py": SOURCE + chain}))


def test_definitions_that_need_many_others_import():
    count = 300
    chain = "".join(
        f"def f{i}(x: Tensor) -> Tensor:\n  return __torch__.f{i + 1}(x)\n" for i in range(count)
    )
    chain += f"def f{count}(x: Tensor) -> Tensor:\n  return x\n"
    source = CLASS + FORWARD + "    return __torch__.f0(x)\n" + chain
    text = str(torchscript.import_archive(archive({"code/__torch__.py": source})))
    assert text.count("func.call ") + text.count(" call @") == count + 1


def test_named_tuples_that_hold_too_many_types_are_refused():
    source = SOURCE + "".join(
        f"class N{i}(NamedTuple):\n  a : __torch__.N{i + 1}\n  b : __torch__.N{i + 1}\n"
        for i in range(60)
    )
    assert "holds more than" in error_of(archive({"code/__torch__.py": source}))


def test_definitions_of_one_name_are_refused():
    source = SOURCE + "def f() -> int:\n  return 1\n" * 2
    assert "it defines '__torch__.f' twice" in error_of(archive({"code/__torch__.py": source}))


@pytest.mark.parametrize(
    ("hooks", "message"),
    [
        ('__forward_hooks__ = ["h"]', "no definition of its hook 'h'"),
        ('__forward_pre_hooks__ = ["forward", "h", ]', "no definition of its hook 'h'"),
        ('__forward_hooks__ = ["h", "g" "f"]', "isn't a list of names"),
        ('(__forward_hooks__) = ["h"]', "isn't a list of names"),
    ],
)
def test_hooks_that_arent_defined_are_refused(hooks, message):
    source = SOURCE.replace("  def", f"  {hooks}\n  def")
    assert message in error_of(archive({"code/__torch__.py": source}))


@pytest.mark.parametrize("parameters", ["", " ", "*", "*, x: int"])
def test_methods_have_to_have_a_self(parameters):
    source = SOURCE + f"  def f({parameters}) -> int:\n    return 1\n"
    error = error_of(archive({"code/__torch__.py": source}))
    assert "method 'f' of '__torch__.M' has no parameter 'self'" in error


@pytest.mark.parametrize(
    "kind",
    [
        "List[" * 1000 + "int" + "]" * 1000,
        "(" * NESTED,
        "List[int",
        "x" * 100_000,
        "List[int]\n",
    ],
)
def test_types_beyond_the_parser_are_refused(kind):
    value = found("torch.jit._pickle", "restore_type_tag") + b"]" + string(kind) + b"\x86R"
    assert "record 'data.pkl'" in error_of(with_attribute("List[int]", value))


def test_constants_used_too_often_are_refused():
    constants = pickled(b"(](" + b"K\1" * 100_000 + b"et")
    body = "    y = CONSTANTS.c0\n" * 1000
    source = CLASS + FORWARD + body + "    return x\n"
    bad = archive({"constants.pkl": constants, "code/__torch__.py": source})
    assert "its constants are used so often" in error_of(bad)


# Source ranges.

FORMAT = string("FORMAT_WITH_STRING_TABLE")


def lines(*indices: int) -> bytes:
    values = b"](" + b"".join(map(integer, indices)) + b"e"
    return found("torch.jit._pickle", "restore_type_tag") + values + string("List[int]") + b"\x86R"


def ranges(
    indices: bytes = lines(0), name: int = 1, line: int = 1, begin: int = 0, end: int = 4
) -> bytes:
    source = indices + integer(name) + integer(line) + b"\x87"
    place = source + integer(begin) + integer(end) + b"\x87"
    entry = b"(" + integer(0) + place + integer(-1) + b"t"
    texts = b"(" + string("text") + string("model.py") + b"t"
    return pickled(b"(" + FORMAT + texts + b"(" + entry + b"tt")


def with_ranges(data: bytes) -> bytes:
    # The source is wrong, so that the range is asked for.
    return archive(
        {
            "code/__torch__.py": CLASS + FORWARD + "    return (x x)\n",
            "code/__torch__.py.debug_pkl": data,
        }
    )


def test_source_ranges_are_told():
    assert 'File "model.py", line 1' in error_of(with_ranges(ranges(end=3)))


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (pickled(b"N"), "it doesn't hold source ranges"),
        (pickled(b")"), "it doesn't hold source ranges"),
        (pickled(b"(" + FORMAT + b"t"), "it doesn't hold source ranges"),
        (pickled(b"(" + FORMAT + b")(NtN\x86t"), "it doesn't hold source ranges"),
        (ranges(lines(2)), "a line of source text isn't there"),
        (ranges(lines(-1)), "a line of source text isn't there"),
        (ranges(b"]"), "it doesn't hold source ranges"),
        (ranges(name=9), "the name of a source file isn't there"),
        (ranges(line=-1), "a source file of -1 lines"),
        (ranges(begin=5, end=6), "5 to 6, isn't in its text of 4 bytes"),
        (ranges(begin=-1), "-1 to 4, isn't in its text"),
        (ranges(begin=3, end=2), "3 to 2, isn't in its text"),
        (ranges(end=1 << 40), "isn't in its text"),
        (ranges(tensor()), "isn't used by source ranges"),
        (ranges(b"}"), "of a kind that source ranges don't have"),
    ],
)
def test_source_ranges_that_lie_nowhere_are_refused(data, message):
    error = error_of(with_ranges(data))
    assert message in error
    assert "record 'code/__torch__.py.debug_pkl'" in error


# Limits.

DEEP = CLASS + FORWARD + "    if bool(x):\n      y = [[x]]\n    else:\n      pass\n    return x\n"


@pytest.mark.parametrize(
    ("given", "limit", "enough", "message"),
    [
        (archive(), "records", 4, "claims 4 records, more than the limit of 3"),
        (
            archive(compression=zipfile.ZIP_DEFLATED),
            "inflated_record_bytes",
            len(SOURCE),
            "code/__torch__.py': it inflates to",
        ),
        (
            archive(compression=zipfile.ZIP_DEFLATED),
            "inflated_bytes",
            sum(map(len, RECORDS.values())),
            "the archive inflates to more than",
        ),
        (with_tensor(tensor()), "pickle_depth", 2, "nested more deeply than the limit"),
        (archive(), "source_bytes", len(SOURCE), "more TorchScript than the limit"),
        (archive({"code/__torch__.py": DEEP}), "source_block_depth", 4, "its blocks are nested"),
        (archive(), "source_expression_depth", 6, "its expressions are nested"),
        (
            with_tensor(tensor((1 << 20, 4), (0, 1))),
            "expanded_tensor_bytes",
            16 << 20,
            "laid out",
        ),
    ],
)
def test_limits_hold_where_they_are_set(given, limit, enough, message):
    torchscript.import_archive(given, limits={limit: enough})
    below = enough - (1 << 12) if limit == "expanded_tensor_bytes" else enough - 1
    with pytest.raises(TorchMlirCompilerError, match=message):
        torchscript.import_archive(given, limits={limit: below})


def test_checksums_of_tensors_are_compared_if_asked_for():
    damaged = with_tensor(tensor(), b"0123456789abcdef").replace(b"0123456789", b"0123456788")
    torchscript.import_archive(damaged)
    with pytest.raises(TorchMlirCompilerError, match="record 'data/0': its bytes don't have"):
        torchscript.import_archive(damaged, limits={"checksum_tensors": True})


# What pickles hold where something else is declared.

OTHER = (
    "class Small(Module):\n  __parameters__ = []\n  __buffers__ = []\n  a : int\n"
    "class Large(Module):\n  __parameters__ = []\n  __buffers__ = []\n"
    + "".join(f"  a{i} : int\n" for i in range(200))
)
SMALL = found("__torch__", "Small") + b")\x81}(" + string("a") + integer(1) + b"ub"


@pytest.mark.parametrize(
    ("kind", "value", "path", "held"),
    [
        ("int", string("text"), "a", "str"),
        ("str", integer(1), "a", "int"),
        ("bool", integer(1), "a", "int"),
        ("Tensor", integer(1), "a", "int"),
        ("Optional[int]", string("text"), "a", "str"),
        ("__torch__.Large", SMALL, "a", "__torch__.Small"),
        ("Optional[__torch__.Large]", SMALL, "a", "__torch__.Small"),
        ("Tuple[int, str]", b"(" + integer(1) + integer(2) + b"t", "a[1]", "int"),
    ],
)
def test_a_value_of_another_type_than_declared_is_told(kind, value, path, held):
    records = {
        "code/__torch__.py": OTHER + WITH_ATTRIBUTE.format(kind),
        "data.pkl": attribute(value),
    }
    declared = "str" if path == "a[1]" else kind
    assert (
        f"record 'data.pkl': the attribute '{path}' is declared as '{declared}', but holds a "
        f"value of type '{held}'"
    ) in error_of(archive(records))


def test_texts_that_are_no_utf8_are_shown_in_errors():
    bad = SOURCE.encode().replace(b"return x", b"return y # \xff\xfe")
    assert "y" in error_of(archive({"code/__torch__.py": bad}))


# What others do meanwhile.


def test_a_child_that_is_forked_during_an_import_can_import(tmp_path):
    """A process of its own: a deadlock can't be ended from within."""
    path = tmp_path / "model.pt"
    body = "    y = x\n" + "    y = torch.add(y, 1)\n" * 3000 + "    return y\n"
    path.write_bytes(archive({"code/__torch__.py": CLASS + FORWARD + body}))
    program = textwrap.dedent(
        """
        import os, sys, threading, time
        from torch_mlir import torchscript
        imports, forks = [], 0
        def work():
            imports.append(len(str(torchscript.import_archive(sys.argv[1]))))
        while forks < 5:
            thread = threading.Thread(target=work)
            thread.start()
            time.sleep(0.002 * forks)
            child = os.fork()
            if not child:
                torchscript.import_archive(sys.argv[1])
                os._exit(0)
            assert os.waitpid(child, 0)[1] == 0
            thread.join()
            forks += 1
        assert len(imports) == 5 and min(imports) > 10000
        """
    )
    subprocess.run(
        [sys.executable, "-P", "-W", "ignore", "-c", program, str(path)], check=True, timeout=300
    )


def test_a_file_that_is_changed_while_it_is_imported_is_told(tmp_path):
    path = tmp_path / "model.pt"
    body = "    y = x\n" + "    y = torch.add(y, 1)\n" * 3000 + "    return y\n"
    data = archive({"code/__torch__.py": CLASS + FORWARD + body})
    path.write_bytes(data)
    stop = threading.Event()

    def append() -> None:
        while not stop.wait(0.001):
            with path.open("ab") as file:
                file.write(b"\0")

    thread = threading.Thread(target=append)
    told = "the file was changed while it was read"
    messages: list[str] = []
    thread.start()
    try:
        # The directory is at the end: with more behind it, there is none. On a busy machine, that
        # is what most turns meet.
        for _ in range(1000):
            path.write_bytes(data)
            try:
                torchscript.import_archive(path)
            except TorchMlirCompilerError as error:
                messages.append(str(error))
                if told in messages[-1]:
                    break
    finally:
        stop.set()
        thread.join()
    assert any(told in message for message in messages)
