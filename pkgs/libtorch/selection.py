#!/usr/bin/env python3
"""Selects the source files of PyTorch that the importer needs, and writes them to a file.

The link decides. The importer's own objects, the files that libtorch.json names
as roots (with a reason each) and our stand-ins are compiled and linked with
unused sections collected; for every symbol that a section in use still lacks,
the file that defines it is looked for, compiled and added, until none is
missing. Where a definition may stand is guessed from PyTorch's text, and
believed only if the compiled file defines the symbol.

What is written: the files, sorted, one a line; and with --report a table of what
was selected and left out, with sizes. Where nothing defines a symbol, the
exit code is 1 and the message says which files ask for it.
"""

from __future__ import annotations

import argparse
import concurrent.futures
import json
import os
import re
import resource
import shlex
import subprocess
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))  # which PYTHONSAFEPATH leaves out
import operators  # noqa: E402
import own_builds  # noqa: E402
from generate import source_version  # noqa: E402

HERE = Path(__file__).parent
DATA = HERE / "libtorch.json"
# The most files that are compiled in search of one symbol.
TRIES = 12
# Files of the generated folder are told from the source tree's by this.
GENERATED = "generated/"


@dataclass(frozen=True)
class Settings:
    """libtorch.json, for one source version."""

    flags: list[str]
    roots: list[str]
    folders: list[str]
    # Patterns of files that are not looked at, and why.
    excluded: list[tuple[re.Pattern[str], str]]

    @staticmethod
    def read(version: str) -> Settings:
        data = json.loads(DATA.read_text())

        def here(entries: list[dict[str, object]]) -> list[dict[str, object]]:
            return [entry for entry in entries if version in entry.get("versions", [version])]  # type: ignore[operator]

        return Settings(
            flags=[str(entry["flag"]) for entry in here(data["flags"])],
            roots=[str(entry["file"]) for entry in here(data["roots"])],
            folders=[str(entry["folder"]) for entry in here(data["folders"])],
            excluded=[
                (re.compile(str(entry["pattern"])), str(entry["reason"]))
                for entry in here(data["excluded"])
            ],
        )


# --- Where a symbol may be defined ----------------------------------------------


def outside_brackets(name: str) -> str:
    """`name` without template arguments: "a::b<c>::d" -> "a::b::d"; operators keep theirs."""
    depth, kept = 0, []
    name = name.replace("operator<<", "operator\x01").replace("operator<", "operator\x02")
    name = name.replace("operator->", "operator\x03").replace("operator>", "operator\x04")
    for letter in name:
        if letter == "<":
            depth += 1
        elif letter == ">":
            depth -= 1
        elif depth == 0:
            kept.append(letter)
    text = "".join(kept)
    return (
        text.replace("\x01", "<<").replace("\x02", "<").replace("\x03", "->").replace("\x04", ">")
    )


def scopes(demangled: str) -> list[str]:
    """The parts of a demangled symbol's name: ["c10", "ClassType", "addMethod"]."""
    text = re.sub(
        r"^(vtable|typeinfo|typeinfo name|VTT|guard variable|thread-local \w+ routine) for ",
        "",
        demangled,
    )
    text = re.sub(r"\[abi:\w+\]|\(anonymous namespace\)::", "", text)
    text = outside_brackets(text)
    text = re.sub(r"\boperator\(\)", "operator\x01", text).split("(")[0]
    text = text.replace("operator\x01", "operator()")
    # A template's name comes after its result: "void f<int>(int)".
    if not re.search(r"operator ", text):
        text = text.split(" ")[-1]
    return [part for part in text.split("::") if part]


def stem_words(text: str) -> set[str]:
    """ "SourceRangeSerializer" and "source_range_serialization" share words by this."""
    words = re.findall(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+", text)
    return {word.lower() for word in words}


@dataclass
class Index:
    """The texts of all files that may be selected, and a ranking of them for a symbol."""

    texts: dict[str, str]
    words: dict[str, set[str]] = field(default_factory=dict)
    files_of_word: dict[str, list[str]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        found: dict[str, list[str]] = defaultdict(list)
        for name, text in self.texts.items():
            self.words[name] = stem_words(Path(name).stem)
            for word in set(re.findall(r"\w+", text)):
                found[word].append(name)
        self.files_of_word = found

    def ranking(self, demangled: str) -> list[str]:
        """Files in the order in which they are likely to define the symbol, best first."""
        parts = scopes(demangled)
        if not parts:
            return []
        last = parts[-1]
        parent = parts[-2] if len(parts) > 1 else ""
        wanted = re.findall(r"\w+", last)
        if last.startswith("operator"):
            wanted = [word for word in re.findall(r"\w+", " ".join(parts)) if word != "operator"]
            wanted = wanted[-1:]
        if last.startswith("FLAGS_"):
            wanted = [last[len("FLAGS_") :]]
        scores: dict[str, float] = {}
        special = demangled.startswith(("vtable", "typeinfo", "VTT"))
        qualified = re.compile(rf"\b{re.escape(parent)}(<[^;{{}}]*>)?::\s*~?{re.escape(last)}\b")
        member = re.compile(rf"\b{re.escape(last)}::~?\w+\s*\(")
        free = re.compile(rf"^[^\s#/].*\b{re.escape(last)}\s*\((?!.*;\s*$)", re.MULTILINE)
        for name in self.files_of_word.get(wanted[-1] if wanted else last, []):
            text = self.texts[name]
            score = 1.0
            if special:
                score += 60 * bool(member.search(text))
            else:
                score += 100 * bool(parent and qualified.search(text))
                score += 50 * bool(free.search(text))
            near = stem_words(last) | stem_words(parent)
            score += 20 * len(near & self.words[name]) / (len(self.words[name]) or 1)
            score += sum(2 for part in parts[:-1] if f"/{part}/" in f"/{name}")
            scores[name] = score
        return sorted(scores, key=lambda name: (-scores[name], name))


# --- Compiling and linking --------------------------------------------------------


@dataclass
class Builder:
    """Compiles files of PyTorch and ours, each once, and links them with sections collected."""

    source: Path
    generated: Path
    work: Path
    compiler: list[str]
    linker: list[str]
    runtime: list[Path]
    nm: str
    cxxfilt: str
    flags: list[str]
    includes: list[str]
    jobs: int
    seconds: dict[str, float] = field(default_factory=dict)
    defined: dict[str, set[str]] = field(default_factory=dict)
    failed: dict[str, str] = field(default_factory=dict)
    demangled: dict[str, str] = field(default_factory=dict)

    def path_of(self, name: str) -> Path:
        if name.startswith(GENERATED):
            return self.generated / name[len(GENERATED) :]
        return self.source / name

    def object_of(self, name: str) -> Path:
        return self.work / (name.strip("/").replace("/", "__") + ".o")

    def command(self, path: Path, out: Path) -> list[str]:
        if path.suffix == ".c":
            return [*self.compiler, "-x", "c", "-O1", "-w", "-fPIC", "-ffunction-sections",
                    "-fdata-sections", "-c", str(path), "-o", str(out)]  # fmt: skip
        return [*self.compiler, *self.flags, *self.includes, "-c", str(path), "-o", str(out)]

    def compile(self, name: str, path: Path | None = None) -> None:
        """Compiles a file, if that wasn't done; notes what it defines, or why it failed."""
        if name in self.defined or name in self.failed:
            return
        out = self.object_of(name)
        path = path or self.path_of(name)
        command = self.command(path, out)
        # An object of an earlier run, where nothing that we write ourselves goes into it.
        stamp, made_by = out.with_suffix(".command"), shlex.join(command)
        if path.is_relative_to(self.source) and stamp.exists():
            before = stamp.read_text().split("\n")
            if before[0] == made_by:
                self.seconds[name] = float(before[1])
                return self.note_defined(name, out)
        process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
        assert process.stderr is not None
        errors = process.stderr.read()
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        self.seconds[name] = usage.ru_utime + usage.ru_stime
        if process.returncode:
            self.failed[name] = errors
            return
        stamp.write_text(f"{made_by}\n{self.seconds[name]}\n")
        self.note_defined(name, out)

    def note_defined(self, name: str, out: Path) -> None:
        listing = subprocess.run(
            [self.nm, "--format=posix", "--defined-only", "--extern-only", str(out)],
            check=True, capture_output=True, text=True,
        ).stdout  # fmt: skip
        self.defined[name] = {line.split(" ", 1)[0] for line in listing.splitlines()}

    def compile_all(self, names: Iterable[str]) -> None:
        with concurrent.futures.ThreadPoolExecutor(self.jobs) as pool:
            list(pool.map(self.compile, names))

    def demangle(self, symbols: Iterable[str]) -> None:
        new = sorted(set(symbols) - self.demangled.keys())
        if new:
            names = subprocess.run(
                [self.cxxfilt], input="\n".join(new), check=True, capture_output=True, text=True
            ).stdout
            self.demangled.update(zip(new, names.splitlines(), strict=True))

    def link(self, names: Iterable[str], extra: Sequence[Path] = ()) -> dict[str, set[str]]:
        """Symbols that sections in use lack, each with the objects that ask for it."""
        exports = self.work / "exports.map"
        exports.write_text("{ global: PyInit_*; local: *; };\n")
        command = [*self.linker, "-shared", "-z", "defs", "--warn-unresolved-symbols"]
        command += ["--gc-sections", "--no-demangle", "--error-limit=0"]
        command += ["--version-script", str(exports), "-o", str(self.work / "linked.so")]
        command += [str(self.object_of(name)) for name in names]
        command += [str(path) for path in [*extra, *self.runtime]]
        linked = subprocess.run(command, capture_output=True, text=True)
        if linked.returncode:
            errors = [line for line in linked.stderr.splitlines() if "error:" in line]
            raise SystemExit("\n".join([f"{shlex.join(command[:12])} …", *errors[:20]]))
        lacking: dict[str, set[str]] = {}
        symbol = None
        for line in linked.stderr.splitlines():
            if found := re.search(r"undefined symbol: (\S+)", line):
                symbol = found[1]
                lacking[symbol] = set()
            elif symbol and (found := re.search(r">>> .*?([^/\s(]+\.o)\b", line)):
                lacking[symbol].add(found[1])
        return lacking


# --- The selection ------------------------------------------------------------------


@dataclass
class Selection:
    files: list[str]
    operators: set[str]
    reasons: dict[str, str]
    compiled_in_vain: list[str]
    looked_at: list[str]
    left_out: dict[str, str]


def candidates(builder: Builder, settings: Settings) -> tuple[dict[str, str], dict[str, str]]:
    """Name -> text of every file that may be selected, and name -> reason of the others."""
    texts, left_out = {}, {}
    for folder in settings.folders:
        base = builder.path_of(folder)
        for path in sorted(base.rglob("*")):
            name = folder.rstrip("/") + "/" + path.relative_to(base).as_posix()
            if path.suffix not in (".cpp", ".cc", ".c") or path.is_dir():
                continue
            for pattern, reason in settings.excluded:
                if pattern.search(name):
                    left_out[name] = reason
                    break
            else:
                texts[name] = path.read_text(errors="replace")
    return texts, left_out


def ours_to_find(symbol: str, demangled: str) -> bool:
    """Whether PyTorch would define a symbol, by its name; C's, C++'s and CPython's it doesn't."""
    if symbol.startswith("_Z"):
        return re.search(r"\b(c10|at|torch|caffe2)::|\bFLAGS_", demangled) is not None
    return symbol.startswith(("mz_", "tinfl_", "tdefl_", "FLAGS_"))


def refuse_failures(builder: Builder, names: Iterable[str]) -> None:
    for name in names:
        if name in builder.failed:
            raise SystemExit(f"{name} doesn't compile:\n{builder.failed[name][:4000]}")


def select(builder: Builder, settings: Settings, ours: dict[str, Path], log: bool) -> Selection:
    """Adds files until no section in use lacks a symbol of PyTorch's. Raises SystemExit."""
    texts, left_out = candidates(builder, settings)
    if missing := [root for root in settings.roots if root not in texts]:
        raise SystemExit(f"libtorch.json names roots that are not there: {', '.join(missing)}")
    index = Index(texts)
    with concurrent.futures.ThreadPoolExecutor(builder.jobs) as pool:
        list(pool.map(lambda item: builder.compile(*item), ours.items()))
    refuse_failures(builder, ours)
    builder.compile_all(settings.roots)
    refuse_failures(builder, settings.roots)

    chosen = list(settings.roots)
    reasons = {root: "root" for root in settings.roots}
    bodies: set[str] = set()
    wanted_bodies: set[str] = set()
    while True:
        extra = []
        if wanted_bodies - bodies:
            bodies |= wanted_bodies
            text = operators.bodies(builder.source, bodies)
            path = builder.work / "operators.cpp"
            path.write_text(text)
            builder.defined.pop("operators", None)
            builder.compile("operators", path)
            if "operators" in builder.failed:
                raise SystemExit(builder.failed["operators"][:4000])
        if bodies:
            extra = [builder.object_of("operators")]
        lacking = builder.link([*ours, *chosen], extra)
        builder.demangle(lacking)
        wanted = {}
        for symbol, users in lacking.items():
            name = operators.operator_of(symbol)
            if name is not None:
                wanted_bodies.add(name)
            elif ours_to_find(symbol, builder.demangled[symbol]):
                wanted[symbol] = users
        if log:
            print(
                f"{len(chosen)} files, {len(bodies)} operators: {len(wanted)} symbols and "
                f"{len(wanted_bodies - bodies)} operators missing",
                file=sys.stderr,
            )
        if not wanted and not wanted_bodies - bodies:
            break
        added = find(builder, index, wanted, chosen, log)
        for name, symbol in added.items():
            chosen.append(name)
            reasons[name] = builder.demangled[symbol]
        if wanted and not added:
            # The others first: a symbol that nothing defines may be none of theirs' fault.
            lines = [
                f"  {builder.demangled[symbol]}\n    used by {', '.join(sorted(users)[:4])}"
                for symbol, users in sorted(wanted.items())
            ]
            raise SystemExit(
                "no file defines these symbols; libtorch.json says which files are looked at, "
                "stubs/ is for stand-ins:\n" + "\n".join(lines)
            )
    needed = set(chosen)
    vain = sorted(name for name in builder.seconds if name in texts and name not in needed)
    return Selection(sorted(chosen), bodies, reasons, vain, sorted(texts), left_out)


def find(
    builder: Builder, index: Index, wanted: dict[str, set[str]], chosen: list[str], log: bool
) -> dict[str, str]:
    """Files that define wanted symbols, each with one that it defines."""
    added: dict[str, str] = {}
    rankings = {symbol: index.ranking(builder.demangled[symbol])[:TRIES] for symbol in wanted}
    taken = set(chosen)
    for attempt in range(TRIES):
        open_symbols = [
            symbol
            for symbol in sorted(wanted)
            if not any(symbol in builder.defined[name] for name in added)
        ]
        tries = {
            rankings[symbol][attempt]: symbol
            for symbol in open_symbols
            if attempt < len(rankings[symbol]) and rankings[symbol][attempt] not in taken
        }
        if attempt and added:
            # A better guess may come once those that were found are linked.
            break
        builder.compile_all(sorted(tries))
        for symbol in open_symbols:
            if attempt < len(rankings[symbol]):
                name = rankings[symbol][attempt]
                if name not in taken and symbol in builder.defined.get(name, ()):
                    added.setdefault(name, symbol)
        # What was compiled in search of another symbol may have this one.
        for symbol in open_symbols:
            for name, symbols in builder.defined.items():
                if name in index.texts and name not in taken and symbol in symbols:
                    if not any(symbol in builder.defined[other] for other in added):
                        added.setdefault(name, symbol)
    return added


def folder_of(name: str) -> str:
    parts = name.split("/")
    return "/".join(parts[: 4 if name.startswith("torch/csrc/jit") else 2])


def section(title: str, head: Sequence[str], rows: Iterable[Sequence[object]]) -> list[str]:
    """A part of the report: a title, a line of headings, a line a row, by tabs."""
    return ["", f"# {title}", "\t".join(head), *("\t".join(map(str, row)) for row in rows)]


def registrations(builder: Builder) -> list[tuple[str, str]]:
    """The linked library's blocks that register kernels, each with its library and dispatch key."""
    listing = subprocess.run(
        [builder.nm, str(builder.work / "linked.so")], check=True, capture_output=True, text=True
    ).stdout
    blocks = re.findall(r"TORCH_LIBRARY_IMPL_init_(\w+?)_([A-Z]\w*?)_\d+", listing)
    return sorted((library.replace("__", "_"), key) for library, key in set(blocks))


def report(builder: Builder, selection: Selection, sizes: dict[str, int]) -> str:
    """Tables of the selection: folders, sizes, what was tried and left out and why."""
    own = own_builds.own_builds(builder.source)
    lines = ["# Source files of PyTorch, without what generators write"]
    lines += ["build\tfiles"]
    lines += [f"this selection\t{len(selection.files)}"]
    lines += [f"PyTorch's own: {name}\t{count}" for name, count in own.items()]
    tree = [path for path in builder.source.rglob("*") if path.suffix in (".cpp", ".cc", ".cu")]
    lines += [f"C++ and CUDA files of the folders that were unpacked\t{len(tree)}"]

    files = Counter(map(folder_of, selection.files))
    looked_at = Counter(map(folder_of, selection.looked_at))
    rows: list[Sequence[object]] = []
    for folder in sorted(looked_at):
        inside = [name for name in selection.files if folder_of(name) == folder]
        seconds = sum(builder.seconds[name] for name in inside)
        size = sum(sizes.get(builder.object_of(name).name, 0) for name in inside)
        rows.append((folder, files[folder], looked_at[folder], f"{seconds:.1f}", size))
    seconds = sum(builder.seconds[name] for name in selection.files)
    rows.append(("all", len(selection.files), len(selection.looked_at), f"{seconds:.1f}",
                 sum(sizes.values())))  # fmt: skip
    head = ("folder", "selected", "looked at", "CPU seconds", "bytes in use")
    lines += section("What was selected, by folder", head, rows)

    reasons = Counter(selection.left_out.values())
    lines += section("What was not looked at, and why", ("files", "reason"),
                     ((count, reason) for reason, count in reasons.most_common()))  # fmt: skip
    lines += section("Blocks of the linked library that register kernels",
                     ("library", "dispatch key"), registrations(builder))  # fmt: skip
    lines += section("Operators that are called", ("operator",),
                     ([name] for name in sorted(selection.operators)))  # fmt: skip
    lines += section(
        "Files that were selected", ("file", "bytes in use", "first symbol that asked for it"),
        ((name, sizes.get(builder.object_of(name).name, 0), selection.reasons[name])
         for name in selection.files),
    )  # fmt: skip
    lines += section("Files that were compiled in search of a symbol, and left out", ("file",),
                     ([name] for name in selection.compiled_in_vain))  # fmt: skip
    return "\n".join(lines) + "\n"


def live_sizes(builder: Builder, names: Iterable[str]) -> dict[str, int]:
    """Object file -> bytes of it that are in the linked library, by the linker's map."""
    table = builder.work / "linked.map"
    command = [*builder.linker, "-shared", "--warn-unresolved-symbols", "--gc-sections"]
    command += ["--version-script", str(builder.work / "exports.map"), "--error-limit=0"]
    command += ["-o", str(builder.work / "linked.so"), f"-Map={table}"]
    command += [str(builder.object_of(name)) for name in names]
    command += [str(path) for path in builder.runtime]
    subprocess.run(command, check=True, capture_output=True)
    sizes: Counter[str] = Counter()
    for line in table.read_text().splitlines():
        found = re.match(r"\s*\w+\s+\w+\s+(\w+)\s+\d+\s+\S*?([^/\s]+\.o):\(", line)
        if found:
            sizes[found[2]] += int(found[1], 16)
    return sizes


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("source", type=Path, help="source tree of PyTorch")
    parser.add_argument("generated", type=Path, help="what generate.py made of it")
    parser.add_argument("ours", type=Path, nargs="+", help="sources of the importer, stand-ins")
    parser.add_argument("--compiler", default="c++", help="a command, with arguments")
    parser.add_argument("--linker", default="ld.lld", help="LLD, as a command")
    parser.add_argument("--runtime", type=Path, action="append", default=[], metavar="FILE",
                        help="an object that the compiler links with")  # fmt: skip
    parser.add_argument("--nm", default="llvm-nm")
    parser.add_argument("--cxxfilt", default="llvm-cxxfilt")
    parser.add_argument("-I", dest="includes", action="append", default=[], metavar="FOLDER")
    parser.add_argument("-D", dest="definitions", action="append", default=[], metavar="NAME")
    parser.add_argument("-j", "--jobs", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--work", type=Path, required=True, help="folder for object files")
    parser.add_argument("--report", type=Path, help="table to write")
    parser.add_argument("-o", "--output", type=Path, required=True, help="list to write")
    parser.add_argument("-v", "--verbose", action="store_true", help="tell each step")
    arguments = parser.parse_args()

    version = source_version(arguments.source)
    settings = Settings.read(version)
    arguments.work.mkdir(parents=True, exist_ok=True)
    source, generated = arguments.source.resolve(), arguments.generated.resolve()
    folders = [generated, generated / "aten/src", generated / "torch/csrc/api/include", source,
               source / "aten/src", source / "torch/csrc/api/include", source / "torch/csrc",
               *sorted((source / "third_party").glob("miniz-*"))]  # fmt: skip
    builder = Builder(
        source=source,
        generated=generated,
        work=arguments.work.resolve(),
        compiler=shlex.split(arguments.compiler),
        linker=shlex.split(arguments.linker),
        runtime=arguments.runtime,
        nm=arguments.nm,
        cxxfilt=arguments.cxxfilt,
        flags=[*settings.flags, *(f"-D{name}" for name in arguments.definitions)],
        includes=[f"-I{folder}" for folder in [*folders, *arguments.includes]],
        jobs=arguments.jobs,
    )
    started = time.monotonic()
    ours = {f"ours/{path.name}": path for path in arguments.ours}
    selection = select(builder, settings, ours, arguments.verbose)
    head = f"# The files of PyTorch {version} that the importer needs; written by selection.py.\n"
    arguments.output.write_text(head + "".join(f"{name}\n" for name in selection.files))
    if arguments.report:
        names = [*ours, *selection.files, *(["operators"] if selection.operators else [])]
        arguments.report.write_text(report(builder, selection, live_sizes(builder, names)))
    if arguments.verbose:
        own = resource.getrusage(resource.RUSAGE_CHILDREN)
        print(
            f"{len(selection.files)} files, {len(selection.compiled_in_vain)} compiled in vain, "
            f"{time.monotonic() - started:.0f} s, {own.ru_utime + own.ru_stime:.0f} CPU seconds",
            file=sys.stderr,
        )
    return 0


if __name__ == "__main__":
    sys.exit(main())
