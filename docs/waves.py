"""Timing diagrams: the ports of each cycle as WaveJSON, and that as SVG, for which the Python package wavedrom (2.0.3)
is needed; nothing else here uses it."""

from xml.etree import ElementTree

__all__ = ["draw", "svg"]


def label(field, value):
    """A value of several bits as it stands in a diagram."""
    if field in ("keep", "strb"):
        return f"{value.bit_count()} ones"
    return value if isinstance(value, str) else f"{value:#x}" if field in ("addr", "data") else str(value)


def draw(title, rows, channels, signals=(), quiet=6):
    """WaveJSON of ``rows``. ``channels`` maps the prefix of a channel to its fields besides valid and ready, which are
    shown while valid; ``signals`` are shown as they are. Of more than ``quiet`` cycles in which nothing happens, most
    are left out."""
    names = [(prefix, field) for prefix, fields in channels.items() for field in ("valid", "ready", *fields)]
    names += [("", name) for name in signals]
    passes = [[row[prefix + "valid"] and row[prefix + "ready"] for prefix in channels] for row in rows]
    states = [[row[prefix + field] if not prefix or field in ("valid", "ready") or row[prefix + "valid"] else None
               for prefix, field in names] for row in rows]
    runs = [[0]]  # of cycles in which nothing happens
    for k in range(1, len(rows)):
        same = states[k] == states[k - 1] and not any(passes[k]) and not any(passes[k - 1])
        runs[-1:] = [runs[-1] + [k]] if same else [runs[-1], [k]]
    columns = []
    for run_ in runs:
        if len(run_) > quiet:
            run_[2:-2] = [None]
        columns += run_
    lanes = {prefix: [] for prefix in (*channels, "")}
    for at, (prefix, field) in enumerate(names):
        wave, labels, before = "", [], ...
        for k in columns:
            value = before if k is None else states[k][at]
            again = k and prefix and field not in ("valid", "ready", "last", "strb") and value is not None and (
                passes[k - 1][list(channels).index(prefix)])
            if k is None:
                wave += "|"
            elif value == before and not again:
                wave += "."
            elif value is None:
                wave += "x"
            elif not prefix or field in ("valid", "ready", "last"):
                wave += str(int(value))
            else:
                wave += "3"
                labels.append(label(field, value))
            before = value
        lanes[prefix].append({"name": prefix + field, "wave": wave} | ({"data": labels} if labels else {}))
    signal = [{"name": "clk", "wave": "p" + "".join("|" if k is None else "." for k in columns[1:])}]
    for part in lanes.values():
        signal += [{}, *part] if part else []
    return {"signal": signal, "head": {"text": title}}


def svg(text):
    """A diagram without the parts of Wavedrom's skin that it does not use."""
    import wavedrom

    for prefix, name in (("", "2000/svg"), ("xlink", "1999/xlink")):
        ElementTree.register_namespace(prefix, f"http://www.w3.org/{name}")
    root = ElementTree.fromstring(wavedrom.render(text).tostring())
    used = {value[1:] for node in root.iter() for key, value in node.items() if key.endswith("href")}
    for defs in root.iter("{http://www.w3.org/2000/svg}defs"):
        for part in list(defs):
            if part.get("id", "") not in used and part.tag.endswith("}g"):
                defs.remove(part)
    root.set("style", "background: white")
    return ElementTree.tostring(root, encoding="unicode") + "\n"
