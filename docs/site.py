"""What MkDocs needs besides the documents, which are written for GitHub: its reader of Markdown wants an empty line
before a list or a table, links into the repository, of which the site has no copy, lose theirs, and links that are
called by their file get the title of the page. Docstrings, for ``docs/docstrings.py``, get the order of numpydoc."""

import re

__all__ = ["on_page_content", "on_page_markdown", "readable", "sections", "titles"]

ITEM = re.compile(r"(?:[-*]|\d+\.) ")
FIRST = re.compile(r"(?:[-*]|1\.) ")  # as GitHub has it: a list within a paragraph begins with 1
SECTION = re.compile(r"\w+\n-+\n")
LINK = re.compile(r"\[([^\]]+)\]\(([^)#\s]*)((?:#[^)]*)?)\)")


def titles(nav):
    """{page: its title} of those that the navigation names."""
    result = {}
    for item in nav:
        for title, target in item.items() if isinstance(item, dict) else ():
            result |= titles(target) if isinstance(target, list) else {target: title}
    return result


def readable(text, depth, names):
    """The text as MkDocs wants it; ``depth`` is the number of folders the page lies in, ``names`` are the titles."""
    lines, fenced, before = [], False, ""
    for line in text.split("\n"):
        if line.startswith("```"):
            fenced = not fenced
        begins = FIRST.match(line) and not ITEM.match(before) and not before.startswith(" ")
        table = line.startswith("|") and not before.startswith("|")
        if not fenced and before and (begins or table):
            lines.append("")
        lines.append(line)
        before = line

    def link(match):
        words, target, anchor = match.groups()
        outside = target.count("../") > depth or target in ("records", "timing") or target.endswith(".toml")
        name = names.get(target.replace("../", ""), words)
        return words if outside else f"[{name if words == target.rpartition('/')[2] else words}]({target}{anchor})"

    return LINK.sub(link, "\n".join(lines))


def sections(text):
    """A docstring with its prose first, then its sections, then its examples, as one of these."""
    prose, others, examples = [], [], []
    for part in re.split(r"\n\n(?! )", text.strip()):  # what is indented belongs to what precedes it
        (examples if part.startswith(">>>") else others if SECTION.match(part) else prose).append(part)
    if examples:
        others.append("Examples\n--------\n" + "\n\n".join(examples))
    return "\n\n".join(prose + others)


def on_page_markdown(markdown, page, config, files):
    """MkDocs calls this for each page before it becomes HTML,"""
    return readable(markdown, page.file.src_uri.count("/"), titles(config["nav"]))


def on_page_content(html, page, config, files):
    """and this after it has: references of docstrings are shown by their last names, and no option is broken."""
    html = re.sub(r":\w+:<code>~?(?:[\w.]*\.)?(\w+)</code>", r"<code>\1</code>", html)
    return re.sub(r"<code>[^<]*</code>",
                  lambda code: re.sub(r"(?<![\w-])--?\w[\w-]*", r'<span class="option">\g<0></span>', code[0]), html)
