"""Checks of one C file's text: braces, tests of pointers, the result variable, banned functions, marks, guards, blanks."""
import re

from source import closing

LOOP_MACRO = re.compile(r"^(HASH_ITER|\w*_(FOREACH|foreach)(_\w+)?|\w*_FOR_EACH(_\w+)?)$")
BANNED = set("atoi atol atof strcpy strcat sprintf vsprintf strtok gets system popen alloca".split())
MARK = re.compile(r"\b(" + "|".join(["TO" + "DO", "FIX" + "ME", "X" + "XX", "HA" + "CK"]) + r")\b")
RESULT_NAMES = set("status code ret result r res".split())


def is_sign(token, *texts):
    return token.kind == "sign" and token.text in texts


def braces(source):
    for tokens in [source.tokens, *source.macros]:
        yield from braces_of(tokens)


def braces_of(tokens):
    """Every body of if, else, for, while, do and of the macros that loop stands in braces."""
    tails = set()  # the `while` of each do … while
    for i, token in enumerate(tokens):
        if token.kind != "word" or i in tails:
            continue
        word, after = token.text, i + 1
        is_loop_macro = bool(LOOP_MACRO.match(word))
        if word in ("if", "for", "while", "switch") or is_loop_macro:
            if after >= len(tokens) or not is_sign(tokens[after], "("):
                continue
            after = closing(tokens, after) + 1
        elif word not in ("else", "do"):
            continue
        if after >= len(tokens):
            continue  # a macro that is the head of a loop
        body = tokens[after]
        if word == "else" and body.text == "if":
            continue
        if not is_sign(body, "{"):
            yield token.line, f"the body of `{word}` has no braces"
            if word == "do":  # its tail is not to be taken for a loop
                tails.update(j for j in range(after, len(tokens)) if tokens[j].text == "while")
        elif word == "do":
            tails.add(closing(tokens, after) + 1)


def null_tests(source):
    """A pointer is tested by `p` and `!p`."""
    for tokens in [source.tokens, *source.macros]:
        for i, token in enumerate(tokens):
            if is_sign(token, "==", "!="):
                beside = tokens[max(i - 1, 0) : i] + tokens[i + 1 : i + 2]
                if any(t.text == "NULL" for t in beside):
                    yield token.line, f"`{token.text} NULL`: test a pointer by `p` or `!p`"


def functions(tokens):
    """(name, index of the parameters' bracket, index of the body's brace) of each definition."""
    i = 0
    while i < len(tokens):
        if is_sign(tokens[i], "{"):
            last = i - 1
            if last >= 0 and is_sign(tokens[last], ")"):
                depth, first = 1, last
                while depth > 0 and first > 0:
                    first -= 1
                    depth += is_sign(tokens[first], ")") - is_sign(tokens[first], "(")
                if first > 0 and tokens[first - 1].kind == "word":
                    yield tokens[first - 1].text, first, i
            i = closing(tokens, i)
        i += 1


def checked_functions(sources):
    """The names that some declaration marks with MUST_CHECK."""
    names = set()
    for source in sources:
        tokens = source.tokens
        for i, token in enumerate(tokens):
            if token.text == "MUST_CHECK":
                names.update(
                    t.text
                    for t, after in zip(tokens[i + 1 : i + 12], tokens[i + 2 : i + 13])
                    if t.kind == "word" and is_sign(after, "(")
                )
    return names


def result_variable(source, checked):
    """What a function returns as its error code is named rc."""
    tokens = source.tokens
    for name, parameters, brace in functions(tokens):
        texts = [t.text for t in tokens[parameters:brace]]
        has_err = any(texts[i : i + 3] == ["struct", "err", "*"] for i in range(len(texts)))
        if not has_err and name not in checked:
            continue
        body = tokens[brace : closing(tokens, brace)]
        returned = returned_names(body)
        for variable, line in int_locals(body):
            if variable in RESULT_NAMES and variable in returned:
                yield line, f"{name}() returns its error code in `{variable}`; name it rc"


def returned_names(body):
    """Names that are themselves a value of a return statement, also as a branch of ?: ."""
    names = set()
    at = 0
    while at < len(body):
        if body[at].text == "return":
            depth = 0
            while at + 1 < len(body) and not is_sign(body[at + 1], ";"):
                before, at = body[at], at + 1
                depth += is_sign(body[at], "(") - is_sign(body[at], ")")
                value = before.text == "return" or is_sign(before, "?", ":")
                if depth == 0 and value and body[at].kind == "word" and is_sign(body[at + 1], ";", ":"):
                    names.add(body[at].text)
        at += 1
    return names


def int_locals(body):
    """(name, line) of each plain int that is declared in a body."""
    for i in range(1, len(body) - 2):
        if body[i].text != "int" or not is_sign(body[i - 1], "{", "}", ";", "("):
            continue
        at, depth, expects_name = i + 1, 0, True
        while at < len(body) and not (depth == 0 and is_sign(body[at], ";", ")")):
            if expects_name and body[at].kind == "word" and is_sign(body[at + 1], "=", ";", ","):
                yield body[at].text, body[at].line
            depth += is_sign(body[at], "(", "[", "{") - is_sign(body[at], ")", "]", "}")
            expects_name = depth == 0 and is_sign(body[at], ",")
            at += 1


def calls(source, names):
    """(line, name) of each call of one of these functions."""
    for tokens in [source.tokens, *source.macros]:
        for i, token in enumerate(tokens[:-1]):
            if token.text in names and token.kind == "word" and is_sign(tokens[i + 1], "("):
                if i == 0 or not is_sign(tokens[i - 1], ".", "->"):
                    yield token.line, token.text


def banned(source):
    for line, name in calls(source, BANNED):
        yield line, f"{name}() is banned"


def marks_in_comments(source):
    for comment in source.comments:
        for offset, text in enumerate(comment.text.split("\n")):
            if MARK.search(text):
                yield comment.line + offset, "unfinished work"


def marks_in_text(text):
    for number, line in enumerate(text.split("\n"), 1):
        if MARK.search(line):
            yield number, "unfinished work"


def guard(source):
    if not source.path.endswith(".h"):
        return
    name = re.sub(r"[^A-Z0-9]", "_", source.path.upper())
    head = re.search(r"^#(?!\s*include)[^\n]*\n#[^\n]*$", source.text, re.MULTILINE)
    if not head or head.group() != f"#ifndef {name}\n#define {name}":
        line = source.text.count("\n", 0, head.start()) + 1 if head else 1
        yield line, f"the header's guard is not {name}"


def blanks(text):
    for number, line in enumerate(text.split("\n"), 1):
        if "\t" in line or line.endswith((" ", "\r")):
            yield number, "a tab or a trailing blank"
