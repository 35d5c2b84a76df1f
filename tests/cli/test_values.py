# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The arguments that `--input` makes, and what files of tensors hold, damaged ones too."""

from __future__ import annotations

import json
import struct

import numpy as np
import pytest

from torch_mlir.cli.errors import CommandError
from torch_mlir.cli.inputs import parse_input
from torch_mlir.cli.values import Values


@pytest.fixture(scope="module")
def torch():
    return pytest.importorskip("torch")


def made(torch, *texts, seed=0):
    return Values(seed, torch).of_inputs([parse_input(text) for text in texts])


def refused(torch, *texts):
    with pytest.raises(CommandError) as raised:
        made(torch, *texts)
    assert "\n" not in str(raised.value)
    return str(raised.value)


def test_given_elements(torch):
    args, kwargs = made(torch, "2x2xi64=1,2,3,4", "n=i64=3", "2xbf16=1.5", "m=1xi1=true")
    assert args[0].dtype == torch.int64 and args[0].tolist() == [[1, 2], [3, 4]]
    assert args[1].dtype == torch.bfloat16 and args[1].tolist() == [1.5, 1.5]
    assert kwargs["n"] == 3
    assert kwargs["m"].dtype == torch.bool and kwargs["m"].tolist() == [True]


@pytest.mark.parametrize("value", [2**64 - 1, 2**63, 0])
def test_the_largest_unsigned_integers(torch, value):
    if not hasattr(torch, "uint64"):
        assert "no dtype uint64" in refused(torch, f"1xui64={value}")
        return
    ((tensor,), _) = made(torch, f"1xui64={value}")
    assert tensor.dtype == torch.uint64
    assert tensor.numpy().tolist() == [value]


def test_random_elements_by_dtype_and_seed(torch):
    ((a, b, c, d), _) = made(torch, "64xf32", "64xi64", "64xi1", "64xcomplex<f32>")
    assert (a.dtype, d.dtype) == (torch.float32, torch.complex64)
    assert a.std() > 0.5 and d.imag.std() > 0.5
    assert b.unique().tolist() == [0, 1]
    assert c.unique().tolist() == [False, True]
    assert made(torch, "64xf32")[0][0].equal(a)
    assert not made(torch, "64xf32", seed=1)[0][0].equal(a)


def test_a_seed_means_the_same_without_pytorch(torch):
    ((ours,), _) = made(torch, "5xf32")
    ((numpys,), _) = made(None, "5xf32")
    assert numpys.tolist() == ours.tolist()


def test_open_sizes_with_one_name_are_one_size(torch):
    ((a, b, c), _) = made(torch, "[n]x[m]xf32", "[m]x[n]x?xf32", "[k=9:10]x[j@4]xf32")
    assert a.shape == (3, 5)
    assert b.shape == (5, 3, 7)
    assert c.shape == (10, 4)


def test_sizes_that_do_not_fit(torch):
    assert "3 elements are given, 4 are wanted" in refused(torch, "2x2xf32=1,2,3")
    assert "too large a tensor" in refused(torch, "999999x999999x99xf32")
    assert "'x' is given twice" in refused(torch, "x=1xf32", "x=1xf32")


def test_npy_npz_and_pt_files(torch, tmp_path):
    np.save(tmp_path / "x.npy", np.array([[1, 2]], np.int32))
    np.savez(tmp_path / "x.npz", b=np.float64(0.5), a=np.ones(2, np.uint8))
    torch.save({"w": torch.ones(2, dtype=torch.bfloat16), "n": 3}, tmp_path / "d.pt")
    torch.save([torch.zeros(1), torch.ones(1)], tmp_path / "l.pt")
    torch.save(torch.full((2,), 7), tmp_path / "t.pth")
    ((x,), _) = made(torch, f"@{tmp_path}/x.npy")
    assert x.dtype == torch.int32 and x.tolist() == [[1, 2]]
    x += 1  # its own memory
    ((b, a), _) = made(torch, f"@{tmp_path}/x.npz")
    assert b.shape == () and b.item() == 0.5 and a.tolist() == [1, 1]
    ((w, n), kwargs) = made(torch, f"@{tmp_path}/d.pt", f"k=@{tmp_path}/d.pt:w")
    assert w.dtype == kwargs["k"].dtype == torch.bfloat16 and n == 3
    assert [t.item() for t in made(torch, f"@{tmp_path}/l.pt")[0]] == [0, 1]
    assert made(torch, f"@{tmp_path}/t.pth")[0][0].tolist() == [7, 7]
    assert "holds no 'c', but b, a" in refused(torch, f"@{tmp_path}/x.npz:c")
    assert "holds 2 tensors; say which" in refused(torch, f"k=@{tmp_path}/x.npz")


def safetensors(path, header, data):
    # github.com/huggingface/safetensors, README, "Format".
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    path.write_bytes(struct.pack("<Q", len(text)) + text + data)
    return f"@{path}"


def test_safetensors_files(torch, tmp_path):
    entry = {"dtype": "F32", "shape": [2, 1], "data_offsets": [0, 8]}
    header = {
        "__metadata__": {"format": "pt"},
        "x": entry,
        "y": {"dtype": "BF16", "shape": [1], "data_offsets": [8, 10]},
        "z": {"dtype": "I64", "shape": [0], "data_offsets": [10, 10]},
    }
    data = np.array([1, 2], np.float32).tobytes() + b"\x80\x3f"
    ((x, y, z), _) = made(torch, safetensors(tmp_path / "a.safetensors", header, data))
    assert x.tolist() == [[1], [2]]
    assert y.dtype == torch.bfloat16 and y.tolist() == [1]
    assert z.dtype == torch.int64 and z.shape == (0,)
    for wrong, says in [
        ([], "not a .safetensors file"),
        (b"{", "not a .safetensors file"),
        ({"x": 1}, "not a .safetensors file"),
        ({"x": entry | {"dtype": "Q9"}}, "elements of type 'q9'"),
        ({"x": entry | {"shape": [3]}}, "not a .safetensors file"),
        ({"x": entry | {"data_offsets": [-4, 4]}}, "cut short"),
        ({"x": entry | {"data_offsets": [8, 16]}}, "cut short"),
    ]:
        line = refused(torch, safetensors(tmp_path / "b.safetensors", wrong, data))
        assert "b.safetensors: " in line and says in line


def test_damaged_files_are_named(torch, tmp_path):
    np.save(tmp_path / "x.npy", np.ones((4, 4)))
    np.savez_compressed(tmp_path / "x.npz", a=np.arange(100))
    torch.save(torch.ones(100), tmp_path / "x.pt")
    for path in list(tmp_path.iterdir()):
        whole = path.read_bytes()
        for length in (0, 1, 8, len(whole) // 2, len(whole) - 1):
            path.write_bytes(whole[:length])
            assert f"{path}: " in refused(torch, f"@{path}")
    # One bit of the compressed stream, which zlib notices and zipfile doesn't.
    np.savez_compressed(tmp_path / "x.npz", a=np.arange(100))
    whole = bytearray((tmp_path / "x.npz").read_bytes())
    whole[60] ^= 0xFF
    (tmp_path / "x.npz").write_bytes(whole)
    assert "x.npz: not a .npz file" in refused(torch, f"@{tmp_path}/x.npz")


def test_files_that_hold_no_tensors(torch, tmp_path):
    np.save(tmp_path / "text.npy", np.array(["a"]))
    np.save(tmp_path / "pickled.npy", np.array([{}], object), allow_pickle=True)
    assert "PyTorch has no dtype <U1" in refused(torch, f"@{tmp_path}/text.npy")
    assert "pickled.npy: not a .npy file" in refused(torch, f"@{tmp_path}/pickled.npy")
    assert "Is a directory" in refused(torch, f"@{tmp_path}")
    (tmp_path / "x.csv").write_text("1,2")
    assert "a tensor file ends in .npy" in refused(torch, f"@{tmp_path}/x.csv")
