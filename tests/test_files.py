"""Atomic writing: after any error the earlier file is intact and no other file is left."""

import errno
import os
import stat

import pytest

from noregret.files import write_atomically


def full_disk(*_):
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def half_then_crash(file):
    file.write(b"half of the new")
    raise RuntimeError("crash")


def half_then_interrupt(file):
    file.write(b"half of the new")
    raise KeyboardInterrupt


def half_then_full(file):
    file.write(b"half of the new")
    file.flush()
    full_disk()


@pytest.fixture
def path(tmp_path):
    """A folder that holds one earlier file."""
    (tmp_path / "run.npz").write_bytes(b"the earlier content")
    return tmp_path / "run.npz"


def assert_untouched(path):
    assert path.read_bytes() == b"the earlier content"
    assert os.listdir(path.parent) == ["run.npz"]


def test_writes_and_replaces(path):
    write_atomically(path, lambda file: file.write(b"new"))
    assert path.read_bytes() == b"new"
    write_atomically(str(path), lambda file: file.write(b"newer"))
    assert path.read_bytes() == b"newer"
    write_atomically(path.with_name("other"), lambda file: file.write(b""))
    assert sorted(os.listdir(path.parent)) == ["other", "run.npz"]


def test_a_name_without_a_folder_means_this_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write_atomically("here", lambda file: file.write(b"x"))
    assert os.listdir(tmp_path) == ["here"]


def test_a_folder_that_is_missing_or_none_is_named(path):
    missing = path.parent / "none" / "page.html"
    with pytest.raises(FileNotFoundError) as found:
        write_atomically(missing, lambda file: file.write(b"x"))
    advice = f"there is no folder {str(missing.parent)!r}: make it first, or write elsewhere"
    assert (found.value.strerror, found.value.filename) == (advice, str(missing))
    with pytest.raises(NotADirectoryError) as found:
        write_atomically(path / "page.html", lambda file: file.write(b"x"))
    assert found.value.filename == str(path / "page.html")
    assert_untouched(path)


@pytest.mark.parametrize(
    ("write", "error"),
    [(half_then_crash, RuntimeError), (half_then_interrupt, KeyboardInterrupt), (half_then_full, OSError)],
)
def test_a_crash_while_writing_leaves_the_earlier_file(path, write, error):
    with pytest.raises(error):
        write_atomically(path, write)
    assert_untouched(path)


@pytest.mark.parametrize("step", ["fsync", "replace", "chmod"])
def test_a_full_disk_at_any_later_step_leaves_the_earlier_file(path, monkeypatch, step):
    monkeypatch.setattr(os, step, full_disk)
    with pytest.raises(OSError, match="No space left"):
        write_atomically(path, lambda file: file.write(b"new"))
    monkeypatch.undo()
    assert_untouched(path)


def test_the_new_content_is_on_the_disk_before_it_gets_its_name(path, monkeypatch):
    steps = []
    for name in ("fsync", "replace"):
        real = getattr(os, name)
        monkeypatch.setattr(os, name, lambda *a, name=name, real=real: (steps.append(name), real(*a))[1])
    write_atomically(path, lambda file: file.write(b"new"))
    assert steps[:2] == ["fsync", "replace"]


def test_nobody_sees_half_a_file(path):
    seen = []

    def write(file):
        file.write(b"half")
        file.flush()
        seen.append(path.read_bytes())
        file.write(b" and half")

    write_atomically(path, write)
    assert seen == [b"the earlier content"]
    assert path.read_bytes() == b"half and half"


@pytest.mark.skipif(os.name != "posix", reason="permissions are a POSIX matter")
def test_others_may_read_a_new_file_as_the_umask_says(path):
    before = os.umask(0o027)
    try:
        write_atomically(path.with_name("new"), lambda file: file.write(b"new"))
        assert os.umask(0o027) == 0o027
    finally:
        os.umask(before)
    assert stat.S_IMODE(path.with_name("new").stat().st_mode) == 0o640


@pytest.mark.skipif(os.name != "posix", reason="permissions are a POSIX matter")
@pytest.mark.parametrize("mode", [0o600, 0o664, 0o755])
def test_a_file_keeps_its_permissions(path, mode):
    path.chmod(mode)
    write_atomically(path, lambda file: file.write(b"new"))
    assert stat.S_IMODE(path.stat().st_mode) == mode
    assert path.read_bytes() == b"new"


def test_a_missing_folder_is_an_ordinary_error(tmp_path):
    with pytest.raises(FileNotFoundError):
        write_atomically(tmp_path / "missing" / "run.npz", lambda file: file.write(b"new"))


@pytest.mark.skipif(os.name != "posix", reason="links need permissions elsewhere")
def test_a_link_is_written_through(tmp_path):
    (tmp_path / "real").write_bytes(b"old")
    (tmp_path / "link").symlink_to("real")
    write_atomically(tmp_path / "link", lambda file: file.write(b"new"))
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "real").read_bytes() == b"new"


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs named pipes")
def test_what_is_no_file_is_not_replaced(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    for name in ("pipe", "."):
        with pytest.raises(FileExistsError, match="not a regular file, so it cannot be replaced: write elsewhere"):
            write_atomically(tmp_path / name, lambda file: file.write(b"new"))
    assert (tmp_path / "pipe").is_fifo()
