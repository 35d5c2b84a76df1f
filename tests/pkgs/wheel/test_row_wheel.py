"""The wheel of a row: its names, licenses, bill of materials and bytes."""

from __future__ import annotations

import base64
import csv
import hashlib
import json
import tomllib
import zipfile
from pathlib import Path

import pytest
import row_wheel
from archive import read_member, read_wheel, write_wheel
from audit.wheel import Wheel
from parts import comment_with, find_packages, package_names
from small_wheel import DIST_INFO, EXTENSION, PARTS, ROOT, Packages

ROW_DIST_INFO = "torch_mlir_static-0.1.0+torch2.13.dist-info"


def command(base: Path, packages: Packages, output: Path, *more: str, row: str = "2_13") -> int:
    arguments = [str(base), "--row", row, "-o", str(output)]
    arguments += ["--lock", str(packages.lock), "--debian", str(packages.debian), *more]
    for file in packages.files:
        arguments += ["--package", str(file)]
    return row_wheel.main(arguments)


def test_name_carries_row_and_the_policys_platform(row_wheel_path: Path) -> None:
    name, version, python, abi, platform = row_wheel_path.stem.split("-")
    assert (name, version) == ("torch_mlir_static", "0.1.0+torch2.13")
    assert (python, abi) == ("cp311", "cp311")
    assert platform == "manylinux_2_28_x86_64"


def test_packing_twice_gives_the_same_bytes(
    base_wheel: Path, packages: Packages, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    # A base wheel of the same files in another order, with other times.
    shuffled = tmp_path / base_wheel.name
    with zipfile.ZipFile(shuffled, "w") as archive:
        for name, data in reversed(read_wheel(base_wheel).items()):
            archive.writestr(zipfile.ZipInfo(name, (2024, 2, 3, 4, 5, 6)), data)
    assert command(base_wheel, packages, tmp_path / "one") == 0
    assert command(shuffled, packages, tmp_path / "two") == 0
    one, two = (Path(line) for line in capsys.readouterr().out.split())
    assert one.name == two.name
    assert one.read_bytes() == two.read_bytes()


def test_what_is_added_is_in_the_wheel_and_its_modules_are_listed(
    base_wheel: Path, packages: Packages, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    # As the base wheel has it, and a second wheel with that list in it.
    files = read_wheel(base_wheel)
    files[row_wheel.SHARED_OBJECTS] = b"_mlir.so _mlir _other\n"
    base = tmp_path / base_wheel.name
    write_wheel(base, files, DIST_INFO)
    added = tmp_path / "added"
    module = added / "torch_mlir/_mlir_libs/_lazy_backend.so"
    module.parent.mkdir(parents=True)
    module.write_bytes(files[EXTENSION])
    (module.parent / "_lazy_backend.pyi").write_bytes(b"x: int\n")
    assert command(base, packages, tmp_path / "out", "--add", str(added)) == 0
    packed = read_wheel(Path(capsys.readouterr().out.strip()))
    assert packed["torch_mlir/_mlir_libs/_lazy_backend.so"] == files[EXTENSION]
    assert packed["torch_mlir/_mlir_libs/_lazy_backend.pyi"] == b"x: int\n"
    assert packed[row_wheel.SHARED_OBJECTS] == (
        b"_mlir.so _mlir _other\n_lazy_backend.so _lazy_backend\n"
    )


def test_what_the_base_wheel_has_is_not_replaced(
    base_wheel: Path, packages: Packages, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    files = read_wheel(base_wheel)
    files[row_wheel.SHARED_OBJECTS] = b""
    base = tmp_path / base_wheel.name
    write_wheel(base, files, DIST_INFO)
    added = tmp_path / "added" / EXTENSION
    added.parent.mkdir(parents=True)
    added.write_bytes(b"")
    assert command(base, packages, tmp_path / "out", "--add", str(tmp_path / "added")) == 1
    assert f"has a {EXTENSION} already" in capsys.readouterr().err


def test_payload_is_the_base_wheels_and_the_row_record(
    base_files: dict[str, bytes], row_wheel_path: Path
) -> None:
    def payload(files: dict[str, bytes]) -> dict[str, bytes]:
        return {name: data for name, data in files.items() if ".dist-info/" not in name}

    packed = payload(read_wheel(row_wheel_path))
    assert json.loads(packed.pop("torch_mlir/_row.json")) == {"row": "2_13", "torch": "2.13.0"}
    assert packed == payload(base_files)


def test_metadata_changes_version_and_license_alone(
    base_files: dict[str, bytes], row_wheel_path: Path
) -> None:
    before = base_files[f"{DIST_INFO}/METADATA"].decode()
    after = read_wheel(row_wheel_path)[f"{ROW_DIST_INFO}/METADATA"].decode()
    assert before.partition("\n\n")[2] == after.partition("\n\n")[2]
    removed = set(before.splitlines()) - set(after.splitlines())
    assert removed == {"Version: 0.1.0", "License-Expression: Apache-2.0 WITH LLVM-exception"}
    metadata = Wheel(row_wheel_path).metadata
    assert metadata["Version"] == "0.1.0+torch2.13"
    assert metadata.get_all("License-File")[0] == "LICENSE"


def test_expression_names_each_license_once_and_ours_first(row_wheel_path: Path) -> None:
    terms = Wheel(row_wheel_path).metadata["License-Expression"].split(" AND ")
    assert terms[0] == "Apache-2.0 WITH LLVM-exception"
    assert len(terms) == len(set(terms))
    parts = json.loads(PARTS.read_text())["parts"]
    assert set(terms) == {term for part in parts for term in part["license"].split(" AND ")}


def test_wheel_file_tells_the_tag_of_the_name(row_wheel_path: Path) -> None:
    lines = read_wheel(row_wheel_path)[f"{ROW_DIST_INFO}/WHEEL"].decode().splitlines()
    tag = "-".join(row_wheel_path.stem.split("-")[2:])
    assert [line for line in lines if line.startswith("Tag:")] == [f"Tag: {tag}"]
    assert "Root-Is-Purelib: false" in lines


def test_license_texts_are_the_packages_own(row_wheel_path: Path) -> None:
    wheel = Wheel(row_wheel_path)
    files = read_wheel(row_wheel_path)
    texts = json.loads(PARTS.read_text())["texts"]
    for name in texts:
        text = files[f"{ROW_DIST_INFO}/licenses/{name}"].decode()
        assert f"The terms of {name}.\n" in text
        assert "*/" not in text and "Another" not in text
    assert wheel.metadata.get_all("License-File") == ["LICENSE", *sorted(texts)]


def test_bill_names_each_part_as_the_pins_do(row_wheel_path: Path, packages: Packages) -> None:
    bill = json.loads(
        read_wheel(row_wheel_path)[f"{ROW_DIST_INFO}/sboms/torch-mlir-static.cdx.json"]
    )
    assert (bill["bomFormat"], bill["specVersion"]) == ("CycloneDX", "1.6")
    assert bill["metadata"]["component"]["version"] == "0.1.0+torch2.13"
    assert bill["metadata"]["component"]["purl"].endswith("@0.1.0%2Btorch2.13")
    components = {component["name"]: component for component in bill["components"]}
    parts = json.loads(PARTS.read_text())["parts"]
    assert list(components) == [part["name"] for part in parts]
    for part in parts:
        component = components[part["name"]]
        assert component["version"] == packages.versions[part["package"]]
        assert component["hashes"] == [
            {"alg": "SHA-256", "content": packages.hashes[part["package"]]}
        ]
        assert component["licenses"] == [{"expression": part["license"]}]
    assert components["nanobind"]["purl"].startswith("pkg:pypi/nanobind@")
    assert components["robin-map"]["purl"].endswith("#nanobind/ext/robin_map")
    assert components["pytorch"]["purl"].startswith("pkg:deb/debian/pytorch@")
    assert components["pytorch"]["purl"].endswith("?arch=source&distro=trixie")
    assert components["libstdc++"]["purl"].startswith("pkg:deb/debian/libstdc%2B%2B-12-dev@")
    references = [component["bom-ref"] for component in bill["components"]]
    assert bill["dependencies"][0]["dependsOn"] == references


def test_every_package_of_parts_is_pinned() -> None:
    locked = {p["name"] for p in tomllib.loads((ROOT / "poetry.lock").read_text())["package"]}
    suites = json.loads((ROOT / "pkgs/fetch/debian.json").read_text())
    others = {f"{suite}/{name}" for suite, names in suites.items() for name in names}
    assert package_names(json.loads(PARTS.read_text())) <= locked | set(suites["bookworm"]) | others


def test_record_holds_every_files_hash_and_size(row_wheel_path: Path) -> None:
    files = read_wheel(row_wheel_path)
    record = f"{ROW_DIST_INFO}/RECORD"
    rows = list(csv.reader(files[record].decode().splitlines()))
    assert [row[0] for row in rows] == [*sorted(set(files) - {record}), record]
    for name, digest, size in rows[:-1]:
        expected = base64.urlsafe_b64encode(hashlib.sha256(files[name]).digest()).decode()
        assert digest == f"sha256={expected.rstrip('=')}"
        assert int(size) == len(files[name])
    assert rows[-1] == [record, "", ""]


def test_archive_is_ordered_with_fixed_times_and_permissions(row_wheel_path: Path) -> None:
    with zipfile.ZipFile(row_wheel_path) as archive:
        entries = archive.infolist()
    names = [entry.filename for entry in entries]
    payload = [name for name in names if ".dist-info/" not in name]
    assert names[: len(payload)] == sorted(payload)
    assert names[-1] == f"{ROW_DIST_INFO}/RECORD"
    assert {entry.date_time for entry in entries} == {(1980, 1, 1, 0, 0, 0)}
    modes = {entry.filename: entry.external_attr >> 16 for entry in entries}
    assert modes[EXTENSION] == 0o100755
    assert modes["torch_mlir/cli.py"] == 0o100644


def test_failed_write_leaves_no_file(tmp_path: Path) -> None:
    with pytest.raises(TypeError):
        write_wheel(tmp_path / "a.whl", {"a.py": None}, "a.dist-info")  # type: ignore[dict-item]
    assert list(tmp_path.iterdir()) == []


def test_unknown_row_is_named_with_those_there_are(
    base_wheel: Path, packages: Packages, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert command(base_wheel, packages, tmp_path, row="9_9") == 2
    message = capsys.readouterr().err
    assert "no row '9_9'" in message and "2_13" in message


def test_row_wheel_is_no_base_wheel(
    row_wheel_path: Path, packages: Packages, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert command(row_wheel_path, packages, tmp_path) == 1
    assert "already some row's wheel" in capsys.readouterr().err


def test_base_wheel_that_auditwheel_refuses_is_not_packed(
    base_files: dict[str, bytes],
    base_wheel: Path,
    packages: Packages,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    # The extension without the library that it needs.
    files = {name: data for name, data in base_files.items() if "Aggregate" not in name}
    write_wheel(tmp_path / base_wheel.name, files, DIST_INFO)
    assert command(tmp_path / base_wheel.name, packages, tmp_path / "out") == 1
    assert "only linux_x86_64, the policy asks for manylinux_2_28" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


def test_missing_and_foreign_packages_are_named(packages: Packages, tmp_path: Path) -> None:
    names = package_names(json.loads(PARTS.read_text()))
    pins = (packages.lock, packages.debian, "bookworm")
    without = [file for file in packages.files if "ziglang" not in file.name]
    with pytest.raises(ValueError, match="no file was given of ziglang"):
        find_packages(names, without, *pins)
    foreign = tmp_path / "nanobind-99-py3-none-any.whl"
    foreign.write_bytes(b"another")
    with pytest.raises(ValueError, match="nanobind-99-py3-none-any.whl is no pinned file of"):
        find_packages(names, [*without, foreign], *pins)


def test_comment_is_found_by_its_words_and_loses_its_asterisks() -> None:
    source = "/* One. */ int a; /*\n * Two\n *   words.\n */\n/* Three words. */"
    assert comment_with(source, "Two words") == "Two\n  words.\n"
    with pytest.raises(ValueError, match="no comment holds 'Four'"):
        comment_with(source, "Four")


def test_member_must_be_one(packages: Packages) -> None:
    nanobind = next(file for file in packages.files if file.name.startswith("nanobind"))
    name, text = read_member(nanobind, "nanobind-*.dist-info/licenses/LICENSE")
    assert (name, text) == (
        "nanobind-1.dist-info/licenses/LICENSE",
        b"The terms of nanobind/LICENSE.\n",
    )
    with pytest.raises(ValueError, match="0 files match absent, not one"):
        read_member(nanobind, "absent")
