"""What the user looks at: the part of the screen's state that is not the engine's."""

from __future__ import annotations

from dataclasses import dataclass

from mtmc_engine.core.action import ScoredAction
from mtmc_tui.screen.glyphs import UNICODE, Glyphs
from mtmc_tui.screen.model import Exchange, Node, Place, Snapshot

PANES = ("Plan", "Regions", "Code", "Proof", "Time")
PLAN, REGIONS, CODE, PROOF, TIME = range(1, 6)
TALK_TABS = ("prompt", "reply")
TABS = ("diff", "source", "reference", "ptx", *TALK_TABS)
OPTION = "option:"
MORE = "more"


@dataclass(frozen=True)
class View:
    """What the user looks at.

    selected: key of the plan's highlighted row: a node, "option:<rank>" or "more"; "" follows
              the run.
    filters:  text that each pane is narrowed to, by pane number.
    """

    pane: int = PLAN
    selected: str = ""
    tab: str = "diff"
    split: bool = False
    zoomed: bool = False
    narrow: bool = False
    watching: bool = True
    every_option: bool = False
    filters: tuple[tuple[int, str], ...] = ()
    glyphs: Glyphs = UNICODE

    def filter(self, pane: int) -> str:
        """The text that `pane` is narrowed to; empty for all."""
        return dict(self.filters).get(pane, "")

    @property
    def one_pane(self) -> bool:
        """Only the focused pane is drawn."""
        return self.narrow or self.zoomed


def tabs_of(snapshot: Snapshot) -> tuple[str, ...]:
    """The tabs of the code pane: those of prompt and reply only where a language model is asked."""
    return TABS if snapshot.converses else TABS[: -len(TALK_TABS)]


def shown_talks(snapshot: Snapshot, view: View) -> tuple[tuple[Place, tuple[Exchange, ...]], ...]:
    """What was said in the attempt that is shown, by sample: the coder's present one, else that
    of the shown program, else the latest.
    """
    node = shown_node(snapshot, view)
    at_work = snapshot.pending if not view.selected else None
    if at_work is not None:
        attempt = (at_work.step, at_work.attempt)
    elif node is not None and (node.step, node.attempt, node.sample) in snapshot.talks:
        attempt = (node.step, node.attempt)
    elif snapshot.talks:
        attempt = tuple(snapshot.talks)[-1][:2]
    else:
        return ()
    places = sorted(place for place in snapshot.talks if place[:2] == attempt)
    return tuple((place, snapshot.talks[place]) for place in places)


def shown_node(snapshot: Snapshot, view: View) -> Node | None:
    """The program that code, proof and time are about."""
    if view.selected in snapshot.nodes:
        return snapshot.nodes[view.selected]
    if shown_option(snapshot, view) is not None and snapshot.proposal is not None:
        return snapshot.nodes.get(snapshot.proposal.node)
    return snapshot.nodes.get(snapshot.live) or _at_rest(snapshot)


def shown_option(snapshot: Snapshot, view: View) -> ScoredAction | None:
    """The proposed action that the plan's highlight is on, if it is on one."""
    if not view.selected.startswith(OPTION):
        return None
    phrase = view.selected.removeprefix(OPTION)
    return next((o for o in snapshot.options() if o.action.phrase == phrase), None)


def followed_row(snapshot: Snapshot) -> str:
    """Key of the row that the highlight rests on while the user has not moved it."""
    node = snapshot.nodes.get(snapshot.live) or _at_rest(snapshot)
    return node.id if node else ""


def _at_rest(snapshot: Snapshot) -> Node | None:
    if not snapshot.running:
        return snapshot.nodes.get(snapshot.best_node)
    return snapshot.nodes.get(snapshot.at)
