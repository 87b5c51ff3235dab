"""Source code with its parts marked by class, line by line; never longer than is pleasant to read."""

from django.utils.html import escape
from pygments import highlight as mark
from pygments.formatters import HtmlFormatter
from pygments.lexer import Lexer
from pygments.lexers import get_lexer_by_name, get_lexer_for_filename
from pygments.util import ClassNotFound

MAX_MARKED = 300_000
_formatter = HtmlFormatter(nowrap=True)


def highlight(source: str, *, language: str = "", filename: str = "") -> str:
    """HTML. A language that nobody knows is shown plain."""
    lexer = _lexer(language, filename)
    if lexer is None or len(source) > MAX_MARKED:
        return escape(source)
    return str(mark(source, lexer, _formatter))


def _lexer(language: str, filename: str) -> Lexer | None:
    try:
        if filename:
            return get_lexer_for_filename(filename, stripnl=False)
        return get_lexer_by_name(language, stripnl=False) if language else None
    except ClassNotFound:
        return None
