"""More of `tests.studies.test_objectives`, nightly."""

import numpy as np
import pytest
from tests.studies.test_pages import NASTY, probed

from noregret import Float, Optimizer, report


@pytest.mark.parametrize("width", [1200, 500])
def test_a_browser_shows_the_front_on_desks_and_phones(browser, tmp_path, width):
    names, rng = [NASTY, "cost", "size"], np.random.default_rng(0)
    optimizer = Optimizer({"x": Float(0, 1), "y": Float(0, 1)}, goals=dict.fromkeys(names, "minimize"), rng=0)
    for x, y in rng.random((12, 2)).tolist():
        optimizer.tell({"x": x, "y": y}, dict(zip(names, (x + y, 2 - x, 3 - y), strict=True)))
    optimizer.tell({"x": 0.5, "y": 0.5}, {"cost": 1.5})
    page = report(optimizer).html
    assert NASTY not in page
    found = probed(browser, tmp_path / "r.html", page, width)
    assert " ".join(found["sections"]) == "front trades importance trials"
    assert found["charts"] == 3  # each two of the three objectives
    assert found["narrow"] > 250
    assert found["overflow"] == 0
    assert found["smallest"] > 5
