"""The project's files, and the tokens of a C file.

Knows C's comments, strings and preprocessor lines, and nothing of what is allowed in them.
"""
import os
import re

SKIPPED_FOLDERS = {"build", "demo", "__pycache__"}

TOKEN = re.compile(
    r"""(?P<comment>//(?:\\\n|[^\n])*|/\*.*?\*/)
      |(?P<string>(?:u8|[uUL])?"(?:\\.|[^"\\\n])*"|[uUL]?'(?:\\.|[^'\\\n])*')
      |(?P<word>[A-Za-z_]\w*)
      |(?P<number>\.?\d(?:[eEpP][+-]|[\w.])*)
      |(?P<sign>->|\+\+|--|<<=|>>=|<<|>>|<=|>=|==|!=|&&|\|\||[-+*/%&|^]=|\.\.\.|.)""",
    re.VERBOSE | re.DOTALL,
)
DIRECTIVE = re.compile(r"^[ \t]*#(?:\\\n|//[^\n]*|/\*.*?\*/|[^\n/]|/(?![/*]))*", re.MULTILINE | re.DOTALL)
INCLUDE = re.compile(r'#\s*include\s*(?P<open>["<])(?P<name>[^">]+)[">]')
DEFINE = re.compile(r"#\s*define\s+\w+(?:\([^)]*\))?")


class Token:
    __slots__ = ("kind", "text", "line")

    def __init__(self, kind, text, line):
        self.kind, self.text, self.line = kind, text, line


class Include:
    __slots__ = ("name", "own", "line")

    def __init__(self, name, own, line):
        self.name, self.own, self.line = name, own, line


def tokens_of(text, line=1):
    """(tokens, comments) of C text without directives; both are Tokens."""
    tokens, comments = [], []
    for match in TOKEN.finditer(text):
        kind, piece = match.lastgroup, match.group()
        if kind == "comment":
            comments.append(Token(kind, piece, line))
        elif not piece.isspace() and piece != "\\":
            tokens.append(Token(kind, piece, line))
        line += piece.count("\n")
    return tokens, comments


def spans_without_code(text):
    """Where comments and strings are: a # at the beginning of a line in one of them is no directive."""
    return [m.span() for m in TOKEN.finditer(text) if m.lastgroup in ("comment", "string")]


class Source:
    """A C file: its tokens outside directives, those of each macro's body, its comments and includes."""

    def __init__(self, path, text):
        self.path, self.text = path, text
        self.includes, self.macros, self.comments = [], [], []
        blank = []
        at = line = 0
        hidden = iter(spans_without_code(text))
        span = next(hidden, None)
        for match in DIRECTIVE.finditer(text):
            while span and span[1] <= match.start():
                span = next(hidden, None)
            if span and span[0] < match.start():
                continue
            line = text.count("\n", 0, match.start()) + 1
            self._directive(match.group(), line)
            blank.append(text[at : match.start()])
            blank.append("\n" * match.group().count("\n"))
            at = match.end()
        blank.append(text[at:])
        self.tokens, comments = tokens_of("".join(blank))
        self.comments += comments

    def _directive(self, text, line):
        include = INCLUDE.search(text)
        define = DEFINE.search(text)
        if include:
            self.includes.append(Include(include["name"], include["open"] == '"', line))
        body = text[define.end() :] if define else text
        tokens, comments = tokens_of(body, line)
        self.comments += comments
        if define:
            self.macros.append(tokens)


def closing(tokens, at):
    """The index of what closes the bracket at `at`; len(tokens) when nothing does."""
    pairs = {"(": ")", "[": "]", "{": "}"}
    opened, closed = tokens[at].text, pairs[tokens[at].text]
    depth = 0
    for i in range(at, len(tokens)):
        if tokens[i].kind == "sign":
            depth += (tokens[i].text == opened) - (tokens[i].text == closed)
            if depth == 0:
                return i
    return len(tokens)


def files_below(root):
    """All files of the project, as sorted paths from its root; what is built or hidden is left out, but for .ci."""
    found = []
    for folder, below, names in os.walk(root):
        below[:] = [b for b in below if b not in SKIPPED_FOLDERS and (b == ".ci" or not b.startswith("."))]
        place = os.path.relpath(folder, root)
        found += [n if place == "." else f"{place}/{n}" for n in names if not n.startswith(".")]
    return sorted(found)


def read(root, path):
    with open(os.path.join(root, path), encoding="utf-8", errors="replace") as file:
        return file.read()
