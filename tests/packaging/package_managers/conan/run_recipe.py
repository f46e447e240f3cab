#!/usr/bin/env python3
"""Stands for Conan 2: runs a recipe, with archives of a folder in place of the network, and prints its compiler's options.

  run_recipe.py CONANFILE ARCHIVES WORK

WORK/package is what Conan would keep.
"""
import fnmatch
import hashlib
import importlib.util
import shutil
import sys
import tarfile
import types
from pathlib import Path

conanfile, archives, work = (Path(argument) for argument in sys.argv[1:])
required = []


class ConanFile:
    def requires(self, reference, **traits):
        required.append(reference)


def get(recipe, url, sha256, strip_root):
    archive = archives / url.rsplit("/", 1)[1]
    assert hashlib.sha256(archive.read_bytes()).hexdigest() == sha256, f"{archive} is not the recipe's"
    with tarfile.open(archive) as files:
        files.extractall(work / "unpacked")
    folder, = (work / "unpacked").iterdir()
    assert strip_root
    folder.rename(recipe.source_folder)


def copy(recipe, pattern, source, target):
    found = [path for path in Path(source).rglob("*") if fnmatch.fnmatch(path.name, pattern)]
    assert found, f"no {pattern} in {source}"
    for path in found:
        to = Path(target) / path.relative_to(source)
        to.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(path, to)


def at_least(recipe, standard):
    assert standard == 20


def stub(name, **members):
    sys.modules[name] = module = types.ModuleType(name)
    module.__dict__.update(members)


stub("conan", ConanFile=ConanFile)
stub("conan.tools")
stub("conan.tools.build", check_min_cppstd=at_least)
stub("conan.tools.files", copy=copy, get=get)
stub("conan.tools.layout", basic_layout=lambda recipe, src_folder: None)

spec = importlib.util.spec_from_file_location("conanfile", conanfile)
module = importlib.util.module_from_spec(spec)
sys.dont_write_bytecode = True
spec.loader.exec_module(module)
recipe = module.AttuneConan()
recipe.source_folder, recipe.package_folder = str(work / "source"), str(work / "package")
recipe.settings = types.SimpleNamespace(compiler="gcc")
recipe.options = types.SimpleNamespace(**recipe.default_options)
recipe.cpp_info = types.SimpleNamespace(set_property=lambda name, value: None)
for step in ("requirements", "validate", "layout", "source", "package", "package_info"):
    getattr(recipe, step)()
assert required == ["eigen/[>=3.4 <6]"], required
print(*recipe.cpp_info.cxxflags, *(f"-D{define}" for define in recipe.cpp_info.defines), f"-I{work / 'package/include'}")
