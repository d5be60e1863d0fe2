"""Something else in the place of components, while a design is elaborated."""

from contextlib import contextmanager

__all__ = ["elaborating"]

asking: list = []  # components whose ``instead`` is at work, of all classes


@contextmanager
def elaborating(cls, instead):
    """While this is open, components of the class ``cls`` elaborate to what ``instead(component, elaborate)`` returns;
    ``elaborate()`` is what they would elaborate to. Designs that ``instead`` looks at meanwhile are as ever, whatever
    else is open."""
    ordinary = cls.elaborate

    def elaborate(self, platform):
        if asking:
            return ordinary(self, platform)
        asking.append(self)
        try:
            return instead(self, lambda: ordinary(self, platform))
        finally:
            asking.pop()

    cls.elaborate = elaborate
    try:
        yield
    finally:
        cls.elaborate = ordinary
