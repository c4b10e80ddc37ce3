"""``python -m docs.reference`` writes docs/api/, out of the docstrings, and docs/reference/, out of the program."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any, Final

import griffe

from docs.program import program_pages

ROOT: Final = Path(__file__).parent.parent
FOLDER: Final = ROOT / "docs/api"
OF_PROGRAM: Final = ROOT / "docs/reference"
PACKAGES: Final = (
    "trinity",
    "trinity.errors",
    "trinity.cdc",
    "trinity.dbapi",
    "trinity.sqlalchemy",
    "trinity.dlt",
    "trinity.spi",
    "trinity.storage",
    "trinity.merge.functions",
    "trinity_conformance",
)
"""The packages that others may import from; a page each."""
_WIDTH: Final = 100
_PAGE: Final = re.compile(r"\bdocs/([\w/-]+\.md)")
_RULES: Final = re.compile(r"\([A-Z]\d{1,2}(?:(?:, |-| to | and )[A-Z]\d{1,2})*\)")
"""Rules that a docstring cites: ids in brackets."""
INNER: Final = "For Trinity's own modules."
"""Mark in the docstring of a method that is not public, though without an underscore: the reference omits it."""


def pages() -> Mapping[str, str]:
    """Return name of a file in docs/api -> its text."""
    loaded = _loaded()
    found = {f"{package}.md": _page(loaded[package]) for package in PACKAGES}
    rows = (f"| [{p}]({p}.md) | {_summary(loaded[p])} |" for p in PACKAGES)
    head = "# API reference\n\nOut of the docstrings, by `make docs`.\n\n| package | what it is for |\n|---|---|\n"
    return {"README.md": head + "\n".join(rows) + "\n", **found}


def undocumented() -> list[str]:
    """Return the public names, and public methods of public classes, without a docstring of their own or of a base."""
    return [
        f"{package}.{name}"
        for package, module in _loaded().items()
        for name, found in _entries(module)
        if not _docstring(found) and not found.is_module
    ]


@cache
def _loaded() -> dict[str, griffe.Module]:
    loader = griffe.GriffeLoader(search_paths=[ROOT, ROOT / "conformance"], docstring_parser="google")
    for package in dict.fromkeys(name.split(".")[0] for name in PACKAGES):
        loader.load(package)
    loader.resolve_aliases(external=False)
    return {name: loader.modules_collection[name] for name in PACKAGES}


@cache
def _public_classes() -> frozenset[str]:
    """Return the full names of the classes that others may import."""
    exported = ((module, str(name)) for module in _loaded().values() for name in module.exports or ())
    return frozenset(_exported(module, name).path for module, name in exported)


def _entries(module: griffe.Module) -> Iterator[tuple[str, Any]]:
    """Yield (name, object) of each public name, and of classes' public methods and properties (``Class.method``)."""
    for name in map(str, module.exports or ()):
        found = _exported(module, name)
        yield name, found
        if found.is_class:
            yield from ((f"{name}.{member.name}", member) for member in _methods(found))


def _exported(module: griffe.Module, name: str) -> Any:
    """Return the object of a package's name: the imported one, where a module within it has the same name."""
    found = _target(module[name])
    imported = module.imports.get(name, found.path)
    return found if imported == found.path or not found.is_module else module.modules_collection[imported]


def _target(found: Any) -> Any:
    return found.final_target if found.is_alias else found


def _methods(owner: griffe.Class) -> list[Any]:
    """Return the public methods and properties of a class, in the order in which they are written.

    Members of public bases have entries of their own; members of private bases are the class's.
    """
    private = [base for base in owner.mro() if base.path not in _public_classes()]
    members = (_target(m) for part in (owner, *private) for n, m in part.members.items() if not n.startswith("_"))
    return [m for m in members if (m.is_function or "property" in m.labels) and not _is_inner(m)]


def _is_inner(member: Any) -> bool:
    return member.docstring is not None and INNER in member.docstring.value


def _docstring(found: Any) -> griffe.Docstring | None:
    """Return an object's docstring, or that of the method that it overrides."""
    bases = found.parent.mro() if found.docstring is None and found.parent.is_class else ()
    overridden = (base.members.get(found.name) for base in bases)
    return found.docstring or next((m.docstring for m in overridden if m is not None and m.docstring), None)


def _page(module: griffe.Module) -> str:
    parts = [f"# {module.path}", *_prose(module.docstring)]
    for name, found in _entries(module):
        level = "###" if "." in name else "##"
        if found.is_module:
            parts += [f"{level} {name}", f"The module [{found.path}]({found.path}.md)."]
        else:
            parts += [f"{level} {name}", f"```python\n{_code(name, found)}\n```", *_prose(_docstring(found))]
    return "\n\n".join(parts) + "\n"


def _code(name: str, found: Any) -> str:
    if found.is_function:
        return _broken(found.signature(return_type=True))
    if found.is_class:
        bases = f"({', '.join(map(str, found.bases))})" if found.bases else ""
        fields = (_field(m) for m in found.members.values() if m.is_attribute and not m.name.startswith("_"))
        return "\n".join([f"class {found.name}{bases}:", *(f"    {line}" for line in fields if line)])
    kind = f": {found.annotation}" if found.annotation is not None else ""
    return f"{name.split('.')[-1]}{kind}" + (
        "" if found.value is None or found.labels & {"property"} else _value(found)
    )


def _value(found: Any) -> str:
    text = str(found.value)
    return f" = {text}" if len(text) < _WIDTH else " = ..."


def _field(found: Any) -> str:
    """Return ``name: type``; nothing for properties, which have own entries, and for attributes that methods set."""
    if "property" in found.labels or (found.annotation is None and "class-attribute" not in found.labels):
        return ""
    return f"{found.name}: {found.annotation}" if found.annotation is not None else f"{found.name}{_value(found)}"


def _broken(signature: str) -> str:
    """Return a signature, with one parameter a line when it is long."""
    name, _, rest = signature.partition("(")
    depth, start, parts = 0, 0, []
    for at, sign in enumerate(rest):
        depth += (sign in "([{") - (sign in ")]}")
        if depth < 0 or (sign == "," and depth == 0):
            parts.append(rest[start:at].strip())
            start = at + 1
        if depth < 0:
            break
    if len(signature) < _WIDTH or not parts:
        return f"def {signature}"
    return f"def {name}(\n" + "".join(f"    {part},\n" for part in parts) + f"){rest[start:]}"


def _prose(docstring: griffe.Docstring | None) -> list[str]:
    """Return a docstring's sections as paragraphs of Markdown."""
    found = []
    for section in docstring.parse("google", warnings=False, returns_multiple_items=False) if docstring else ():
        if section.kind is griffe.DocstringSectionKind.text:
            found.append(_markdown(section.value))
        elif section.kind is griffe.DocstringSectionKind.admonition:
            found.append(f"**{section.title}** {_markdown(section.value.contents)}")
        else:
            items = "\n".join(f"- {_item(section.kind, item)}" for item in section.value)
            found.append(f"{section.kind.value.capitalize()}:\n\n{items}")
    return found


def _item(kind: griffe.DocstringSectionKind, item: Any) -> str:
    name = getattr(item, "name", "") if kind is not griffe.DocstringSectionKind.raises else str(item.annotation)
    if name.endswith(","):  # several attributes, of which griffe takes all but the first for a type
        name = f"{name} {str(item.annotation).strip('()')}"
    text = _markdown(item.description).replace("\n", "\n  ")
    return f"`{name}`: {text}" if name else text


def _markdown(text: str) -> str:
    """Return Sphinx's roles and double backticks as Markdown, and pages and rules as links."""
    text = re.sub(r":\w+:`~?([^`]+)`", r"`\1`", text)
    text = _PAGE.sub(lambda page: f"[{_title(page[1])}](../{page[1]})", re.sub(r"``(.+?)``", r"`\1`", text))
    return _RULES.sub(lambda cited: re.sub(r"[A-Z]\d+", _rule, cited[0]), text)


def _title(page: str) -> str:
    return (ROOT / "docs" / page).read_text().partition("# ")[2].partition("\n")[0]


def _rule(found: re.Match[str]) -> str:
    return f"[{found[0]}](../semantics.md#{found[0].lower()})"


def _summary(module: griffe.Module) -> str:
    assert module.docstring is not None, module.path
    return _markdown(module.docstring.value.split("\n\n")[0].replace("\n", " "))


def write() -> None:
    """Make both folders anew."""
    for folder, found in ((FOLDER, pages()), (OF_PROGRAM, program_pages())):
        folder.mkdir(exist_ok=True)
        for old in folder.glob("*.md"):
            old.unlink()
        for name, text in found.items():
            (folder / name).write_text(text)


if __name__ == "__main__":
    write()
