"""Pictures and last lines of the demo: ``make demo && python -m benchmarks.demo && python -m benchmarks.quotes``.

The pictures of the page are those of README.md and docs/tune.md, taken with Chromium. The lines are quoted on
docs/tune.md.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from pathlib import Path

from PIL import Image

from benchmarks import provenance

ROOT = Path(__file__).parents[1]
DEMO = ROOT / "demo"
PICTURES = {"demo.png": 1250, "page.png": 1830}
"""Heights, in pixels."""


def main() -> None:
    for name, height in PICTURES.items():
        with tempfile.TemporaryDirectory() as folder:
            shot = Path(folder) / name
            options = ["--headless", "--no-sandbox", "--hide-scrollbars", f"--window-size=1100,{height}"]
            page = (DEMO / "study.html").as_uri()
            subprocess.run(["chromium", *options, f"--screenshot={shot}", page], check=True, capture_output=True)
            Image.open(shot).convert("RGB").quantize(256).save(ROOT / "docs" / "pictures" / name, optimize=True)
    path = provenance.RESULTS / "measured.json"
    measured = json.loads(path.read_text(encoding="utf-8"))
    measured["demo"]["output"] = conclusion()
    path.write_text(json.dumps(measured, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
    provenance.forget("measured.json#demo")
    provenance.record("measured.json#demo")


def conclusion() -> list[str]:
    """Last lines of the demo, which the command prints again when its budget is spent."""
    command = [sys.executable, "-m", "noregret", "tune", "demo/study.toml"]
    done = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True)
    return done.stdout.splitlines()


if __name__ == "__main__":
    main()
