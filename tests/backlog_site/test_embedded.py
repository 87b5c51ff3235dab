import os
import signal
import stat
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pytest
import redis

from backlog_site.devserver import embedded


@pytest.fixture
def short_folder():
    """Yield a short folder: pytest's own are too deep for a Unix socket on some systems."""
    with tempfile.TemporaryDirectory(prefix="bl-") as folder:
        yield Path(folder)


def test_valkey_answers_on_a_socket_that_only_its_owner_may_use(short_folder):
    path = short_folder / "valkey.sock"
    with embedded.running_valkey(f"unix://{path}", short_folder / "state"):
        with redis.Redis.from_url(f"unix://{path}") as client:
            assert client.ping()
            assert client.config_get("port") == {"port": "0"}
            assert client.config_get("maxmemory-policy") == {"maxmemory-policy": "noeviction"}
        assert stat.S_IMODE(path.stat().st_mode) == 0o700
    assert not embedded.valkey_answers(f"unix://{path}")


def test_a_queue_in_valkey_survives_a_kill(short_folder):
    url = f"unix://{short_folder / 'valkey.sock'}"
    process = embedded.start_valkey(url, short_folder / "state")
    wait_until(lambda: embedded.valkey_answers(url))
    with redis.Redis.from_url(url) as client:
        client.rpush("queue", "message")
    embedded.end_group(process)

    with embedded.running_valkey(url, short_folder / "state"), redis.Redis.from_url(url) as client:
        assert client.lrange("queue", 0, -1) == [b"message"]


def test_a_server_that_cannot_start_is_reported_with_its_own_words(short_folder):
    with (
        embedded.throwaway_valkey() as url,
        pytest.raises(embedded.ServerFailed, match="Address already in use"),
        embedded.running_valkey(url, short_folder),
    ):
        pass


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a folder away")
def test_a_folder_that_somebody_else_made_first_is_refused():
    with tempfile.TemporaryDirectory(prefix="bl-") as folder:
        os.chown(folder, 65534, 65534)
        with pytest.raises(embedded.ServerFailed, match="belongs to another user"):
            embedded.start_valkey(f"unix://{folder}/valkey.sock", Path(folder))


OWNER = """
import time
from backlog_site.devserver.embedded import throwaway_valkey

with throwaway_valkey() as url:
    print(url, flush=True)
    time.sleep(600)
"""


@pytest.mark.parametrize("last_word", [signal.SIGTERM, signal.SIGINT])
def test_a_process_that_is_asked_to_end_takes_its_server_and_the_files_with_it(tmp_path, last_word):
    url = end_owner_of_valkey(tmp_path, last_word)
    assert not embedded.valkey_answers(url)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.skipif(
    sys.platform != "linux", reason="only Linux ends a process when its parent is killed"
)
def test_a_process_that_is_killed_takes_its_server_with_it(tmp_path):
    url = end_owner_of_valkey(tmp_path, signal.SIGKILL)
    wait_until(lambda: not embedded.valkey_answers(url))


def end_owner_of_valkey(folder: Path, last_word: signal.Signals) -> str:
    environment = os.environ | {"TMPDIR": str(folder)}
    with subprocess.Popen(
        [sys.executable, "-c", OWNER], env=environment, stdout=subprocess.PIPE, text=True
    ) as owner:
        url = owner.stdout.readline().strip()
        assert embedded.valkey_answers(url)
        owner.send_signal(last_word)
    return url


def wait_until(condition):
    deadline = time.monotonic() + 180
    while not condition():
        assert time.monotonic() < deadline, "gave up after three minutes"
        time.sleep(0.05)
