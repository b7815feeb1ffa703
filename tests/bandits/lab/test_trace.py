import json

import numpy as np
import pytest

from noregret import Trace
from noregret.bandits.lab.trace import RECORD, write_pair


def make(rounds=40, **changes):
    rng = np.random.default_rng(rounds)
    fields = {
        "arms": rng.integers(9, size=rounds),
        "rewards": rng.standard_normal(rounds),
        "regret": rng.random(rounds),
        "seconds": 0.125,
        "algorithm": "Sequential(µ)",
        "problem": "toy",
        "seed": {"entropy": 2**100 + 1, "spawn_key": [3, 1]},
    }
    return Trace(**(fields | changes))


@pytest.mark.parametrize("name", ["run-0.5", "run-0.5.npz", "run-0.5.json"])
def test_save_and_load_are_inverse(tmp_path, name):
    trace = make()
    trace.save(tmp_path / name)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["run-0.5.json", "run-0.5.npz"]
    loaded = Trace.load(str(tmp_path / name))
    for field in ("arms", "rewards", "regret"):
        np.testing.assert_array_equal(getattr(loaded, field), getattr(trace, field), strict=True)
    for field in ("seconds", "algorithm", "problem", "seed", "versions"):
        assert getattr(loaded, field) == getattr(trace, field)


def test_saving_again_replaces_both_files(tmp_path):
    make(40).save(tmp_path / "a")
    make(50, problem="other").save(tmp_path / "a")
    assert Trace.load(tmp_path / "a").problem == "other"
    assert len(Trace.load(tmp_path / "a").arms) == 50


def test_a_failed_save_leaves_no_pair_and_no_rubbish(tmp_path):
    make().save(tmp_path / "a")
    with pytest.raises(TypeError):
        make(seed={"entropy": object()}).save(tmp_path / "a")
    assert len(Trace.load(tmp_path / "a").arms) == 40
    (tmp_path / "b.npz").mkdir()  # files that cannot be replaced
    with pytest.raises(OSError, match=r"b\.npz"):
        make().save(tmp_path / "b")
    assert sorted(p.name for p in tmp_path.iterdir()) == ["a.json", "a.npz", "b.npz"]


def test_the_record_comes_last(tmp_path, monkeypatch):
    """A stop between the two files leaves nothing that looks complete, not even an older record."""
    make(40).save(tmp_path / "a")
    from noregret.bandits.lab import trace as module

    real = module.write_atomically

    def stop_at_record(path, write):
        if path.suffix == ".json":
            raise KeyboardInterrupt
        real(path, write)

    monkeypatch.setattr(module, "write_atomically", stop_at_record)
    with pytest.raises(KeyboardInterrupt):
        make(50).save(tmp_path / "a")
    with pytest.raises(FileNotFoundError):
        Trace.load(tmp_path / "a")


def flip(path):
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)


@pytest.mark.parametrize(
    ("harm", "message"),
    [
        (lambda p: flip(p / "a.npz"), "a.npz is damaged: it does not match the checksum"),
        (lambda p: (p / "a.npz").write_bytes((p / "a.npz").read_bytes()[:-20]), "a.npz is damaged"),
        (lambda p: (p / "a.npz").unlink(), "a.npz is damaged"),
        (lambda p: (p / "a.json").write_text((p / "a.json").read_text()[:50]), "a.json is damaged or not a trace"),
        (lambda p: (p / "a.json").write_text("[]"), "a.json is damaged or not a trace"),
        (lambda p: (p / "a.json").write_text("{}"), "a.json is not a trace: it lacks algorithm, format"),
    ],
)
def test_damage_is_noticed(tmp_path, harm, message):
    make().save(tmp_path / "a")
    harm(tmp_path)
    with pytest.raises(ValueError, match=message):
        Trace.load(tmp_path / "a")


def test_a_later_format_is_refused(tmp_path):
    make().save(tmp_path / "a")
    record = json.loads((tmp_path / "a.json").read_text())
    (tmp_path / "a.json").write_text(json.dumps(record | {"format": 99}))
    with pytest.raises(ValueError, match="has format 99, this noregret reads 1: upgrade"):
        Trace.load(tmp_path / "a")


def test_traces_need_no_pickle(tmp_path):
    make().save(tmp_path / "a")
    with np.load(tmp_path / "a.npz", allow_pickle=False) as stored:
        assert sorted(stored) == ["arms", "regret", "rewards", "simple_regret"]


def test_a_trace_of_before_the_simple_regret_has_none(tmp_path):
    make().save(tmp_path / "a")
    with np.load(tmp_path / "a.npz") as stored:
        arrays = {name: stored[name] for name in stored if name != "simple_regret"}
    record = json.loads((tmp_path / "a.json").read_text())
    write_pair(tmp_path / "a", arrays, {name: record[name] for name in RECORD})
    assert Trace.load(tmp_path / "a").simple_regret.shape == (0,)
