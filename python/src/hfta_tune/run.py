"""Runs a study with the program and passes its events on, one by one."""
from __future__ import annotations

import collections
import json
import os
import pathlib
import queue
import subprocess
import sys
import threading
import time
from typing import IO, Any, Callable, Deque, Dict, List, Optional, Sequence

from .errors import BusyError, HftaError, from_exit
from .program import find_program, words_of

Event = Dict[str, Any]

_CHILD = str(pathlib.Path(__file__).with_name("_child.py"))
_ERROR_LINES = 200


def run_study(arguments: Sequence[str], on_event: Callable[[Event], None], patience_s: float = 15.0) -> None:
    """Runs `hfta-tune ARGUMENTS --json` to its end and calls `on_event` in this thread with each event (docs/events.md).

    Throws the exception of the program's exit code. If another process runs the study, tries again for `patience_s`
    seconds before it throws BusyError: a run whose Python process was killed needs a moment to end.

    Ctrl-C asks the program to stop, waits until everything is stored, and raises KeyboardInterrupt; a second Ctrl-C
    kills the program. An exception of `on_event` stops the program in the same way and is raised again.
    """
    deadline = time.monotonic() + patience_s
    told = False
    while True:
        try:
            return _run_once(arguments, on_event)
        except BusyError as busy:
            if time.monotonic() > deadline:
                raise
            if not told:
                on_event({"event": "note", "text": f"waiting for the study: {busy}"})
                told = True
            time.sleep(0.5)


def _run_once(arguments: Sequence[str], on_event: Callable[[Event], None]) -> None:
    program = _Program(arguments)
    try:
        for event in program.events():
            on_event(event)
        program.check()
    except BaseException:
        program.stop()
        raise


class _Program:
    """A running program and the threads that read its output. The end of the object's use is `check` or `stop`."""

    def __init__(self, arguments: Sequence[str]) -> None:
        command = [find_program(), *arguments, "--json"]
        if sys.executable:
            command = [sys.executable, "-I", "-S", _CHILD, str(os.getpid()), *command]
        self._process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self._lines: "queue.Queue[Optional[bytes]]" = queue.Queue()
        self._errors: Deque[str] = collections.deque(maxlen=_ERROR_LINES)
        self._threads: List[threading.Thread] = [
            threading.Thread(target=self._read_events, args=(self._process.stdout,), daemon=True),
            threading.Thread(target=self._read_errors, args=(self._process.stderr,), daemon=True),
        ]
        for thread in self._threads:
            thread.start()

    def _read_events(self, pipe: IO[bytes]) -> None:
        with pipe:
            for line in pipe:
                self._lines.put(line)
        self._lines.put(None)

    def _read_errors(self, pipe: IO[bytes]) -> None:
        with pipe:
            for line in pipe:
                self._errors.append(line.decode("utf-8", "replace").rstrip("\n"))

    def events(self):
        """Every event until the program closes its output."""
        while True:
            line = self._lines.get()
            if line is None:
                return
            try:
                event = json.loads(line)
            except ValueError:
                raise HftaError(f"hfta-tune --json: found the line {line!r}, wanted a JSON object") from None
            yield event

    def check(self) -> None:
        """Waits for the end. Throws the exception of an exit code other than 0."""
        code = self._process.wait()
        for thread in self._threads:
            thread.join()
        if code != 0:
            raise from_exit(code, words_of(list(self._errors)))

    def stop(self) -> None:
        """Asks the program to stop, if it runs, and waits until it has. Ctrl-C meanwhile kills it."""
        try:
            if self._process.poll() is None:
                self._process.terminate()
            self._process.wait()
        except KeyboardInterrupt:
            self._process.kill()
            self._process.wait()
        for thread in self._threads:
            thread.join()
