"""What is shipped is what git tracks, README's commands are those that CI runs."""

import re
import shutil
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


def tracked(*folders):
    if not (ROOT / ".git").exists():
        pytest.skip("needs the git checkout to know the tracked files")
    done = subprocess.run(
        ["git", "ls-files", *folders], cwd=ROOT, capture_output=True, text=True, check=True
    )
    return done.stdout.splitlines()


def test_sdist_and_wheel_hold_each_tracked_file_once(tmp_path):
    files = tracked()
    source = tmp_path / "source"  # a copy: setuptools reuses what an older build has left behind
    for name in files:
        if (ROOT / name).is_symlink() or (ROOT / name).is_file():
            (source / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, source / name, follow_symlinks=False)
    done = subprocess.run(  # the wheel is made of the sdist, as a packager does
        [sys.executable, "-m", "build", "--no-isolation", "--outdir", tmp_path, source],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
    (sdist,) = tmp_path.glob("*.tar.gz")
    with tarfile.open(sdist) as archive:
        held = {m.name.split("/", 1)[1] for m in archive if m.isfile()}
    made = {
        n for n in held if n.startswith("bayesfair.egg-info/") or n in {"PKG-INFO", "setup.cfg"}
    }
    assert held - made == set(files) - {"bayesfair/models"}  # a link to what is there
    (wheel,) = tmp_path.glob("*.whl")
    names = zipfile.ZipFile(wheel).namelist()
    assert len(names) == len(set(names))
    code = {n for n in names if ".dist-info/" not in n and ".data/" not in n}
    assert code == {
        f.replace("models/", "bayesfair/models/", 1) if f.startswith("models/") else f
        for f in files if f.startswith(("bayesfair/", "models/")) and f != "bayesfair/models"
    }  # fmt: skip
    docs = {n.split(".data/data/share/doc/bayesfair/")[1] for n in names if ".data/" in n}
    assert docs == {"CHANGELOG.md", "CITATION.cff", "SECURITY.md"} | {
        f for f in files if f.startswith("notebooks/") and f.endswith(".ipynb")
    }


def test_the_conda_recipe_asks_for_what_the_package_does():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    recipe = (ROOT / "packaging" / "recipe.yaml").read_text(encoding="utf-8")
    run = re.search(r"\n  run:\n(.*?)\n\n", recipe, flags=re.S).group(1)
    asked = {line.strip(" -").replace("matplotlib-base", "matplotlib") for line in run.splitlines()}
    needed = {re.sub(r"(?<=\w)>=", " >=", one) for one in project["dependencies"]}
    assert asked == needed | {"python >=${{ python_min }}"}
    assert f'version: "{project["version"]}"' in recipe
    assert f'python_min: "{project["requires-python"].removeprefix(">=")}"' in recipe


def test_no_machine_paths_or_lock_files():
    bad = []
    for name in tracked():
        path = ROOT / name
        if path.is_symlink() or not path.is_file():
            continue
        if re.search(r"(uv|poetry|pdm)\.lock$|package-lock\.json$", name):
            bad.append(name)
        if path.suffix in {".py", ".md", ".toml", ".ipynb", ".txt", ".cff", ".csv", ".json"}:
            text = path.read_text(encoding="utf-8")
            home = "/" + "root/"
            if home in text or "/" + "work/" in text or "/" + "home/" in text:
                bad.append(name)
    assert not bad


def test_files_stay_short():
    long = {
        name: count
        for name in tracked("bayesfair", "models", "tests", "benchmarks", "docs")
        if name.endswith(".py") and (ROOT / name).is_file()
        and (count := len((ROOT / name).read_text(encoding="utf-8").splitlines())) > 450
    }  # fmt: skip
    assert not long
