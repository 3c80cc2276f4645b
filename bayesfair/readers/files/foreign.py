"""What a file is that no reader here reads, by its first bytes; what a line of another kind is."""

from __future__ import annotations

import re

__all__ = ["foreign", "other_format"]

_STARTS = {
    b"PK\x03\x04": "a spreadsheet or zip archive",
    b"\xd0\xcf\x11\xe0": "a spreadsheet",
    b"\x80\x03": "a pickle of Python", b"\x80\x04": "a pickle of Python",
    b"\x80\x05": "a pickle of Python",
    b"\x93NUMPY": "a NumPy array", b"\x89HDF\r\n": "HDF5", b"Obj\x01": "Avro",
    b"FEA1\x00": "the first version of Feather", b"RDX3\n": "data of R",
    b"$FL2@(#)": "data of SPSS", b"<stata_dta>": "data of Stata",
    b"%PDF-": "PDF", b"\x89PNG": "an image", b"\xff\xd8\xff": "an image",
    b"<!doctype html": "a web page (HTML)", b"<html": "a web page (HTML)", b"<?xml": "XML",
    b"\xff\xfe\x00\x00": "UTF-32 text", b"\x00\x00\xfe\xff": "UTF-32 text",
}  # fmt: skip
_VW = re.compile(r"(shared\s*\|)|(\d+:[^:|\s]+:[^:|\s]+\s[^|]*\|)")


def foreign(head: bytes) -> str | None:
    """Return what a file is that begins so, None if nothing here says it.

    Examples
    --------
    >>> foreign(b"%PDF-1.7"), foreign(b"arm,reward")
    ('PDF', None)
    """
    plain = head.lstrip().lower() if head.lstrip().startswith(b"<") else head
    if head[8:12] == b"DUCK":
        return "a DuckDB file"
    return next((what for start, what in _STARTS.items() if plain.startswith(start)), None)


def other_format(line: str) -> str:
    """Return a sentence if a line of delimited text is written in another format, else "".

    Examples
    --------
    >>> other_format('{"arm": "a"}')
    ' The row looks like JSON: one file holds one format.'
    """
    text = line.strip()
    if text.startswith(("{", "[{")):
        return " The row looks like JSON: one file holds one format."
    if _VW.match(text):
        return " The row looks like Vowpal Wabbit text: one file holds one format."
    return ""
