"""Export of a session that has ended, from its journal."""

from __future__ import annotations

import asyncio

from mtmc_tui.client import engine_command, engine_environment


async def export_session(session: str, folder: str) -> str:
    """Write the best program of a session into a folder: what went wrong, "" if nothing did.

    What the engine says is caught: its standard error would land on the screen.
    """
    process = await asyncio.create_subprocess_exec(
        *engine_command(["export", session, folder]),
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.DEVNULL,
        stderr=asyncio.subprocess.PIPE,
        start_new_session=True,
        env=engine_environment(),
    )
    _, said = await process.communicate()
    if process.returncode == 0:
        return ""
    return said.decode(errors="replace").strip() or f"export ended with code {process.returncode}"
