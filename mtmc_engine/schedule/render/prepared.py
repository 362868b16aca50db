"""What a program computes from its parameters alone: once, and again when one of them changes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from mtmc_engine.core.graph import Arg, Graph, node_refs
from mtmc_engine.schedule.render.library import library_call
from mtmc_engine.schedule.render.names import Names, attribute
from mtmc_engine.schedule.render.signature import literal
from mtmc_engine.schedule.render.unit import WIDTH

_METHOD = "_prepared"


@dataclass(frozen=True)
class Prepared:
    """The prepared nodes of a graph as a method of ModelNew."""

    graph: Graph

    @property
    def results(self) -> tuple[str, ...]:
        """Prepared values that a call reads."""
        return tuple(value.name for value in self.graph.inputs if value.kind == "prepared")

    def statement(self, names: Mapping[str, str]) -> list[str]:
        """The statement of forward that gets them under its own names; nothing without any."""
        if not self.results:
            return []
        targets = ", ".join(names[name] for name in self.results)
        return [f"{f'({targets},)' if len(self.results) == 1 else targets} = self.{_METHOD}()"]

    def method(self) -> list[str]:
        """Lines of the method; nothing without any."""
        if not self.results:
            return []
        read = {name for node in self.graph.prepared for name in node_refs(node)}
        held = {v.name: attribute("self", v.target) for v in self.graph.inputs if v.name in read}
        made = {node.name for node in self.graph.prepared}
        names = Names({"self", "torch", "parts", "state"})
        texts = {name: text for name, text in held.items() if name not in made}
        texts |= {node.name: names.fresh(node.name) for node in self.graph.prepared}

        def text(arg: Arg) -> str:
            if isinstance(arg, str) and arg.startswith("%"):
                return texts[arg[1:]]
            if isinstance(arg, list | tuple):
                return f"[{', '.join(text(item) for item in arg)}]"
            return literal(arg)

        parts = [held[name] for name in held if name not in made]
        calls = [f"{texts[n.name]} = {library_call(n, text)}" for n in self.graph.prepared]
        return [
            f"def {_METHOD}(self):",
            '    """What parameters alone decide: computed anew when one of them has changed."""',
            *_tuple("    parts = ", parts),
            "    state = [(p.data_ptr(), 0 if p.is_inference() else p._version) for p in parts]",
            f'    if getattr(self, "{_METHOD}_from", None) != state:',
            "        with torch.no_grad():",
            *(f"            {call}" for call in calls),
            f"        self.{_METHOD}_from = state",
            *_tuple(f"        self.{_METHOD}_values = ", [texts[name] for name in self.results]),
            f"    return self.{_METHOD}_values",
            "",
        ]


def _tuple(head: str, parts: list[str]) -> list[str]:
    """A tuple assigned, on one line where it fits, else one part a line."""
    line = f"{head}({', '.join(parts)}{',' if len(parts) == 1 else ''})"
    if len(line) <= WIDTH - 4:
        return [line]
    indent = " " * (len(head) - len(head.lstrip()))
    return [f"{head}(", *(f"{indent}    {part}," for part in parts), f"{indent})"]
