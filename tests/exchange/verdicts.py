"""Counts what passes and what fails, in Python."""
from attune_torch import CheckFailed, Unsupported

passed = failed = 0


def verdict(what, right, said=""):
    global passed, failed
    passed, failed = passed + bool(right), failed + (not right)
    if not right:
        print(f"FAILED {what}\n{said}"[:3000], flush=True)


def attempt(what, call):
    """The call's result; counts what it raises."""
    try:
        result = call()
    except Exception as problem:  # noqa: BLE001: any is a failure
        verdict(what, False, f"{type(problem).__name__}: {problem}")
        return None
    verdict(what, True)
    return result


def refused(what, texts, call):
    try:
        call()
    except (Unsupported, ValueError, CheckFailed) as problem:
        missing = [text for text in texts if text not in str(problem)]
        verdict(what, not missing, f"said: {problem}\nwithout: {missing}")
    except Exception as problem:  # noqa: BLE001: a crash
        verdict(what, False, f"{type(problem).__name__}: {problem}")
    else:
        verdict(what, False, "it was not refused")


def summary():
    """Prints the counts; the exit code."""
    print(f"{passed} passed, {failed} failed")
    return 1 if failed else 0
