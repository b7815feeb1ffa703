"""The user's number of BLAS threads is never left changed."""

import threading
import time

import numpy as np
import pytest
from threadpoolctl import threadpool_info, threadpool_limits

from noregret import ExactGP, Policy, SquaredExponential, algorithms
from noregret.gp.threads import SMALL, TINY, one_thread, threads_for

WORK = (TINY + SMALL) // 2  # small enough for one thread, large enough to matter


def setting():
    return [threads for path, threads in blas().items() if path in ABLE]


def blas():
    return {
        library["filepath"]: library["num_threads"] for library in threadpool_info() if library["user_api"] == "blas"
    }


ABLE = set()
"""Libraries that can use two threads: other packages bring some that cannot."""


@pytest.fixture(autouse=True)
def two_threads():
    """The user's own setting, in every test."""
    with threadpool_limits(2, user_api="blas"):
        ABLE.update(path for path, threads in blas().items() if threads == 2)
        yield
        assert set(setting()) == {2}


def test_small_work_runs_on_one_thread_and_large_work_on_the_users():
    with threads_for(WORK):
        assert set(setting()) == {1}
    assert set(setting()) == {2}
    with threads_for(10 * SMALL):
        assert set(setting()) == {2}
    with threads_for(TINY / 2):
        assert set(setting()) == {2}


def test_two_threads_are_not_worth_it_below_a_billion():
    """Products of 2,000 arms and a few hundred rows are faster on one thread, and far faster on a busy machine."""
    with threads_for(2_000 * 300 * 300):
        assert set(setting()) == {1}
    with threads_for(20_000 * 1_000 * 1_000), threads_for(10 * SMALL):
        assert set(setting()) == {2}
    with one_thread():
        assert set(setting()) == {1}


def test_the_users_setting_may_change_between_calls():
    with threadpool_limits(1, user_api="blas"):
        with threads_for(WORK):
            pass
        assert set(setting()) == {1}
    with threads_for(WORK):
        pass
    assert set(setting()) == {2}


def test_an_error_inside_gives_the_setting_back():
    for error in (ValueError, KeyboardInterrupt, GeneratorExit):
        with pytest.raises(error), threads_for(WORK):
            raise error
        assert set(setting()) == {2}


def test_nesting_gives_it_back_at_the_outermost_end():
    with threads_for(WORK):
        with threads_for(WORK), threads_for(10 * SMALL), pytest.raises(ValueError, match="inner"), threads_for(WORK):
            raise ValueError("inner")
        assert set(setting()) == {1}
    assert set(setting()) == {2}


def test_overlapping_blocks_of_two_threads():
    """The first leaves while the second is still inside, so nesting and order do not help."""
    second_is_in, first_is_out = threading.Event(), threading.Event()
    seen = []

    def second():
        with threads_for(WORK):
            second_is_in.set()
            first_is_out.wait(10)
            seen.append(setting())

    other = threading.Thread(target=second)
    with threads_for(WORK):
        other.start()
        assert second_is_in.wait(10)
    first_is_out.set()
    other.join()
    assert [set(s) for s in seen] == [{1}]
    assert set(setting()) == {2}


def test_where_every_thread_has_its_own_setting_each_puts_back_its_own(monkeypatch):
    """As with the OpenMP BLAS of PyTorch: what another thread sets is not seen here."""

    class Setting(threading.local):
        number = 2  # of every thread, until it sets its own

    own, seen = Setting(), {}
    switches = ([], [(lambda: own.number, lambda number: setattr(own, "number", number))])
    monkeypatch.setattr("noregret.gp.threads._switches", lambda: switches)
    second_is_in, first_is_out = threading.Event(), threading.Event()

    def second():
        own.number = 4
        with threads_for(WORK):
            second_is_in.set()
            first_is_out.wait(10)
            seen["inside"] = own.number
        seen["after"] = own.number

    other = threading.Thread(target=second)
    with threads_for(WORK):
        other.start()
        assert second_is_in.wait(10)
        with threads_for(WORK):
            assert own.number == 1
        assert own.number == 1
    assert own.number == 2
    first_is_out.set()
    other.join()
    assert seen == {"inside": 1, "after": 4}


def test_a_thread_that_was_inside_does_not_keep_others_from_their_own_setting():
    """It is still alive afterwards, and the user of another thread changes the number."""
    is_out, done = threading.Event(), threading.Event()

    def visit():
        with threads_for(WORK):
            pass
        is_out.set()
        done.wait(10)

    visitor = threading.Thread(target=visit)
    visitor.start()
    assert is_out.wait(10)
    try:
        with threadpool_limits(1, user_api="blas"):
            assert set(setting()) == {1}
        assert set(setting()) == {2}
    finally:
        done.set()
        visitor.join()


@pytest.mark.slow
def test_many_threads_at_once():
    errors = []

    def work(seed):
        rng = np.random.default_rng(seed)
        for _ in range(60):
            try:
                with threads_for(WORK):
                    time.sleep(rng.random() * 1e-3)
                    if set(setting()) != {1}:
                        errors.append("not on one thread inside")
                    if rng.random() < 0.3:
                        raise RuntimeError
            except RuntimeError:
                pass

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not errors
    assert set(setting()) == {2}


def test_beliefs_and_policies_leave_it_alone():
    arms, rng = np.linspace(0, 1, 400)[:, None], np.random.default_rng(0)
    belief = ExactGP(SquaredExponential(0.2), 0.1).prior(arms)
    for size in (1, 1, 40, 1, 200):
        belief.update(rng.integers(400, size=size), rng.standard_normal(size))
        belief.predict(arms[:50])
        belief.sample(rng)
        belief.at(arms[:300])
        assert set(setting()) == {2}
    policy = Policy(algorithms.gp_ts(SquaredExponential(0.2)), arms, rng=0)
    for _ in range(40):
        policy.tell(policy.ask(), [1.0])
    assert set(setting()) == {2}


def test_an_error_within_an_update_leaves_it_alone():
    belief = ExactGP(SquaredExponential(0.2), 1e-20).prior(np.linspace(0, 1, 60)[:, None])
    with pytest.raises(ValueError, match="too small"):
        belief.update(range(60), np.ones(60))
    assert set(setting()) == {2}

    def broken(X, Y):
        raise RuntimeError("kernel")

    broken.diag = lambda X: np.ones(len(X))
    belief = ExactGP(broken, 0.1).prior(np.linspace(0, 1, 60)[:, None])
    with pytest.raises(RuntimeError, match="kernel"):
        belief.update(range(20), np.ones(20))
    assert set(setting()) == {2}


def test_beliefs_of_several_threads_learn_the_same_as_alone():
    arms = np.linspace(0, 1, 200)[:, None]

    def learn(seed, means):
        rng = np.random.default_rng(seed)
        belief = ExactGP(SquaredExponential(0.2), 0.1).prior(arms)
        for _ in range(150):
            belief.update(rng.integers(200), rng.standard_normal())
        means[seed] = belief.mean

    alone, together = {}, {}
    for seed in range(6):
        learn(seed, alone)
    threads = [threading.Thread(target=learn, args=(seed, together)) for seed in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for seed in range(6):
        np.testing.assert_allclose(together[seed], alone[seed], atol=1e-12)
    assert set(setting()) == {2}
