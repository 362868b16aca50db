"""Colours of Python and Triton source, taken from the theme's own `syntax` variables."""

from __future__ import annotations

from pygments.token import Token  # type: ignore[import-untyped]
from textual.highlight import HighlightTheme, TokenType


class SyntaxTheme(HighlightTheme):
    """Token styles by theme variable; what is not listed keeps the text colour."""

    STYLES: dict[TokenType, str] = {  # noqa: RUF012 - the base declares it so
        Token.Comment: "italic $syntax-comment",
        Token.Keyword: "$syntax-keyword",
        Token.Keyword.Constant: "$syntax-number",
        Token.Literal.Number: "$syntax-number",
        Token.Literal.String: "$syntax-string",
        Token.Literal.String.Doc: "italic $syntax-comment",
        Token.Name.Builtin: "$syntax-builtin",
        Token.Name.Builtin.Pseudo: "italic $syntax-builtin",
        Token.Name.Class: "bold $syntax-function",
        Token.Name.Decorator: "$syntax-decorator",
        Token.Name.Function: "bold $syntax-function",
        Token.Name.Function.Magic: "$syntax-function",
        Token.Operator.Word: "$syntax-keyword",
    }
