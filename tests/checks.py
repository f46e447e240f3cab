"""Counts the checks of a suite, as checks.sh does in bash."""
import sys

passed = failed = 0


def check(what, holds, said=""):
    """Counts a check, and names it where it does not hold."""
    global passed, failed
    passed, failed = passed + bool(holds), failed + (not holds)
    if not holds:
        print(f"FAILED {what}{said and f': {said}'}")


def close():
    """Ends the program with `N passed, N failed`."""
    print(f"{passed} passed, {failed} failed")
    sys.exit(failed != 0)
