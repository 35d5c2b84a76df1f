"""pkgs/fetch/fetch.py: against an index and a mirror on the loopback address."""

from __future__ import annotations

import hashlib
import http.server
import importlib.util
import io
import json
import subprocess
import sys
import tarfile
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

PROGRAM = Path(__file__).resolve().parents[3] / "pkgs/fetch/fetch.py"
_spec = importlib.util.spec_from_file_location("fetch", PROGRAM)
fetch = importlib.util.module_from_spec(_spec)
sys.modules["fetch"] = fetch
_spec.loader.exec_module(fetch)

WHEEL = "demo_pkg-1.0-py3-none-any.whl"
CONTENT = b"the pinned wheel"
SHA256 = hashlib.sha256(CONTENT).hexdigest()


@dataclass
class Server:
    """What a server answers: path -> (status, content type, body), in order, the last for ever."""

    answers: dict[str, list[tuple[int, str, bytes]]] = field(default_factory=dict)
    asked: list[tuple[str, dict[str, str]]] = field(default_factory=list)
    address: str = ""

    def answer(self, path: str, body: bytes, kind: str = "text/html", status: int = 200) -> None:
        self.answers.setdefault(path, []).append((status, kind, body))

    def json_page(self, *files: tuple[str, str]) -> None:
        """Lists `files` (name, address) as the project demo-pkg, in PEP 691's form."""
        page = {"files": [{"filename": name, "url": url, "hashes": {}} for name, url in files]}
        self.answer("/simple/demo-pkg/", json.dumps(page).encode(), fetch.JSON_PAGE)


@pytest.fixture
def server() -> Iterator[Server]:
    state = Server()

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:  # noqa: N802  (http.server calls it so)
            state.asked.append((self.path, dict(self.headers)))
            queue = state.answers.get(self.path, [(404, "text/plain", b"no such file")])
            status, kind, body = queue.pop(0) if len(queue) > 1 else queue[0]
            self.send_response(status)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            pass

    httpd = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    state.address = f"http://127.0.0.1:{httpd.server_port}"
    threading.Thread(target=httpd.serve_forever, daemon=True).start()
    yield state
    httpd.shutdown()
    httpd.server_close()


@pytest.fixture(autouse=True)
def short_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fetch.time, "sleep", lambda seconds: None)


@pytest.fixture(autouse=True)
def no_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("no_proxy", "127.0.0.1")


def wheel(server: Server, out: Path, sha256: str = SHA256, **environment: str) -> None:
    pin = fetch.Pin(WHEEL, sha256, "poetry.lock", "pkgs/lock/regenerate.py")
    environment.setdefault("TORCH_MLIR_INDEX", server.address + "/simple")
    fetch.fetch_wheel(pin, "Demo.Pkg", out, environment)


def test_takes_the_pinned_name_among_newer_and_local_builds(server: Server, tmp_path: Path) -> None:
    server.json_page(
        ("demo_pkg-2.0-py3-none-any.whl", "/files/newer"),
        ("demo_pkg-1.0+cpu-py3-none-any.whl", "/files/cpu"),
        (WHEEL, "/files/pinned"),
    )
    server.answer("/files/pinned", CONTENT)
    server.answer("/files/newer", b"newer")
    server.answer("/files/cpu", b"cpu")
    wheel(server, tmp_path / "out")
    assert (tmp_path / "out").read_bytes() == CONTENT
    assert [path for path, _ in server.asked] == ["/simple/demo-pkg/", "/files/pinned"]


def test_reads_an_html_index_with_relative_links_and_fragments(
    server: Server, tmp_path: Path
) -> None:
    page = f'<html><a href="../../f/{WHEEL}#sha256=0000">{WHEEL}</a></html>'
    server.answer("/simple/demo-pkg/", page.encode())
    server.answer(f"/f/{WHEEL}", CONTENT)
    wheel(server, tmp_path / "out")
    assert (tmp_path / "out").read_bytes() == CONTENT


def test_reads_an_index_that_is_a_folder(server: Server, tmp_path: Path) -> None:
    project = tmp_path / "simple/demo-pkg"
    project.mkdir(parents=True)
    (project / "index.html").write_text(f'<a href="{WHEEL}">{WHEEL}</a>')
    (project / WHEEL).write_bytes(CONTENT)
    wheel(server, tmp_path / "out", TORCH_MLIR_INDEX=(tmp_path / "simple").as_uri())
    assert (tmp_path / "out").read_bytes() == CONTENT


@pytest.mark.parametrize(
    ("setting", "value"),
    [
        ("PIP_FIND_LINKS", "{folder}"),
        ("PIP_EXTRA_INDEX_URL", "file://{folder}/simple"),
        ("PIP_CONSTRAINT", "{folder}/constraints.txt"),
    ],
)
def test_what_pip_prefers_changes_nothing(
    server: Server, tmp_path: Path, setting: str, value: str
) -> None:
    (tmp_path / WHEEL).write_bytes(b"another build of the same name")
    (tmp_path / "simple/demo-pkg").mkdir(parents=True)
    (tmp_path / "simple/demo-pkg/index.html").write_text(f'<a href="../../{WHEEL}">{WHEEL}</a>')
    (tmp_path / "constraints.txt").write_text("demo-pkg<1\n")
    server.json_page((WHEEL, "/files/pinned"))
    server.answer("/files/pinned", CONTENT)
    environment = {
        "PATH": "/usr/bin:/bin",
        "PIP_CONFIG_FILE": "/dev/null",
        "PIP_INDEX_URL": server.address + "/simple/",
        "no_proxy": "127.0.0.1",
        setting: value.format(folder=tmp_path),
    }
    done = subprocess.run(
        [
            sys.executable,
            PROGRAM,
            *("--sha256", SHA256, "--data", "poetry.lock", "--regenerate", "x"),
            *("-o", tmp_path / "out", "wheel", "demo-pkg", WHEEL),
        ],
        env=environment
        if has_pip()
        else environment | {"TORCH_MLIR_INDEX": server.address + "/simple"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stderr == ""
    assert (tmp_path / "out").read_bytes() == CONTENT


def has_pip() -> bool:
    return importlib.util.find_spec("pip") is not None


def test_wrong_hash_names_file_pin_and_what_to_run(server: Server, tmp_path: Path) -> None:
    server.json_page((WHEEL, "/files/pinned"))
    server.answer("/files/pinned", b"something else")
    with pytest.raises(fetch.FetchError) as caught:
        wheel(server, tmp_path / "out")
    message = str(caught.value)
    assert message.startswith(f"{WHEEL}: wrong sha256\n")
    assert f"pinned in poetry.lock: {SHA256}" in message
    assert hashlib.sha256(b"something else").hexdigest() in message
    assert "pkgs/lock/regenerate.py" in message


def test_withdrawn_file_names_index_and_variables(server: Server, tmp_path: Path) -> None:
    server.json_page(("demo_pkg-2.0-py3-none-any.whl", "/files/newer"))
    with pytest.raises(fetch.FetchError) as caught:
        wheel(server, tmp_path / "out")
    message = str(caught.value)
    assert f"{WHEEL}: not among the 1 files of 'Demo.Pkg' on {server.address}/simple" in message
    assert "pkgs/lock/regenerate.py" in message
    assert all(name in message for name in fetch.VARIABLES)


def test_unreachable_index_says_which_and_lists_the_variables(
    server: Server, tmp_path: Path
) -> None:
    with pytest.raises(fetch.FetchError) as caught:
        wheel(server, tmp_path / "out", TORCH_MLIR_INDEX="http://127.0.0.1:1/simple")
    message = str(caught.value)
    assert "does not answer for 'demo-pkg': http://127.0.0.1:1/simple/demo-pkg/" in message
    assert all(name in message for name in fetch.VARIABLES)


def test_messages_hide_passwords_but_the_server_gets_them(server: Server, tmp_path: Path) -> None:
    index = server.address.replace("http://", "http://user:s3cret@") + "/simple"
    with pytest.raises(fetch.FetchError) as caught:
        wheel(server, tmp_path / "out", TORCH_MLIR_INDEX=index)
    assert "s3cret" not in str(caught.value)
    assert server.asked[0][1]["Authorization"] == "Basic dXNlcjpzM2NyZXQ="


def test_asks_again_after_a_server_error(server: Server, tmp_path: Path) -> None:
    server.answer("/simple/demo-pkg/", b"busy", status=503)
    server.json_page((WHEEL, "/files/pinned"))
    server.answer("/files/pinned", b"busy", status=502)
    server.answer("/files/pinned", CONTENT)
    wheel(server, tmp_path / "out")
    assert (tmp_path / "out").read_bytes() == CONTENT


def test_does_not_ask_again_for_what_is_not_there(server: Server, tmp_path: Path) -> None:
    with pytest.raises(fetch.FetchError):
        wheel(server, tmp_path / "out")
    assert len(server.asked) == 1


def test_without_pip_and_variable_lists_the_variables(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fetch, "pip_default_index", lambda: None)
    with pytest.raises(fetch.FetchError) as caught:
        fetch.index_address({}, {})
    assert "no package index" in str(caught.value)
    assert all(name in str(caught.value) for name in fetch.VARIABLES)


def test_pip_settings_the_environment_goes_before_files() -> None:
    listing = (
        ":env:.index-url='https://env.example/simple'\n"
        ":env:.cert=''\n"
        "download.index-url='https://download.example/simple'\n"
        "global.cert='/etc/ca.pem'\n"
        "global.index-url='https://global.example/simple'\n"
    )
    settings = fetch.parse_pip_config(listing)
    assert settings == {"index-url": "https://env.example/simple", "cert": "/etc/ca.pem"}
    assert fetch.index_address(settings, {}) == "https://env.example/simple"
    named = {"TORCH_MLIR_INDEX": "https://named.example/simple/"}
    assert fetch.index_address(settings, named) == "https://named.example/simple"


def test_client_has_pips_certificate_proxy_and_trusted_hosts() -> None:
    client = fetch.client_of(
        {"cert": "/ca.pem", "proxy": "http://p:1", "trusted-host": "a b:8", "timeout": "7"}, {}
    )
    assert (client.cafile, client.proxy, client.timeout) == ("/ca.pem", "http://p:1", 7.0)
    assert client.trusted_hosts == {"a", "b:8"}
    assert fetch.client_of({}, {"CURL_CA_BUNDLE": "/curl.pem"}).cafile == "/curl.pem"


# --- Debian ---------------------------------------------------------------------


def make_deb(program: bytes) -> bytes:
    """A Debian package with one program, ./bin/tool."""
    data = io.BytesIO()
    with tarfile.open(fileobj=data, mode="w:xz") as tar:
        entry = tarfile.TarInfo("./bin/tool")
        entry.size = len(program)
        tar.addfile(entry, io.BytesIO(program))
    archive = b"!<arch>\n"
    for name, content in [("debian-binary", b"2.0\n\n"), ("data.tar.xz", data.getvalue())]:
        header = f"{name:<16}{0:<12}{0:<6}{0:<6}{'100644':<8}{len(content):<10}`\n"
        archive += header.encode() + content + b"\n" * (len(content) % 2)
    return archive


def test_deb_comes_from_the_named_mirror(server: Server, tmp_path: Path) -> None:
    server.answer("/debian/pool/main/t/tool_1.deb", CONTENT)
    pin = fetch.Pin("tool_1.deb", SHA256, "debian.json", "regenerate.py")
    mirror = {"TORCH_MLIR_MIRROR": server.address + "/debian/"}
    fetch.fetch_deb(pin, "pool/main/t/tool_1.deb", tmp_path / "out", mirror)
    assert (tmp_path / "out").read_bytes() == CONTENT


def test_deb_is_sought_on_every_repository(
    server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    server.answer("/second/pool/tool_1.deb", CONTENT)
    monkeypatch.setattr(
        fetch, "apt_mirrors", lambda: [server.address + "/first", server.address + "/second"]
    )
    monkeypatch.setattr(fetch, "download_with_apt", fetch.Client().download)
    pin = fetch.Pin("tool_1.deb", SHA256, "debian.json", "regenerate.py")
    fetch.fetch_deb(pin, "pool/tool_1.deb", tmp_path / "out", {})
    assert (tmp_path / "out").read_bytes() == CONTENT
    assert [path for path, _ in server.asked] == [
        "/first/pool/tool_1.deb",
        "/second/pool/tool_1.deb",
    ]


def test_unreachable_mirror_lists_what_was_tried_and_the_variables(tmp_path: Path) -> None:
    pin = fetch.Pin("tool_1.deb", SHA256, "debian.json", "regenerate.py")
    mirror = {"TORCH_MLIR_MIRROR": "http://127.0.0.1:1/debian"}
    with pytest.raises(fetch.FetchError) as caught:
        fetch.fetch_deb(pin, "pool/tool_1.deb", tmp_path / "out", mirror)
    message = str(caught.value)
    assert "http://127.0.0.1:1/debian/pool/tool_1.deb: " in message
    assert "pinned in debian.json; regenerate.py pins what is current" in message
    assert all(name in message for name in fetch.VARIABLES)


def test_host_without_apt_lists_the_variables(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fetch.shutil, "which", lambda program: None)
    pin = fetch.Pin("tool_1.deb", SHA256, "debian.json", "regenerate.py")
    with pytest.raises(fetch.FetchError) as caught:
        fetch.fetch_deb(pin, "pool/tool_1.deb", tmp_path / "out", {})
    assert "this host has no apt" in str(caught.value)
    assert all(name in str(caught.value) for name in fetch.VARIABLES)


def test_main_archive_goes_first_whatever_its_place() -> None:
    listing = (
        "https://third.example/apt|main|Other\n"
        "http://mirror.example/debian-security/|main|Debian-Security\n"
        "http://mirror.example/debian/|contrib|Debian\n"
        "http://mirror.example/debian/|main|Debian\n"
    )
    assert fetch.parse_index_targets(listing) == [
        "http://mirror.example/debian/",
        "https://third.example/apt",
        "http://mirror.example/debian-security/",
    ]


def test_program_is_taken_out_of_its_package(server: Server, tmp_path: Path) -> None:
    deb = tmp_path / "tool.deb"
    deb.write_bytes(make_deb(b"\x7fELF program"))
    fetch.extract_program(deb, "./bin/tool", tmp_path / "out")
    assert (tmp_path / "out/bin/tool").read_bytes() == b"\x7fELF program"
    assert (tmp_path / "out/bin/tool").stat().st_mode & 0o777 == 0o555


def test_what_is_no_debian_package_is_refused(tmp_path: Path) -> None:
    (tmp_path / "page.html").write_bytes(b"<html>please log in</html>")
    with pytest.raises(fetch.FetchError, match="not an ar archive"):
        fetch.extract_program(tmp_path / "page.html", "./bin/tool", tmp_path / "out")


def test_command_line_fails_with_the_reason_and_no_traceback(tmp_path: Path) -> None:
    done = subprocess.run(
        [
            sys.executable,
            PROGRAM,
            *("--sha256", SHA256, "--data", "d.json", "--regenerate", "r.py"),
            *("-o", tmp_path / "out", "deb", "pool/tool_1.deb"),
        ],
        env={"TORCH_MLIR_MIRROR": "http://127.0.0.1:1", "no_proxy": "127.0.0.1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1
    assert done.stderr.startswith("fetch: tool_1.deb: no mirror has it or can be reached\n")
    assert "Traceback" not in done.stderr
