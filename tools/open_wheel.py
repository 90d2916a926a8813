"""Write the open wheel: saccade without the weights whose training data is for research only.

python tools/open_wheel.py dist/saccade_attention-0.2.0-py3-none-any.whl --out dist

It reads a full wheel and leaves out the model folders whose ``config.json`` says ``research_only``. Its version has the
suffix ``+open``, and ``saccade/zoo/left_out.json`` names what it lacks, so that ``saccade list`` and ``saccade.load``
can say so.
"""

from __future__ import annotations

import argparse
import base64
import csv
import hashlib
import io
import json
import re
import sys
import zipfile
from pathlib import Path

ZOO = "saccade/zoo/"
LEFT_OUT = f"{ZOO}left_out.json"
SUFFIX = "+open"


def open_wheel(wheel: Path, folder: Path) -> Path:
    """The open wheel in ``folder``, made of the full one."""
    with zipfile.ZipFile(wheel) as archive:
        files = {name: archive.read(name) for name in archive.namelist() if not name.endswith("/")}
    configs = {name.split("/")[2]: json.loads(data) for name, data in files.items() if _is_config(name)}
    closed = {name: held["licence"] for name, held in configs.items() if held.get("research_only")}
    kept = {
        name: data
        for name, data in files.items()
        if not (name.startswith(ZOO) and name.split("/")[2] in closed) and not name.endswith(".dist-info/RECORD")
    }
    kept[LEFT_OUT] = (json.dumps(closed, indent=2, ensure_ascii=False) + "\n").encode()
    distribution, version, *tags = wheel.stem.split("-")
    before, after = (f"{distribution}-{each}.dist-info/" for each in (version, version + SUFFIX))
    renamed = {name.replace(before, after, 1): data for name, data in kept.items()}
    metadata = renamed[f"{after}METADATA"].decode()
    renamed[f"{after}METADATA"] = re.sub(
        r"^Version: .*$", f"Version: {version}{SUFFIX}", metadata, count=1, flags=re.MULTILINE
    ).encode()
    renamed[f"{after}RECORD"] = _record(renamed, f"{after}RECORD")
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "-".join((distribution, version + SUFFIX, *tags))
    path = path.with_name(f"{path.name}.whl")
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in renamed.items():
            archive.writestr(zipfile.ZipInfo(name, (2020, 1, 1, 0, 0, 0)), data, zipfile.ZIP_DEFLATED)
    return path


def _is_config(name: str) -> bool:
    return name.startswith(ZOO) and name.count("/") == 3 and name.endswith("/config.json")


def _record(files: dict[str, bytes], own: str) -> bytes:
    """The list of files with their digests, which every wheel has."""
    text = io.StringIO()
    rows = csv.writer(text, lineterminator="\n")
    for name, data in files.items():
        digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
        rows.writerow((name, f"sha256={digest}", len(data)))
    rows.writerow((own, "", ""))
    return text.getvalue().encode()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("wheel", type=Path, help="the full wheel")
    parser.add_argument("--out", type=Path, default=Path("dist"))
    options = parser.parse_args()
    print(open_wheel(options.wheel, options.out))
    return 0


if __name__ == "__main__":
    sys.exit(main())
