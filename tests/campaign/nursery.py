"""Python processes that start in a moment: forks of one that has imported everything.

Run as a script, this is that process. It takes code and its arguments from its standard input, a Unix socket, and with
them three files: for what the code prints, for its errors, and for the number of its process and its exit code.
"""

from __future__ import annotations

import atexit
import json
import os
import select
import signal
import socket
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from typing import TextIO


class Process:
    """A process that was started here, with the methods of ``subprocess.Popen`` that tests need."""

    def __init__(self, stdout: TextIO, stderr: TextIO, status: TextIO) -> None:
        self.stdout, self.stderr, self._status = stdout, stderr, status
        self.pid = int(status.readline())
        self.returncode: int | None = None
        self._printed: tuple[str, str] | None = None

    def poll(self) -> int | None:
        """The exit code, or None while it runs."""
        if self.returncode is None and select.select([self._status], [], [], 0)[0]:
            self.wait()
        return self.returncode

    def wait(self) -> int:
        """Wait for its end; the exit code."""
        if self.returncode is None:
            self.returncode = int(self._status.readline())
        return self.returncode

    def send_signal(self, number: int) -> None:
        if self.poll() is None:
            os.kill(self.pid, number)

    def kill(self) -> None:
        """As the power goes out."""
        self.send_signal(signal.SIGKILL)

    def communicate(self, timeout: float | None = None) -> tuple[str, str]:
        """Wait for its end; what it still printed, and its errors. After the time-out it is killed.

        As with ``subprocess.Popen``, a second call returns the same.
        """
        if self._printed is not None:
            return self._printed
        with ThreadPoolExecutor(2) as pool:
            printed = [pool.submit(file.read) for file in (self.stdout, self.stderr)]
            try:
                out, err = (each.result(timeout) for each in printed)
            except TimeoutError:
                self.kill()
                raise
        self.wait()
        for file in (self.stdout, self.stderr, self._status):
            file.close()
        self._printed = out, err
        return self._printed


@cache
def _door() -> socket.socket:
    """A socket to the process that has imported everything; it ends with this one."""
    door, inside = socket.socketpair()
    with inside:
        process = subprocess.Popen([sys.executable, __file__], stdin=inside)

    @atexit.register
    def end() -> None:
        door.close()
        process.wait()

    return door


def start_python(code: str, *arguments: object) -> Process:
    """Run Python code, with arguments in ``sys.argv``, in a process of its own that has imported probeval."""
    pipes = [os.pipe() for _ in range(3)]
    words = json.dumps([code, *map(str, arguments)]).encode()
    socket.send_fds(_door(), [words], [inner for _, inner in pipes])
    for _, inner in pipes:
        os.close(inner)
    return Process(*(os.fdopen(outer) for outer, _ in pipes))


def _reap(*_: object) -> None:
    try:
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
    except ChildProcessError:
        pass


def _keep(files: list[int]) -> None:
    """Fork, and return in the child. Its parent tells its number, waits for its end and tells the exit code."""
    *printed, status = files
    child = os.fork()
    if child == 0:
        os.close(status)
        return
    for file in printed:
        os.close(file)
    os.write(status, f"{child}\n".encode())
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    os.write(status, f"{code}\n".encode())
    os._exit(0)


def main() -> None:
    import probeval.campaign.runner
    import probeval.cli.judge
    import probeval.web.server  # noqa: F401

    signal.signal(signal.SIGCHLD, _reap)
    with socket.socket(fileno=os.dup(0)) as door:
        while True:
            words, files, _, _ = socket.recv_fds(door, 1 << 20, 3)
            if not words:
                return
            if os.fork() == 0:
                break
            for file in files:
                os.close(file)
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    _keep(files)
    os.setsid()
    for file, number in zip((os.open(os.devnull, os.O_RDONLY), *files[:2]), range(3), strict=True):
        os.dup2(file, number)
        os.close(file)
    code, *arguments = json.loads(words)
    sys.argv = ["-c", *arguments]
    exec(code, {"__name__": "__main__"})


if __name__ == "__main__":
    main()
