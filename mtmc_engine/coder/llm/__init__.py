"""Coders that ask a language model: prompts, replies, feedback."""
