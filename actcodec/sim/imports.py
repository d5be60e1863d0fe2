"""Which files a module consists of, its own and those of what it imports: while they are the same, so is what it
makes."""

import ast
from functools import cache
from importlib.util import find_spec, resolve_name
from pathlib import Path

__all__ = ["files"]


def files(*modules: str) -> list[Path]:
    """The files of these modules and of all that these import, directly or not, from the packages that they lie in."""
    roots, paths, todo = {_root(name) for name in modules}, {}, set(modules)
    while todo:
        name = todo.pop()
        paths[name] = path = _file(name)
        if path:
            todo |= {other for other in _imports(name, path) if _root(other) in roots} - set(paths)
    return sorted({path for path in paths.values() if path})


def _root(name):
    return name.partition(".")[0]


@cache
def _spec(name):
    parent = name.rpartition(".")[0]
    if parent and not getattr(_spec(parent), "submodule_search_locations", None):
        return None  # an attribute of a module
    return find_spec(name)


def _file(name):
    spec = _spec(name)
    return Path(spec.origin) if spec and spec.origin and spec.origin.endswith(".py") else None


@cache
def _imports(name, path):
    """Of what a module imports, wherever in its text: names of modules, and of what might be modules."""
    package, names = (name if path.name == "__init__.py" else name.rpartition(".")[0]), set()
    for node in ast.walk(ast.parse(path.read_bytes())):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            module = resolve_name("." * node.level + (node.module or ""), package)
            names |= {module, *(f"{module}.{alias.name}" for alias in node.names)}
    return names
