"""What ``tools/kill.py`` kills: five commands, each as small as it can be and still write everything it writes.

A target is given ``shared``, a folder that all trials read, and ``place``, a folder of its own to write into.
"""

from __future__ import annotations

import gzip
import hashlib
import os
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

TINY = (
    "data.size=[48,48]", "batch_size=16", "model.config.hidden=4", "model.config.channels=4", "model.config.depth=2",
    "phases.0.epochs=2", "phases.0.schedule.warmup=0", "log_every=2", "checkpoint_every=3",
)  # fmt: skip
COLOURS = {"red": (220, 30, 30), "green": (30, 200, 60), "blue": (40, 60, 230)}
PICTURES = {"train": 16, "val": 4, "test": 4}
SIDE = 48


@dataclass(frozen=True)
class Target:
    """A command that may be killed at any time."""

    name: str
    run: Callable[[Path, Path, bool], None]
    """``shared``, ``place``, and whether --resume is given."""
    prepare: Callable[[Path], None] = lambda shared: None
    """Makes in ``shared`` what the command needs."""
    resumes: bool = False
    """Whether the command has --resume."""
    warm: Callable[[], object] = lambda: None
    """Imports what the command needs: after that a fork starts at once."""


def _write_table(shared: Path) -> None:
    """Pictures of one coloured square each, asked for its colour."""
    from PIL import Image, ImageDraw

    folder = shared / "pictures"
    if folder.is_dir():
        return
    folder.mkdir(parents=True)
    rows, number = ["image,query,label,split"], 0
    for split, count in PICTURES.items():
        for _ in range(count):
            colour = list(COLOURS)[number % len(COLOURS)]
            picture = Image.new("RGB", (SIDE, SIDE), (60 + 5 * number,) * 3)
            ImageDraw.Draw(picture).rectangle((8, 8, 28 + number % 9, 28), fill=COLOURS[colour])
            picture.save(folder / f"{number:02}.png")
            rows.append(f"{number:02}.png,colour,{colour},{split}")
            number += 1
    (folder / "table.csv").write_text("\n".join(rows) + "\n", encoding="utf-8")


def _train(shared: Path, place: Path, resume: bool, *, seed: int = 0) -> None:
    import saccade

    data = f"csv:{shared / 'pictures' / 'table.csv'}"
    options: dict[str, Any] = {"data": data, "seed": seed, "overrides": TINY, "device": "cpu", "quiet": True}
    saccade.train("attributes", out=place / "run", resume=resume, **options)


def _warm_training() -> None:
    import torch

    from saccade.engine.run_folder import versions

    torch.set_num_threads(1)
    versions()  # asks git once


class _Gzipped(BaseHTTPRequestHandler):
    """Serves one gzipped file, from any byte on."""

    content = gzip.compress(hashlib.shake_256(b"saccade").digest(3_000_000), mtime=0)

    def do_GET(self) -> None:
        start = int((self.headers.get("Range") or "bytes=0-").split("=")[1].rstrip("-"))
        if start >= len(self.content):
            self.send_error(416)
            return
        self.send_response(206 if start else 200)
        self.send_header("Content-Length", str(len(self.content) - start))
        self.end_headers()
        with suppress(OSError):  # who asked may be dead
            self.wfile.write(self.content[start:])

    def log_message(self, *args: object) -> None:
        """Say nothing."""


def serve(shared: Path) -> int:
    """Start the server that ``data get`` asks, in a process of its own; its process number."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Gzipped)
    (shared / "port").write_text(str(server.server_address[1]), encoding="utf-8")
    pid = os.fork()
    if pid == 0:
        try:
            server.serve_forever()
        finally:
            os._exit(0)
    server.server_close()
    return pid


def _get(shared: Path, place: Path, resume: bool) -> None:
    from saccade.cache import RemoteFile
    from saccade.data.fetch import Download, fetch
    from saccade.data.sources import Mirror

    content = gzip.decompress(_Gzipped.content)
    files = tuple(RemoteFile(name, len(content), hashlib.sha256(content).hexdigest()) for name in ("a", "b"))
    mirror = Mirror(f"http://127.0.0.1:{(shared / 'port').read_text(encoding='utf-8')}")
    fetch("letters", home=place / "home", download=Download(files, (mirror,)))


def _warm_get() -> None:
    import saccade.data.fetch  # noqa: F401


def _one_run(shared: Path) -> None:
    """A finished run to look with."""
    _write_table(shared)
    _train(shared, shared / "first", resume=False)


def _look(shared: Path, place: Path, resume: bool) -> None:
    from saccade.commands.look import stream_looks
    from saccade.predict import load

    predictor = load(shared / "first" / "run", "cpu")
    pictures = sorted((shared / "pictures").glob("*.png"))[:6]
    for _ in stream_looks(predictor, pictures, "colour", out=place / "looks", batch_size=2):
        pass


TARGETS = {
    target.name: target
    for target in (
        Target("train", partial(_train, seed=0), _write_table, resumes=True, warm=_warm_training),
        Target("get", _get, warm=_warm_get),
        Target("look", _look, _one_run, warm=_warm_training),
    )
}
