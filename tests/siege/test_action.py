"""More of `tests.test_action`, nightly."""

from tests.test_action import gate, repository


def test_what_is_not_shown_passes_and_a_broken_command_does_not(repository):
    done, outputs, summary = gate(repository, "slow", budget="3")
    assert done.returncode == 0, done.stderr
    assert (outputs["verdict"], outputs["lower"]) == ("undecided", "")
    assert summary.startswith("### Passed: B is not shown to be worse than A: ")
    done, outputs, _ = gate(repository, "slow", budget="3", bounds="0 5000")
    assert (done.returncode, outputs["verdict"], bool(outputs["lower"])) == (0, "undecided", True)  # of means
    done, _, _ = gate(repository, "missing")
    assert done.returncode == 2
    assert "has failed 3 times in a row" in done.stderr
