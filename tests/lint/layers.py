"""Who may include whom: rooms, and libraries that belong to modules. The table is a text file; layers.txt says how it is written."""
import os


class Table:
    def __init__(self, path):
        self.name = path
        self.rooms, self.owners, self.silent, self.may_log = {}, {}, [], []
        self.exempt = {}  # check -> paths that it leaves out
        self.lines = {}  # what -> the line that names it
        self.errors = []

    def problem(self, line, text):
        self.errors.append((self.name, line, text))


def read_table(root, name):
    table = Table(name)
    with open(os.path.join(root, name), encoding="utf-8") as file:
        for number, line in enumerate(file, 1):
            words = line.split("#")[0].replace(":", " : ").split()
            if words:
                take(table, number, words)
    return table


def take(table, number, words):
    colon = words.index(":") if ":" in words else len(words)
    kind, *names = words[:colon]
    right = words[colon + 1 :]
    if kind == "room" and len(names) == 1:
        table.rooms[names[0]] = right
    elif kind == "library" and len(names) == 1:
        table.owners[names[0]] = right
    elif kind == "silent":
        table.silent, table.may_log = names, right
    elif kind == "except" and len(names) == 1:
        table.exempt.setdefault(names[0], []).extend(right)
    else:
        table.problem(number, f"`{' '.join(words)}` is no entry of this table")
    for name in names[:1]:
        table.lines[(kind, name)] = number


def check_table(root, table):
    """What the table names exists; each thing that does not is said once."""
    missing = set()

    def want(line, name):
        is_there = os.path.exists(os.path.join(root, name))
        is_there |= any(os.path.exists(os.path.join(root, name + ending)) for ending in (".c", ".h"))
        if not is_there and name not in missing:
            missing.add(name)
            yield table.name, line, f"{name} does not exist"

    for room, others in table.rooms.items():
        line = table.lines[("room", room)]
        yield from want(line, room)
        for other in others:
            if other not in table.rooms:
                yield table.name, line, f"{room} may include {other}, which is no room of this table"
    for library, modules in table.owners.items():
        for module in modules:
            yield from want(table.lines[("library", library)], module)
    for check, paths in table.exempt.items():
        for path in paths:
            yield from want(table.lines[("except", check)], path)
    for path in table.silent + table.may_log:
        yield from want(table.lines[("silent", table.silent[0])], path)


def is_below(path, prefix):
    """prefix is a folder, a file, or a file without its ending."""
    return path == prefix or path.startswith(prefix + "/") or path.rsplit(".", 1)[0] == prefix


def room_of(table, path):
    """The longest room that the path begins with; None when it is in none."""
    folder = path.rpartition("/")[0]
    while folder and folder not in table.rooms:
        folder = folder.rpartition("/")[0]
    return folder or None


def layers(source, table):
    room = room_of(table, source.path)
    if source.path in table.exempt.get("layers", []) or source.path.startswith("tests/"):
        return
    if room is None:
        yield 1, "the file is in no room of the table"
        return
    allowed = [room, *table.rooms[room]]
    for include in source.includes:
        other = room_of(table, include.name) if include.own else room
        if other not in allowed:
            yield include.line, f'"{include.name}": {room} may not include {other or "what is in no room"}'


def libraries(source, table):
    for include in source.includes:
        for library, modules in table.owners.items():
            is_it = include.name.startswith(library) if library.endswith("/") else include.name == library
            if is_it and not source.path.startswith("tests/") and not any(is_below(source.path, m) for m in modules):
                yield include.line, f"<{include.name}> belongs to {', '.join(modules)}"


def is_silent(source, table):
    below = any(is_below(source.path, p) for p in table.silent)
    return below and not any(is_below(source.path, p) for p in table.may_log)
