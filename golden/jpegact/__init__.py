"""Golden model of JPEG-ACT (Evans, Liu, Aamodt, ISCA 2020); docs/formats.md defines every number."""
