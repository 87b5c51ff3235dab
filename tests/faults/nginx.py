"""Find Debian's nginx, or install it with apt if possible, for docs/nginx.conf: `python -m
tests.faults.nginx`.
"""

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from backlog_site.devserver.embedded import spawn, stop
from tests.mcp.site import ROOT

_FRAME = """
daemon off;
pid {folder}/nginx.pid;
error_log {folder}/error.log;
events {{ worker_connections 1024; }}
http {{
    access_log off;
    client_body_temp_path {folder}/body;
    proxy_temp_path {folder}/proxy;
    fastcgi_temp_path {folder}/fastcgi;
    uwsgi_temp_path {folder}/uwsgi;
    scgi_temp_path {folder}/scgi;
    {site}
}}
"""


def find() -> str | None:
    return shutil.which("nginx") or shutil.which("nginx", path="/usr/sbin:/usr/local/sbin")


def install() -> None:
    sudo = [] if os.geteuid() == 0 else ["sudo", "--non-interactive"]
    if not shutil.which("apt-get") or (sudo and not shutil.which("sudo")):
        print("There is no nginx: the test of a rolling restart is left out.", file=sys.stderr)
        return
    environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    for command in (["update"], ["install", "--yes", "--no-install-recommends", "nginx-light"]):
        subprocess.run([*sudo, "apt-get", "--quiet", *command], check=True, env=environment)


@contextmanager
def running_nginx(folder: Path, port: int, upstreams: list[int]) -> Iterator[str]:
    """Run the documented site on plain http, with the ports of this test."""
    site = (ROOT / "docs" / "nginx.conf").read_text()
    site = re.sub(r"listen 443 ssl http2;", f"listen 127.0.0.1:{port};", site)
    site = re.sub(r"\n\s*ssl_\w+ .*;", "", site)
    for documented, ours in zip((8001, 8002), upstreams, strict=True):
        site = site.replace(f"127.0.0.1:{documented}", f"127.0.0.1:{ours}")
    # The default server of the port for any host: a test has no domain.
    site = site.replace("server_name backlog.example.org;", "server_name 127.0.0.1;")
    (folder / "nginx.conf").write_text(_FRAME.format(folder=folder, site=site))
    # Its workers run as the user nobody when root starts it.
    folder.chmod(0o755)
    command = [find() or "nginx", "-p", str(folder), "-c", str(folder / "nginx.conf")]
    with (folder / "output.log").open("ab") as output:
        process = spawn(command, output=output, environment=dict(os.environ), folder=folder)
    try:
        yield f"http://127.0.0.1:{port}"
    finally:
        stop(process)


if __name__ == "__main__":
    if find() is None:
        install()
    print(f"nginx: {find()}")
