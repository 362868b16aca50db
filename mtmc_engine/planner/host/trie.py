"""Phrases as a token trie: what phrases share at their beginning is decoded once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

PROMPT = -1  # the parent of a phrase's first token: the last token of the prompt


@dataclass(frozen=True)
class TrieNode:
    """One token at one place of the trie.

    parent:  index of the node before it, PROMPT for the first token of a phrase.
    depth:   0 for the first token of a phrase.
    phrases: indices of the phrases that run through it.
    """

    token: int
    parent: int
    depth: int
    phrases: tuple[int, ...]


@dataclass(frozen=True)
class Trie:
    """Nodes in order of depth.

    paths:    for each phrase the nodes of its tokens, first to last.
    decoded:  nodes that have a child. Only these need the model: a leaf's probability is read
              from its parent's logits.
    children: the nodes below a node, and below PROMPT.
    """

    nodes: tuple[TrieNode, ...]
    paths: tuple[tuple[int, ...], ...]
    decoded: tuple[int, ...]
    children: dict[int, tuple[int, ...]]


@dataclass
class _Growing:
    token: int
    parent: int
    depth: int
    phrases: list[int] = field(default_factory=list)


def build(phrases: Sequence[Sequence[int]]) -> Trie:
    """The trie of `phrases`, each at least one token long; equal phrases share one path."""
    nodes: list[_Growing] = []
    at: dict[tuple[int, int], int] = {}
    paths: list[list[int]] = [[] for _ in phrases]
    for depth in range(max(map(len, phrases), default=0)):
        for number, tokens in enumerate(phrases):
            if depth >= len(tokens):
                continue
            parent = paths[number][-1] if depth else PROMPT
            key = (parent, tokens[depth])
            if key not in at:
                at[key] = len(nodes)
                nodes.append(_Growing(tokens[depth], parent, depth))
            nodes[at[key]].phrases.append(number)
            paths[number].append(at[key])
    children: dict[int, list[int]] = {}
    for index, node in enumerate(nodes):
        children.setdefault(node.parent, []).append(index)
    return Trie(
        nodes=tuple(TrieNode(n.token, n.parent, n.depth, tuple(n.phrases)) for n in nodes),
        paths=tuple(map(tuple, paths)),
        decoded=tuple(sorted(set(children) - {PROMPT})),
        children={parent: tuple(below) for parent, below in children.items()},
    )
