"""Progress of a study as lines of text, for a terminal, a log or a notebook alike."""
from __future__ import annotations

import sys
import time
from typing import Any, Callable, Dict, Optional, TextIO, Union

Event = Dict[str, Any]
Progress = Union[None, bool, Callable[[Event], None]]


def listener(progress: Progress) -> Callable[[Event], None]:
    """What `progress=` of `tune` means: None or True: lines on standard output; False: nothing; else the callable."""
    if callable(progress):
        return progress
    return (lambda event: None) if progress is False else Lines()


class Lines:
    """Prints events, one line at a time, never redrawn. Between two lines on the state of the whole study at least two
    seconds pass, and more the longer the run, so that a night's run fits on a page."""

    def __init__(self, stream: Optional[TextIO] = None, clock: Callable[[], float] = time.monotonic) -> None:
        self._stream = stream
        self._clock = clock
        self._began = self._told = clock()
        self._metric = ""

    def __call__(self, event: Event) -> None:
        tell = getattr(self, "_" + str(event.get("event")), None)
        line = tell(event) if tell else None
        if line:
            print(line, file=self._stream or sys.stdout, flush=True)

    def _run_started(self, event: Event) -> str:
        self._metric = event["metric"]
        verb = "resumes" if event["resumed"] else "begins"
        devices = " on " + ", ".join(event["devices"]) if event["devices"] else ""
        objectives = ", ".join(f"{one['direction']} {one['metric']}" for one in event.get("objectives", [event]))
        return f"study {event['study']} {verb}{devices}: {objectives} ({event['storage']})"

    def _status(self, event: Event) -> Optional[str]:
        now = self._clock()
        if now - self._told < max(2.0, 0.05 * (now - self._began)):
            return None
        self._told = now
        done = event["complete"] + event["pruned"] + event["failed"]
        total = "" if event["trials"] is None else f"/{event['trials']}"
        parts = [f"{done}{total} trials done, {event['running']} running"]
        if event["best"]:
            parts.append(self._best(event["best"]))
        if event.get("front"):
            parts.append(f"front of {len(event['front'])}")
        if event["epochs_per_second"]:
            speed = f"{event['epochs_per_second']:.3g} trial-epochs/s"
            if event["epochs_left"] is not None:
                speed += f", {_duration(event['epochs_left'] / event['epochs_per_second'])} left"
            parts.append(speed)
        return "  " + " | ".join(parts)

    def _best(self, best: Event) -> str:
        params = " ".join(f"{name}={_number(value)}" for name, value in best["params"].items())
        return f"best {self._metric} {_number(best['value'])} (trial {best['trial']}: {params})"

    def _note(self, event: Event) -> str:
        return f"  note: {event['text']}"

    def _trial_ended(self, event: Event) -> Optional[str]:
        return f"  trial {event['trial']} failed: {event['reason']}" if event["state"] == "FAIL" else None

    def _tested(self, event: Event) -> str:
        return "  test: " + ", ".join(f"{name} {_number(value)}" for name, value in event["metrics"].items())

    def _run_ended(self, event: Event) -> str:
        state = "finished" if event["finished"] else "stopped; the same call resumes it"
        best = ": " + self._best(event["best"]) if event["best"] else ""
        best = best or (f": front of {len(event['front'])}" if event.get("front") else "")
        return f"  {state} after {_duration(self._clock() - self._began)}{best}"


def _number(value: Any) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def _duration(seconds: float) -> str:
    if seconds < 100:
        return f"{seconds:.1f} s"
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < 100 else f"{minutes // 60} h {minutes % 60:02d} min"
