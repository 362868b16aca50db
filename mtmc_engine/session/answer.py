"""The end of a session: its winner is confirmed afresh, exported and summed up."""

from __future__ import annotations

from mtmc_engine.proof.confirm import confirm
from mtmc_engine.session.judging import subject_of, with_original
from mtmc_engine.session.requests import export_best
from mtmc_engine.session.run import Run, best_events, node_event


async def settle(run: Run) -> None:
    """Confirm the winner where it was measured, and export it where that was asked for.

    A winner that is not faster when measured anew gives way to the next one. Raises UsageError
    where the export folder cannot be written, Interrupted where the user stops.
    """
    await _confirm(run)
    if run.options.export is not None:
        export_best(run, run.options.export)


async def _confirm(run: Run) -> None:
    confirmed: set[str] = set()
    while (best := run.tree.best()).parent is not None and best.id not in confirmed:
        confirmed.add(best.id)
        if best.measurement is None or best.measurement.kind == "estimated":
            return
        run.outlet.phase("time", f"{best.id} once more")
        work = confirm(subject_of(run, best.id), run.workshop, run.timer)
        measurement = await run.inbox.unless_interrupted(work)
        node = run.tree.measure(best.id, with_original(measurement))
        run.outlet.emit(node_event(run, node), *best_events(run, refresh=True))
