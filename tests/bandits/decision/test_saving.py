"""Runs that are saved and continued, and arms that change."""

import errno
import json
import math
import os
import pickle
from dataclasses import dataclass

import numpy as np
import pytest
from sklearn.gaussian_process.kernels import RBF
from tests.bandits.decision.test_policy import ARMS, KERNEL, Batches, batches, knows, saved

from noregret import (
    UCB,
    Box,
    Constant,
    ExactGP,
    Matern,
    Policy,
    Pull,
    Sequential,
    SquaredExponential,
    Tabular,
    Thompson,
    __version__,
    algorithms,
)
from noregret.bandits.decision.saving import describe


@dataclass(frozen=True)
class Renamed:
    """A class whose fields have changed since a policy was saved with it."""

    other: int = 0


def load(path):
    """Continue a run of one of the classes above."""
    return Policy.load(path, trusted=[Batches, Renamed])


def world(arms):
    """A reward that depends on the arm alone."""
    return 0.3 * np.sin(7 * ARMS[arms, 0])


def play(policy, rounds):
    asked = []
    for _ in range(rounds):
        arms = policy.ask()
        policy.tell(arms, world(arms))
        asked += arms.tolist()
    return asked


def assert_goes_on_the_same(policy, loaded, rounds=25):
    assert loaded.ask().tolist() == policy.ask().tolist()
    assert knows(loaded.belief) == knows(policy.belief)
    assert play(loaded, rounds) == play(policy, rounds)
    assert loaded.best() == policy.best()


@pytest.mark.slow
@pytest.mark.parametrize("rounds", [0, 1, 7, 60])
@pytest.mark.parametrize("builder", [algorithms.gp_ts, algorithms.random, algorithms.dmm_ucb, algorithms.gp_ei])
def test_a_loaded_policy_goes_on_the_same(builder, rounds, tmp_path):
    policy = Policy(builder(KERNEL), ARMS, rng=11)
    policy.tell([2, 3], [0.1, 0.2])
    play(policy, rounds)
    policy.save(tmp_path / "run.npz")
    loaded = Policy.load(tmp_path / "run.npz")
    assert loaded.algorithm == policy.algorithm
    assert_goes_on_the_same(policy, loaded)


@pytest.mark.parametrize("told", [(), (1,), (1, 1), (7, 9, 4), (9, 9)])
def test_a_round_under_way_is_saved_too(told, tmp_path):
    policy = batches()
    play(policy, 3)
    policy.ask()
    for arm in told:
        policy.tell(arm, 0.5)
    policy.save(str(tmp_path / "run.npz"))
    loaded = load(str(tmp_path / "run.npz"))
    assert loaded.ask().tolist() == policy.ask().tolist()
    assert_goes_on_the_same(policy, loaded, 5)


def test_whether_it_was_asked_is_saved_too(tmp_path):
    """Before ask() a reward is used immediately, after it with the round."""
    for asked, rounds in ((False, 1), (True, 0)):
        policy = batches()
        if asked:
            policy.ask()
        policy.save(tmp_path / "run.npz")
        loaded = load(tmp_path / "run.npz")
        loaded.tell(9, 1.0)
        assert loaded.belief.rounds == rounds


def test_saving_changes_nothing_and_a_loaded_policy_saves_the_same(tmp_path):
    policy = batches()
    play(policy, 2)
    policy.ask()
    policy.tell([2, 8], [0.5, 0.6])
    first = saved(policy, tmp_path)
    assert saved(policy, tmp_path) == first
    assert saved(load(tmp_path / "state.npz"), tmp_path) == first


@pytest.mark.parametrize(
    "rng",
    [
        None,
        2**100,
        np.random.default_rng(3),
        np.random.SeedSequence([1, 2]).spawn(3)[2],
        np.random.SeedSequence(np.array([1, 2])),
        np.random.SeedSequence(np.int64(4), spawn_key=np.array([3])),
    ],
    ids=lambda rng: type(rng).__name__,
)
def test_every_seed_is_saved(rng, tmp_path):
    policy = Policy(algorithms.gp_ts(KERNEL), ARMS, rng=rng)
    policy.save(tmp_path / "run.npz")
    assert_goes_on_the_same(policy, Policy.load(tmp_path / "run.npz"))


@pytest.mark.parametrize(
    "kernel",
    [
        SquaredExponential((0.2,)),
        2 * Matern(2.5, 0.3) + SquaredExponential(0.1) * Matern(0.8, 1.0),
        Tabular(Matern(0.5, 0.2)(ARMS, ARMS)),
    ],
    ids=["ARD", "sum of products", "table"],
)
def test_every_kernel_is_saved(kernel, tmp_path):
    arms = kernel.arms if isinstance(kernel, Tabular) else ARMS
    policy = Policy(algorithms.igp_ucb(kernel, gain="greedy"), arms, rng=0)
    play(policy, 3)
    policy.save(tmp_path / "run.npz")
    loaded = Policy.load(tmp_path / "run.npz")
    assert loaded.algorithm.model.kernel == kernel
    assert_goes_on_the_same(policy, loaded)


def with_lambda():
    return Sequential(ExactGP(KERNEL, 0.1), Thompson(lambda belief: 1.0 + belief.rounds))


def with_scikit_learn():
    return algorithms.gp_ts(RBF(0.2))


@pytest.mark.parametrize("make", [with_lambda, with_scikit_learn])
def test_functions_and_foreign_objects_come_back_by_hand(make, tmp_path):
    policy = Policy(make(), ARMS, rng=0)
    play(policy, 5)
    policy.save(tmp_path / "run.npz")
    with pytest.raises(ValueError, match=r"cannot be rebuilt from a file.*Policy.load\(path, algorithm=\.\.\.\)$"):
        Policy.load(tmp_path / "run.npz")
    assert_goes_on_the_same(policy, Policy.load(tmp_path / "run.npz", algorithm=make()))


def test_a_run_whose_loop_has_failed_can_still_be_saved_up_to_there(tmp_path):
    def width(belief):
        if belief.rounds == 3:
            raise RuntimeError("no width")
        return 1.0

    policy = Policy(Sequential(ExactGP(KERNEL, 0.1), UCB(width)), ARMS, rng=0)
    play(policy, 2)
    with pytest.raises(RuntimeError, match="no width"):
        policy.tell(policy.ask(), [1.0])
    policy.save(tmp_path / "run.npz")
    assert Policy.load(tmp_path / "run.npz", policy.algorithm).belief.rounds == 2


def test_another_algorithm_than_the_saved_one_is_refused(tmp_path):
    Policy(algorithms.igp_ucb(KERNEL), ARMS, rng=0).save(tmp_path / "run.npz")
    with pytest.raises(
        ValueError, match=r"^the policy was saved with Sequential\(.*but algorithm=Sequential\(.*passed$"
    ):
        Policy.load(tmp_path / "run.npz", algorithm=algorithms.igp_ucb(SquaredExponential(0.3)))


def rewritten(path, changed, **arrays):
    """The same file with another record, and with other arrays."""
    with np.load(path) as file:
        content = dict(file)
    about = changed(json.loads(str(content["about"])))
    np.savez(path, **content | {"about": np.array(json.dumps(about))} | arrays)


class Fickle:
    """Asks for arms in an order that depends on ``shift``, which its repr hides."""

    shift = 0

    def __repr__(self):
        return "Fickle()"

    def play(self, arms, rng):
        belief, t = ExactGP(KERNEL, 0.1).prior(arms), 0
        while True:
            pulled, rewards = yield Pull(np.array([(t * t + self.shift) % 10]), belief, np.arange(len(arms)))
            belief.update(pulled, rewards)
            t += 1

    def bounds(self, belief):
        return UCB(Constant(2.0)).bounds(belief)


@pytest.mark.parametrize("rounds", [0, 1, 5])
def test_a_replay_that_asks_for_other_arms_is_refused(rounds, tmp_path, monkeypatch):
    policy = Policy(Fickle(), ARMS, rng=0)
    play(policy, rounds)
    policy.save(tmp_path / "run.npz")
    assert Policy.load(tmp_path / "run.npz", Fickle()).ask().tolist() == policy.ask().tolist()
    monkeypatch.setattr(Fickle, "shift", 1)
    with pytest.raises(ValueError, match=rf"asks for other arms .*saved by noregret {__version__}, this"):
        Policy.load(tmp_path / "run.npz", Fickle())
    with np.load(tmp_path / "run.npz") as file:  # as the message says
        policy = Policy(Fickle(), file["arms"])
        policy.tell(file["sent_arms"], file["sent_rewards"])
    assert policy.belief.rounds == rounds


@pytest.mark.slow
def test_a_box_is_compared_by_its_points(tmp_path):
    policy = Policy(algorithms.reds(KERNEL, constants="experiment", first_epoch=5), Box([[0.0, 3.0]]), rng=0)
    for _ in range(2):
        asked = policy.ask()
        policy.tell(asked, 0.1 * asked[:, 0])
    policy.save(tmp_path / "run.npz")
    np.testing.assert_array_equal(Policy.load(tmp_path / "run.npz").ask(), policy.ask())
    rewritten(tmp_path / "run.npz", lambda about: about | {"seed": {"entropy": 1, "spawn_key": []}})
    with pytest.raises(ValueError, match="asks for other arms"):
        Policy.load(tmp_path / "run.npz")


def test_a_file_says_which_version_wrote_it(tmp_path):
    batches().save(tmp_path / "run.npz")
    with np.load(tmp_path / "run.npz") as file:
        assert json.loads(str(file["about"]))["version"] == __version__


def test_a_table_is_saved_as_an_array(tmp_path):
    """8 MB as an array of 1,000 x 1,000 numbers; they were 81 MB of text."""
    kernel = Tabular(Matern(0.5, 0.2)(np.linspace(0, 1, 300)[:, None], np.linspace(0, 1, 300)[:, None]))
    policy = Policy(algorithms.gp_ts(kernel), kernel.arms, rng=0)
    policy.save(tmp_path / "run.npz")
    assert (tmp_path / "run.npz").stat().st_size < 1.1 * 8 * 300**2
    assert Policy.load(tmp_path / "run.npz").algorithm == policy.algorithm


def test_another_table_than_the_saved_one_is_refused(tmp_path):
    tables = [Tabular(np.eye(10) + offset) for offset in (0.0, 0.5)]
    assert repr(tables[0]) == repr(tables[1])
    Policy(algorithms.gp_ts(tables[0]), tables[0].arms, rng=0).save(tmp_path / "run.npz")
    Policy.load(tmp_path / "run.npz", algorithm=algorithms.gp_ts(tables[0]))
    with pytest.raises(ValueError, match=r"^the policy was saved with .*other numbers in an array"):
        Policy.load(tmp_path / "run.npz", algorithm=algorithms.gp_ts(tables[1]))


def before_the_digest(about):
    """The record as the first format had it."""
    kept = {
        name: value for name, value in about.items() if name not in ("asks", "version", "events", "at_once", "given")
    }
    return kept | {"format": 1, "asked": False, "changes": []}


def test_a_file_of_the_first_format_is_loaded_with_a_note(tmp_path):
    policy = Policy(algorithms.gp_ts(KERNEL), ARMS, rng=0)
    play(policy, 4)
    policy.save(tmp_path / "run.npz")
    rewritten(tmp_path / "run.npz", before_the_digest)
    with pytest.warns(UserWarning, match=r"run.npz was saved without a digest of its asks"):
        loaded = Policy.load(tmp_path / "run.npz")
    assert_goes_on_the_same(policy, loaded)
    loaded.save(tmp_path / "run.npz")
    Policy.load(tmp_path / "run.npz")


OLD = {
    "format": 2,
    "version": "0.1.0",
    "asks": "b48737d19608d5f02580fba47418caaf5627ccd7208c779055d01a04257d9c4b",
    "algorithm": {"opaque": "not needed"},
    "seed": {"entropy": 3, "spawn_key": []},
    "box": False,
    "asked": True,
    "changes": [5],
}
"""The record of a run that noregret 0.1.0 saved: `random` on ten arms from seed 3, the arms turned round on the way."""


def test_a_file_of_the_second_format_goes_on_as_it_would_have(tmp_path):
    algorithm, arrays = algorithms.random(KERNEL), {}
    about = OLD | {"repr": repr(algorithm), "algorithm": describe(algorithm, arrays)}
    sent, held = np.array([2, 3, 5, 1, 3, 6, 8, 1, 4]), np.array([9])
    np.savez(
        tmp_path / "run.npz",
        about=np.array(json.dumps(about)),
        arms=ARMS,
        change_0=ARMS[::-1],
        sent_arms=sent,
        sent_rewards=np.concatenate([[0.1, 0.2], world(sent[2:])]),
        sent_lengths=np.array([2, 1, 1, 1, 1, 1, 1, 1]),
        held_arms=held,
        held_rewards=np.array([0.25]),
        held_lengths=np.array([1]),
    )
    for path in ("run.npz", "again.npz"):
        policy = Policy.load(tmp_path / path)
        policy.save(tmp_path / "again.npz")
        assert policy.ask().tolist() == [0]
        assert policy.belief.rounds == 10
    # the continuation by 0.1.0 itself
    assert play(policy, 20) == [0, 2, 7, 0, 6, 4, 6, 4, 9, 5, 2, 4, 3, 6, 6, 0, 5, 0, 8, 6]


def test_a_class_that_has_moved_within_the_library_is_found(tmp_path):
    policy = Policy(algorithms.reds(KERNEL, horizon=100), ARMS, rng=0)
    policy.save(tmp_path / "run.npz")

    def as_it_was(about):
        text = json.dumps(about).replace("noregret.bandits.decision.elimination:", "noregret.decision.elimination:")
        assert "noregret.decision.elimination:" in text
        return json.loads(text)

    rewritten(tmp_path / "run.npz", as_it_was)
    assert Policy.load(tmp_path / "run.npz").algorithm == policy.algorithm
    assert Policy.load(tmp_path / "run.npz", policy.algorithm).algorithm == policy.algorithm


@pytest.mark.parametrize(
    "name",
    [
        "not.imported:Thing",
        "os:system",
        "noregret.bandits.decision.saving:re.Pattern",  # imported by a module of noregret, but not one of its classes
        "noregret.bandits.decision.policy:Policy",  # not a dataclass
        "inspect:Parameter",
    ],
)
def test_a_class_that_is_neither_noregrets_nor_trusted_is_refused(name, tmp_path):
    batches().save(tmp_path / "run.npz")
    rewrite(tmp_path / "run.npz", algorithm={"class": name, "fields": {}})
    own = name.replace(":", ".").rpartition(".")[2]
    with pytest.raises(
        ValueError, match=rf"^{name} is not a dataclass of noregret, .*trusted=\[{own}\]\); or pass the alg"
    ):
        load(tmp_path / "run.npz")


@dataclass(frozen=True)
class Recorder:
    """A dataclass of an imported module that is not noregret's; records that one was created."""

    width: object = None

    def __post_init__(self):
        BUILT.append(self)


BUILT = []


def test_nothing_is_built_of_a_file_that_names_another_modules_dataclass(tmp_path, monkeypatch):
    policy = Policy(Sequential(ExactGP(KERNEL, 0.1), UCB(Constant(2.0))), ARMS, rng=0)
    policy.save(tmp_path / "run.npz")
    ours, foreign = describe(Constant(2.0)), {"class": f"{__name__}:Recorder", "fields": {"width": None}}
    monkeypatch.setattr(Constant, "__init__", lambda self, value: BUILT.append(self))
    BUILT.clear()
    for record in ({"tuple": [ours, foreign]}, foreign | {"fields": {"width": ours}}):
        rewrite(tmp_path / "run.npz", algorithm=record)
        with pytest.raises(ValueError, match="Recorder is not a dataclass of noregret"):
            Policy.load(tmp_path / "run.npz")
        assert not BUILT


def test_a_trusted_class_is_built(tmp_path):
    policy = batches()
    play(policy, 5)
    policy.save(tmp_path / "run.npz")
    assert_goes_on_the_same(policy, Policy.load(tmp_path / "run.npz", trusted=[Batches]))


def test_a_class_whose_fields_have_changed_is_a_clear_error(tmp_path):
    batches().save(tmp_path / "run.npz")
    name = f"{Renamed.__module__}:Renamed"
    rewrite(tmp_path / "run.npz", algorithm={"class": name, "fields": {"gone": 1}})
    with pytest.raises(ValueError, match=r"unexpected keyword argument 'gone'; or pass the algorithm itself"):
        load(tmp_path / "run.npz")


def rewrite(path, **changes):
    """Change entries of a saved policy's record."""
    with np.load(path) as file:
        content = dict(file)
    about = json.loads(str(content["about"])) | changes
    with open(path, "wb") as file:
        np.savez(file, **(content | {"about": np.array(json.dumps(about))}))


def test_a_file_of_a_newer_format_says_so(tmp_path):
    batches().save(tmp_path / "run.npz")
    rewrite(tmp_path / "run.npz", format=99)
    with pytest.raises(ValueError, match=r"run.npz has format 99, this noregret reads up to 3: upgrade it$"):
        Policy.load(tmp_path / "run.npz")


def write_foreign(kind, path):
    with open(path, "wb") as file:
        match kind:
            case "text":
                file.write(b"hello")
            case "pickle":
                pickle.dump({"about": 1}, file)
            case "npy":
                np.save(file, np.zeros(3))
            case "npz":
                np.savez(file, a=np.zeros(3))
            case "about a number":
                np.savez(file, about=np.array("3"))
            case "about nothing":
                np.savez(file, about=np.array("{}"))
            case "about no JSON":
                np.savez(file, about=np.array("{"))


@pytest.mark.parametrize(
    "kind", ["empty", "text", "pickle", "npy", "npz", "about a number", "about nothing", "about no JSON"]
)
def test_a_foreign_file_says_so(kind, tmp_path):
    write_foreign(kind, tmp_path / "run.npz")
    with pytest.raises(ValueError, match=r"run.npz is damaged or not a saved policy \("):
        Policy.load(tmp_path / "run.npz")


@pytest.mark.parametrize("depth", [3000, 100_000])
def test_a_record_that_is_nested_very_deeply_is_refused_in_one_line(depth, tmp_path):
    path = tmp_path / "run.npz"
    Policy(algorithms.gp_ts(KERNEL), ARMS, rng=0).save(path)
    with np.load(path) as archive:
        content = dict(archive)
    about = json.loads(str(content["about"])) | {"algorithm": "HERE"}
    deep = '{"tuple": [' * depth + "1" + "]}" * depth
    np.savez(path, **content | {"about": np.array(json.dumps(about).replace('"HERE"', deep))})
    with pytest.raises(ValueError, match=r"run.npz is damaged or not a saved policy \(.*\)$") as error:
        Policy.load(path)
    assert "\n" not in str(error.value)


def test_a_missing_file_is_an_ordinary_error(tmp_path):
    with pytest.raises(FileNotFoundError):
        Policy.load(tmp_path / "run.npz")


@pytest.mark.slow
def test_damage_anywhere_is_found_or_harmless(tmp_path):
    """Cut the file, or flip a byte, at many places: a ValueError that names the file, or the same policy."""
    policy = batches()
    play(policy, 4)
    policy.save(tmp_path / "good.npz")
    state, whole, path = saved(policy, tmp_path), (tmp_path / "good.npz").read_bytes(), tmp_path / "bad.npz"
    rng = np.random.default_rng(0)
    for place in [*range(0, len(whole), 97), *range(len(whole) - 100, len(whole))]:
        flipped = bytearray(whole)
        flipped[place] ^= 1 << int(rng.integers(8))
        for damaged in (bytes(flipped), whole[:place]):
            path.write_bytes(damaged)
            try:
                loaded = load(path)
            except ValueError as error:
                assert "bad.npz is damaged or not a saved policy" in str(error)  # noqa: PT017
            else:
                assert saved(loaded, tmp_path) == state


class Bomb:
    """Runs code when unpickled."""

    def __reduce__(self):
        return os.mkdir, ("exploded",)


@pytest.mark.parametrize("name", ["about", "arms", "sent_rewards"])
def test_nothing_is_unpickled(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    batches().save("run.npz")
    with np.load("run.npz") as file:
        content = dict(file)
    np.savez("run.npz", **(content | {name: np.array([Bomb()], dtype=object)}))
    with pytest.raises(ValueError, match=r"^run.npz is damaged or not a saved policy"):
        Policy.load("run.npz")
    assert os.listdir() == ["run.npz"]


def test_a_record_that_asks_for_a_missing_arm_is_refused(tmp_path):
    policy = batches()
    play(policy, 1)
    policy.save(tmp_path / "run.npz")
    with np.load(tmp_path / "run.npz") as file:
        content = dict(file)
    with open(tmp_path / "run.npz", "wb") as file:
        np.savez(file, **(content | {"sent_arms": np.array([4, 1, 1, 77])}))
    with pytest.raises(ValueError, match=r"^arm must be in 0\.\.9, got 77$"):
        load(tmp_path / "run.npz")


def disk_full(file, **_):
    if hasattr(file, "write"):
        file.write(b"PK half of a file")
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def crash(*_, **__):
    raise KeyboardInterrupt


@pytest.mark.parametrize(
    ("where", "name", "failure", "error"),
    [
        (np, "savez", disk_full, OSError),
        (np, "savez", crash, KeyboardInterrupt),
        (os, "fsync", disk_full, OSError),
        (os, "replace", crash, KeyboardInterrupt),
    ],
    ids=["disk full", "killed", "flush fails", "killed before the rename"],
)
def test_a_crash_while_saving_leaves_the_earlier_file(where, name, failure, error, tmp_path, monkeypatch):
    policy = batches()
    play(policy, 2)
    policy.save(tmp_path / "run.npz")
    earlier = (tmp_path / "run.npz").read_bytes()
    play(policy, 3)
    monkeypatch.setattr(where, name, failure)
    with pytest.raises(error):
        policy.save(tmp_path / "run.npz")
    monkeypatch.undo()
    assert (tmp_path / "run.npz").read_bytes() == earlier
    assert os.listdir(tmp_path) == ["run.npz"]
    assert load(tmp_path / "run.npz").belief.rounds == 5
    policy.save(tmp_path / "run.npz")
    assert load(tmp_path / "run.npz").belief.rounds == policy.belief.rounds


# --- changing the arms ---

OTHERS = np.linspace(-1, 2, 7)[:, None]


def test_changing_the_arms_keeps_what_was_learnt():
    policy = Policy(algorithms.amm_ucb(KERNEL), ARMS, rng=0)
    play(policy, 8)
    expected = policy.belief.predict(OTHERS)
    policy.change_arms(OTHERS)
    assert policy.arms.tolist() == OTHERS.tolist()
    np.testing.assert_allclose((policy.belief.mean, policy.belief.std), expected, atol=1e-9)
    assert policy.belief.rounds == 8
    assert max(policy.ask()) < 7
    with pytest.raises(ValueError, match=r"^arm must be in 0\.\.6, got 7$"):
        policy.tell(7, 1.0)


def test_changing_the_arms_forgets_what_was_asked_and_not_what_was_told():
    policy = Policy(algorithms.amm_ucb(KERNEL), ARMS, rng=0)
    policy.ask()
    policy.tell(np.setdiff1d([0, 1], policy.ask())[:1], [0.3])
    assert policy.belief.rounds == 1
    policy.change_arms(OTHERS)
    assert policy.belief.rounds == 1
    policy.tell(2, 0.5)
    assert policy.belief.rounds == 2


def test_changed_arms_are_saved_too(tmp_path):
    policy = Policy(algorithms.gp_ts(KERNEL), ARMS, rng=0)
    policy.change_arms(OTHERS)
    policy.change_arms(ARMS)
    play(policy, 3)
    policy.ask()
    policy.tell([5, 6], [0.1, 0.2])
    policy.change_arms(OTHERS)
    policy.tell(policy.ask(), [0.4])
    policy.change_arms(ARMS[:8])
    policy.save(tmp_path / "run.npz")
    assert_goes_on_the_same(policy, Policy.load(tmp_path / "run.npz"))


@pytest.mark.parametrize(
    ("arms", "message"),
    [
        (np.zeros((3, 2)), r"^new arms must have 1 columns like the old ones, got 2$"),
        ([1.0, 2.0], r"^arms must be an \(N, d\) array"),
        ([[math.nan]], r"^arm 0 is not finite"),
        ([[99.0]], r"^points of this Tabular kernel must be in 0\.\.9$"),
    ],
)
def test_bad_new_arms_change_nothing(arms, message, tmp_path):
    policy = Policy(algorithms.gp_ts(Tabular(np.eye(10))), np.arange(10.0)[:, None], rng=0)
    play(policy, 3)
    policy.ask()
    state, belief = saved(policy, tmp_path), knows(policy.belief)
    with pytest.raises(ValueError, match=message):
        policy.change_arms(arms)
    assert (saved(policy, tmp_path), knows(policy.belief)) == (state, belief)
    play(policy, 3)


def test_an_algorithm_that_cannot_change_its_arms_says_so():
    with pytest.raises(ValueError, match=r"^Batches cannot change its arms in the middle of a run$"):
        batches().change_arms(OTHERS)
