"""README's commands on a bare machine: a Debian root with nothing but Git, and a clone of what is committed."""
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = "git,ca-certificates,sudo"
README = ["./examples/run argmax_copy", "./tests/run"]
# What else a reader finds in README and CONTRIBUTING.md, in forms that take minutes.
OTHERS = [
    "./examples/run --help", "./examples/run --list", "./tests/run --help", "./tests/bench/run --help", "./tests/budgets/run --help",
    "./tests/bench/run --growth --quick", "./tests/bench/run --models --quick digits",
]
# Each alone in a root of its own: README's commands install what these need, too.
ALONE = ["./ports/packages/release --trees", "./examples/guide/site/build"]
PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
# In namespaces of its own: what is mounted, and what runs, ends with the command.
ENTER = """
mount -t proc proc "$root/proc"
mount --rbind /sys "$root/sys"
mount --rbind /dev "$root/dev"
exec chroot "$root" bash -c 'cd /project && eval "$1"' bare "$command"
"""


def say(text):
    print(f"tests/run --clean-room: {text}", file=sys.stderr, flush=True)


def codename():
    lines = Path("/etc/os-release").read_text().splitlines()
    return dict(line.split("=", 1) for line in lines if "=" in line)["VERSION_CODENAME"].strip('"')


def sources():
    """This machine's own sources of packages, which may be a mirror's."""
    files = [Path("/etc/apt/sources.list"), *sorted(Path("/etc/apt/sources.list.d").glob("*.sources"))]
    return "\n".join(file.read_text() for file in files if file.exists())


def bare_root():
    """An archive of the bare root, made once."""
    archive = ROOT / "build/bare" / f"{codename()}.tar"
    if not archive.exists():
        say(f"making {archive.relative_to(ROOT)} with mmdebstrap, a minute or two")
        archive.parent.mkdir(parents=True, exist_ok=True)
        new = archive.with_suffix(".new.tar")
        subprocess.run(["mmdebstrap", "--quiet", "--variant=important", f"--include={PACKAGES}", codename(), new, "-"],
                       input=sources(), text=True, check=True)
        new.rename(archive)
    return archive


def copy_network(root):
    """How this machine reaches a network: names, mirrors, certificates and proxies."""
    for file in ("/etc/resolv.conf", "/etc/hosts", "/etc/npmrc"):
        if Path(file).exists():
            shutil.copyfile(file, root / file.lstrip("/"))
    for folder in ("/etc/apt/apt.conf.d", "/usr/local/share/ca-certificates"):
        if Path(folder).exists():
            shutil.copytree(folder, root / folder.lstrip("/"), dirs_exist_ok=True)
    subprocess.run(["chroot", root, "update-ca-certificates"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=True)


def run_in(root, command):
    """Runs a command in the project's folder below a root, with its output in place. Returns its code."""
    kept = {name: value for name, value in os.environ.items() if name.lower().endswith("_proxy") or name in ("CI", "TERM")}
    environment = {**kept, "HOME": "/root", "LANG": "C.UTF-8", "PATH": PATH, "root": str(root), "command": command}
    namespaces = ["unshare", "--mount", "--pid", "--fork", "--kill-child", "--propagation", "private"]
    return subprocess.run([*namespaces, "bash", "-ec", ENTER], env=environment, stdin=subprocess.DEVNULL).returncode


def in_a_root(commands):
    """Runs commands one after the other in a new root. Returns what failed."""
    with tempfile.TemporaryDirectory(prefix="attune-bare.", ignore_cleanup_errors=True) as name:
        root = Path(name)
        root.chmod(0o755)
        subprocess.run(["tar", "-xf", bare_root(), "-C", root, "--numeric-owner", "--exclude=./dev/*"], check=True)
        copy_network(root)
        subprocess.run(["git", "clone", "-q", ROOT, root / "project"], check=True)
        failed = []
        for command in commands:
            say(command)
            if code := run_in(root, command):
                failed.append(f"{command} ended with code {code}")
        return failed


def main(arguments):
    """Returns 1 when a command fails."""
    if os.geteuid() != 0 or not shutil.which("apt-get"):
        say("needs root on a machine with apt-get")
        return 2
    if subprocess.run([ROOT / "cmake/bootstrap.sh", "git", "mmdebstrap"]).returncode:
        return 2
    if subprocess.run(["git", "status", "--porcelain"], cwd=ROOT, capture_output=True, check=True).stdout:
        say("there are changes that are not committed; the last commit is tested")
    asked = [[" ".join(arguments)]] if arguments else [[*README, *OTHERS], *([command] for command in ALONE)]
    failed = [problem for commands in asked for problem in in_a_root(commands)]
    for problem in failed:
        say(problem)
    total = sum(map(len, asked))
    say(f"{total - len(failed)} of {total} commands passed")
    return 1 if failed else 0
