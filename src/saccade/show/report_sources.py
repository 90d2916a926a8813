"""Reports made of what is already on disk: a run folder with its curves, or saved records.

Curves are drawn with matplotlib (extra ``plots``) without a display or global state, in a light and a dark theme.
"""

from __future__ import annotations

import io
import math
import shlex
from collections.abc import Iterator, Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from PIL import Image

from saccade.config import plain_yaml
from saccade.errors import CheckpointError, DataError
from saccade.files import parse_json, read_regular
from saccade.record import Record
from saccade.show.colours import SERIES
from saccade.show.filmstrip import filmstrip, glimpse_strip, has_glimpses, has_words, word_strip
from saccade.show.report import Block, Code, Figure, KeyFigures, Report, Section
from saccade.show.slot_table import SlotHeat, slot_grid
from saccade.show.tables import DASH, Cell, ShownRow, ShownTable, percent, spaced

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as Plot

Metrics = Mapping[str, Any]
"""A line of metrics.jsonl: {"step", "phase", "kind": "train" | "validation", "values": {...}}."""
Theme = Literal["light", "dark"]
_LOWER_IS_BETTER = ("loss", "error", "perplexity", "cross_entropy", "penalty")  # Parts of names.
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
    """What a run did: best and last values, curves, and every setting it ran with."""
    folder = Path(folder)
    settings, rows = _read_settings(folder), read_metrics(folder / "metrics.jsonl")
    source = f"`{folder.name}/metrics.jsonl`"
    figures = [("steps", Cell(max(row["step"] for row in rows), note=f"last step in {source}"))]
    best: list[ShownRow] = []
    for name, kind in _kinds(rows).items():
        points = course(rows, name, kind)
        if not points:
            continue
        top, at = Cell(None), None
        if name not in _NEITHER_IS_BETTER and not name.endswith("_std"):
            lower = any(word in name for word in _LOWER_IS_BETTER)
            at, value = min(points, key=lambda point: point[1] if lower else -point[1])
            note = f"{'lowest' if lower else 'highest'} of {len(points)} {kind} measurements, at step {at:,}"
            top = Cell(value, note=note)
            if kind == "validation" and name != "loss" and len(figures) < 5:
                figures.append((spaced(name), top))
        best.append((spaced(name), top, at, points[-1][1]))
    results = ShownTable(
        ("metric", "best", "at step", "last"),
        best,
        caption="Best and last values, from validation where there was one",
        source=f"{source}, {len(rows)} rows",
        dash="neither high nor low is better",
    )
    sections = [Section("Results", blocks=[results])] if best else []
    sections += _curve_sections(rows, source)
    sections += [section for section in (looks, *scored) if section is not None]
    resolved = f"`{folder.name}/config.yaml`, as resolved"
    table = ShownTable(("setting", "value"), list(_flat(settings)), source=resolved, dash="not set")
    sections.append(Section("Settings", "All settings of this run, including defaults.", [table]))
    recipe = settings.get("recipe")
    recipe = recipe if isinstance(recipe, Mapping) else settings
    data = recipe.get("data")  # a model does not store where its files are
    files = str(data.get("name", "")) if isinstance(data, Mapping) else ""
    again = Code(shlex.join(["saccade", "evaluate", str(folder), *(["--data", files] if ":" in files else [])]))
    sections.append(Section("Score it again", blocks=[again]))
    name = folder.resolve().name
    recipe_name = f" of recipe `{recipe['name']}`" if _is_plain(recipe.get("name")) else ""
    facts = (f", {key} {recipe[key]}" for key in ("paper", "protocol", "seed") if _is_plain(recipe.get(key)))
    lead = f"Run `{name}`{recipe_name}{''.join(facts)}."
    title = str(recipe.get("title") or f"Run {name}")
    return Report(title, f"{verdict}.\n\n{lead}" if verdict else lead, sections, [KeyFigures(figures)])


def report_from_records(records: Sequence[Record], left_out: str = "") -> Report:
    """Answers with what was looked at, one section a record; ``left_out`` says what is not shown.

    Of a record's ``info`` the keys question, answer, labels, words, confidence, alternatives, sentences (or slots),
    supporting and captions are drawn; every other plain value, size and peak are listed.
    """
    models = sorted({str(record.info["model"]) for record in records if record.info.get("model")})
    lead = f"{len(records)} answer{'s' if len(records) != 1 else ''}, each with the attention that produced it"
    lead += f", by {', '.join(models)}." if models else "."
    lead += f"\n\n{left_out}" if left_out else ""
    sections = []
    for number, record in enumerate(records, 1):
        try:
            sections.append(_record_section(number, record, name_model=len(models) > 1))
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


def _kinds(rows: Sequence[Metrics]) -> dict[str, str]:
    """The rows that count for each metric: those of validation, where it was measured there."""
    kinds: dict[str, str] = {}
    for kind in ("validation", "train"):
        for row in rows:
            for name in row["values"] if row.get("kind") == kind else ():
                kinds.setdefault(name, kind)
    return kinds


def _curve_sections(rows: Sequence[Metrics], source: str) -> list[Section]:
    names = metrics_with_a_course(rows)
    if not names:
        return []
    if find_spec("matplotlib") is None:
        return [Section("Curves", "Not drawn: this needs the extra `plots` (matplotlib).")]
    shown, rest = names[:_CURVES_SHOWN], names[_CURVES_SHOWN:]
    light, dark = (_as_svg(training_curves(rows, shown, theme)) for theme in _THEMES)
    alt = f"Curves over training steps of {', '.join(shown)}"
    picture = Figure(light, "Over training steps; a dotted line is where a phase begins.", alt, source, dark)
    return [Section("Curves", f"Not drawn: {', '.join(map(spaced, rest))}." if rest else "", [picture])]


def _flat(settings: object, path: str = "") -> Iterator[tuple[str, str]]:
    inner: dict[object, object] = {}
    if isinstance(settings, Mapping):
        inner = dict(settings)
    elif isinstance(settings, list) and any(isinstance(item, (Mapping, list)) for item in settings):
        inner = dict(enumerate(settings))
    for key, value in inner.items():
        yield from _flat(value, f"{path}.{key}" if path else str(key))
    if not inner and isinstance(settings, (Mapping, list)):
        yield path, ", ".join(map(str, settings)) or "none"
    elif not inner:
        yield path, DASH if settings is None else str(settings)


def _record_section(number: int, record: Record, *, name_model: bool) -> Section:
    info, trace = record.info, record.trace
    question, answer = _text(info.get("question")), _text(info.get("answer"))
    sure = f"{answer} ({info['confidence']:.0%})" if info.get("confidence") is not None else answer
    blocks: list[Block] = []
    spatial = [look for look in trace.looks if look.is_spatial]
    if spatial and record.picture is not None:
        looks = ", ".join(
            f"{look.name} ({look.kind}, {look.norm}{', derived' if look.role == 'derived' else ''})" for look in spatial
        )
        caption = f"Looks in order: {looks}. Colours are rescaled for display; the numbers are the model's own."
        strip = _strip(record, record.picture, question, sure)
        blocks.append(Figure(strip, caption, f"Filmstrip of {len(spatial)} looks; answer {answer}"))
    sentences = info.get("sentences") or info.get("slots")
    over_slots = [look.name for look in trace.looks if not look.is_spatial]
    if sentences and (over_slots or not trace.looks):
        supporting = info.get("supporting") or trace.meta.get("supporting") or ()
        grid = slot_grid(trace, list(map(_text, sentences)), [int(row) for row in supporting])
        blocks.append(SlotHeat(grid, f"Weights of {', '.join(over_slots)} over the sentences." if over_slots else ""))
    facts = list(_facts(info))
    if facts:
        blocks.append(ShownTable(("about this answer", ""), facts))
    heading = " → ".join(part for part in (question, answer) if part) or f"Record {number}"
    source = info.get("picture") or info.get("source")  # with its folders it is among the facts
    title = f"{Path(source).name}: {heading}" if isinstance(source, str) and source else heading
    return Section(f"{title} ({info['model']})" if name_model and info.get("model") else title, blocks=blocks)


def _strip(record: Record, picture: Image.Image, question: str, answer: str) -> Image.Image:
    """The looks on the record's picture; label by label or word by word if it was read so."""
    info, trace = record.info, record.trace
    if has_glimpses(trace):
        return glimpse_strip(picture, trace, labels=_pairs(info, "labels"), answer=answer)
    if has_words(trace) and info.get("words"):
        words = []
        for word in info["words"]:
            words.append((_text(word["word"]), math.exp(min(0.0, word.get("log_probability", -math.inf)))))
        return word_strip(picture, trace, words=words, answer=_text(info.get("answer")))
    captions = info.get("captions") or {}
    return filmstrip(picture, trace, question=question, answer=answer, captions=captions, panel=200)


def _facts(info: Mapping[str, Any]) -> Iterator[tuple[str, Cell]]:
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
            yield spaced(key), Cell(value)
        elif isinstance(value, list) and value and all(map(_is_plain, value)):
            yield spaced(key), Cell(", ".join(map(str, value)))


def _pairs(info: Mapping[str, Any], key: str) -> list[tuple[str, float]]:
    return [(_text(word), float(share)) for word, share in info.get(key) or ()]


def _text(words: object) -> str:
    return "" if words is None else str(words)


def _is_plain(value: object) -> bool:
    return isinstance(value, (str, int, float, bool)) and value != ""


_COLUMNS = 3
_THEMES: dict[Theme, tuple[str, str, str, str, str]] = {
    "light": ("#16191f", "#5a6270", "#dfe3e8", SERIES[4], SERIES[0]),
    "dark": ("#e7eaef", "#9aa4b2", "#2a3038", "#a4adba", "#6ea1f5"),
}
"""Ink, soft ink, rules, the line of training, the line of validation."""


def training_curves(rows: Sequence[Metrics], names: Sequence[str], theme: Theme = "light") -> Plot:
    """One panel for each of the metrics ``names``, training and validation in it, phases marked by dotted lines."""
    from matplotlib import rc_context
    from matplotlib.figure import Figure as Plot

    ink, soft, rule, *colours = _THEMES[theme]
    starts: dict[str, int] = {}  # the first step of each phase
    for row in rows:
        starts.setdefault(str(row.get("phase", "")), int(row["step"]))
    columns = min(_COLUMNS, len(names))
    lines = -(-len(names) // columns)
    style: Any = {  # matplotlib names every key in its type
        "axes.edgecolor": soft, "axes.labelcolor": soft, "xtick.color": soft, "ytick.color": soft,
        "axes.titlecolor": ink, "legend.labelcolor": ink, "grid.color": rule,
        "axes.grid": True, "axes.grid.axis": "y", "axes.axisbelow": True, "axes.facecolor": "none",
        "axes.spines.top": False, "axes.spines.right": False, "axes.linewidth": 0.8, "grid.linewidth": 0.7,
        "axes.titlelocation": "left", "axes.titlesize": 10.5, "axes.titleweight": "bold", "axes.labelsize": 9,
        "xtick.labelsize": 8.5, "ytick.labelsize": 8.5, "lines.linewidth": 1.7, "lines.markersize": 3.5,
        "legend.frameon": False, "legend.fontsize": 8.5, "legend.borderaxespad": 0.3, "legend.handlelength": 1.4,
    }  # fmt: skip
    with rc_context(style):
        figure = Plot(figsize=(3.7 * columns, 2.7 * lines), layout="constrained")
        for number, name in enumerate(names, 1):
            panel = figure.add_subplot(lines, columns, number)
            _draw_metric(panel, rows, name, colours)
            for phase, start in [*starts.items()][1:]:
                panel.axvline(start, color=soft, linewidth=0.8, linestyle=":", gid=f"phase-{phase}")
    return figure


def _draw_metric(axes: Axes, rows: Sequence[Metrics], name: str, colours: Sequence[str]) -> None:
    from matplotlib import ticker

    for kind, colour in zip(("train", "validation"), colours):
        points = course(rows, name, kind)
        if points:
            axes.plot(*zip(*points), color=colour, marker="o" if len(points) < 15 else "", label=kind)
    axes.set_title(spaced(name))
    axes.set_xlabel("step")
    axes.xaxis.set_major_locator(ticker.MaxNLocator(5, integer=True))
    if len(axes.lines) > 1:  # in one line above the axes, where it hides nothing; the title stands on the left
        axes.legend(loc="lower right", bbox_to_anchor=(1, 1), ncols=2)


def metrics_with_a_course(rows: Sequence[Metrics]) -> list[str]:
    """Names measured at two steps or more in the same kind of row; the loss first, then as they appear."""
    names = dict.fromkeys(name for row in rows for name in row["values"])
    moving = [name for name in names if any(len(course(rows, name, kind)) > 1 for kind in ("train", "validation"))]
    return sorted(moving, key=lambda name: name != "loss")


def course(rows: Sequence[Metrics], name: str, kind: str) -> list[tuple[int, float]]:
    """(step, value) of a metric in order of the steps; values that are not finite numbers are left out."""
    points: dict[int, float] = {}
    for row in rows:
        value = row["values"].get(name)
        if row.get("kind") == kind and isinstance(value, (int, float)) and not isinstance(value, bool):
            points[int(row["step"])] = float(value)
    return sorted((step, value) for step, value in points.items() if math.isfinite(value))


def _as_svg(figure: Plot) -> str:
    """The figure as SVG text, the same text for the same figure."""
    from matplotlib import rc_context

    buffer = io.StringIO()
    with rc_context({"svg.hashsalt": "saccade", "svg.fonttype": "path"}):
        figure.savefig(buffer, format="svg", transparent=True, metadata={"Date": None, "Creator": None})
    return buffer.getvalue()
