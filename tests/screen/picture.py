"""A picture of a true session: picture.py SAMPLE PICTURE.svg [QUESTION [WIDTHxHEIGHT]].

Suggestions are followed up to the question of that number, which is what the picture shows.
"""

from __future__ import annotations

import asyncio
import os
import re
import sys
import tempfile
from pathlib import Path

from mtmc_engine.core.options import RunOptions
from mtmc_tui.screen.app import Workbench
from mtmc_tui.screen.settings import load_settings

FONTS = "'Fira Code', 'JetBrains Mono', 'DejaVu Sans Mono', Menlo, Consolas, monospace"
PATIENCE_S = 180


async def picture(sample: str, path: Path, question: int, size: tuple[int, int]) -> None:
    app = Workbench(RunOptions(sample), load_settings())
    async with app.run_test(size=size) as pilot:
        for number in range(1, question + 1):
            await asyncio.wait_for(asked(app, pilot), PATIENCE_S)
            if number < question:
                await pilot.press("a")
        await pilot.pause(0.3)
        path.write_text(self_contained(app.export_screenshot(title="mtmc-tui")))
        await app.stop_engine()


async def asked(app: Workbench, pilot) -> None:
    while app.snapshot.question is None:
        assert app.snapshot.failure is None, app.snapshot.failure
        await pilot.pause(0.1)


def self_contained(svg: str) -> str:
    """The picture with the reader's own monospaced font instead of one from the network."""
    svg = re.sub(r"@font-face \{.*?\}", "", svg, flags=re.DOTALL)
    return re.sub(r"font-family: Fira Code, monospace", f"font-family: {FONTS}", svg)


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        os.environ["MTMC_HOME"] = folder
        width, height = (sys.argv[4] if len(sys.argv) > 4 else "120x36").split("x")
        number = int(sys.argv[3]) if len(sys.argv) > 3 else 1
        asyncio.run(picture(sys.argv[1], Path(sys.argv[2]), number, (int(width), int(height))))
