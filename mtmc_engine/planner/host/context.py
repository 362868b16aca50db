"""A llama.cpp context with several sequences, through the low-level interface.

The high-level class reserves several sequences only for embeddings, so that one batch could not
hold a trie. Only the planner's host process imports this module.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import llama_cpp
import numpy as np
from numpy.typing import NDArray

from mtmc_engine.planner.reading import Refused

# Tokens of one call to the model; a trie of legal phrases fits into one.
BATCH_TOKENS = 512
# Sequence 0 holds the prompt; phrase i of a batch is sequence i + 1.
MOST_PHRASES = 32


@dataclass(frozen=True)
class Entry:
    """One token of a batch. sequences: those that it belongs to. logits: whether they are read."""

    token: int
    position: int
    sequences: tuple[int, ...]
    logits: bool = False


class Context:
    """One model and its KV memory. Not for more than one thread.

    n_ctx: tokens that the memory holds, at most what the model was trained on.
    Raises Refused where llama.cpp cannot load the file, or where the model's memory cannot
    be shared between sequences (encoder and recurrent models).
    """

    def __init__(self, path: str, threads: int, n_ctx: int) -> None:
        llama_cpp.llama_backend_init()
        options = llama_cpp.llama_model_default_params()
        options.n_gpu_layers = 0
        self._model = llama_cpp.llama_model_load_from_file(path.encode(), options)
        if not self._model:
            raise Refused(f"llama.cpp cannot load {path}; its log has the reason.")
        self._refuse_unfit(path)
        self._vocab: Any = llama_cpp.llama_model_get_vocab(self._model)
        self.n_vocab = llama_cpp.llama_vocab_n_tokens(self._vocab)
        self.n_ctx: int = min(n_ctx, llama_cpp.llama_model_n_ctx_train(self._model))
        self._context = llama_cpp.llama_init_from_model(self._model, self._options(threads))
        if not self._context:
            raise Refused(f"llama.cpp has no memory for a context of {self.n_ctx} tokens.")
        self._memory = llama_cpp.llama_get_memory(self._context)
        self._batch = llama_cpp.llama_batch_init(BATCH_TOKENS, 0, MOST_PHRASES + 1)

    def _refuse_unfit(self, path: str) -> None:
        model = self._model
        if llama_cpp.llama_model_has_encoder(model) or not llama_cpp.llama_model_has_decoder(model):
            raise Refused(f"{path} is not a decoder model; choose one that generates text.")
        if llama_cpp.llama_model_is_recurrent(model) or llama_cpp.llama_model_is_hybrid(model):
            raise Refused(f"{path} is a recurrent model, whose memory phrases cannot share.")

    def _options(self, threads: int) -> Any:
        options = llama_cpp.llama_context_default_params()
        options.n_ctx = self.n_ctx
        options.n_batch = options.n_ubatch = BATCH_TOKENS
        options.n_seq_max = MOST_PHRASES + 1
        options.n_threads = options.n_threads_batch = threads
        # On a CPU flash attention accumulates in half precision: up to 0.5 nat off the plain path.
        options.flash_attn_type = llama_cpp.LLAMA_FLASH_ATTN_TYPE_DISABLED
        options.kv_unified = True
        options.swa_full = True  # a sliding window would forget the cached prefix
        return options

    def tokenize(self, text: str, start: bool = False) -> list[int]:
        """Tokens of `text`. start: with the token that begins a text, where the model has one."""
        data = text.encode()
        room = len(data) + 8
        tokens = (llama_cpp.llama_token * room)()
        count = llama_cpp.llama_tokenize(self._vocab, data, len(data), tokens, room, start, False)
        return list(tokens[:count])

    def continuation(self, before: str, text: str) -> list[int]:
        """Tokens of `text` where it follows `before`: some tokenizers treat a beginning apart."""
        head = self.tokenize(before)
        whole = self.tokenize(before + text)
        return whole[len(head) :] if whole[: len(head)] == head else self.tokenize(text)

    def decode(self, entries: Sequence[Entry]) -> list[NDArray[np.float32]]:
        """Logits, shape (n_vocab,), of the entries that ask for them, in order.

        At most BATCH_TOKENS entries. The arrays are copies. Raises RuntimeError where llama.cpp
        refuses the batch.
        """
        batch = self._batch
        batch.n_tokens = len(entries)
        for index, entry in enumerate(entries):
            batch.token[index] = entry.token
            batch.pos[index] = entry.position
            batch.n_seq_id[index] = len(entry.sequences)
            for place, sequence in enumerate(entry.sequences):
                batch.seq_id[index][place] = sequence
            batch.logits[index] = entry.logits
        status = llama_cpp.llama_decode(self._context, batch)
        if status != 0:
            raise RuntimeError(f"llama_decode returned {status} for {len(entries)} tokens")
        return [self._logits(index) for index, entry in enumerate(entries) if entry.logits]

    def _logits(self, index: int) -> NDArray[np.float32]:
        pointer = llama_cpp.llama_get_logits_ith(self._context, index)
        return np.ctypeslib.as_array(pointer, shape=(self.n_vocab,)).copy()

    def forget(self, sequence: int, start: int = 0) -> None:
        """Drop a sequence's tokens from position `start` on."""
        llama_cpp.llama_memory_seq_rm(self._memory, sequence, start, -1)

    def share(self, source: int, target: int) -> None:
        """Let `target` see all tokens of `source`, without copying them."""
        llama_cpp.llama_memory_seq_cp(self._memory, source, target, -1, -1)
