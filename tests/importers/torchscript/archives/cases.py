# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What a TorchScript test archive is: a program, and arguments to call its methods with."""

import io
import zipfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import torch

CASES: dict[str, "Case"] = {}


def version_of(text: str) -> tuple[int, ...]:
    """`(2, 13)` of `2.13.0+cpu`."""
    return tuple(int(part) for part in text.split(".")[:2])


@dataclass(frozen=True)
class Case:
    """A program that PyTorch writes as a TorchScript archive.

    Attributes:
        name: unique among all cases.
        make: builds the program.
        calls: for each exported method, the arguments of the calls to compare.
        since: the first PyTorch that can write it.
        before: the first PyTorch that can't any more, if there is one.
        needs: an attribute of torch without which it can't be written, e.g. `ao.quantization`.
        refused: what the importer's error says, where importing it as it is has to fail.
        functional: whether it has a form on values; otherwise what the error is about.
        seeded: its results are random numbers, equal for equal seeds.
        device: where its tensors lie by what the archive says.
    """

    name: str
    make: Callable[[], Any]
    calls: dict[str, Sequence[tuple[Any, ...]]]
    since: str = "2.0"
    before: str | None = None
    needs: str | None = None
    refused: str | None = None
    functional: bool | str = True
    seeded: bool = False
    device: str = "cpu"
    extra_files: dict[str, str] = field(default_factory=dict)

    def unavailable(self) -> str | None:
        """Why the installed PyTorch can't write it; None if it can."""
        installed = version_of(torch.__version__)
        if installed < version_of(self.since):
            return f"needs PyTorch {self.since} or newer"
        if self.before is not None and installed >= version_of(self.before):
            return f"needs PyTorch before {self.before}"
        found: Any = torch
        for part in (self.needs or "").split("."):
            if part and not hasattr(found, part):
                return f"this PyTorch has no torch.{self.needs}"
            found = getattr(found, part) if part else found
        return None

    def archive(self) -> bytes:
        """The archive, as the installed PyTorch writes it; the same weights each time."""
        torch.manual_seed(0)
        buffer = io.BytesIO()
        torch.jit.save(self.make(), buffer, _extra_files=dict(self.extra_files))
        return moved(buffer.getvalue(), self.device)


def moved(archive: bytes, device: str) -> bytes:
    """An archive as a machine with that device writes it: a storage's pickle names the device."""
    if device == "cpu":
        return archive

    def text(value: str) -> bytes:
        # The opcode BINUNICODE, see pickletools.
        return b"X" + len(value).to_bytes(4, "little") + value.encode()

    buffer = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(archive)) as old, zipfile.ZipFile(buffer, "w") as new:
        for record in old.infolist():
            data = old.read(record)
            if record.filename.endswith(".pkl"):
                data = data.replace(text("cpu"), text(device))
            new.writestr(record.filename, data)
    return buffer.getvalue()


def _register(case: Case) -> None:
    if case.name in CASES:
        raise ValueError(f"two cases are called {case.name}")
    CASES[case.name] = case


def _calls(given: tuple[Any, ...], methods: dict[str, Any] | None) -> dict[str, Any]:
    runs: list[tuple[Any, ...]] = list(given) if given or methods is None else []
    calls: dict[str, Any] = {"forward": runs or [()]} if methods is None or given else {}
    return {**calls, **(methods or {})}


def case(
    *runs: tuple[Any, ...], methods: dict[str, Any] | None = None, name: str = "", **options: Any
) -> Callable[[Callable[[], Any]], Callable[[], Any]]:
    """Registers a function that builds a program.

    Args:
        runs: the arguments of each call of `forward`; one call without any by default.
        methods: the same for other methods.
        name: the case's name, by default the function's.
        options: further attributes of `Case`.
    """

    def register(make: Callable[[], Any]) -> Callable[[], Any]:
        calls = _calls(runs, methods)
        _register(Case(name or make.__name__.lstrip("_"), make, calls, **options))
        return make

    return register


def scripted(
    *runs: tuple[Any, ...], methods: dict[str, Any] | None = None, name: str = "", **options: Any
) -> Callable[[Any], Any]:
    """Registers a module's class, or a function, to be scripted; see `case`."""

    def register(source: Any) -> Any:
        def make() -> Any:
            return torch.jit.script(source() if isinstance(source, type) else source)

        calls = _calls(runs, methods)
        _register(Case(name or source.__name__, make, calls, **options))
        return source

    return register


def traced(*runs: tuple[Any, ...], name: str = "", **options: Any) -> Callable[[Any], Any]:
    """Registers a module's class, or a function, to be traced with the first call's arguments."""

    def register(source: Any) -> Any:
        def make() -> Any:
            program = source().eval() if isinstance(source, type) else source
            return torch.jit.trace(program, runs[0], check_trace=False)

        _register(Case(name or f"{source.__name__}Traced", make, {"forward": runs}, **options))
        return source

    return register


def frozen(of: str, **options: Any) -> None:
    """Registers the frozen form of a case."""
    case_ = CASES[of]

    def make() -> Any:
        return torch.jit.freeze(case_.make().eval())

    _register(replace(case_, name=f"{of}Frozen", make=make, **options))
