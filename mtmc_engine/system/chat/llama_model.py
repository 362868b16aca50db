"""One model file in llama.cpp: counting and streaming. Imported only by the llama host."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Sequence
from typing import Any

import llama_cpp
from llama_cpp.llama_chat_format import (
    CHATML_BOS_TOKEN,
    CHATML_CHAT_TEMPLATE,
    CHATML_EOS_TOKEN,
    Jinja2ChatFormatter,
)

from mtmc_engine.core.chat import Message, Usage
from mtmc_engine.system.chat.collector import MOST_CHARACTERS, Collector, TooLong
from mtmc_engine.system.chat.types import Ask, ChatFailed, Failure, OnPart, Reply

# A reply shorter than this is no program: such a prompt is as good as too long.
LEAST_REPLY_TOKENS = 64
_TEMPERATURE = 0.2
_SEED = 0


class LlamaModel:
    """A loaded model. One request at a time; `count` may run beside it.

    Raises ChatFailed where llama.cpp cannot load the file.
    """

    def __init__(self, path: str, n_ctx: int, threads: int) -> None:
        self._path = path
        try:
            self._llama = llama_cpp.Llama(
                path, n_ctx=n_ctx, n_threads=threads, n_threads_batch=threads, verbose=False
            )
        except (ValueError, RuntimeError, MemoryError) as error:
            sentence = f"llama.cpp cannot load {path} ({error}): choose another model file."
            raise ChatFailed(Failure("died", sentence)) from error
        self.n_ctx: int = self._llama.n_ctx()
        self._formatter, self._stop = self._chat_format()

    def _chat_format(self) -> tuple[Callable[..., Any], list[str]]:
        """The model's own chat template, else ChatML; and the text that ends a reply."""
        model, llama = self._llama._model, self._llama
        template = llama.metadata.get("tokenizer.chat_template")
        if template is None:
            formatter = Jinja2ChatFormatter(
                CHATML_CHAT_TEMPLATE, CHATML_EOS_TOKEN, CHATML_BOS_TOKEN
            )
            return formatter, [CHATML_EOS_TOKEN]
        eos, bos = (
            model.token_get_text(token) if token != -1 else ""
            for token in (llama.token_eos(), llama.token_bos())
        )
        return Jinja2ChatFormatter(template, eos, bos), [eos] if eos else []

    def tokens(self, messages: Sequence[Message]) -> list[int]:
        """The prompt as the model reads it. Raises ChatFailed where its template refuses it."""
        turns = [{"role": one.role, "content": one.content} for one in messages]
        try:
            result = self._formatter(messages=turns)
        except Exception as refused:  # a template raises what it likes
            try:
                result = self._formatter(messages=_without_system(turns))
            except Exception:
                sentence = f"The chat template of {self._path} refuses the prompt ({refused})."
                raise ChatFailed(Failure("bad_request", sentence)) from refused
        text = result.prompt.encode()
        tokens: list[int] = self._llama.tokenize(
            text, add_bos=not result.added_special, special=True
        )
        return tokens

    def ask(self, ask: Ask, on_part: OnPart, stopped: Callable[[], bool]) -> Reply:
        """Stream a reply; ends early once `stopped()`. Raises ChatFailed."""
        began = time.monotonic()
        prompt = self.tokens(ask.messages)
        self._refuse_long(len(prompt))
        cached = self._in_memory(prompt)
        collector = Collector(on_part)
        finish = "stop"
        try:
            for text, reason in self._stream(ask, prompt, stopped):
                collector.add(text)
                finish = reason or finish
        except TooLong:
            sentence = (
                f"{self._path} wrote {MOST_CHARACTERS:,} characters without an end: ask again."
            )
            raise ChatFailed(Failure("protocol", sentence)) from None
        except RuntimeError as error:
            sentence = f"llama.cpp failed while it read or wrote ({error}): ask again."
            raise ChatFailed(Failure("server", sentence)) from error
        collector.finish()
        # The last token is drawn but never read.
        drawn = max(0, self._llama.n_tokens - len(prompt)) + 1
        usage = Usage(len(prompt), drawn, cached)
        seconds = time.monotonic() - began
        return Reply(collector.text, collector.thinking, finish, usage, seconds)

    def _refuse_long(self, count: int) -> None:
        if count + LEAST_REPLY_TOKENS > self.n_ctx:
            raise ChatFailed(
                Failure(
                    "context",
                    f"The prompt has {count:,} tokens and the context of {self._path} holds "
                    f"{self.n_ctx:,}: use a model with a longer context.",
                )
            )

    def _in_memory(self, prompt: list[int]) -> int:
        """Tokens at the beginning of the prompt that llama.cpp need not read again."""
        held = self._llama.input_ids[: self._llama.n_tokens].tolist()
        same = 0
        for before, now in zip(held, prompt[:-1], strict=False):
            if before != now:
                break
            same += 1
        return same

    def _stream(self, ask: Ask, prompt: list[int], stopped: Callable[[], bool]) -> Any:
        """Pairs of text and reason to finish."""
        chunks = self._llama.create_completion(
            prompt,
            max_tokens=ask.max_tokens,
            temperature=_TEMPERATURE if ask.temperature is None else ask.temperature,
            seed=_SEED if ask.seed is None else ask.seed,
            stop=self._stop,
            stream=True,
            grammar=self._grammar(ask.response_format),
            stopping_criteria=llama_cpp.StoppingCriteriaList([lambda *_: stopped()]),
        )
        for chunk in chunks:
            choice = chunk["choices"][0]
            yield choice["text"], choice["finish_reason"]

    def _grammar(self, response_format: dict[str, Any] | None) -> Any:
        """The grammar of a response format; llama_cpp itself would ignore json_schema silently."""
        kind = (response_format or {}).get("type", "text")
        if response_format is None or kind == "text":
            return None
        schema = response_format.get("schema", {"type": "object"})
        if kind == "json_schema":
            schema = response_format["json_schema"]["schema"]
        try:
            return llama_cpp.LlamaGrammar.from_json_schema(json.dumps(schema), verbose=False)
        except Exception as error:  # the converter raises what it meets
            sentence = f"llama.cpp cannot make a grammar of the response_format ({error})."
            raise ChatFailed(Failure("bad_request", sentence, format_refused=True)) from error


def _without_system(turns: list[dict[str, str]]) -> list[dict[str, str]]:
    """Some templates know no system message: its text begins the first turn instead."""
    system = [turn["content"] for turn in turns if turn["role"] == "system"]
    others = [turn for turn in turns if turn["role"] != "system"]
    if not system or not others:
        return turns
    first = {**others[0], "content": "\n\n".join([*system, others[0]["content"]])}
    return [first, *others[1:]]
