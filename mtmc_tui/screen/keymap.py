"""User keymaps: checked against the table, since Textual drops a clashing binding silently."""

from __future__ import annotations

from collections.abc import Mapping
from difflib import get_close_matches

from mtmc_tui.screen.keys import BY_ID, KEYS, key_text

GROUPS = ("Step", "Plan", "Run", "View", "Help")


def keymap_faults(keymap: Mapping[str, str]) -> list[str]:
    """One sentence for each unknown id, empty key, and key that would do two things."""
    faults = []
    for name, keys in keymap.items():
        if name not in BY_ID:
            faults.append(f"unknown action {name!r}; did you mean {_nearest(name)}?")
        elif not all(key.strip() for key in keys.split(",")):
            faults.append(f"{name} has an empty key")
    owners: dict[str, str] = {}
    for name, keys in merged(keymap).items():
        for key in keys.split(","):
            owner = owners.setdefault(key, name)
            if owner != name:
                faults.append(
                    f"{key_text(key)} is given to both {owner} and {name}: change one of them"
                )
    return faults


def usable(keymap: Mapping[str, str]) -> dict[str, str]:
    """The keymap if it has no fault, else an empty one: the keys of the table stay in force."""
    return {} if keymap_faults(keymap) else dict(keymap)


def merged(keymap: Mapping[str, str]) -> dict[str, str]:
    """Keys of every action by id: the table's, replaced by the user's."""
    theirs = {name: ",".join(_names(keys)) for name, keys in keymap.items() if name in BY_ID}
    return {key.id: theirs.get(key.id, key.keys) for key in KEYS}


def documentation() -> str:
    """docs/keys.md."""
    lines = [
        "# Keys",
        "",
        "Made from `mtmc_tui/screen/keys.py` by `python -m mtmc_tui.screen.keymap`. The id is what",
        '`[keys]` in `screen.toml` refers to: `"step.approve" = "f5"`.',
        "",
    ]
    for group in GROUPS:
        lines += [f"## {group}", "", "| key | does | id |", "|---|---|---|"]
        lines += [
            f"| {' '.join(f'`{key_text(name)}`' for name in key.keys.split(','))} "
            f"| {key.help} | `{key.id}` |"
            for key in KEYS
            if key.group == group
        ]
        lines.append("")
    return "\n".join(lines)


def _names(keys: str) -> list[str]:
    return [key.strip() for key in keys.split(",")]


def _nearest(name: str) -> str:
    return get_close_matches(name, BY_ID, n=1, cutoff=0.0)[0]


if __name__ == "__main__":
    print(documentation(), end="")
