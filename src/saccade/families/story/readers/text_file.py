"""Text files in UTF-8, read whole. A binary file and any other encoding are refused with a message."""

from __future__ import annotations

from pathlib import Path

from saccade.errors import DataError


def read_utf8(path: Path) -> str:
    """The text of ``path``, with or without a byte order mark; line ends become line feeds.

    Raises:
        DataError: the file cannot be read, is binary, or has another encoding.
    """
    try:
        content = path.read_bytes()
    except OSError as error:
        raise DataError(f"{path}: cannot be read ({error.strerror or error}); check the path") from error
    if content.startswith((b"\xff\xfe", b"\xfe\xff")):
        raise DataError(f"{path}: it is in UTF-16; save it as UTF-8")
    if (zero := content.find(b"\0")) >= 0:
        raise DataError(f"{path}: a binary file, not text (byte {zero} is 0); give a text file in UTF-8")
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        wrong = error.object[error.start]
        raise DataError(f"{path}: line {line} is not UTF-8 (byte 0x{wrong:02x}); save it as UTF-8") from error
    return text.replace("\r\n", "\n").replace("\r", "\n")
