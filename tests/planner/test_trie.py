"""Phrases as a trie: shared beginnings once, leaves not decoded."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from mtmc_engine.planner.host.trie import PROMPT, build


def test_a_shared_beginning_is_one_node():
    trie = build([[1, 2, 3], [1, 2, 4], [5]])
    assert [(n.token, n.parent, n.depth, n.phrases) for n in trie.nodes] == [
        (1, PROMPT, 0, (0, 1)),
        (5, PROMPT, 0, (2,)),
        (2, 0, 1, (0, 1)),
        (3, 2, 2, (0,)),
        (4, 2, 2, (1,)),
    ]
    assert trie.decoded == (0, 2)
    assert trie.children == {PROMPT: (0, 1), 0: (2,), 2: (3, 4)}


def test_a_phrase_may_end_inside_another():
    trie = build([[1, 2], [1, 2, 3]])
    assert trie.paths == ((0, 1), (0, 1, 2))
    assert trie.decoded == (0, 1)


def test_equal_phrases_share_one_path():
    trie = build([[7, 8], [7, 8]])
    assert len(trie.nodes) == 2
    assert trie.paths[0] == trie.paths[1]


@given(st.lists(st.lists(st.integers(0, 3), min_size=1, max_size=6), min_size=1, max_size=12))
def test_paths_spell_the_phrases_and_sequences_only_shrink(phrases):
    trie = build(phrases)
    assert [[trie.nodes[at].token for at in path] for path in trie.paths] == phrases
    beginnings = {tuple(p[:end]) for p in phrases for end in range(1, len(p) + 1)}
    assert len(trie.nodes) == len(beginnings)
    for index, node in enumerate(trie.nodes):
        if node.parent != PROMPT:
            parent = trie.nodes[node.parent]
            assert node.parent < index
            assert parent.depth == node.depth - 1
            assert set(node.phrases) <= set(parent.phrases)
    assert set(trie.decoded) == {n.parent for n in trie.nodes} - {PROMPT}
