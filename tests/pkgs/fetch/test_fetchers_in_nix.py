"""The fetchers and the flake as Nix runs them: what they say when something is wrong."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
# With a daemon, the builders get the daemon's variables instead of the test's.
pytestmark = pytest.mark.skipif(
    shutil.which("nix") is None or os.geteuid() != 0 or os.environ.get("NIX_REMOTE") == "daemon",
    reason="needs root and a Nix without a daemon",
)


def nix(*arguments: str, sandbox: str = "relaxed", **environment: str) -> str:
    """What Nix prints on stderr, failing as it must."""
    done = subprocess.run(
        [
            "nix",
            *("--extra-experimental-features", "nix-command flakes"),
            *("--option", "sandbox", sandbox, "--option", "sandbox-fallback", "false"),
            *("--option", "substitute", "false"),
            *arguments,
        ],
        env=os.environ | environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode != 0
    return done.stderr


def fetch_wheel(sha256: str, **environment: str) -> str:
    """Fetches a wheel pinned with `sha256`, of a project that the tests' index has."""
    expression = f"""
      let fetch = import {ROOT}/pkgs/fetch {{ system = "x86_64-linux"; }};
      in fetch.fetchWheel {{
        name = "demo-pkg"; file = "demo_pkg-1.0-py3-none-any.whl"; sha256 = "{sha256}";
      }}
    """
    return nix("build", "--no-link", "-L", "--impure", "--expr", expression, **environment)


@pytest.fixture
def index(tmp_path: Path) -> str:
    """A simple index in a folder, readable for Nix's build users."""
    project = tmp_path / "simple/demo-pkg"
    project.mkdir(parents=True)
    name = "demo_pkg-1.0-py3-none-any.whl"
    (project / "index.html").write_text(f'<a href="{name}">{name}</a>')
    (project / name).write_bytes(b"what the index has")
    for folder in (tmp_path, *tmp_path.parents):
        if folder.stat().st_uid == os.geteuid() and folder != Path("/"):
            folder.chmod(folder.stat().st_mode | 0o055)
    return (tmp_path / "simple").as_uri()


def test_wrong_hash(index: str) -> None:
    message = fetch_wheel("0" * 64, TORCH_MLIR_INDEX=index)
    assert "demo_pkg-1.0-py3-none-any.whl: wrong sha256" in message
    assert f"pinned in poetry.lock: {'0' * 64}" in message
    assert hashlib.sha256(b"what the index has").hexdigest() in message
    assert "pkgs/lock/regenerate.py" in message


def test_unreachable_index() -> None:
    message = fetch_wheel("1" * 64, TORCH_MLIR_INDEX="http://127.0.0.1:1/simple")
    assert "http://127.0.0.1:1/simple/demo-pkg/" in message
    assert "TORCH_MLIR_MIRROR" in message


def test_no_python() -> None:
    message = fetch_wheel("2" * 64, TORCH_MLIR_PYTHON="/nowhere/python3")
    assert "no Python 3 on this host" in message
    assert "there is no program /nowhere/python3" in message
    assert "TORCH_MLIR_INDEX" in message


def test_unreachable_mirror() -> None:
    expression = f"""
      (import {ROOT}/pkgs/fetch {{ system = "x86_64-linux"; }}).fetchDebPin {{
        path = "pool/main/t/tool/tool_1_amd64.deb"; sha256 = "{"3" * 64}";
      }}
    """
    message = nix(
        *("build", "--no-link", "-L", "--impure", "--expr", expression),
        TORCH_MLIR_MIRROR="http://127.0.0.1:1/debian",
    )
    assert "http://127.0.0.1:1/debian/pool/main/t/tool/tool_1_amd64.deb" in message
    assert "pkgs/fetch/regenerate.py" in message


def test_sandbox_that_lets_no_fetcher_run() -> None:
    expression = f"""
      (import {ROOT}/pkgs/fetch {{ system = "x86_64-linux"; }}).fetchDebPin {{
        path = "pool/main/t/tool/tool_2_amd64.deb"; sha256 = "{"4" * 64}";
      }}
    """
    message = nix("build", "--no-link", "--impure", "--expr", expression, sandbox="true")
    assert "'__noChroot' set, but that's not allowed when 'sandbox' is 'true'" in message


def test_unknown_row() -> None:
    message = nix("build", "--no-link", f"{ROOT}#wheel-torch9_9")
    assert "does not provide attribute 'packages.x86_64-linux.wheel-torch9_9'" in message
    assert "wheel-torch2_" in message


def test_foreign_system() -> None:
    message = nix(
        "build", "--no-link", "-L", "--option", "system", "aarch64-linux", f"{ROOT}#wheel-torch2_13"
    )
    assert "wheels are built for and on x86_64-linux, and this is aarch64-linux" in message
    assert "x86_64 Debian container" in message
