"""The dialect: how sqlglot is told about the language."""

from __future__ import annotations

from sqlglot.dialects.dialect import Dialect

from tidemill.lang.generator import Generator
from tidemill.lang.parser import Parser
from tidemill.lang.tokens import Tokenizer

__all__ = ["Tidemill"]


class Tidemill(Dialect):
    """SQL with sliding windows over streams."""

    Tokenizer = Tokenizer
    Parser = Parser
    Generator = Generator
