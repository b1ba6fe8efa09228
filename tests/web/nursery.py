"""A process that has imported everything, and starts servers as children of its own, each in a moment.

``nursery.py`` takes from its standard input, a Unix socket, the words of a command and two files for what it prints,
and answers with the number of the process.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import sys


def main() -> None:
    import probeval.campaign.runner
    import probeval.cli.judge
    import probeval.web.server  # noqa: F401
    from probeval.cli import main as command

    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # those who end leave nothing behind
    with socket.socket(fileno=os.dup(0)) as door:
        while True:
            words, files, _, _ = socket.recv_fds(door, 65536, 2)
            if not words:
                return
            child = os.fork()
            if child == 0:
                break
            door.sendall(f"{child}\n".encode())
            for file in files:
                os.close(file)
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    os.setsid()
    for file, number in zip((os.open(os.devnull, os.O_RDONLY), *files), range(3), strict=True):
        os.dup2(file, number)
        os.close(file)
    sys.argv = ["probeval", *json.loads(words)]
    command()


if __name__ == "__main__":
    main()
