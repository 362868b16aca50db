"""An engine's side of the protocol from a recording: a real process, for tests of the screen.

Says the recorded events; then answers as told, and writes each command it gets to a file.

python scripted_engine.py RECORDING COMMANDS [--burst SECONDS] [--stubborn]

--burst:    go on saying progress 500 times a second, and a candidate of 400 lines every second,
            for so many seconds.
--stubborn: neither Stop nor SIGTERM ends it.
"""

from __future__ import annotations

import json
import signal
import sys
import threading
import time
from pathlib import Path


def burst(seconds: float) -> None:
    source = "\n".join(f"x{line} = {line}" for line in range(400))
    end = time.monotonic() + seconds
    done = 0
    while time.monotonic() < end:
        done += 1
        say({"event": "phase_changed", "phase": "prove", "done": done % 1000, "total": 1000})
        if done % 400 == 0:
            node = {"node": "n9", "parent": "n0", "diff": "", "coder": "c", "seconds": 0.1}
            say({"event": "candidate_ready", "source": f"{source}\n# {done}", **node})
        time.sleep(0.002)


def say(event: dict) -> None:
    sys.stdout.write(json.dumps(event) + "\n")
    sys.stdout.flush()


def main() -> None:
    recording, commands = Path(sys.argv[1]), Path(sys.argv[2])
    stubborn = "--stubborn" in sys.argv
    if stubborn:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    sys.stdout.write(recording.read_text())
    sys.stdout.flush()
    if "--burst" in sys.argv:
        seconds = float(sys.argv[sys.argv.index("--burst") + 1])
        threading.Thread(target=burst, args=(seconds,), daemon=True).start()
    with commands.open("a") as log:
        for line in sys.stdin:
            log.write(line)
            log.flush()
            if json.loads(line)["command"] == "stop" and not stubborn:
                return
    while stubborn:
        time.sleep(1)


if __name__ == "__main__":
    main()
