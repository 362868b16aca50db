"""Micro Coding by a language model: one prompt, one reply, one candidate."""

from __future__ import annotations

import time
from collections.abc import Mapping

from mtmc_engine.coder.llm.budget import fitted, reply_tokens
from mtmc_engine.coder.llm.implemented import implemented
from mtmc_engine.coder.llm.prompt import Prompt, prompt_for
from mtmc_engine.coder.llm.reply import IMPORTS, Code, NoCode, read_reply
from mtmc_engine.coder.llm.setting import CoderSetting
from mtmc_engine.coder.seam import Candidate, CannotImplement, CoderAsk, CoderUnavailable
from mtmc_engine.core.action import Action
from mtmc_engine.core.chat import Message, Usage
from mtmc_engine.core.errors import UsageError
from mtmc_engine.core.events import CoderWaits, PromptReady, ReplyFinished, ReplyPart
from mtmc_engine.core.program import Program
from mtmc_engine.core.task import Task
from mtmc_engine.schedule.render.module import entry_name
from mtmc_engine.system.chat.broken_off import BrokenOff, WatchedChat
from mtmc_engine.system.chat.estimate import tokens_of
from mtmc_engine.system.chat.patience import ask_patiently
from mtmc_engine.system.chat.types import Ask, Chat, ChatFailed, Reply

# Failures after which the same model may still answer another prompt.
_OF_THIS_PROMPT = frozenset({"context", "too_large"})


class LanguageModelCoder:
    """Asks one model. The transport is started at the first need.

    free: the model runs in a process of ours and costs nothing.
    """

    learns = True

    def __init__(self, chat: Chat, setting: CoderSetting, free: bool = False) -> None:
        self._chat = chat
        self._setting = setting
        self._free = free

    @property
    def name(self) -> str:
        return self._chat.name

    @property
    def address(self) -> str:
        return self._chat.address

    async def implement(
        self, task: Task, program: Program, action: Action, ask: CoderAsk
    ) -> Candidate:
        """A candidate as the model writes it.

        An unusable answer goes back to the model with the reason; one that was cut off is asked
        for again with a larger cap. Raises CannotImplement where no call gave a program,
        CoderUnavailable where the model cannot be reached or the budget is spent.
        """
        started = time.perf_counter()
        try:
            prompt = prompt_for(task, program, action, ask)
        except UsageError as error:
            raise CannotImplement(str(error)) from error
        exchange = _Exchange(self._chat, self._setting, self._free, ask)
        code = await exchange.code(prompt, entry_name(task), _imports(task))
        notes = (*exchange.notes, *code.notes)
        made = implemented(task, program, action, code.source)
        return Candidate(made, notes, self.name, time.perf_counter() - started)

    async def close(self) -> None:
        await self._chat.close()


def _imports(task: Task) -> Mapping[str, str]:
    """Imports that may be added to a reply: of the reference's class too."""
    if task.form != "module":
        return IMPORTS
    return {**IMPORTS, task.entry: f"from {task.module} import {task.entry}"}


class _Exchange:
    """The calls that one candidate takes."""

    def __init__(self, chat: Chat, setting: CoderSetting, free: bool, ask: CoderAsk) -> None:
        self.notes: list[str] = []
        self._chat, self._setting, self._free, self._ask = chat, setting, free, ask
        self._cap = setting.reply_tokens
        self._caps_left = setting.larger_caps
        self._repeats_left = 1

    async def code(self, prompt: Prompt, entry: str, imports: Mapping[str, str]) -> Code:
        """The first usable program. Raises CannotImplement and CoderUnavailable."""
        reason = ""
        for _ in range(self._setting.tries):
            reply = await self._reply(prompt)
            found = read_reply(
                reply.text,
                reply.finish,
                prompt.before,
                thinking=reply.thinking,
                entry=entry,
                imports=imports,
            )
            self._finish(reply, found)
            if isinstance(found, Code):
                return found
            reason = found.reason
            if found.kind == "unusable":
                prompt = prompt.after(reply.text, found.reason)
            elif not self._asks_again(found):
                break
        raise CannotImplement(f"{self._chat.name} gave no program: {reason}")

    def _asks_again(self, found: NoCode) -> bool:
        """Whether the same prompt is sent once more: with a larger cap where that may help."""
        if found.kind in ("length", "thinking"):
            self._caps_left -= 1
            self._cap *= 2
            return self._caps_left >= 0
        self._repeats_left -= 1
        return self._repeats_left >= 0

    async def _reply(self, prompt: Prompt) -> Reply:
        """Send a prompt that fits; where the server finds it too long, a shorter one, once."""
        context = self._chat.context
        for attempt in range(2):
            sent, tokens, left_out = await self._fitted(prompt, context)
            self._note_left_out(left_out)
            await self._announce(sent, tokens)
            self._check_budget()
            try:
                return await self._asked(sent, tokens)
            except ChatFailed as failure:
                if failure.kind not in _OF_THIS_PROMPT:
                    raise CoderUnavailable(str(failure)) from failure
                if attempt:
                    raise CannotImplement(str(failure)) from failure
                # The server holds less than was thought: leave out about a third.
                context = (tokens + reply_tokens(sent)) * 2 // 3
        raise AssertionError("the second attempt returns or raises")

    async def _fitted(self, prompt: Prompt, context: int | None) -> tuple[Prompt, int, str]:
        try:
            return await fitted(prompt, context, self._count)
        except ChatFailed as failure:
            raise CoderUnavailable(str(failure)) from failure

    async def _count(self, messages: tuple[Message, ...]) -> int:
        counted = await self._chat.count(messages)
        return tokens_of(messages) if counted is None else counted

    def _note_left_out(self, left_out: str) -> None:
        note = f"The prompt was shortened to fit the model's context: without {left_out}."
        if left_out and note not in self.notes:
            self.notes.append(note)

    def _check_budget(self) -> None:
        spent = self._setting.meter.refusal(self._chat.model, self._free)
        if spent is not None:
            raise CoderUnavailable(spent)

    async def _announce(self, prompt: Prompt, tokens: int) -> None:
        """Show the prompt, and wait where the user wants to read it first."""
        self._check_budget()
        ask = self._ask
        self._ask.tell(
            PromptReady(
                step=ask.step,
                attempt=ask.attempt,
                sample=ask.sample,
                coder=self._chat.name,
                address=self._chat.address,
                messages=prompt.messages,
                tokens=tokens,
                waits=ask.send is not None,
            )
        )
        if ask.send is not None:
            await ask.send()

    async def _asked(self, prompt: Prompt, tokens: int) -> Reply:
        setting = self._setting
        request = Ask(
            model=self._chat.model,
            messages=prompt.messages,
            max_tokens=self._room(tokens),
            temperature=setting.temperature,
            seed=setting.seed + self._ask.sample if self._chat.context else None,
            timeout_s=setting.timeout_s,
        )
        watched = WatchedChat(self._chat, self._broken_off, local=self._free)
        return await ask_patiently(
            watched, request, self._tell_part, self._tell_wait, setting.patience
        )

    def _room(self, tokens: int) -> int:
        """The cap, as far as the context has room for it."""
        if self._chat.context is None:
            return self._cap
        return max(1, min(self._cap, self._chat.context - tokens))

    def _tell_part(self, text: str, thinking: bool) -> None:
        ask = self._ask
        ask.tell(ReplyPart(ask.step, ask.attempt, ask.sample, text, thinking))

    def _tell_wait(self, reason: str, seconds: float, tries_left: int) -> None:
        """Tell of a pause between tries. Raises CoderUnavailable where none may follow it."""
        self._check_budget()
        self._ask.tell(CoderWaits(self._chat.name, reason, seconds, tries_left))

    def _finish(self, reply: Reply, found: Code | NoCode) -> None:
        outcome = "code" if isinstance(found, Code) else found.reason
        self._count_reply(reply.text, reply.finish, reply.usage, reply.seconds, outcome)

    def _broken_off(self, lost: BrokenOff) -> None:
        self._count_reply(lost.text, "", lost.usage, lost.seconds, lost.why)

    def _count_reply(
        self, text: str, finish: str, usage: Usage | None, seconds: float, outcome: str
    ) -> None:
        """Count a reply, or what came of one, and tell of it."""
        ask = self._ask
        cost = self._setting.meter.add(usage, self._chat.model, seconds, self._free)
        ask.tell(
            ReplyFinished(
                step=ask.step,
                attempt=ask.attempt,
                sample=ask.sample,
                text=text,
                finish=finish,
                usage=usage,
                seconds=seconds,
                cost_usd=cost,
                outcome=outcome,
            )
        )
