"""Makes a release of attune in build/release: archives of all packages, a bill of materials (SPDX), checksums, and CHANGES.md.

  ports/packages/release [--homepage URL] [--tests NAME]
      Refuses uncommitted changes, a changelog without the version's section, a version that is already tagged, and an invalid
      homepage. Runs the tests, then writes the release, and prints the tag to set.
      Tests are tests/run --full and tests/run --clean-room, which needs root: about an hour and a half. --tests everywhere adds tests/run --everywhere.
      --tests host is a trial, a quarter of an hour: the host's tests and tests/packaging/packages.
  ports/packages/release --trees [--out DIR] [--homepage URL]
      Writes only the packages, from the files as they are.
  ports/packages/release --check
      Runs tests/packaging/packages: generates, builds and checks every package, in seconds.

The version is from project() in CMakeLists.txt, other facts are from description.json. The same files and the same SOURCE_DATE_EPOCH
(default: the commit's time) give the same bytes.
"""
import argparse
import os
import re
import subprocess
import sys
from pathlib import Path

sys.dont_write_bytecode = True
sys.path.insert(0, str(Path(__file__).resolve().parent))
import trees  # noqa: E402


def refuse(why):
    raise SystemExit(f"release: {why}")


def run(*command):
    if subprocess.run(command, cwd=trees.root).returncode != 0:
        refuse(f"{' '.join(command)} failed")


TESTS = {
    "all": [["tests/run", "--full"], ["tests/run", "--clean-room"]],
    "everywhere": [["tests/run", "--full"], ["tests/run", "--clean-room"], ["tests/run", "--everywhere"]],
    "host": [["tests/run", "--on", "host"], ["tests/packaging/packages"]],
}


def check_that_it_may_be(version, homepage):
    """What makes a tree a release, besides its tests."""
    if re.search(r"//[^/]*\.example(/|$)", homepage):
        refuse(f"{homepage} is nobody's homepage. Where archives will be published, below releases/, is said by homepage in "
               "ports/packages/description.json, once and for all, or by --homepage URL")
    if not re.fullmatch(r"https://[^/\s]+(/[^/\s]+)*", homepage):
        refuse(f"'{homepage}' is no homepage: https://, and no / at its end")
    if trees.git("rev-parse", "HEAD") is None:
        refuse("this is no clone of the repository; --trees writes the packages alone")
    if trees.git("status", "--porcelain"):
        refuse("there are changes that are not committed: git status")
    if not trees.changes_of(version):
        refuse(f"CHANGELOG.md has no section '## {version}' with something in it; it is what Unreleased becomes")
    of_python = re.search(r'^version = "(.*)"$', (trees.root / "lib/attune_torch/pyproject.toml").read_text(), re.M)[1]
    if of_python != version:
        refuse(f"lib/attune_torch/pyproject.toml has version {of_python}, CMakeLists.txt has {version}: set the same")
    tag = f"v{version}"
    tagged = trees.git("rev-parse", "-q", "--verify", f"refs/tags/{tag}^{{commit}}")
    if tagged and tagged != trees.git("rev-parse", "HEAD"):
        refuse(f"{tag} is another commit: raise project(VERSION) in CMakeLists.txt")


def main():
    options = argparse.ArgumentParser(usage=argparse.SUPPRESS, description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--trees", action="store_true", help="write only the packages")
    options.add_argument("--check", action="store_true", help="run tests/packaging/packages")
    options.add_argument("--out", type=Path, default=trees.root / "build/release")
    options.add_argument("--homepage", help="the URL of publication; archives are below its releases/")
    options.add_argument("--tests", choices=list(TESTS), default="all")
    told = options.parse_args()
    if told.check:
        os.execv(trees.root / "tests/packaging/packages", ["packages"])
    version, homepage = trees.project("VERSION"), told.homepage or trees.description["homepage"]
    if not told.trees:
        check_that_it_may_be(version, homepage)
        tested = trees.git("rev-parse", "HEAD")
        for command in TESTS[told.tests]:
            run(*command)
        if trees.git("status", "--porcelain") or trees.git("rev-parse", "HEAD") != tested:
            refuse("while the tests ran, files changed: what would be written is not what was tested")
    written = trees.Release(version, homepage).write(told.out)
    changes = trees.changes_of(version)
    if changes:
        (told.out / "CHANGES.md").write_text(f"# attune {version}\n\n{changes}\n")
    print(f"attune {version} in {told.out}: {' '.join(written)}")
    if not told.trees:
        print(f"next: git tag -a v{version} -m 'attune {version}', then publish")


main()
