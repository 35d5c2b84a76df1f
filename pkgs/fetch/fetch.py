"""Fetches one pinned file: a wheel by its name, or a Debian package by its pool path.

The builders of ``pkgs/fetch/default.nix`` run this with the host's Python, so it
needs no more than the standard library. It names no host: a wheel comes from
the index that pip is configured with, a Debian package from the mirrors that
apt is configured with, and three variables stand in for what a host lacks
(``VARIABLES``). Whatever pip or apt would prefer, the file that is taken is the
one whose name and sha256 are pinned.

Formats: the simple index is PEP 503 (HTML) and PEP 691 (JSON); ``.deb`` is an
``ar`` archive (deb(5)) that holds ``data.tar.xz``.
"""

from __future__ import annotations

import argparse
import ast
import base64
import hashlib
import html.parser
import io
import json
import os
import re
import shutil
import ssl
import subprocess
import sys
import tarfile
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

VARIABLES = {
    "TORCH_MLIR_PYTHON": "a Python 3.9 or newer that runs the fetchers",
    "TORCH_MLIR_INDEX": "address of a simple package index (PEP 503 or 691)",
    "TORCH_MLIR_MIRROR": "address of a Debian mirror, the folder that holds pool/",
}

JSON_PAGE = "application/vnd.pypi.simple.v1+json"
ATTEMPTS = 3


class FetchError(Exception):
    """What went wrong and what to do about it, in a few lines for the user."""


def variables_help() -> str:
    """One line a variable; a daemon builds with its own environment, hence the last line."""
    lines = [f"  {name}  {meaning}" for name, meaning in VARIABLES.items()]
    lines.append("  (with a Nix daemon, set them in the daemon's environment)")
    return "\n".join(lines)


@dataclass(frozen=True)
class Pin:
    """The file that is wanted: name, sha256 in hex, and where the pin is kept."""

    file: str
    sha256: str
    data: str
    regenerate: str

    def check(self, content: Path, origin: str) -> None:
        """Raises FetchError unless `content` has the pinned sha256."""
        with open(content, "rb") as stream:
            found = sha256_of(stream)
        if found != self.sha256:
            raise FetchError(
                f"{self.file}: wrong sha256\n"
                f"  pinned in {self.data}: {self.sha256}\n"
                f"  served by {origin}: {found}\n"
                f"Either the server's copy is damaged, or the pin is; {self.regenerate} "
                "writes it anew."
            )


def sha256_of(stream: io.BufferedIOBase) -> str:
    """The sha256 of what is left in `stream`, in hex."""
    digest = hashlib.sha256()
    while block := stream.read(1 << 20):
        digest.update(block)
    return digest.hexdigest()


# --- HTTP ---------------------------------------------------------------------


def without_password(url: str) -> str:
    """`url` fit for a message: no user name, no password."""
    parts = urllib.parse.urlsplit(url)
    return urllib.parse.urlunsplit(parts._replace(netloc=parts.netloc.rpartition("@")[2]))


@dataclass(frozen=True)
class Client:
    """Opens addresses with the certificates and proxy that pip is configured with."""

    cafile: str | None = None
    client_cert: str | None = None
    proxy: str | None = None
    trusted_hosts: frozenset[str] = frozenset()
    timeout: float = 60.0

    def open(self, url: str, accept: str = "*/*") -> io.BufferedIOBase:
        """The response to a GET. Raises OSError, urllib's HTTPError and URLError among them."""
        parts = urllib.parse.urlsplit(url)
        request = urllib.request.Request(
            without_password(url), headers={"Accept": accept, "User-Agent": "torch-mlir-fetch"}
        )
        if parts.username is not None:
            user = urllib.parse.unquote(parts.username)
            password = urllib.parse.unquote(parts.password or "")
            token = base64.b64encode(f"{user}:{password}".encode()).decode()
            request.add_unredirected_header("Authorization", f"Basic {token}")
        handlers: list[urllib.request.BaseHandler] = []
        if self.proxy:
            handlers.append(urllib.request.ProxyHandler({"http": self.proxy, "https": self.proxy}))
        if parts.scheme != "file":
            context = ssl.create_default_context(cafile=self.cafile)
            if self.client_cert:
                context.load_cert_chain(self.client_cert)
            if {parts.hostname, parts.netloc.rpartition("@")[2]} & self.trusted_hosts:
                context.check_hostname = False
                context.verify_mode = ssl.CERT_NONE
            handlers.append(urllib.request.HTTPSHandler(context=context))
        return urllib.request.build_opener(*handlers).open(request, timeout=self.timeout)

    def download(self, url: str, out: Path) -> None:
        """Writes the whole content of `url` to `out`."""
        with self.open(url) as response, open(out, "wb") as stream:
            shutil.copyfileobj(response, stream, 1 << 20)


def is_passing(error: OSError) -> bool:
    """Whether asking again may help: not for a 4xx answer, a bad certificate or a missing file."""
    if isinstance(error, urllib.error.HTTPError):
        return error.code in (408, 425, 429) or error.code >= 500
    if isinstance(error, urllib.error.URLError):
        return not isinstance(error.reason, (ssl.SSLCertVerificationError, FileNotFoundError))
    return not isinstance(error, FileNotFoundError)


def attempt(action: Callable[[], None], pause: float = 1.0) -> None:
    """Calls `action`, again after a pause if it fails in a way that may pass."""
    for tries_left in reversed(range(ATTEMPTS)):
        try:
            return action()
        except OSError as error:
            if not tries_left or not is_passing(error):
                raise
            time.sleep(pause)
            pause *= 3


# --- Wheels -------------------------------------------------------------------


def parse_pip_config(listing: str) -> dict[str, str]:
    """pip's settings for a download, out of what ``pip config list`` prints.

    A line is ``section.name='value'``. The environment's section goes before the
    command's, and that before the global one.
    """
    settings: dict[str, str] = {}
    for section in ("global", "download", ":env:"):
        for line in listing.splitlines():
            key, _, value = line.partition("=")
            if key.startswith(section + ".") and value:
                text = ast.literal_eval(value)
                if text:
                    settings[key[len(section) + 1 :]] = text
    return settings


def pip_config() -> dict[str, str]:
    """The settings of this interpreter's pip; empty where there is no pip."""
    listing = subprocess.run(
        [sys.executable, "-m", "pip", "--disable-pip-version-check", "config", "list"],
        capture_output=True,
        text=True,
        check=False,
    )
    return parse_pip_config(listing.stdout) if listing.returncode == 0 else {}


def pip_default_index() -> str | None:
    """The index that pip asks when nothing is configured; None where there is no pip."""
    try:
        from pip._internal.models.index import PyPI  # noqa: PLC0415  (the host's pip)
    except ImportError:
        return None
    return PyPI.simple_url


def index_address(config: Mapping[str, str], environment: Mapping[str, str]) -> str:
    """The address of the simple index. Raises FetchError where nothing names one."""
    index = environment.get("TORCH_MLIR_INDEX") or config.get("index-url") or pip_default_index()
    if not index:
        raise FetchError(
            f"no package index: {sys.executable} has no pip and no variable names one.\n"
            f"Install pip (on Debian, python3-pip), or set\n{variables_help()}"
        )
    return index.rstrip("/")


def client_of(config: Mapping[str, str], environment: Mapping[str, str]) -> Client:
    """A client with pip's certificates, proxy, trusted hosts and patience."""
    bundle = next(
        (
            environment[name]
            for name in ("REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE")
            if environment.get(name)
        ),
        None,
    )
    return Client(
        cafile=config.get("cert") or bundle,
        client_cert=config.get("client-cert"),
        proxy=config.get("proxy"),
        trusted_hosts=frozenset(config.get("trusted-host", "").split()),
        timeout=float(config.get("timeout") or config.get("default-timeout") or 60),
    )


class _Anchors(html.parser.HTMLParser):
    """Collects the anchors of a PEP 503 page: file name -> address."""

    def __init__(self) -> None:
        super().__init__()
        self.links: dict[str, str] = {}
        self._address: str | None = None
        self._text = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag == "a":
            self._address, self._text = dict(attrs).get("href"), ""

    def handle_data(self, data: str) -> None:
        self._text += data

    def handle_endtag(self, tag: str) -> None:
        if tag == "a" and self._address:
            self.links[self._text.strip()] = self._address
            self._address = None


def parse_project_page(content: bytes, content_type: str, address: str) -> dict[str, str]:
    """File name -> absolute address, of a PEP 691 (JSON) or PEP 503 (HTML) project page."""
    if content_type.partition(";")[0].strip().endswith("json"):
        links = {entry["filename"]: entry["url"] for entry in json.loads(content)["files"]}
    else:
        anchors = _Anchors()
        anchors.feed(content.decode("utf-8", "replace"))
        links = anchors.links
    return {
        name: urllib.parse.urldefrag(urllib.parse.urljoin(address, link)).url
        for name, link in links.items()
    }


def project_files(client: Client, index: str, project: str) -> dict[str, str]:
    """File name -> address, of all files of `project` that `index` lists."""
    name = re.sub(r"[-_.]+", "-", project).lower()
    address = f"{index}/{name}/"
    page: dict[str, str] = {}

    def ask() -> None:
        # A folder of the file system has no server that would find its page.
        source = address + "index.html" if address.startswith("file:") else address
        accept = f"{JSON_PAGE}, text/html;q=0.1"
        with client.open(source, accept) as response:
            base = response.geturl()
            page.update(
                parse_project_page(response.read(), response.headers.get("Content-Type", ""), base)
            )

    try:
        attempt(ask)
    except OSError as error:
        raise FetchError(
            f"the package index does not answer for {name!r}: {without_password(address)}\n"
            f"  {error}\n"
            f"It is the one pip is configured with, unless a variable names another:\n"
            f"{variables_help()}"
        ) from error
    return page


def fetch_wheel(pin: Pin, project: str, out: Path, environment: Mapping[str, str]) -> None:
    """Writes the pinned wheel to `out`. Raises FetchError."""
    config = pip_config()
    client = client_of(config, environment)
    index = index_address(config, environment)
    files = project_files(client, index, project)
    if pin.file not in files:
        raise FetchError(
            f"{pin.file}: not among the {len(files)} files of {project!r} on "
            f"{without_password(index)}\n"
            f"It is pinned in {pin.data}. If it was withdrawn, {pin.regenerate} pins another;\n"
            f"if this index is a partial mirror, name a full one:\n{variables_help()}"
        )
    address = files[pin.file]
    try:
        attempt(lambda: client.download(address, out))
    except OSError as error:
        raise FetchError(
            f"{pin.file}: cannot be downloaded from {without_password(address)}\n  {error}"
        ) from error
    pin.check(out, without_password(address))


# --- Debian packages ------------------------------------------------------------


def parse_index_targets(listing: str) -> list[str]:
    """Repositories to try, best first, out of ``uri|component|label`` lines.

    Every archive is a candidate (the pin decides what is right); Debian's main
    archive goes first, since it holds what is pinned. The label is empty until
    ``apt-get update`` has run.
    """
    ranked: dict[str, int] = {}
    for line in listing.splitlines():
        uri, component, label = line.split("|")
        rank = {"Debian": 0, "": 1}.get(label, 2) if component == "main" else 3
        ranked[uri] = min(rank, ranked.get(uri, rank))
    return sorted(ranked, key=lambda uri: ranked[uri])


def apt_mirrors() -> list[str]:
    """The repositories that apt is configured with, best first; none without apt."""
    apt_get = shutil.which("apt-get")
    if not apt_get:
        return []
    listing = subprocess.run(
        [
            apt_get,
            "indextargets",
            "--format",
            "$(REPO_URI)|$(COMPONENT)|$(LABEL)",
            "Created-By: Packages",
        ],
        capture_output=True,
        text=True,
        check=True,
    )
    return parse_index_targets(listing.stdout)


def download_with_apt(address: str, out: Path) -> None:
    """Downloads with apt's own methods, proxies and credentials. Raises OSError."""
    helper = "/usr/lib/apt/apt-helper"
    done = subprocess.run(
        [helper, "-o", "APT::Sandbox::User=root", "download-file", address, str(out)],
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        lines = [line for line in done.stderr.splitlines() if line.startswith(("E:", "W:"))]
        raise OSError("; ".join(lines) or f"apt-helper exits with {done.returncode}")


def fetch_deb(pin: Pin, pool_path: str, out: Path, environment: Mapping[str, str]) -> None:
    """Writes the pinned Debian package to `out`. Raises FetchError."""
    named = environment.get("TORCH_MLIR_MIRROR")
    mirrors = [named] if named else apt_mirrors()
    if not mirrors:
        raise FetchError(
            f"{pin.file}: no Debian mirror: this host has no apt and no variable names one. Set\n"
            f"{variables_help()}"
        )
    failures: list[str] = []
    for mirror in mirrors:
        address = f"{mirror.rstrip('/')}/{pool_path}"
        try:
            if named:
                client = client_of({}, environment)
                attempt(lambda: client.download(address, out))  # noqa: B023  (called at once)
            else:
                attempt(lambda: download_with_apt(address, out))  # noqa: B023
        except OSError as error:
            failures.append(f"  {without_password(address)}: {error}")
            continue
        return pin.check(out, without_password(address))
    raise FetchError(
        f"{pin.file}: no mirror has it or can be reached\n"
        + "\n".join(failures)
        + f"\nIt is pinned in {pin.data}; {pin.regenerate} pins what is current. Another mirror:\n"
        + variables_help()
    )


def ar_members(archive: bytes) -> Iterator[tuple[str, bytes]]:
    """Name and content of each member of an ``ar`` archive (deb(5), common format)."""
    if archive[:8] != b"!<arch>\n":
        raise FetchError("not an ar archive, so not a Debian package")
    offset = 8
    while offset < len(archive):
        header = archive[offset : offset + 60]
        size = int(header[48:58])
        offset += 60
        yield header[:16].decode().strip().rstrip("/"), archive[offset : offset + size]
        offset += size + size % 2


def extract_program(deb: Path, member: str, folder: Path) -> None:
    """Puts one program of a Debian package in ``folder/bin``.

    This is how the first program gets into the store: there is none yet to
    unpack it with.
    """
    data = dict(ar_members(deb.read_bytes()))["data.tar.xz"]
    with tarfile.open(fileobj=io.BytesIO(data), mode="r:xz") as tar:
        source = tar.extractfile(member)
        if source is None:
            raise FetchError(f"{deb.name}: {member} is not a regular file")
        program = folder / "bin" / Path(member).name
        program.parent.mkdir(parents=True)
        program.write_bytes(source.read())
        program.chmod(0o555)


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs one fetch; exit code 1, and the reason on stderr, if it fails."""
    parser = argparse.ArgumentParser(
        description=__doc__.splitlines()[0],
        epilog="variables:\n" + variables_help(),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--sha256", required=True, help="of the file, in hex")
    parser.add_argument("--data", required=True, help="file that holds the pin, for messages")
    parser.add_argument("--regenerate", required=True, help="what writes that file")
    parser.add_argument("-o", "--out", required=True, type=Path)
    commands = parser.add_subparsers(dest="command", required=True)
    wheel = commands.add_parser("wheel", help="a wheel of a project")
    wheel.add_argument("project")
    wheel.add_argument("file")
    deb = commands.add_parser("deb", help="a Debian package by its pool path")
    deb.add_argument("path")
    program = commands.add_parser("program", help="one program of a Debian package")
    program.add_argument("path")
    program.add_argument("member")
    args = parser.parse_args(arguments)

    name = args.file if args.command == "wheel" else args.path.rpartition("/")[2]
    pin = Pin(name, args.sha256, args.data, args.regenerate)
    try:
        if args.command == "wheel":
            fetch_wheel(pin, args.project, args.out, os.environ)
        elif args.command == "deb":
            fetch_deb(pin, args.path, args.out, os.environ)
        else:
            package = Path("package.deb").absolute()
            fetch_deb(pin, args.path, package, os.environ)
            extract_program(package, args.member, args.out)
    except FetchError as error:
        print(f"fetch: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
