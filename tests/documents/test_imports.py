"""More of `tests.test_imports`, nightly."""

import pytest
from tests.conftest import needs
from tests.test_imports import imported_by


@pytest.mark.slow
def test_torch_is_imported_by_nobody_but_the_user():
    play = "import numpy, noregret; kernel = noregret.SquaredExponential(0.2); "
    play += (
        "policy = noregret.Policy(noregret.algorithms.igp_ucb(kernel), numpy.eye(3)); policy.tell(policy.ask(), 1.0)"
    )
    assert not {"torch", "array_api_compat"} & imported_by(play)
    needs("torch")
    tensor = play.replace("import numpy", "import numpy, torch").replace("numpy.eye(3)", "torch.eye(3)")
    assert {"torch", "array_api_compat"} <= imported_by(tensor)
