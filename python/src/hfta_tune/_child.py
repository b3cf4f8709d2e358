"""Started as a script: becomes the program named by its arguments, tied to the Python process that started it.

    _child.py PARENT PROGRAM ARGUMENTS...

On Linux the program gets SIGTERM when that process ends in whatever way, so that it saves its states and ends. It is in
a process group of its own, so that Ctrl-C in a terminal reaches only the Python process, which passes it on.
A script rather than `preexec_fn`: nothing of ours may run between fork and exec in a process that has threads.
"""
import os
import signal
import sys

PR_SET_PDEATHSIG = 1


def main() -> None:
    parent = int(sys.argv[1])
    os.setpgid(0, 0)
    if sys.platform.startswith("linux"):
        try:
            import ctypes

            ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGTERM, 0, 0, 0)
        except (ImportError, OSError, AttributeError):
            pass  # the program then runs on when the Python process is killed; the next call waits for it
    if os.getppid() != parent:
        sys.exit(128 + signal.SIGTERM)
    # An interpreter ignores SIGPIPE, and a parent may ignore others: the program begins with the defaults.
    for number in (signal.SIGPIPE, signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_DFL)
    os.execv(sys.argv[2], sys.argv[2:])


if __name__ == "__main__":
    main()
