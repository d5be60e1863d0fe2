"""Something else in the place of components, while a design is elaborated."""

from contextlib import contextmanager

__all__ = ["elaborating"]


@contextmanager
def elaborating(component, instead):
    """While this is open, what ``component`` makes, a class or a partial of one, elaborates to what
    ``instead(component, elaborate)`` returns; ``elaborate()`` is what it would elaborate to. Designs that ``instead``
    looks at meanwhile are as ever."""
    cls = getattr(component, "func", component)
    ordinary, asking = cls.elaborate, []

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
