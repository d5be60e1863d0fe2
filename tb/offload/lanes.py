"""A lane's modes as the registry knows them, whatever their codec."""

from actcodec import codecs

__all__ = ["drawn", "model", "selectable", "stored"]


def selectable(names):
    """Those of a device's modes that a user can ask for: the others are fallbacks of theirs."""
    return [mode.name for mode in codecs.lane_modes(*names) if codecs.by_code(mode.code)[0]]


def drawn(random, name, cdus, **given):
    """The mode of the registry that a lane's one belongs to, and values of all its options: the ``given`` ones, those
    that the lane's mode stands for, and any of those that only compression has to know, unless they exclude each
    other."""
    mode, values = codecs.by_code(codecs.lane_modes(name)[0].code)
    for option in mode.options:
        lacks = option.needs and values[option.needs[0]] != option.needs[1]
        if not option.stored and option.name not in mode.exclusive and not lacks:
            values[option.name] = (
                bool(random.integers(2)) if option.type is bool else
                option.choices[random.integers(len(option.choices))] if option.choices else
                int(random.integers(*option.range, endpoint=True)) if option.type is int else
                float(random.uniform(*option.range)))
    values |= {"cdus": cdus} | {key: one for key, one in given.items() if mode.option(key)}
    return mode, mode.option_values(values)


def stored(compressed):
    """A ``Compressed`` as its lanes have it."""
    return model(compressed).unpack(compressed)


def model(compressed):
    """Its golden model."""
    return codecs.find(compressed.mode).model
