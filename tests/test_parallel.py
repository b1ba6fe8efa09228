"""Work in several processes."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

WORK = """
import os, threading
from probeval.parallel import parallel

def work():
    print(os.getpid(), flush=True)
    threading.Event().wait()

if __name__ == "__main__":
    with parallel(2) as run:
        list(run([work, work]))
"""


@pytest.mark.skipif(os.name != "posix", reason="processes are not left alone here")
def test_a_killed_process_leaves_no_workers(tmp_path):
    """They hold its output open, so that it ends with the last of them."""
    script = tmp_path / "work.py"
    script.write_text(WORK)
    with subprocess.Popen([sys.executable, script], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as it:
        assert it.stdout is not None
        workers = {int(it.stdout.readline()) for _ in range(2)}
        assert len(workers - {it.pid}) == 2
        it.kill()
        it.wait()
        assert it.stdout.read() == ""  # waits for both
