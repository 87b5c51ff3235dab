"""Run `make pictures`: take every page of the viewer for docs/images/viewer.

Names of scenes select only those.
"""

import argparse
import os
import sys
import tempfile
from pathlib import Path

import django


def main() -> int:
    parser = argparse.ArgumentParser(prog="make pictures")
    parser.add_argument("scenes", nargs="*")
    parser.add_argument(
        "--singles", type=Path, help="a folder for each picture by itself, in full size"
    )
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="backlog-pictures-") as folder:
        os.environ |= {
            "DJANGO_SETTINGS_MODULE": "backlog_site.settings",
            "BACKLOG_DATA_DIR": folder,
        }
        django.setup()
        from tests.browser.pictures.taking import take  # needs the models

        take(Path(folder), given.scenes, given.singles)
    return 0


if __name__ == "__main__":
    sys.exit(main())
