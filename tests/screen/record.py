"""Record a true session for the tests of the screen: record.py SAMPLE RECORDING.

Every suggestion is followed, except that the first two advices to stop are refused. Folders of
the machine are written as /home/ada.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import sys
import tempfile
from pathlib import Path

from mtmc_engine.core.events import Decide, DecisionNeeded, encode
from mtmc_engine.core.options import RunOptions
from mtmc_tui.client import Engine

NEUTRAL = b"/home/ada"
REFUSALS = 2


async def record(sample: Path, recording: Path) -> None:
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder)
        os.environ["MTMC_HOME"] = str(home / "mtmc")
        file = home / "kernels" / sample.name
        file.parent.mkdir()
        shutil.copy(sample, file)
        engine = await Engine.start(RunOptions(str(file), steps=6))
        refused = 0
        with recording.open("wb") as out:
            async for event in engine.events():
                out.write(encode(event).replace(folder.encode(), NEUTRAL) + b"\n")
                if isinstance(event, DecisionNeeded):
                    stops = event.action.kind == "stop" and refused < REFUSALS
                    refused += stops
                    choice = "reject" if stops else event.choices[0]
                    reason = "look further" if stops else ""
                    await engine.send(Decide(choice, event.node, reason))
        await engine.wait()


if __name__ == "__main__":
    asyncio.run(record(Path(sys.argv[1]), Path(sys.argv[2])))
