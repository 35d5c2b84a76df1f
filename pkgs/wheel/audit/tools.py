"""The verdicts of other people's tools: auditwheel, twine, check-wheel-contents."""

from __future__ import annotations

import contextlib
import functools
import io
import logging
from collections.abc import Iterator
from pathlib import Path

from auditwheel.error import InvalidLibcError, NonPlatformWheelError, WheelToolsError
from auditwheel.policy import Policy
from auditwheel.wheel_abi import WheelAbIInfo, analyze_wheel_abi
from auditwheel.wheeltools import get_wheel_architecture, get_wheel_libc
from check_wheel_contents.checker import WheelChecker
from check_wheel_contents.checks import Check
from check_wheel_contents.contents import WheelContents
from check_wheel_contents.errors import WheelValidationError
from twine.commands.check import check as twine_check
from twine.exceptions import InvalidDistribution

from .findings import Finding, Parameters, beside, check, some
from .wheel import NotAWheel, Wheel


@functools.lru_cache(maxsize=4)
def verdict(
    path: Path, platform: str = "", provided: frozenset[str] = frozenset()
) -> WheelAbIInfo | None:
    """auditwheel's analysis of a wheel, None if it holds nothing compiled.

    Libraries that are ``provided`` by packages beside the wheel's count as there.
    A wheel may claim platforms of several C libraries: ``platform`` is a tag of the one
    to judge by, by default auditwheel takes that of the file name. The libraries of this
    machine play no part in it: only those of the wheel are searched.

    Raises:
        NotAWheel: auditwheel can't make sense of the file.
    """
    try:
        architecture = get_wheel_architecture(path.name)
    except (NonPlatformWheelError, WheelToolsError):
        architecture = None
    try:
        libc = get_wheel_libc(f"a-1-py3-none-{platform}.whl" if platform else path.name)
    except WheelToolsError:
        libc = None
    # It narrates each library that it doesn't find, which is what "" asks for.
    logging.getLogger("auditwheel").setLevel(logging.ERROR)
    try:
        return analyze_wheel_abi(
            libc,
            architecture,
            path,
            provided,
            disable_isa_ext_check=False,
            allow_graft=False,
            args_ldpaths="",
        )
    except NonPlatformWheelError:
        return None
    except (InvalidLibcError, RuntimeError, ValueError) as error:
        raise NotAWheel(f"{path.name}: auditwheel: {error}") from error


def judged(wheel: Wheel, parameters: Parameters, platform: str = "") -> WheelAbIInfo | None:
    """auditwheel's analysis of a wheel, beside what the policy says that its user has."""
    provided = (beside(s.name, parameters).libraries for s in wheel.shared_objects)
    return verdict(wheel.path, platform, frozenset().union(*provided))


def policy_named(analysis: WheelAbIInfo, platform: str) -> Policy | None:
    """auditwheel's policy of a platform tag with or without its architecture."""
    architecture = analysis.policies.architecture.baseline.value
    name = platform if platform.endswith(architecture) else f"{platform}_{architecture}"
    try:
        return analysis.policies.get_policy_by_name(name)
    except LookupError:
        return None


def promised(wheel: Wheel, analysis: WheelAbIInfo, parameters: Parameters) -> Policy:
    """The policy a wheel has to keep: the audit's own, or else what its tags claim.

    A wheel with a plain ``linux`` tag promises nothing; the most permissive
    manylinux policy stands in.
    """
    names = [parameters["platform"]] if parameters.get("platform") else list(wheel.platforms)
    policies = [p for p in (policy_named(analysis, name) for name in names) if p is not None]
    policies = [p for p in policies if p != analysis.policies.linux]
    return max(policies, default=analysis.policies.lowest)


def _shortfall(analysis: WheelAbIInfo, claimed: Policy) -> str:
    """Why auditwheel grants less than ``claimed``."""
    reasons = []
    for library, versions in sorted(analysis.versioned_symbols.items()):
        for version in sorted(versions):
            family, _, number = version.partition("_")
            allowed = claimed.symbol_versions.get(family)
            if allowed is not None and number not in allowed:
                reasons.append(f"{version} of {library}")
    reference = analysis.external_refs[claimed.name]
    reasons += [f"{library} outside the wheel" for library in sorted(reference.libs)]
    reasons += [f"blacklisted symbols of {library}" for library in sorted(reference.blacklist)]
    if analysis.machine_policy < claimed:
        reasons.append("instructions that not every such machine has")
    return some(reasons) or "auditwheel gives no reason"


@check("platform-tag")
def platform_tag(wheel: Wheel, parameters: Parameters) -> Iterator[Finding]:
    """The platform tags of the file name are true by auditwheel's verdict."""
    analysis = judged(wheel, parameters)
    if analysis is None:
        for platform in wheel.platforms:
            if platform != "any":
                yield Finding("", f"the tag {platform} is claimed, but nothing is compiled")
        return
    ceiling = parameters.get("platform")
    ceiling_policy = policy_named(analysis, ceiling) if ceiling else None
    for platform in wheel.platforms:
        own = analysis
        if platform.startswith("musllinux_") and policy_named(analysis, platform) is None:
            own = judged(wheel, parameters, platform) or analysis
        claimed = policy_named(own, platform)
        if platform == "any":
            yield Finding("", "the tag any is claimed, but the wheel holds shared objects")
        elif claimed is None:
            yield Finding("", f"auditwheel knows no platform tag {platform}")
        elif own.overall_policy < claimed:
            yield Finding(
                "",
                f"the tag {platform} is claimed, but auditwheel says "
                f"{own.overall_policy.name}: needs {_shortfall(own, claimed)}",
            )
        elif ceiling_policy is not None and claimed < ceiling_policy:
            yield Finding("", f"the tag {platform} is newer than the policy's {ceiling}")


class _Messages(logging.Handler):
    """Keeps what is logged."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.texts: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.texts.append(" ".join(record.getMessage().split()))


@check("twine")
def twine(wheel: Wheel, parameters: Parameters) -> Iterator[Finding]:
    """``twine check --strict`` passes: an index will take and render the metadata."""
    logger = logging.getLogger("twine")
    messages = _Messages()
    logger.addHandler(messages)
    try:
        # It prints a verdict and logs the reasons.
        with contextlib.redirect_stdout(io.StringIO()):
            failed = twine_check([str(wheel.path)], strict=True)
    except InvalidDistribution as error:
        failed, messages.texts = True, [" ".join(str(error).split())]
    finally:
        logger.removeHandler(messages)
    if failed:
        yield Finding("", f"twine check: {'; '.join(messages.texts)}")


@check("contents")
def contents(wheel: Wheel, parameters: Parameters) -> Iterator[Finding]:
    """check-wheel-contents is content, but for the codes that the policy names."""
    checker = WheelChecker()
    checker.configure_options(ignore={Check[code] for code in parameters.get("ignore", {})})
    try:
        failures = checker.check_contents(WheelContents.from_wheel(wheel.path))
    except WheelValidationError as error:
        yield Finding("", f"check-wheel-contents: {error}")
        return
    for failure in failures:
        files = f": {some(list(failure.args))}" if failure.args else ""
        yield Finding(
            "", f"check-wheel-contents {failure.check.name}: {failure.check.value}{files}"
        )
