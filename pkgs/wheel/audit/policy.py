"""Reads the policy: which checks a wheel has to pass, and with which parameters.

The file holds profiles. A profile has ``checks`` (code -> parameters), may give the
``platform`` that its wheels keep to, may say what single files take from packages
``beside`` the wheel's, and may extend another profile, whose checks it takes over;
parameters that both give are the extending profile's.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

# The checks register themselves when they are imported.
from . import binaries, contents, metadata, tools  # noqa: F401
from .findings import CHECKS, Parameters

DEFAULT = Path(__file__).with_name("policy.json")
# The profile of wheels that have none of their own.
FALLBACK = "any"
# What a profile says once, as a parameter of all its checks.
_SHARED = ("platform", "beside")
# Parameters that are paths, relative to the policy's file.
_PATHS = ("parts",)


@dataclass(frozen=True)
class Profile:
    """A named set of checks."""

    name: str
    about: str
    checks: dict[str, Parameters]


class PolicyError(ValueError):
    """The policy file is wrong; the message says where."""


def load(path: Path = DEFAULT) -> dict[str, Profile]:
    """All profiles of a policy file.

    Raises:
        PolicyError: it can't be read, names an unknown check or extends what isn't there.
    """
    try:
        raw = json.loads(path.read_text(encoding="utf-8"))["profiles"]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise PolicyError(f"{path}: {error!r}") from error

    def merged(name: str, seen: tuple[str, ...]) -> tuple[dict[str, Parameters], Parameters]:
        if name in seen or name not in raw:
            raise PolicyError(f"{path}: profile {seen[-1]} can't extend {name}")
        profile = raw[name]
        checks: dict[str, Parameters] = {}
        shared: Parameters = {}
        if "extends" in profile:
            checks, shared = merged(profile["extends"], (*seen, name))
        for code, parameters in profile["checks"].items():
            if code not in CHECKS:
                raise PolicyError(f"{path}: profile {name}: there is no check {code!r}")
            checks[code] = {**checks.get(code, {}), **parameters}
        return checks, shared | {key: profile[key] for key in _SHARED if key in profile}

    found = {}
    for name, profile in raw.items():
        checks, shared = merged(name, (name + " itself",))
        for parameters in checks.values():
            parameters |= shared
            for key in _PATHS:
                if key in parameters:
                    parameters[key] = str(path.parent / parameters[key])
        found[name] = Profile(name, profile.get("about", ""), checks)
    if FALLBACK not in found:
        raise PolicyError(f"{path}: has no profile {FALLBACK!r}")
    return found
