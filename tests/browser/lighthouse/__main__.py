"""Run `make lighthouse`: accessibility must be 100 on every page."""

import os
import sys
import tempfile

import django


def main() -> int:
    with tempfile.TemporaryDirectory(prefix="backlog-lighthouse-") as folder:
        os.environ |= {
            "DJANGO_SETTINGS_MODULE": "backlog_site.settings",
            "BACKLOG_DATA_DIR": folder,
        }
        django.setup()
        from tests.browser.lighthouse.scores import print_scores  # needs the models

        return print_scores()


if __name__ == "__main__":
    sys.exit(main())
