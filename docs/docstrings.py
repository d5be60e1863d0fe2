"""What mkdocstrings needs to read the docstrings: their sections in its order, and the comments after the fields of a
dataclass."""

import re

from griffe import Extension

from docs.site import sections

__all__ = ["Docstrings", "fields"]

COMMENT = re.compile(r"  # (.*)$")


def fields(cls):
    """Those of a dataclass, as a section, if any has a comment."""
    lines = cls.lines_collection[cls.filepath]
    every = [one for one in cls.attributes.values() if one.endlineno and one.is_public and not one.docstring]
    comments = {one: COMMENT.search(lines[one.endlineno - 1]) for one in every}
    if not any(comments.values()):
        return ""
    return "\n".join(["Attributes\n----------", *(f"{one.name} : {one.annotation}\n    {comment[1] if comment else ''}"
                                                  for one, comment in comments.items())])


class Docstrings(Extension):
    def on_object(self, *, obj, **_):
        if obj.docstring:
            extra = fields(obj) if obj.is_class and "dataclass" in obj.labels else ""
            obj.docstring.value = sections(f"{obj.docstring.value}\n\n{extra}")
