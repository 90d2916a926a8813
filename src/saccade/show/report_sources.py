"""Reports made of what is already on disk: a run folder, or saved records."""

from __future__ import annotations

import math
import shlex
from collections.abc import Iterator, Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from PIL import Image

from saccade.config import plain_yaml
from saccade.errors import CheckpointError, DataError
from saccade.files import parse_json, read_regular
from saccade.record import Record
from saccade.show.curves import course, figure_svg, metrics_with_a_course, training_curves
from saccade.show.filmstrip import filmstrip
from saccade.show.report import Block, Code, KeyFigures, Picture, Report, Section
from saccade.show.slot_table import SlotHeat, slot_grid
from saccade.show.step_strips import glimpse_strip, has_glimpses, has_words, word_strip
from saccade.show.tables import DASH, Cell, Table, percent

_LOWER_IS_BETTER = ("loss", "error", "perplexity", "cross_entropy", "penalty")
"""Parts of names."""
_NEITHER_IS_BETTER = ("lr", "gradient_norm", "entropy", "gate", "length_ratio", "words")
"""Names of what is only watched."""
_CURVES_SHOWN = 9
_MAX_METRICS = 256 * 2**20
_DRAWN = (
    "question", "answer", "confidence", "alternatives", "sentences", "supporting", "captions", "looks", "labels",
    "words", "other_captions", "slots",
)  # fmt: skip


def report_from_run(
    folder: str | Path, looks: Section | None = None, scored: Sequence[Section] = (), verdict: str = ""
) -> Report:
    """What a run did: best and last values, curves, and every setting it ran with.

    Args:
        folder: of the run.
        looks: where its model looks, from those who can ask it; shown behind the curves.
        scored: what ``evaluate`` found of its model; shown behind the looks.
        verdict: the same in one line; shown at the head of the page.
    """
    folder = Path(folder)
    settings, rows = _read_settings(folder), read_metrics(folder / "metrics.jsonl")
    last = max(int(row["step"]) for row in rows)
    best = _best_values(rows)
    figures = [("steps", Cell(last, note=f"last step in `{folder.name}/metrics.jsonl`"))]
    headline = [row for row in best if row[1].value is not None and row[0] != "loss" and _kind(rows, row[0]) != "train"]
    figures += [(_words(name), cell) for name, cell, _, _ in headline[:4]]
    results = Table(
        ("metric", "best", "at step", "last"),
        [(_words(name), *values) for name, *values in best],
        caption="Best and last values, from validation where there was one",
        source=f"`{folder.name}/metrics.jsonl`, {len(rows)} rows",
        dash="neither high nor low is better",
    )
    sections = [Section("Results", blocks=[results])] if best else []
    sections += _curve_sections(rows, folder)
    sections += [section for section in (looks, *scored) if section is not None]
    source = f"`{folder.name}/config.yaml`, as resolved"
    table = Table(("setting", "value"), list(_flat(settings)), source=source, dash="not set")
    sections.append(Section("Settings", "All settings of this run, including defaults.", [table]))
    recipe = settings.get("recipe")
    recipe = recipe if isinstance(recipe, Mapping) else settings
    data = recipe.get("data")  # a model does not store where its files are
    name = str(data.get("name", "")) if isinstance(data, Mapping) else ""
    pictures = ["--data", name] if ":" in name else []
    again = Code(shlex.join(["saccade", "evaluate", str(folder), *pictures]))
    sections.append(Section("Score it again", blocks=[again]))
    name = folder.resolve().name
    own = f" of recipe `{recipe['name']}`" if _is_plain(recipe.get("name")) else ""
    facts = (f", {key} {recipe[key]}" for key in ("paper", "protocol", "seed") if _is_plain(recipe.get(key)))
    lead = f"Run `{name}`{own}{''.join(facts)}."
    title = str(recipe.get("title") or f"Run {name}")
    return Report(title, f"{verdict}.\n\n{lead}" if verdict else lead, sections, [KeyFigures(figures)])


def report_from_records(records: Sequence[Record], left_out: str = "") -> Report:
    """Answers with what was looked at, one section a record; ``left_out`` says what is not shown.

    Of a record's ``info`` the keys question, answer, labels, words, confidence, alternatives, sentences (or slots),
    supporting (numbers of sentences) and captions (by look, as in a filmstrip) are drawn; every other plain value is
    listed, and so are size (height, width) and peak (x, y) of the picture.
    """
    models = sorted({str(record.info["model"]) for record in records if record.info.get("model")})
    lead = f"{len(records)} answer{'s' if len(records) != 1 else ''}, each with the attention that produced it"
    lead += f", by {', '.join(models)}." if models else "."
    lead += f"\n\n{left_out}" if left_out else ""
    several = len(models) > 1
    sections = []
    for number, record in enumerate(records, 1):
        try:
            sections.append(_record_section(number, record, name_model=several))
        except (TypeError, ValueError, LookupError, AttributeError) as error:  # what a file says in a shape of its own
            raise DataError(f"report: record {number} cannot be drawn ({error}); make it again") from error
    return Report("What was asked, and where the model looked", lead, sections, left_out=left_out)


def read_metrics(path: str | Path) -> list[dict[str, Any]]:
    """The rows of a metrics.jsonl; a last line cut short by a crash is left out, any other damage is an error."""
    path = Path(path)
    try:
        lines = read_regular(path, _MAX_METRICS).decode("utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise CheckpointError(f"{path}: cannot be read ({error}); a run folder holds metrics.jsonl") from error
    rows = []
    for number, line in enumerate(lines, 1):
        try:
            row = parse_json(line)
            rows.append({**row, "values": dict(row["values"]), "step": int(row["step"])})
        except (ValueError, KeyError, TypeError, OverflowError) as error:
            if number < len(lines):
                raise CheckpointError(f"{path}: line {number} is damaged ({error})") from error
    if not rows:
        raise CheckpointError(f"{path}: no rows yet; train for a few steps first")
    return rows


def _read_settings(folder: Path) -> Mapping[str, Any]:
    path = folder / "config.yaml"
    try:
        settings = plain_yaml(read_regular(path).decode("utf-8"))
    except (OSError, ValueError) as error:
        raise CheckpointError(f"{path}: cannot be read ({error}); a run folder holds config.yaml") from error
    return settings if isinstance(settings, dict) else {}


def _words(name: str) -> str:
    return name.replace("_", " ")


def _best_values(rows: Sequence[Mapping[str, Any]]) -> list[tuple[str, Cell, int | None, float]]:
    """(metric, best value, its step, last value), validation first; no best value and step where none is best."""
    names = dict.fromkeys(
        name for kind in ("validation", "train") for row in rows if row.get("kind") == kind for name in row["values"]
    )
    values: list[tuple[str, Cell, int | None, float]] = []
    for name in names:
        kind = _kind(rows, name)
        points = course(rows, name, kind)
        if not points:
            continue
        best, at = Cell(None), None
        if name not in _NEITHER_IS_BETTER and not name.endswith("_std"):
            lower = any(word in name for word in _LOWER_IS_BETTER)
            at, value = min(points, key=lambda point: point[1] if lower else -point[1])
            note = f"{'lowest' if lower else 'highest'} of {len(points)} {kind} measurements, at step {at:,}"
            best = Cell(value, note=note)
        values.append((name, best, at, points[-1][1]))
    return values


def _kind(rows: Sequence[Mapping[str, Any]], name: str) -> str:
    """The rows that count for a metric: those of validation where it was measured there."""
    has_validation = any(row.get("kind") == "validation" and name in row["values"] for row in rows)
    return "validation" if has_validation else "train"


def _curve_sections(rows: Sequence[Mapping[str, object]], folder: Path) -> list[Section]:
    names = metrics_with_a_course(rows)
    if not names:
        return []
    if find_spec("matplotlib") is None:
        return [Section("Curves", "Not drawn: this needs the extra `plots` (matplotlib).")]
    shown, rest = names[:_CURVES_SHOWN], names[_CURVES_SHOWN:]
    light, dark = (figure_svg(training_curves(rows, names=shown, theme=theme)) for theme in ("light", "dark"))
    alt = f"Curves over training steps of {', '.join(shown)}"
    caption = "Over training steps; a dotted line is where a phase begins."
    picture = Picture(light, caption, alt, f"`{folder.name}/metrics.jsonl`", dark)
    return [Section("Curves", f"Not drawn: {', '.join(map(_words, rest))}." if rest else "", [picture])]


def _flat(settings: object, path: str = "") -> Iterator[tuple[str, str]]:
    """(dotted key, value) of nested settings."""
    if isinstance(settings, Mapping) and settings:
        for key, value in settings.items():
            yield from _flat(value, f"{path}.{key}" if path else str(key))
    elif isinstance(settings, list) and any(isinstance(item, (Mapping, list)) for item in settings):
        for number, item in enumerate(settings):
            yield from _flat(item, f"{path}.{number}")
    elif isinstance(settings, (Mapping, list)):
        yield path, ", ".join(map(str, settings)) or "none"
    else:
        yield path, DASH if settings is None else str(settings)


def _record_section(number: int, record: Record, *, name_model: bool) -> Section:
    info, trace = record.info, record.trace
    question, answer = _text(info.get("question")), _text(info.get("answer"))
    sure = f"{answer} ({info['confidence']:.0%})" if info.get("confidence") is not None else answer
    blocks: list[Block] = []
    spatial = [look for look in trace.looks if look.is_spatial]
    if spatial and record.picture is not None:
        strip = _strip(record, record.picture, question, sure)
        blocks.append(Picture(strip, _looks_in_words(spatial), f"Filmstrip of {len(spatial)} looks; answer {answer}"))
    sentences = info.get("sentences") or info.get("slots")
    over_slots = [look.name for look in trace.looks if not look.is_spatial]
    if sentences and (over_slots or not trace.looks):
        supporting = info.get("supporting") or trace.meta.get("supporting") or ()
        grid = slot_grid(trace, list(map(_text, sentences)), [int(row) for row in supporting])
        blocks.append(SlotHeat(grid, f"Weights of {', '.join(over_slots)} over the sentences." if over_slots else ""))
    facts = list(_facts(info))
    if facts:
        blocks.append(Table(("about this answer", ""), facts))
    asked = " → ".join(part for part in (question, answer) if part) or f"Record {number}"
    source = info.get("picture") or info.get("source")  # with its folders it is among the facts
    title = f"{Path(source).name}: {asked}" if isinstance(source, str) and source else asked
    return Section(f"{title} ({info['model']})" if name_model and info.get("model") else title, blocks=blocks)


def _strip(record: Record, picture: Image.Image, question: str, answer: str) -> Image.Image:
    """The looks on the record's picture; label by label or word by word if it was read so."""
    info, trace = record.info, record.trace
    if has_glimpses(trace):
        return glimpse_strip(picture, trace, labels=_pairs(info, "labels"), answer=answer)
    if has_words(trace) and info.get("words"):
        words = [
            (_text(word["word"]), math.exp(min(0.0, word.get("log_probability", -math.inf)))) for word in info["words"]
        ]
        return word_strip(picture, trace, words=words, answer=_text(info.get("answer")))
    captions = info.get("captions") or {}
    return filmstrip(picture, trace, question=question, answer=answer, captions=captions, panel=200)


def _facts(info: Mapping[str, Any]) -> Iterator[tuple[str, Cell]]:
    """What a record says in plain values, for a table; what is drawn already is left out."""
    for key, value in info.items():
        if key == "confidence" and value is not None:
            yield key, percent(float(value), note="the model's own probability of its answer")
        elif key == "alternatives":
            others = [f"{word} {share:.1%}" for word, share in _pairs(info, key)]
            if others:
                yield "other answers", Cell(", ".join(others))
        elif key == "size" and isinstance(value, list) and len(value) == 2:
            yield key, Cell(f"{value[1]} × {value[0]} px")
        elif key == "peak" and isinstance(value, list):
            yield "peak at x, y", Cell(", ".join(map(str, value)))
        elif key in _DRAWN:
            continue
        elif _is_plain(value):
            yield _words(key), Cell(value)
        elif isinstance(value, list) and value and all(map(_is_plain, value)):
            yield _words(key), Cell(", ".join(map(str, value)))


def _pairs(info: Mapping[str, Any], key: str) -> list[tuple[str, float]]:
    """Words with their shares."""
    return [(_text(word), float(share)) for word, share in info.get(key) or ()]


def _text(words: object) -> str:
    return "" if words is None else str(words)


def _looks_in_words(looks: Sequence[Any]) -> str:
    derived = {"derived": ", derived"}
    named = ", ".join(f"{look.name} ({look.kind}, {look.norm}{derived.get(look.role, '')})" for look in looks)
    return f"Looks in order: {named}. Colours are rescaled for display; the numbers are the model's own."


def _is_plain(value: object) -> bool:
    return isinstance(value, (str, int, float, bool)) and value != ""
