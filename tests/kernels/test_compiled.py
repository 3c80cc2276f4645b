import os

from bayesfair.kernels.compiled import drop_stale


def kernels(tmp_path):
    (tmp_path / "__pycache__").mkdir()
    (tmp_path / "inner.py").write_text("inner = 1\n")
    (tmp_path / "outer.py").write_text("outer = 2\n")
    drop_stale(tmp_path)
    for name in ("inner.f-1.py312.nbi", "outer.g-1.py312.nbi", "outer.g-1.py312.1.nbc"):
        (tmp_path / "__pycache__" / name).touch()
    return tmp_path


def test_a_change_in_one_source_drops_what_the_others_compiled(tmp_path):
    folder = kernels(tmp_path)
    assert drop_stale(folder) == 0
    (folder / "inner.py").write_text("inner = 2\n")
    os.utime(folder / "inner.py", ns=(1, 1))
    assert drop_stale(folder) == 3
    assert not list((folder / "__pycache__").glob("*.nb?"))
    assert drop_stale(folder) == 0


def test_a_source_that_goes_counts_as_a_change(tmp_path):
    folder = kernels(tmp_path)
    (folder / "outer.py").unlink()
    assert drop_stale(folder) == 3


def test_other_files_are_left_alone(tmp_path):
    folder = kernels(tmp_path)
    kept = folder / "__pycache__" / "inner.cpython-312.pyc"
    kept.touch()
    (folder / "new.py").touch()
    drop_stale(folder)
    assert kept.exists()


def test_a_folder_without_cache_is_no_error(tmp_path):
    (tmp_path / "inner.py").touch()
    assert drop_stale(tmp_path) == 0
