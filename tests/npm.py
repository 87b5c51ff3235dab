"""Install the npm packages that tests use: pinned by a package.json beside them, once for each
content of it.
"""

import hashlib
import os
import shutil
import subprocess
import sys
from pathlib import Path


def node_modules(package: Path, name: str) -> Path:
    """Install from the npm registry only, into the user's cache."""
    cache = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / name
    folder = cache / hashlib.sha256(package.read_bytes()).hexdigest()[:16]
    if not (folder / "complete").exists():
        npm = shutil.which("npm")
        if npm is None:
            sys.exit("npm is needed: install Node.js, any version.")
        folder.mkdir(parents=True, exist_ok=True)
        shutil.copy(package, folder)
        print(f"Installing {name} into {folder} …", flush=True)
        subprocess.run(
            [npm, "install", "--no-audit", "--no-fund", "--loglevel=error"], cwd=folder, check=True
        )
        (folder / "complete").touch()
    return folder / "node_modules"
