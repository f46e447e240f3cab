"""The trees and archives of a release. What they are made of stands in description.json; a folder beside this file holds what
a package has of its own, with @NAME@ in files that end in .in."""
import functools
import gzip
import hashlib
import io
import json
import os
import re
import shutil
import subprocess
import tarfile
import time
import zipfile
from pathlib import Path

import sbom

here = Path(__file__).resolve().parent
root = here.parents[1]
description = json.loads((here / "description.json").read_text())


def project(keyword):
    """VERSION or DESCRIPTION of CMakeLists.txt's project()."""
    call = re.search(r"project\(attune(.*?)\)\n", (root / "CMakeLists.txt").read_text(), re.DOTALL)[1]
    return re.search(keyword + r'\s+"?([^"\n]*?)"?(?:\s+LANGUAGES|$)', call, re.MULTILINE)[1]


def git(*arguments):
    """What git says of this tree, or None where it is no clone."""
    done = subprocess.run(["git", "-C", root, *arguments], capture_output=True, text=True)
    return done.stdout.strip() if done.returncode == 0 and (root / ".git").exists() else None


@functools.cache
def seconds():
    """The time that all files of a release have: SOURCE_DATE_EPOCH, the commit's, or the changelog's."""
    told = os.environ.get("SOURCE_DATE_EPOCH") or git("log", "-1", "--format=%ct")
    return int(told or (root / "CHANGELOG.md").stat().st_mtime)


def source_files():
    """Paths of the project's own files, sorted."""
    listed = git("ls-files", "-z", "--cached", "--others", "--exclude-standard")
    if listed is not None:
        paths = [Path(path) for path in listed.split("\0") if path and (root / path).is_file()]
    else:
        paths = [path.relative_to(root) for path in root.rglob("*") if path.is_file()]
        paths = [path for path in paths if path.parts[0] != "build" and "__pycache__" not in path.parts]
    return sorted(paths, key=lambda path: path.as_posix())


class Contents(dict):
    """Bytes and whether they may be run, by path; archives of them have the same bytes wherever they are made."""

    def add(self, path, data, executable=False):
        self[Path(path).as_posix()] = (data, executable)

    def add_file(self, path, source):
        self.add(path, source.read_bytes(), os.access(source, os.X_OK))

    def write(self, folder):
        if folder.exists():
            shutil.rmtree(folder)
        for path, (data, executable) in sorted(self.items()):
            (folder / path).parent.mkdir(parents=True, exist_ok=True)
            (folder / path).write_bytes(data)
            (folder / path).chmod(0o755 if executable else 0o644)

    def tar(self, folder):
        packed = io.BytesIO()
        with tarfile.open(fileobj=packed, mode="w", format=tarfile.USTAR_FORMAT) as archive:
            for path, (data, executable) in sorted(self.items()):
                entry = tarfile.TarInfo(f"{folder}/{path}")
                entry.size, entry.mtime, entry.mode = len(data), seconds(), 0o755 if executable else 0o644
                archive.addfile(entry, io.BytesIO(data))
        return gzip.compress(packed.getvalue(), mtime=0)

    def zip(self, folder):
        packed, prefix = io.BytesIO(), f"{folder}/" if folder else ""
        with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
            for path, (data, executable) in sorted(self.items()):
                entry = zipfile.ZipInfo(prefix + path, time.gmtime(max(seconds(), 315532800))[:6])  # zip begins in 1980
                entry.compress_type, entry.create_system = zipfile.ZIP_DEFLATED, 3
                entry.external_attr = (0o100755 if executable else 0o100644) << 16
                archive.writestr(entry, data)
        return packed.getvalue()


def changes_of(version):
    """The changelog's section of a version, or None."""
    text = (root / "CHANGELOG.md").read_text()
    section = re.search(rf"^## {re.escape(version)}(?: [^\n]*)?\n(.*?)(?=^## |\Z)", text, re.DOTALL | re.MULTILINE)
    return section[1].strip() if section else None


class Release:
    def __init__(self, version, homepage):
        self.version, self.homepage = version, homepage
        self.files = source_files()
        self.name = f"attune-{self.version}"
        sources = Contents()
        for path in self.files:
            sources.add_file(path, root / path)
        self.sources = sources.tar(self.name)
        keywords = description["keywords"]
        self.values = {
            "VERSION": self.version,
            "MINOR_VERSION": self.version.rpartition(".")[0],
            "DESCRIPTION": project("DESCRIPTION"),
            "HOMEPAGE": self.homepage,
            "LICENSE": description["license"],
            "AUTHORS": description["authors"],
            "EIGEN": description["eigen"],
            "KEYWORDS": ", ".join(keywords),
            "KEYWORDS_JSON": json.dumps(keywords),
            "KEYWORDS_XML": "".join(f"\n    <keyword>{word}</keyword>" for word in keywords),
            "DATE": time.strftime("%Y-%m-%d", time.gmtime(seconds())),
            "SOURCE_URL": description["source"].format(homepage=self.homepage, version=self.version),
            "SOURCE_SHA256": hashlib.sha256(self.sources).hexdigest(),
            "SOURCE_SHA512": hashlib.sha512(self.sources).hexdigest(),
        }

    def fill(self, name, text):
        def value(found):
            if found[1] not in self.values:
                raise SystemExit(f"release: {name} asks for @{found[1]}@; there are {' '.join(self.values)}")
            return self.values[found[1]]

        return re.sub(r"@([A-Z][A-Z0-9_]*)@", value, text)

    def tree(self, package):
        """The contents of a package: headers, where it has some, other files of the project, and its own."""
        told, contents = description["packages"][package], Contents()
        files = dict(told.get("files", {}))
        if "headers" in told:
            files |= {"CHANGELOG.md": "CHANGELOG.md", "LICENSE": "LICENSE"}
            for path in self.files:
                on_a_device = not path.is_relative_to("lib/attune/host")
                if path.is_relative_to("lib/attune") and path.suffix == ".hpp" and (on_a_device or told.get("host")):
                    files[path] = Path(told["headers"]) / path.relative_to("lib/attune")
        for source, target in files.items():
            if Path(source) not in self.files:
                raise SystemExit(f"release: {package} wants {source}, which is not there")
            contents.add_file(target, root / source)
        own = Path("ports/packages") / package
        for path in self.files:
            if path.is_relative_to(own):
                to = path.relative_to(own)
                if to.suffix == ".in":
                    contents.add(to.with_suffix(""), self.fill(path, (root / path).read_text()).encode())
                else:
                    contents.add_file(to, root / path)
        return contents

    def write(self, folder):
        """All trees, their archives, the sources' archive, the bill of materials (SPDX) and SHA256SUMS."""
        folder.mkdir(parents=True, exist_ok=True)
        archives = {f"{self.name}.tar.gz": self.sources}
        for package, told in description["packages"].items():
            contents = self.tree(package)
            contents.write(folder / package)
            if told["archive"] == "zip":
                archives[f"attune-{package}-{self.version}.zip"] = contents.zip("attune")
            elif told["archive"] == "pack":
                archives[f"attune.attune.{self.version}.pack"] = contents.zip("")
            else:
                archives[f"attune-{package}-{self.version}.tar.gz"] = contents.tar("attune")
        bill = f"{self.name}.spdx.json"
        archives[bill] = sbom.document(self.values, archives, f"{self.name}.tar.gz", seconds()).encode()
        for name, data in archives.items():
            (folder / name).write_bytes(data)
        sums = [f"{hashlib.sha256(data).hexdigest()}  {name}\n" for name, data in sorted(archives.items())]
        (folder / "SHA256SUMS").write_text("".join(sums))
        return sorted(archives)
