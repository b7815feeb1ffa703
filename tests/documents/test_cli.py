"""More of `tests.test_cli`, nightly."""

import pytest
from tests.test_cli import SMALL, table

from noregret.cli import main


@pytest.mark.slow
def test_the_same_seed_gives_the_same_table_on_any_number_of_processes(capsys):
    tables = []
    for seed, jobs in ((3, 1), (3, 2), (4, 1)):
        assert main(["run", "gp-ts", *SMALL, "--seed", str(seed), "--jobs", str(jobs)]) == 0
        tables.append(table(capsys.readouterr().out)["gp-ts"][:2])
    assert tables[0] == tables[1] != tables[2]
