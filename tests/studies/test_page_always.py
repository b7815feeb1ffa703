"""Every study that ``tune`` can make has a page, for any results."""

import json
import re
from html import unescape
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest
from hypothesis import strategies as st
from tests.studies.made import record

from noregret.optimizer import Float
from noregret.studies.learning.findings import Findings
from noregret.studies.learning.suggest import believed
from noregret.studies.page.page import page
from noregret.studies.running import conclusion
from noregret.studies.study.study import Study


def values():
    """Functions from a generator to a result: none, constant, noise-free, huge, tiny, heavy-tailed, of few values."""
    size = st.sampled_from([1e-100, 1e-12, 1.0, 1e12, 1e98])
    shape = st.sampled_from(
        [
            lambda rng: 0.0,
            lambda rng: 1.0,
            lambda rng: float(rng.integers(2)),
            lambda rng: float(rng.standard_normal()),
            lambda rng: float(np.clip(rng.standard_cauchy(), -90, 90)),
            lambda rng: 1.0 + 1e-15 * float(rng.standard_normal()),
        ]
    )
    return st.tuples(size, shape).map(lambda found: lambda rng: found[0] * found[1](rng))


class Checker(HTMLParser):
    """Counts what is open; SVG's marks close themselves."""

    def __init__(self):
        super().__init__()
        self.open = []

    def handle_starttag(self, tag, attributes):
        if tag not in ("meta", "link", "br"):
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


def assert_shown(study, records):
    findings = Findings(study, records, believed(study, records))
    text = page(findings)
    checker = Checker()
    checker.feed(text)
    assert checker.open == []
    assert not re.search(r'="[^"]*\b(nan|inf)\b', re.sub(r'aria-label="[^"]*"', "", text))  # no mark without a place
    for data in [
        re.search('id="data">(.*?)</script>', text)[1],
        *map(unescape, re.findall('data-[xy]="([^"]*)"', text)),
    ]:
        json.loads(data, parse_constant=pytest.fail)  # browsers know no Infinity
    assert conclusion(findings)
    findings.diagnosis  # noqa: B018


def repeated(values, space=None):
    space = space or {"x": Float(0.0, 1.0)}
    study = Study(Path("s.toml"), ("m", "{x}"), space=space)
    return study, [record(i, {"x": x}, "done", value, seconds=0.1) for i, (x, value) in enumerate(values)]


@pytest.mark.slow
@pytest.mark.parametrize(
    "values",
    [
        [(i % 5 / 5, float(i % 5)) for i in range(40)],  # without noise, every setting measured 8 times
        [(i % 20 / 20, 1.0) for i in range(40)],
        [(0.5, 2.0)] * 30,
        [(i % 2 / 2, float(i % 2)) for i in range(30)],
        [(0.5, 1.0)] * 15 + [(0.1, i / 7) for i in range(7)],  # noise in a setting measured too seldom
    ],
)
def test_studies_without_noise_have_a_page(values):
    assert_shown(*repeated(values))
