"""What the documentation shows of a session with a language model: session_picture.py FOLDER.

The session of `script.toml` is walked through on the screen; FOLDER gets its picture at the second
question and the kernel that it exports.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "replay_server"))
sys.path.insert(0, str(Path(__file__).parents[1] / "screen"))

from picture import PATIENCE_S, self_contained
from replay_server import ReplayServer

from mtmc_engine.core.options import RunOptions
from mtmc_tui.screen.app import Workbench
from mtmc_tui.screen.model import Snapshot
from mtmc_tui.screen.settings import load_settings

HERE = Path(__file__).parent
SIZE = (120, 40)
PORT = 8123


async def show(work: Path, folder: Path, address: str) -> None:
    operator = work / "gated_softmax.py"
    shutil.copy(HERE / "gated_softmax.py", operator)
    options = RunOptions(
        str(operator),
        planner="roofline",
        coder=f"openai:replay@{address}",
        timings=str(HERE / "timings.json"),
        steps=2,
        export=str(work / "out"),
    )
    app = Workbench(options, load_settings())
    async with app.run_test(size=SIZE) as pilot:

        async def until(what: Callable[[Snapshot], bool]) -> None:
            async with asyncio.timeout(PATIENCE_S):
                while not what(app.snapshot):
                    assert app.snapshot.failure is None, app.snapshot.failure
                    await pilot.pause(0.1)

        await until(lambda s: s.question is not None)
        await pilot.press("a")
        await until(lambda s: s.step == 2 and s.question is not None)
        await pilot.press("3", "left_square_bracket")
        await pilot.pause(0.5)
        picture = self_contained(app.export_screenshot(title="mtmc-tui"))
        (folder / "language-model.svg").write_text(picture)
        await pilot.press("a")
        await until(lambda s: s.finished is not None)
        await app.stop_engine()
    shutil.copy(work / "out" / "gated_softmax_mtmc.py", folder / "exported")


if __name__ == "__main__":
    with (
        tempfile.TemporaryDirectory() as place,
        ReplayServer(HERE / "script.toml", PORT) as server,
    ):
        os.environ["MTMC_HOME"] = place
        asyncio.run(show(Path(place), Path(sys.argv[1]), server.base_url))
