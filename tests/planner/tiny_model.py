"""A llama model of a few hundred kilobytes, written from scratch, with random float32 weights."""

from __future__ import annotations

from pathlib import Path

import gguf
import numpy as np

BLOCKS, WIDTH, HEADS, INNER, CONTEXT = 2, 64, 4, 96, 768
WORDS = (
    "stop lower library fuse into with retile to pipeline stages vectorize one pass epilogue "
    "Step Now Next step of time GPU Task Done faster slower memory compute"
)
PIECES = [f"▁{word}" for word in WORDS.split()] + ["▁", "▁r", "▁r1", "x", "16", "128", "e", "r"]


def write(path: Path, seed: int = 0) -> Path:
    """Write the model to `path`: sentencepiece-like tokenizer with a byte fallback."""
    rng = np.random.default_rng(seed)
    tokens = ["<unk>", "<s>", "</s>"] + [f"<0x{byte:02X}>" for byte in range(256)] + PIECES
    types = (
        [gguf.TokenType.UNKNOWN, gguf.TokenType.CONTROL, gguf.TokenType.CONTROL]
        + [gguf.TokenType.BYTE] * 256
        + [gguf.TokenType.NORMAL] * len(PIECES)
    )
    writer = gguf.GGUFWriter(path, "llama")
    writer.add_context_length(CONTEXT)
    writer.add_embedding_length(WIDTH)
    writer.add_block_count(BLOCKS)
    writer.add_feed_forward_length(INNER)
    writer.add_head_count(HEADS)
    writer.add_head_count_kv(HEADS)
    writer.add_layer_norm_rms_eps(1e-5)
    writer.add_rope_dimension_count(WIDTH // HEADS)
    writer.add_vocab_size(len(tokens))
    writer.add_file_type(gguf.LlamaFileType.ALL_F32)
    writer.add_tokenizer_model("llama")
    writer.add_token_list(tokens)
    writer.add_token_scores([-float(index) for index in range(len(tokens))])
    writer.add_token_types(types)
    writer.add_bos_token_id(1)
    writer.add_eos_token_id(2)
    writer.add_unk_token_id(0)

    def add(name: str, *shape: int) -> None:
        writer.add_tensor(name, rng.normal(0, 0.2, shape).astype(np.float32))

    def add_norm(name: str) -> None:
        writer.add_tensor(name, rng.uniform(0.8, 1.2, WIDTH).astype(np.float32))

    add("token_embd.weight", len(tokens), WIDTH)
    add_norm("output_norm.weight")
    add("output.weight", len(tokens), WIDTH)
    for block in range(BLOCKS):
        for norm in ("attn_norm", "ffn_norm"):
            add_norm(f"blk.{block}.{norm}.weight")
        for part in ("attn_q", "attn_k", "attn_v", "attn_output"):
            add(f"blk.{block}.{part}.weight", WIDTH, WIDTH)
        add(f"blk.{block}.ffn_gate.weight", INNER, WIDTH)
        add(f"blk.{block}.ffn_up.weight", INNER, WIDTH)
        add(f"blk.{block}.ffn_down.weight", WIDTH, INNER)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path
