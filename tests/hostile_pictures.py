"""Pictures made to hold up whoever decodes them; small files, each of which asks for much time or memory."""

import io
import struct
import zlib

from PIL import Image


def png(width: int, height: int) -> bytes:
    """A transparent PNG of a thousandth of its pixels' size."""
    packer = zlib.compressobj(9)
    packed = b"".join(packer.compress(bytes(1 + 4 * width)) for _ in range(height)) + packer.flush()
    header = struct.pack(">IIBBBBB", width, height, 8, 6, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + _chunk(b"IHDR", header) + _chunk(b"IDAT", packed) + _chunk(b"IEND", b"")


def jpeg_of_scans(side: int, scans: int) -> bytes:
    """A progressive JPEG whose last scan comes again and again; each is a few hundred bytes and touches every pixel."""
    buffer = io.BytesIO()
    Image.new("L", (side, side), 128).save(buffer, "JPEG", progressive=True, quality=50)
    data = buffer.getvalue()
    last = data[data.rindex(b"\xff\xda") : -2]
    return data[:-2] + last * scans + data[-2:]


def tiff_of_frames(count: int) -> bytes:
    """A TIFF of one pixel, and so many directories that say so."""
    tags = [(256, 4, 1), (257, 4, 1), (258, 3, 8), (259, 3, 1), (262, 3, 1), (273, 4, 0), (278, 4, 1), (279, 4, 1)]
    made = bytearray(b"II*\0" + struct.pack("<I", 8))
    for number in range(count):
        made += struct.pack("<H", len(tags))
        made += b"".join(struct.pack("<HHII", tag, kind, 1, value) for tag, kind, value in tags)
        made += struct.pack("<I", len(made) + 4 if number < count - 1 else 0)
    return bytes(made)


def ppm_of_comments(length: int) -> bytes:
    """A PPM of one pixel in text, after ``length`` bytes of comments, which Pillow cuts out one by one."""
    return b"P3 1 1 255\n" + b"#\n" * (length // 2) + b"1 2 3\n"


def gif_of_frames(count: int) -> bytes:
    """An animation of tiny frames."""
    frames = [Image.new("RGB", (2, 2), "red" if number % 2 else "blue") for number in range(count)]
    buffer = io.BytesIO()
    frames[0].save(buffer, "GIF", save_all=True, append_images=frames[1:])
    return buffer.getvalue()


def _chunk(name: bytes, body: bytes) -> bytes:
    return struct.pack(">I", len(body)) + name + body + struct.pack(">I", zlib.crc32(name + body))
