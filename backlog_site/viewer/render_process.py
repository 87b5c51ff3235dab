"""Run the child process of isolation.py: read a request per line, answer a line of HTML, end at the
CPU time limit.
"""

import gc
import json
import signal
import sys
from typing import Any

from backlog_site.viewer.highlighting import highlight_here
from backlog_site.viewer.isolation import CPU_SECONDS
from backlog_site.viewer.markdown import render_here


def serve() -> None:
    """Answer until the input ends.

    The default action of SIGPROF ends the process, even inside a regular expression.
    """
    signal.signal(signal.SIGPROF, signal.SIG_DFL)
    # Ctrl-C reaches the whole process group; the parent decides when the child ends.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    # Tokens are many and freed by reference counting.
    gc.set_threshold(100_000, 20, 20)
    for line in sys.stdin.buffer:
        request = json.loads(line)
        signal.setitimer(signal.ITIMER_PROF, CPU_SECONDS)
        html = _rendered(request)
        signal.setitimer(signal.ITIMER_PROF, 0)
        sys.stdout.buffer.write(json.dumps(html).encode() + b"\n")
        sys.stdout.buffer.flush()


def _rendered(request: dict[str, Any]) -> str:
    if request["kind"] == "code":
        return highlight_here(request["source"], request["language"])
    return render_here(
        request["text"], may_tick=request["may_tick"], base=request["base"], highlighted=True
    )
