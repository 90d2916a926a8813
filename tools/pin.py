"""Write into each record the options that give its settings by the recipes of today (its ``pins``).

python tools/pin.py            # every record whose command now resolves to other settings
python tools/pin.py --dry-run  # say which, change nothing

Run it when a recipe changes and its old runs still count. A record whose phases are no longer those of its recipe needs
pins by hand, such as ``--phase activation``.
"""

from __future__ import annotations

import argparse
import json

from saccade.atomic import write_json_by_key
from saccade.recorded import read_run, results_folder
from saccade.verbs.reproduction.check import check_records


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--dry-run", action="store_true", help="change nothing")
    options = parser.parse_args()
    files = {path.stem: path for path in results_folder().rglob("*.json")}
    for found in check_records():
        if found.state != "differs":
            continue
        if not found.pins or "phases=" in found.pins:
            print(f"{found.name}: by hand: {found.note}")
            continue
        print(f"{found.name}: {found.pins}")
        if not options.dry_run:
            path = files[found.name]
            values = json.loads(path.read_text(encoding="utf-8"))
            pins = f"{read_run(path).pins} {found.pins}".strip()
            head = {key: values.pop(key) for key in ("name", "command")}
            values.pop("pins", None)
            whole = {**head, "pins": pins, **values}
            write_json_by_key(path, whole)


if __name__ == "__main__":
    main()
