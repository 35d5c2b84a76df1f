"""What `./bootstrap` says on machines that it can't work on, each played by stand-ins on PATH."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]

# What the script may call of any POSIX system; all that decides is played.
COMMON = """
    sh awk cat chmod cut cp dirname env grep head id mkdir mktemp mv nproc paste printf readlink rm
    sed sleep sort tail
"""


class Machine:
    """A PATH that holds common tools and stand-ins, and the script run on it."""

    def __init__(self, folder: Path) -> None:
        self.bin = folder / "bin"
        self.bin.mkdir()
        for tool in COMMON.split():
            found = shutil.which(tool)
            if found:
                (self.bin / tool).symlink_to(found)
        self.log = folder / "log"
        self.log.touch()
        self.play("uname", '[ "$1" = -s ] && echo Linux || echo x86_64')
        self.play("nix", '[ "$1" != --version ] || echo "nix (Nix) 2.8.0"')
        self.play("git")
        self.play("id", "[ $1 = -u ] && echo 0 || echo root")
        self.play("getent")
        self.play("unshare")
        self.play("mountpoint")
        self.play("df", "printf 'h\\nd 0 0 104857600 0 /\\n'")
        # The script then asks no Python for pip.
        self.variables = {"TORCH_MLIR_PYTHON": "python3", "SSL_CERT_FILE": "certificates"}

    def play(self, name: str, script: str = ":") -> None:
        """Puts a stand-in on PATH; what it is called with goes to the log."""
        program = self.bin / name
        program.unlink(missing_ok=True)
        program.write_text(f'#!/bin/sh\necho "{name} $*" >>"{self.log}"\n{script}\n')
        program.chmod(0o755)

    def lose(self, name: str) -> None:
        """Takes a program off PATH."""
        (self.bin / name).unlink(missing_ok=True)

    def run(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [str(ROOT / "bootstrap"), *arguments],
            env={"PATH": str(self.bin), **self.variables},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
            timeout=60,
        )

    def refuses(self, *arguments: str, code: int = 1) -> str:
        """Runs the script, which must end with `code` and tell why on stderr alone."""
        done = self.run(*arguments)
        assert (done.returncode, done.stdout) == (code, ""), done
        return done.stderr

    @property
    def calls(self) -> list[str]:
        return self.log.read_text().splitlines()


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path)


def test_a_machine_with_all_it_needs_gets_nix_with_the_options(machine: Machine) -> None:
    machine.play(
        "nix",
        '[ "$1" = --version ] && echo "nix (Nix) 2.26.3" || printf "%s\\n" "$NIX_CONFIG" "$*"',
    )
    done = machine.run("nix", "build", "--help")
    assert done.returncode == 0, done.stderr
    for option in (
        "extra-experimental-features = nix-command flakes",
        "sandbox = relaxed",
        "sandbox-fallback = false",
        "sandbox-paths =",
        "build-users-group =",
    ):
        assert option in done.stdout.splitlines()
    assert done.stdout.endswith("\nbuild --help\n")


def test_build_users_are_used_where_there_are_some(machine: Machine) -> None:
    machine.play("getent", "echo nixbld:x:30000:nixbld1,nixbld2")
    machine.play("nix", '[ "$1" = --version ] && echo "nix (Nix) 2.26.3" || echo "$NIX_CONFIG"')
    assert "build-users-group" not in machine.run("nix", "build").stdout


def test_the_callers_nix_options_come_last(machine: Machine) -> None:
    machine.variables["NIX_CONFIG"] = "max-jobs = 7"
    machine.play("nix", '[ "$1" = --version ] && echo "nix (Nix) 2.26.3" || echo "$NIX_CONFIG"')
    assert machine.run("nix", "build").stdout.splitlines()[-1] == "max-jobs = 7"


def test_macos_is_told_where_to_go(machine: Machine) -> None:
    machine.play("uname", '[ "$1" = -s ] && echo Darwin || echo arm64')
    message = machine.refuses("demo")
    assert "macOS can't build these manylinux wheels" in message
    assert "Use a Linux x86_64 machine" in message


@pytest.mark.parametrize("architecture", ["aarch64", "i686"])
def test_another_architecture_is_named(machine: Machine, architecture: str) -> None:
    machine.play("uname", f'[ "$1" = -s ] && echo Linux || echo {architecture}')
    message = machine.refuses("build", "2_13")
    assert f"this machine is {architecture}" in message
    assert "Use a Linux x86_64 machine" in message
    assert not any(call.startswith("nix") for call in machine.calls)


@pytest.mark.parametrize("version", ["2.3.7", "2.7.0"])
def test_an_old_nix_is_named_with_the_oldest_that_works(machine: Machine, version: str) -> None:
    machine.play("nix", f'echo "nix (Nix) {version}"')
    message = machine.refuses("demo")
    assert f"Nix {version} ({machine.bin}/nix) is too old: 2.8 is the oldest that works" in message
    assert "apt-get install nix-bin" in message


@pytest.mark.parametrize(
    "line", ["nix (Nix) 2.8.0", "nix (Nix) 2.31.2", "nix (Lix, like Nix) 2.91.1", "nix (Nix) 3.0"]
)
def test_newer_nix_versions_are_taken(machine: Machine, line: str) -> None:
    machine.play("nix", f'[ "$1" != --version ] || echo "{line}"')
    done = machine.run("nix", "build")
    assert done.returncode == 0, done.stderr


def test_something_else_called_nix_is_named(machine: Machine) -> None:
    machine.play("nix", "echo pandoc")
    assert "does not tell its version: pandoc" in machine.refuses("demo")


def test_without_apt_the_tools_and_variables_are_listed(machine: Machine) -> None:
    machine.lose("nix")
    del machine.variables["TORCH_MLIR_PYTHON"]
    message = machine.refuses("demo")
    assert "nix-bin" in message
    for word in ("nix ", "git", "python3", *(f"TORCH_MLIR_{v}" for v in ("MIRROR", "INDEX"))):
        assert word in message


def test_missing_packages_are_installed_without_questions(machine: Machine) -> None:
    machine.lose("nix")
    machine.lose("git")
    # apt "installs" a Nix.
    machine.play(
        "apt-get",
        f"""case "$*" in *install*)
          [ "$DEBIAN_FRONTEND" = noninteractive ] || exit 9
          printf '#!/bin/sh\\necho "nix (Nix) 2.8.0"\\n' >{machine.bin}/nix
          chmod +x {machine.bin}/nix;; esac""",
    )
    done = machine.run("nix", "build")
    assert done.returncode == 0, done.stderr
    assert "Installing nix-bin git" in done.stderr
    update, install = [call for call in machine.calls if call.startswith("apt-get")]
    assert update.endswith(" update")
    assert install.endswith("install --no-install-recommends -y nix-bin git")


def test_a_missing_network_is_named_when_apt_can_install_nothing(machine: Machine) -> None:
    machine.lose("git")
    # An unreachable mirror is but a warning of `apt-get update`.
    machine.play(
        "apt-get",
        """echo 'W: Failed to fetch the list  Could not resolve the name' >&2
        case "$*" in *install*) echo 'E: no candidate' >&2; exit 100;; esac""",
    )
    message = machine.refuses("demo")
    assert "Could not resolve the name" in message
    assert "is there a network?" in message
    assert "/etc/apt/sources.list" in message


def test_one_dead_repository_does_not_keep_apt_from_installing(machine: Machine) -> None:
    machine.lose("git")
    machine.play("apt-get", "echo 'W: Failed to fetch the list  Could not resolve the name' >&2")
    done = machine.run("nix", "build")
    assert done.returncode == 0, done.stderr
    assert "Could not resolve the name" in done.stderr


def test_what_apt_says_is_shown_when_it_fails(machine: Machine) -> None:
    machine.lose("git")
    machine.play("apt-get", 'case "$*" in *install*) echo "E: no candidate" >&2; exit 100;; esac')
    message = machine.refuses("demo")
    assert "E: no candidate" in message
    assert "apt-get could not install git" in message
    assert "is there a network?" not in message


def test_another_apt_is_waited_for(machine: Machine) -> None:
    machine.lose("git")
    machine.play("sleep")
    busy = machine.bin.parent / "busy"
    busy.touch()
    machine.play(
        "apt-get",
        f'[ ! -e {busy} ] || {{ rm {busy}; echo "E: Could not get lock /l" >&2; exit 100; }}',
    )
    done = machine.run("nix", "build")
    assert done.returncode == 0, done.stderr
    assert "Waiting for another apt to finish" in done.stderr


def test_installing_as_nobody_without_sudo_names_the_command(machine: Machine) -> None:
    machine.play("id", "[ $1 = -u ] && echo 1000 || echo ada")
    machine.lose("nix")
    machine.play("apt-get")
    message = machine.refuses("demo")
    assert "installing nix-bin needs root, and there is no sudo" in message
    assert "apt-get install nix-bin" in message


def test_a_user_whom_nix_does_not_trust_is_told_what_to_ask_for(machine: Machine) -> None:
    machine.play("id", "[ $1 = -u ] && echo 1000 || echo ada")
    machine.variables["NIX_STATE_DIR"] = str(machine.bin.parent / "no-store")
    message = machine.refuses("demo")
    assert "does not trust ada, and there is no sudo" in message
    assert "trusted-users = root ada" in message


def test_a_plain_chroot_is_told_of_pivot_root(machine: Machine) -> None:
    machine.play("mountpoint", "exit 1")
    message = machine.refuses("demo")
    assert "plain chroot" in message
    assert "pkgs/checks/debian/root.sh run" in message


def test_a_container_without_namespaces_is_told_how_to_start(machine: Machine) -> None:
    machine.play("unshare", "exit 1")
    message = machine.refuses("demo")
    assert "make namespaces" in message
    assert "--privileged" in message


def test_a_full_disk_is_told_before_the_build(machine: Machine, tmp_path: Path) -> None:
    # A tree of its own: the real one may have been built already.
    tree = tmp_path / "tree"
    tree.mkdir()
    shutil.copy(ROOT / "bootstrap", tree)
    machine.play("df", "printf 'h\\nd 0 0 3145728 0 /\\n'")
    done = subprocess.run(
        [str(tree / "bootstrap"), "demo"],
        env={"PATH": str(machine.bin), **machine.variables},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1
    assert "3 GiB are free for the Nix store" in done.stderr


def test_a_failed_build_ends_in_an_error_of_one_line(machine: Machine) -> None:
    machine.play(
        "nix",
        '[ "$1" = --version ] && echo "nix (Nix) 2.8.0" || { echo "error: hash" >&2; exit 1; }',
    )
    message = machine.refuses("build", "2_13", "-o", str(machine.bin.parent / "out"))
    assert "error: hash" in message
    assert "bootstrap: the build failed, see above." in message
    assert not (machine.bin.parent / "out").exists()


def test_an_unknown_row_is_answered_with_the_rows(machine: Machine) -> None:
    message = machine.refuses("build", "9_9", code=2)
    rows = json.loads((ROOT / "pkgs/matrix/rows.json").read_text())
    assert "no row '9_9'" in message
    assert f"The rows: {' '.join(rows)}\n" in message


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("fly",), "unknown command 'fly'"),
        (("demo", "--fast"), "unknown option --fast"),
        (("demo", "2_13"), "demo takes no argument: 2_13"),
        (("test", "x"), "test takes no argument: x"),
        (("build",), "build: which row?"),
        (("build", "-o"), "-o wants a folder"),
    ],
)
def test_misuse_ends_with_2(machine: Machine, arguments: tuple[str, ...], message: str) -> None:
    assert message in machine.refuses(*arguments, code=2)


def test_no_command_shows_the_usage_and_ends_with_2(machine: Machine) -> None:
    assert machine.refuses(code=2).startswith("usage: ./bootstrap")


def test_help_goes_to_standard_output(machine: Machine) -> None:
    done = machine.run("--help")
    assert (done.returncode, done.stderr) == (0, "")
    for word in ("demo", "test", "build", "nix", "--version", "TORCH_MLIR_MIRROR"):
        assert word in done.stdout
    assert machine.run("demo", "--help").stdout == done.stdout


def test_version_is_the_packages(machine: Machine) -> None:
    version = (ROOT / "torch_mlir/version.py").read_text()
    assert f'__version__ = "{machine.run("--version").stdout.strip()}"' in version
