"""Build and test `recipe.yaml` by rattler-build without conda-forge, on packages made of wheels.

    python3.12 -m venv v && v/bin/pip install . packaging setuptools py-rattler-build
    v/bin/python packaging/local_channel.py FOLDER

Every distribution of that environment, and the Python beneath it (one that can be copied, such as
pyenv's), becomes a conda package under the name that it has on conda-forge. From this channel alone
the recipe is resolved, built, installed into a fresh environment and tested there.
"""

import hashlib
import json
import sys
import sysconfig
from importlib import metadata
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from rattler_build import (
    FileEntry,
    Stage0Recipe,
    ToolConfiguration,
    VariantConfig,
    assemble_package,
    collect_files,
)

NAMES = {"matplotlib": "matplotlib-base", "lazy-loader": "lazy_loader"}
"""Distributions that have another name on conda-forge."""

PLATFORM = "linux-64"
SHORT = f"python{sys.version_info.major}.{sys.version_info.minor}"


def name_of(distribution):
    """Return the name of a distribution on conda-forge."""
    name = canonicalize_name(distribution)
    return NAMES.get(name, name)


def packed(folder, name, version, files, depends=()):
    """Write one package, and return the name of its file and its entry in the channel's list."""
    path = assemble_package(
        name, version, PLATFORM, "0", folder, files=files, depends=depends, compression_level=1
    ).path
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    return path.name, {
        "name": name, "version": version, "build": "0", "build_number": 0, "subdir": PLATFORM,
        "depends": list(depends), "size": path.stat().st_size, "sha256": digest,
    }  # fmt: skip


def python_files(base):
    """Return what makes a Python, without its tests and packages."""
    beside = ["site-packages/**", "test/**", "**/__pycache__/**"]
    library = collect_files(base / "lib" / SHORT, exclude_globs=beside)
    files = [FileEntry.from_paths(f.source, f"lib/{SHORT}/{f.destination}") for f in library]
    program = (base / "bin" / SHORT).resolve()
    files += [FileEntry.from_paths(program, f"bin/{n}") for n in ("python", "python3", SHORT)]
    shared = (base / "lib").glob("libpython*.so*")
    return files + [FileEntry.from_paths(f, f"lib/{f.name}") for f in shared]


def channel(folder):
    """Write the packages of this environment and their list; return how many they are."""
    place = folder / PLATFORM
    place.mkdir(parents=True)
    (folder / "noarch").mkdir()
    version = sys.version.split()[0]
    found = dict([packed(place, "python", version, python_files(Path(sys.base_prefix)))])
    for one in metadata.distributions(path=[sysconfig.get_path("purelib")]):
        if canonicalize_name(one.name) in ("bayesfair", "py-rattler-build"):
            continue
        files = [
            FileEntry.from_paths(one.locate_file(f), f"lib/{SHORT}/site-packages/{f}")
            for f in one.files or ()
            if ".." not in f.parts and f.suffix != ".pyc" and Path(one.locate_file(f)).is_file()
        ]
        needs = [Requirement(text) for text in one.requires or ()]
        needs = [r for r in needs if r.marker is None or r.marker.evaluate({"extra": ""})]
        depends = [f"python >={version}", *sorted({name_of(r.name) for r in needs})]
        found |= [packed(place, name_of(one.name), one.version, files, depends)]
    for subdir, packages in ((PLATFORM, found), ("noarch", {})):
        listed = {"info": {"subdir": subdir}, "packages": {}, "packages.conda": packages}
        (folder / subdir / "repodata.json").write_text(json.dumps(listed))
    return len(found)


if __name__ == "__main__":
    out = Path(sys.argv[1]).resolve()
    print(channel(out / "channel"), "packages in the channel", flush=True)
    recipe = Stage0Recipe.from_file(Path(__file__).with_name("recipe.yaml").resolve())
    for variant in recipe.render(VariantConfig()):
        where = [(out / "channel").as_uri()]
        tests = ToolConfiguration(test_strategy="native")
        print(variant.run_build(tests, out / "built", channels=where))
