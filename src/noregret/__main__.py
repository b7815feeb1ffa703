"""``python -m noregret`` is ``noregret``."""

from __future__ import annotations

import sys


def main() -> int:
    """Carry out the command line; 130 if stopped by Ctrl-C, also while the packages it needs are imported."""
    try:
        from noregret.extra import clash, is_overwritten

        if other := clash():
            print(f"noregret: {other}", file=sys.stderr)
            if is_overwritten():
                return 2
        from noregret.cli import main as carry_out

        return carry_out()
    except KeyboardInterrupt:
        print("\nnoregret: stopped", file=sys.stderr)
        return 130


if __name__ == "__main__":
    sys.exit(main())
