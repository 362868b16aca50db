"""A program: one version of the code, and the schedule it was rendered from."""

from __future__ import annotations

import hashlib

from msgspec import Struct
from msgspec.structs import replace

Param = int | bool | str


class Library(Struct, frozen=True, tag="library"):
    """The operators of the group are called one by one as the reference calls them."""


class Templated(Struct, frozen=True, tag="templated"):
    """The group is one kernel, rendered from `template` with `params`."""

    template: str
    params: dict[str, Param]

    def with_params(self, **changes: Param) -> Templated:
        return Templated(self.template, {**self.params, **changes})


class ByHand(Struct, frozen=True, tag="by_hand"):
    """The group is `source`: kernel and launcher as a person or a language model wrote them."""

    source: str


Form = Library | Templated | ByHand


class Group(Struct, frozen=True):
    """Operators that share a kernel.

    region: name of the region that the group acts on, such as "r1".
    nodes:  node names in execution order.
    """

    region: str
    nodes: tuple[str, ...]
    form: Form


class Region(Struct, frozen=True):
    """A part of the program that a step can act on.

    id:    "r1", "r2", …: numbered once per task in execution order; a fused region keeps its
           smallest number.
    label: what it computes in the user's words, such as "softmax" or "linear+relu";
           in Triton source a kernel's name, "loop over k", "load x", "dot", "launch softmax".
    place: where it stands in Triton source, by names and counts, never by line:
           "softmax_kernel/load x 0". line: of the source, from 1; 0 where there is none.
    """

    id: str
    label: str
    nodes: tuple[str, ...]
    place: str = ""
    line: int = 0


class Rewrite(Struct, frozen=True):
    """One rewriting of the task's graph: the rule's name, and the node that it starts from."""

    rule: str
    node: str


class Schedule(Struct, frozen=True):
    """All groups of a program, in execution order; each node is in exactly one.

    rewrites: what was done to the task's graph, in order; the groups' nodes are those of the
    graph that comes out.

    regions: of a program that the user wrote in Triton, kept here so that names stay; its groups
    are one for each kernel, by hand, without nodes. Empty where the groups are the regions.
    """

    groups: tuple[Group, ...]
    regions: tuple[Region, ...] = ()
    rewrites: tuple[Rewrite, ...] = ()

    def group(self, region: str) -> Group:
        """Raises KeyError where no group acts on that region."""
        for group in self.groups:
            if group.region == region:
                return group
        raise KeyError(region)

    def replace(self, region: str, *groups: Group) -> Schedule:
        """The schedule with the group of `region` replaced by `groups`."""
        at = self.groups.index(self.group(region))
        return replace(self, groups=self.groups[:at] + groups + self.groups[at + 1 :])


class Program(Struct, frozen=True):
    """One version of the code.

    source: a Python module with `ModelNew` (or a function of the reference's name). It imports
            the user's own file for the reference class, and nothing of this tool. Of a file with
            Triton kernels it is a version of that file.
    """

    source: str
    schedule: Schedule

    @property
    def digest(self) -> str:
        """First 12 hexadecimal digits of the source's SHA-256."""
        return hashlib.sha256(self.source.encode()).hexdigest()[:12]
