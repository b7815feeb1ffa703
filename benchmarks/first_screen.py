"""Pictures of README's first screen: ``pip install pyte && python -m benchmarks.first_screen``.

The recording is of a real terminal: ``versus``, then ``tune`` of examples/tune_compression. Pauses are shortened. The
chart has the worst share of each rule on the simulated machines of ``python -m benchmarks.versus``.
"""

from __future__ import annotations

import os
import pty
import select
import shutil
import sys
import tempfile
import time
from html import escape
from pathlib import Path

from benchmarks import lines

ROOT = Path(__file__).parents[1]
PICTURES = ROOT / "docs" / "pictures"
COLUMNS, ROWS = 92, 24
LONGEST_PAUSE, LAST_PAUSE = 0.5, 4.0
SECONDS = 22.0
"""Length of the recording; frames are shown faster if it would be longer."""
RULES = {
    "t-test at each pair": "t-test, read after each pair",
    "hyperfine": "hyperfine",
    "pytest-benchmark mean:5%": "pytest-benchmark",
    "noregret": "noregret versus",
}


def main() -> None:
    (PICTURES / "false_alarms.svg").write_text(chart(), encoding="utf-8")
    with tempfile.TemporaryDirectory() as folder:
        shutil.copytree(ROOT / "examples" / "tune_compression", folder, dirs_exist_ok=True)
        shutil.copy(ROOT / "CHANGELOG.md", folder)
        frames = recorded("noregret versus 'gzip -6 -c CHANGELOG.md' 'gzip -4 -c CHANGELOG.md'", folder)
        frames += recorded("noregret tune study.toml", folder)
    (PICTURES / "terminal.svg").write_text(animated(frames), encoding="utf-8")


def recorded(command: str, folder: str) -> list[tuple[float, list[str]]]:
    """Screens of a terminal in which a command runs, each with the seconds for which it is shown."""
    import pyte

    screen = pyte.Screen(COLUMNS, ROWS - 2)
    stream = pyte.ByteStream(screen)
    child, terminal = pty.fork()
    if not child:
        os.chdir(folder)
        os.environ |= {"COLUMNS": str(COLUMNS), "LINES": str(ROWS - 2), "TERM": "xterm", "NO_COLOR": "1"}
        os.execvp("sh", ["sh", "-c", f"{sys.executable} -m {command}"])
    frames, last, begun = [(0.8, [f"$ {command}"])], [""], time.monotonic()
    while True:
        ready, _, _ = select.select([terminal], [], [], 0.1)
        try:
            data = os.read(terminal, 1 << 16) if ready else b""
        except OSError:  # the command has ended
            break
        stream.feed(data)
        shown = [line.rstrip() for line in screen.display]
        while shown and not shown[-1]:
            shown.pop()
        if shown != last and shown:
            now = time.monotonic()
            frames[-1] = (min(max(now - begun, 0.05), LONGEST_PAUSE), frames[-1][1])
            frames.append((LONGEST_PAUSE, [f"$ {command}", *shown]))
            last, begun = shown, now
    frames[-1] = (LAST_PAUSE, frames[-1][1])
    return frames


def animated(frames: list[tuple[float, list[str]]]) -> str:
    """An SVG that shows the screens one after the other, again and again."""
    fixed = 2 * LAST_PAUSE
    factor = min(1.0, (SECONDS - fixed) / (sum(seconds for seconds, _ in frames) - fixed))
    lengths = [seconds if seconds == LAST_PAUSE else seconds * factor for seconds, _ in frames]
    total, start, parts, styles = sum(lengths), 0.0, [], []
    for number, (length, (_, text)) in enumerate(zip(lengths, frames, strict=True)):
        low, high = 100 * start / total, 100 * (start + length) / total
        shown = f"0%,{max(low - 0.001, 0):.3f}%{{opacity:0}}{low:.3f}%,{high - 0.002:.3f}%{{opacity:1}}"
        styles.append(f"@keyframes k{number}{{{shown}{high - 0.001:.3f}%,100%{{opacity:0}}}}")
        styles.append(f"#f{number}{{animation:k{number} {total:.2f}s infinite step-end}}")
        spans = "".join(
            f'<tspan x="16" y="{40 + 19 * row}">{escape(line)}</tspan>' for row, line in enumerate(text) if line
        )
        opacity = 1 if number == len(frames) - 1 else 0  # where animations are off, the last screen stays
        parts.append(f'<text id="f{number}" opacity="{opacity}" xml:space="preserve">{spans}</text>')
        start += length
    height = 40 + 19 * max(len(text) for _, text in frames)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 800 {height}" width="800" height="{height}">'
        f"<style>text{{font:14px ui-monospace,Menlo,Consolas,monospace;fill:#e6e6e6}}{''.join(styles)}</style>"
        f'<rect width="800" height="{height}" rx="8" fill="#1e2127"/>{"".join(parts)}</svg>\n'
    )


def chart() -> str:
    """Bars of the worst share of false alarms of each rule."""
    rows = [row for row in lines.stored(ROOT / "benchmarks" / "results" / "versus.jsonl") if "alarms" in row["key"]]
    shares = {said: max(row[rule] / row["comparisons"] for row in rows) for rule, said in RULES.items()}
    bars = []
    for place, (said, share) in enumerate(shares.items()):
        y, colour = 58 + 34 * place, "#1f77b4" if said.startswith("noregret") else "#b8b8b8"
        bars.append(
            f'<text x="210" y="{y + 17}" text-anchor="end">{said}</text>'
            f'<rect x="220" y="{y}" width="{900 * share:.0f}" height="24" fill="{colour}"/>'
            f'<text x="{228 + 900 * share:.0f}" y="{y + 17}">{100 * share:.0f}%</text>'
        )
    title = "False alarms when nothing changed, each on its worst machine"
    return (
        '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 720 200" width="720" height="200">'
        '<style>text{font:14px system-ui,sans-serif;fill:#333}</style><rect width="720" height="200" fill="#fff"/>'
        f'<text x="16" y="32" style="font-weight:600;font-size:16px">{title}</text>{"".join(bars)}</svg>\n'
    )


if __name__ == "__main__":
    main()
