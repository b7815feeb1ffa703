"""A changed study file: results that carry over, results that do not, and the advice."""

import json
from contextlib import contextmanager
from dataclasses import replace

import pytest
from tests.studies.made import outcome, suggested

from noregret.cli import main
from noregret.optimizer import Choice, Float, Int
from noregret.studies.store.identity import FORM, SELF
from noregret.studies.store.records import arrived
from noregret.studies.store.storage import Storage
from noregret.studies.store.store import Store
from noregret.studies.study.results import WallTime
from noregret.studies.study.study import Budget, Study, StudyError

SPACE = {"x": Float(0.0, 1.0), "n": Int(1, 8), "mode": Choice(["a", "b"])}
COMMAND = ("m", "{x}", "{n}", "{mode}")


def suggest(records):
    number = len(records)
    params = {"x": number / 10, "n": number % 8 + 1, "mode": "ab"[number % 2]}
    return suggested(params, arrived(records)[1])


@pytest.fixture
def url():
    """The storage; tests/siege runs all of these on PostgreSQL."""
    return "sqlite:///s.db"


@pytest.fixture
def study(url, tmp_path):
    """A study with ten results."""
    study = Study(tmp_path / "s.toml", COMMAND, space=SPACE, storage=url, budget=Budget(rounds=100))
    with Store(study) as store:
        for i in range(10):
            store.tell(outcome(store.claim(suggest).trial.number, float(i), "", 0.1))
    return study


def next_trial(study, params):
    """Make a trial with these params, and answer it."""
    with Store(study) as store:
        trial = store.claim(lambda records: suggested(params, arrived(records)[1])).trial
        store.tell(outcome(trial.number, 0.5, "", 0.1))
    return trial


def values(study, **options):
    with Store(study, **options) as store:
        return [record.value() for record in store.records()]


def with_space(study, **parameters):
    return replace(study, space={**study.space, **parameters})


@pytest.mark.slow
@pytest.mark.parametrize(
    ("change", "used"),
    [
        ({"x": Float(0.0, 2.0)}, range(10)),
        ({"x": Float(-1.0, 0.55), "n": Int(3, 99, log=True)}, [2, 3, 4, 5]),
        ({"mode": Choice(["c", "b", "a"])}, range(10)),
        ({"mode": Choice(["b", "c"])}, range(1, 10, 2)),
    ],
)
def test_results_inside_of_the_new_ranges_are_used_and_the_others_stay_stored(study, change, used):
    changed = with_space(study, **change)
    with pytest.raises(
        StudyError, match=r"parameters\.\w+ was .*, now it is .*'noregret tune --migrate .*s.toml' continues"
    ):
        Store(changed)
    with pytest.raises(StudyError, match="--migrate"):
        Store(changed, readonly=True)
    assert values(study) == [float(i) for i in range(10)]  # nothing has happened yet
    with Store(changed, migrate=True) as store:
        assert [record.value() for record in store.records()] == [float(i) for i in used]
        assert store.unused() == 10 - len(used)
        assert [line.split(":")[0] for line in store.migration.changes] == sorted(change)
    assert values(changed) == [float(i) for i in used]
    assert values(study, migrate=True) == [float(i) for i in range(10)]  # and back again


@pytest.mark.slow
def test_new_trials_have_the_new_options_and_old_ones_stay_as_they_are(study):
    changed = with_space(study, mode=Choice(["c", "b", "a"]), x=Float(-5.0, 5.0))
    Store(changed, migrate=True).close()
    trial = next_trial(changed, {"x": -2.0, "n": 1, "mode": "c"})
    assert trial.params == {"x": -2.0, "n": 1, "mode": "c"}
    with Store(changed) as store:
        assert [record.params["mode"] for record in store.records()] == [*"ababababab", "c"]
        assert [record.params["x"] for record in store.records()][-2:] == [0.9, -2.0]


@pytest.mark.slow
def test_a_parameter_is_added_with_the_value_it_had_so_far(study):
    added = replace(with_space(study, depth=Int(1, 4)), command=(*COMMAND, "--depth={depth}"))
    with pytest.raises(StudyError, match=r"say in \[parameters.depth\] which value it had so far, such as default = 1"):
        Store(added, migrate=True)
    told = replace(added, defaults={"depth": 1})
    with Store(told, migrate=True) as store:
        assert {record.params["depth"] for record in store.records()} == {1}
        assert store.migration.changes == (
            "depth: new, int from 1 to 4; it was 1 so far",
            "command: has words for depth now",
        )
    next_trial(told, {"x": 0.5, "n": 1, "mode": "a", "depth": 4})
    for later in (told, replace(told, defaults={"depth": 3}), replace(told, defaults={})):
        with Store(later) as store:  # the earlier value stays, for any later file
            assert [record.params["depth"] for record in store.records()] == [1] * 10 + [4]


@pytest.mark.slow
def test_a_flag_is_added_as_absent_so_far_and_keeps_its_words(study):
    on = {"unroll-loops": ((), ("-funroll-loops",))}
    flagged = replace(
        with_space(study, **{"unroll-loops": Choice([False, True])}),
        command=(*COMMAND, "{flags}"),
        flags=on,
        defaults={"unroll-loops": False},
    )
    with Store(flagged, migrate=True) as store:
        assert {record.params["unroll-loops"] for record in store.records()} == {False}
        assert store.migration.changes == (
            "unroll-loops: new, flag for nothing or -funroll-loops; it was false so far",
            "command: has words for unroll-loops now",
        )
    other = replace(flagged, flags={"unroll-loops": ((), ("-fpeel-loops",))})
    with pytest.raises(StudyError, match="change the words of unroll-loops back"):
        Store(other)


@pytest.mark.slow
def test_preparation_and_environment_belong_to_a_study_and_repeats_do_not(study):
    for change in ({"prepare": ("make",)}, {"env": {"N": "3"}}, {"warmup": 1}):
        with pytest.raises(StudyError, match=f"{next(iter(change))} was absent, now it is .* back"):
            Store(replace(study, **change))
    assert len(values(replace(study, repeats=5))) == 10
    depth = {"space": {**SPACE, "depth": Int(1, 4)}, "defaults": {"depth": 1}}
    with Store(replace(study, env={"DEPTH": "{depth}"}, **depth), migrate=True) as store:
        assert store.migration.changes[-1] == "env: has words for depth now"


def test_a_word_of_the_command_may_become_a_parameter(study):
    fixed = replace(study, name="fixed", command=(*COMMAND, "--depth", "3"))
    with Store(fixed) as store:
        store.tell(outcome(store.claim(suggest).trial.number, 1.0, "", 0.1))
    free = replace(
        with_space(fixed, depth=Int(1, 4)), command=(*COMMAND, ("--depth", "{depth}")), defaults={"depth": 3}
    )
    assert values(free, migrate=True) == [1.0]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("change", "advice"),
    [
        ({"command": ("other", "{x}", "{n}", "{mode}")}, "change the command back"),
        ({"command": (*COMMAND, "--fast")}, "change the command back"),
        ({"goal": "maximize"}, "change goal back"),
        ({"result": WallTime()}, "change result back"),
        ({"seed": 3}, "change seed back"),
        ({"space": {**SPACE, "n": Float(1.0, 8.0)}}, "change the type of n back to 'int'"),
        ({"space": {"x": SPACE["x"], "n": SPACE["n"]}}, "keep it, with the one value it is to have from now on"),
        ({"space": [{"x": 1.0, "n": 2, "mode": "a"}]}, "have nothing in common: change it back"),
    ],
)
def test_what_does_not_carry_over_is_refused_with_what_to_do(study, change, advice):
    changed = replace(study, **change)
    for migrate in (False, True):
        with pytest.raises(
            StudyError, match=rf"do not carry over: .*{advice}.*another name in the file, such as name = .study 2."
        ):
            Store(changed, migrate=migrate)
    assert values(replace(changed, name="other")) == []
    assert values(study) == [float(i) for i in range(10)]


def test_a_parameter_that_keeps_one_value_is_the_way_to_drop_it(study):
    assert values(with_space(study, mode=Choice(["b"])), migrate=True) == [1.0, 3.0, 5.0, 7.0, 9.0]


@pytest.mark.slow
def test_constraints_may_come_and_go_and_their_bounds_change_freely(study):
    limited = replace(study, constraints={"memory": ("<=", 3.0)})
    assert values(limited, migrate=True) == [float(i) for i in range(10)]
    with Store(limited) as store:
        trial = store.claim(suggest).trial
        store.tell(outcome(trial.number, 0.5, "", 0.1, constraints={"memory": 2.0}))
        assert [record.value("memory") for record in store.records()[-2:]] == [None, 2.0]
    assert len(values(replace(study, constraints={"memory": ("<=", 9.0)}))) == 11
    with pytest.raises(StudyError, match=r"do not carry over: change constraints.memory back"):
        Store(replace(study, constraints={"memory": ("<=", 3.0)}, results={"memory": WallTime()}), migrate=True)
    assert len(values(study, migrate=True)) == 11


def test_a_parameter_is_added_where_it_applies_only(study):
    depth = Int(1, 4, when={"mode": "b"})
    told = replace(with_space(study, depth=depth), command=(*COMMAND, ("--depth={depth}",)), defaults={"depth": 2})
    with Store(told, migrate=True) as store:
        assert [record.params.get("depth") for record in store.records()] == [None, 2] * 5


@pytest.mark.slow
def test_rows_of_a_table_may_come_and_go(study):
    rows = [{"size": i, "kind": "ab"[i % 2]} for i in range(6)]
    table = replace(study, name="table", space=rows, command=("m", "{size}", "{kind}"))
    with Store(table) as store:
        for _ in range(5):
            claim = store.claim(lambda records: suggested(rows[len(records)], arrived(records)[1]))
            store.tell(outcome(claim.trial.number, float(claim.trial.number), "", 0.1))
    changed = replace(table, space=[*rows[2:], {"size": 99, "kind": "c"}])
    assert values(changed, migrate=True) == [2.0, 3.0, 4.0]
    assert next_trial(changed, {"size": 99, "kind": "c"}).params == {"size": 99, "kind": "c"}


def test_suggestions_after_a_migration_know_of_no_result_that_is_not_used(study):
    with Store(with_space(study, x=Float(0.25, 0.65)), migrate=True) as store:
        known, new = arrived(store.records())
        assert sorted([*known, *new]) == [3, 4, 5, 6]


def test_a_trial_under_way_is_still_told_and_counts_if_it_is_of_the_new_study(study):
    with Store(study) as before:
        trial = before.claim(suggest).trial
        with Store(with_space(study, x=Float(0.0, 3.0)), migrate=True) as after:
            assert before.tell(outcome(trial.number, 7.5, "", 0.1))
            assert after.records()[-1].value() == 7.5


def test_a_study_of_an_earlier_version_is_known_by_what_it_wrote(study):
    with Store(study) as store:
        old = {**study.identity(), "parameters.x": "Float(low=0.0, high=1.0, log=False)"}
        old |= {"parameters.n": "Int(low=1, high=8, log=False)", "parameters.mode": "Choice(options=('a', 'b'))"}
        store._storage.set_attributes(store._found.id, {SELF: old, FORM: 2})
    assert len(values(study)) == 10
    with pytest.raises(StudyError, match=r"parameters.x was float from 0 to 1, now it is float from 0 to 2"):
        Store(with_space(study, x=Float(0.0, 2.0)))


def test_a_migration_that_is_cut_off_has_not_happened(study, monkeypatch):
    changed = replace(with_space(study, depth=Int(1, 4)), command=(*COMMAND, "{depth}"), defaults={"depth": 1})

    transaction = Storage.transaction

    @contextmanager
    def cut_off(self):
        with transaction(self) as connection:
            yield connection
            raise KeyboardInterrupt

    monkeypatch.setattr(Storage, "transaction", cut_off)
    with pytest.raises(KeyboardInterrupt):
        Store(changed, migrate=True)
    monkeypatch.undo()
    assert len(values(study)) == 10
    assert len(values(changed, migrate=True)) == 10


FILE = """
command = ["awk", "BEGIN {{ print {x} }}"]
[budget]
evaluations = 4
[parameters.x]
type = "float"
low = 0.0
high = 1.0
"""


@pytest.mark.slow
def test_on_the_command_line(tmp_path, capsys):
    path = tmp_path / "s.toml"
    path.write_text(FILE)
    assert main(["tune", str(path)]) == 0
    path.write_text(FILE.replace("high = 1.0", "high = 2.0").replace("evaluations = 4", "evaluations = 5"))
    capsys.readouterr()
    assert main(["tune", str(path)]) == 2
    assert f"'noregret tune --migrate {path}' continues" in capsys.readouterr().err
    assert main(["tune", "--migrate", "--json", str(path)]) == 0
    found = capsys.readouterr()
    assert "x: float from 0 to 1, now float from 0 to 2\n4 results carry over" in found.err
    assert [json.loads(line).get("trial") for line in found.out.splitlines()] == [4, None]
    assert main(["tune", "--migrate", str(path)]) == 0
    assert "nothing to migrate" in capsys.readouterr().err


def test_conditions_may_change_and_what_violates_them_stays_evidence(study):
    tied = replace(study, require=("x <= 0.5",))
    with pytest.raises(StudyError, match=r"require was absent, now it is \['x <= 0.5'\].*--migrate"):
        Store(tied)
    with Store(tied, migrate=True) as store:
        assert store.migration.changes == ("require: absent, now ['x <= 0.5']",)
    assert values(tied) == [float(i) for i in range(10)]


@pytest.fixture
def failing(url, tmp_path):
    """A study without a result: two failed trials, and one that was given back."""
    study = Study(tmp_path / "s.toml", COMMAND, space=SPACE, storage=url, budget=Budget(rounds=100))
    with Store(study) as store:
        for _ in range(2):
            store.tell(outcome(store.claim(suggest).trial.number, None, "exit code 3", 0.1))
        store.give_back(store.claim(suggest).trial.number)
    return study


def fixed(study):
    return replace(study, command=("./m", *COMMAND[1:]))


@pytest.mark.slow
@pytest.mark.parametrize("migrate", [False, True])
def test_a_study_without_a_result_starts_again_and_its_trials_are_kept(failing, migrate):
    with pytest.raises(StudyError, match=r"command has changed, and no trial had a result: 'noregret tune .*' starts"):
        Store(fixed(failing), migrate=migrate)
    with pytest.raises(StudyError, match=r"'noregret tune .*s.toml' starts it again"):
        Store(fixed(failing), readonly=True)
    with Store(fixed(failing), restart=True, migrate=migrate) as store:
        assert store.restarted.startswith("command has changed, and none of its 3 trials had a result")
        assert store.records() == []
        assert store.claim(suggest).trial.number == 0
        aside = store.restarted.split("'")[1]
    with Store(replace(failing, name=aside), readonly=True) as store:
        assert [record.state for record in store.records()] == ["failed", "failed", "waiting"]
    with Store(fixed(failing), restart=True) as store:  # the same file again: nothing happens
        assert (store.restarted, len(store.records())) == ("", 1)


@pytest.mark.slow
def test_a_study_with_a_result_or_a_running_trial_does_not_start_again(failing):
    with Store(failing) as store:
        trial = store.claim(suggest).trial
        with pytest.raises(StudyError, match="do not carry over: change the command back"):
            Store(fixed(failing), restart=True)
        store.tell(outcome(trial.number, 1.0, "", 0.1))
    with pytest.raises(StudyError, match="do not carry over: change the command back"):
        Store(fixed(failing), restart=True)
    assert values(failing) == [None, None, 1.0]


@pytest.mark.slow
def test_a_worker_between_two_trials_continues_with_the_study_that_was_set_aside(failing):
    with Store(failing) as old, Store(fixed(failing), restart=True) as new:
        one, two = (store.claim(suggest).trial.number for store in (old, new))
        old.tell(outcome(one, 1.0, "", 0.1))
        new.tell(outcome(two, 2.0, "", 0.1))
        assert [record.value() for record in old.records()] == [None, None, 1.0]
        assert [record.value() for record in new.records()] == [2.0]


@pytest.mark.slow
def test_two_workers_that_start_again_at_once_share_the_new_study(failing, monkeypatch):
    found = Storage.set_aside

    def overtaken(*arguments):
        monkeypatch.setattr(Storage, "set_aside", found)
        with Store(fixed(failing), restart=True) as first:
            first.tell(outcome(first.claim(suggest).trial.number, 1.0, "", 0.1))
        return found(*arguments)

    monkeypatch.setattr(Storage, "set_aside", overtaken)
    with Store(fixed(failing), restart=True) as second:
        assert [record.value() for record in second.records()] == [1.0]
        assert second.restarted == ""


@pytest.mark.slow
def test_a_result_that_comes_in_the_last_moment_is_not_set_aside(failing, monkeypatch):
    found = Storage.set_aside

    def overtaken(*arguments):
        with Store(failing) as store:
            store.tell(outcome(2, 1.0, "", 0.1))
        return found(*arguments)

    monkeypatch.setattr(Storage, "set_aside", overtaken)
    with pytest.raises(StudyError, match="do not carry over: change the command back"):
        Store(fixed(failing), restart=True)
    assert values(failing) == [None, None, 1.0]
