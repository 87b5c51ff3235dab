"""Find Debian's Chromium, or install it with apt where that is possible: `python -m
tests.browser.chromium`.
"""

import os
import shutil
import subprocess
import sys

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")


def find() -> str | None:
    given = os.environ.get("BACKLOG_CHROMIUM")
    return given or next((path for name in NAMES if (path := shutil.which(name))), None)


def install() -> None:
    sudo = [] if os.geteuid() == 0 else ["sudo", "--non-interactive"]
    if not shutil.which("apt-get") or (sudo and not shutil.which("sudo")):
        sys.exit(
            "The browser tests need Chromium: install it, or name it with"
            " BACKLOG_CHROMIUM=/path/to/chromium."
        )
    environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    for command in (["update"], ["install", "--yes", "--no-install-recommends", "chromium"]):
        subprocess.run([*sudo, "apt-get", "--quiet", *command], check=True, env=environment)


if __name__ == "__main__":
    if find() is None:
        install()
    print(f"Chromium: {find()}")
