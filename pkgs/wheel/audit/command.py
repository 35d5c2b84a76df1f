"""The command: audits wheels, prints one line a finding.

Exit codes: 0 nothing found, 1 findings, 2 the audit itself couldn't be done.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

from packaging.utils import canonicalize_name

VERSION = "1"


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="audit",
        description="Says what is wrong with a wheel, one line a finding.",
        epilog="exit codes: 0 nothing found, 1 findings, 2 the audit couldn't be done",
    )
    parser.add_argument("wheels", metavar="WHEEL", nargs="*", type=Path)
    parser.add_argument("--policy", type=Path, help="a policy file (default: this project's)")
    parser.add_argument(
        "--profile",
        help="the profile of the policy (default: the one named like the distribution, else any)",
    )
    parser.add_argument("--json", action="store_true", help="print the findings as JSON")
    parser.add_argument("--list", action="store_true", help="print the profiles' checks and stop")
    parser.add_argument("--version", action="version", version=f"audit {VERSION}")
    return parser


def _progress(text: str) -> None:
    """Shows what is being done, on a terminal alone; "" takes it away."""
    if sys.stderr.isatty():
        print(f"\r\x1b[K{text}", end="", file=sys.stderr, flush=True)


def main(arguments: list[str] | None = None) -> int:
    """Runs the command; returns its exit code."""
    parser = _parser()
    args = parser.parse_args(arguments)
    try:
        # What the tools' modules need may be missing; --help works without.
        from . import policy
        from .findings import CHECKS
        from .wheel import NotAWheel, Wheel
    except ModuleNotFoundError as error:
        print(f"audit: {error}; `nix run .#audit` brings all it needs", file=sys.stderr)
        return 2

    try:
        profiles = policy.load(args.policy or policy.DEFAULT)
    except policy.PolicyError as error:
        print(f"audit: {error}", file=sys.stderr)
        return 2
    if args.profile is not None and args.profile not in profiles:
        known = ", ".join(profiles)
        print(f"audit: there is no profile {args.profile!r}, only {known}", file=sys.stderr)
        return 2
    if args.list:
        for profile in profiles.values():
            print(f"{profile.name}: {profile.about}")
            for code in profile.checks:
                print(f"  {code:18} {(CHECKS[code].__doc__ or '').strip().splitlines()[0]}")
        return 0
    if not args.wheels:
        parser.error("which wheel?")

    reports = []
    for path in args.wheels:
        try:
            wheel = Wheel(path)
            own = canonicalize_name(wheel.distribution)
            name = args.profile or (own if own in profiles else policy.FALLBACK)
            findings = []
            for code, parameters in profiles[name].checks.items():
                _progress(f"{path.name}: {code}")
                findings += [(code, finding) for finding in CHECKS[code](wheel, parameters)]
        except (NotAWheel, ModuleNotFoundError) as error:
            _progress("")
            print(f"audit: {error}", file=sys.stderr)
            return 2
        reports.append((path, name, findings))

    _progress("")
    if args.json:
        document = [
            {
                "wheel": path.name,
                "profile": name,
                "findings": [
                    {"code": code, "where": f.where, "message": f.message} for code, f in findings
                ],
            }
            for path, name, findings in reports
        ]
        print(json.dumps(document, indent=2))
    else:
        for path, name, findings in reports:
            for code, finding in findings:
                where = f"{finding.where}: " if finding.where else ""
                print(f"{code}: {where}{' '.join(finding.message.split())}")
            checks = len(profiles[name].checks)
            number = "1 finding" if len(findings) == 1 else f"{len(findings) or 'no'} findings"
            print(f"{path.name}: {number} by the {checks} checks of {name}")
    return 1 if any(findings for _, _, findings in reports) else 0
