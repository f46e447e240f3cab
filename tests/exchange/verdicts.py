"""Counts what a call answers or raises, for suites of attune_torch."""
import re

from attune_torch import CheckFailed, Unsupported
from checks import check

# A line of a suite that a message quotes, which may be the line with the texts.
QUOTED = re.compile(r"^( +\S*/(?:exporter|pattern_models\.py):\d+:) .*$", re.M)


def attempt(what, call):
    """The call's result, or None; counts what it raises."""
    try:
        result = call()
    except Exception as problem:  # noqa: BLE001: any is a failure
        check(what, False, f"{type(problem).__name__}: {problem}"[:3000])
        return None
    check(what, True)
    return result


def refused(what, texts, call):
    """Counts whether the call is refused, and the message has the texts."""
    try:
        call()
    except (Unsupported, ValueError, CheckFailed) as problem:
        said = QUOTED.sub(r"\1", str(problem))
        missing = [text for text in texts if text not in said]
        check(what, not missing, f"said: {problem}\nwithout: {missing}"[:3000])
    except Exception as problem:  # noqa: BLE001: a crash
        check(what, False, f"{type(problem).__name__}: {problem}"[:3000])
    else:
        check(what, False, "it was not refused")
