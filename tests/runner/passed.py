"""What `tests/run` passed: `--full` follows it in CI, and repeats no suite that passed with the same files."""
import hashlib
import json
import os
import subprocess

from suite import ROOT

KEPT = ROOT / "build/passed.json"


def files(folder=ROOT):
    """A hash of the project's files, those that Git ignores left out; nothing where this is no clone."""
    done = subprocess.run(["git", "-C", folder, "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
                          stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    names = sorted(os.fsdecode(name) for name in done.stdout.split(b"\0") if name)
    found = hashlib.sha256()
    for name in names:
        path = folder / name
        found.update(f"{name}\0".encode() + (hashlib.sha256(path.read_bytes()).digest() if path.is_file() else b""))
    return found.hexdigest() if names else ""


def keep(before, names, kept=KEPT, folder=ROOT):
    """Suites that passed with these files, unless somebody has changed them meanwhile."""
    if before and files(folder) == before:
        kept.write_text(json.dumps({"files": before, "suites": names}))


def of(now, kept=KEPT):
    """Names of the suites that passed with these files."""
    known = json.loads(kept.read_text()) if kept.exists() else {"files": "", "suites": []}
    return set(known["suites"]) if now and known["files"] == now else set()
