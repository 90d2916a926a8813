"""``report``: runs and records as one self-contained page."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

from saccade.commands.verb import Command, Remark, checked
from saccade.config import Within
from saccade.data.examples import Example
from saccade.engine.run_folder import RunFolder
from saccade.errors import ConfigError, DataError, SaccadeError
from saccade.files import parse_json, read_regular
from saccade.models.facts import CONFIG
from saccade.predict import load
from saccade.record import Record, read_record
from saccade.show.overlay import Mask
from saccade.show.report import Block, Figure, Gallery, Report, Section
from saccade.show.report_sources import report_from_records, report_from_run
from saccade.show.score_tables import answer_sections, caption, mistakes_section, scores_section
from saccade.show.slot_table import SlotHeat
from saccade.sighting import Sighting

TITLE = "Where it looks"
MISTAKES = 20  # Mistakes that are shown.
_PANEL = 320  # pixels of a mistake's longer side


@checked
def report(
    sources: Sequence[str | Path] | str | Path,
    *,
    looks: Annotated[int, Within(0, 100)] = 4,
    scores: Path | str | None = None,
    out: Path | str | None = None,
    device: str = "auto",
) -> Report:
    """Make a page that opens offline, of one run or of records.

    Args:
        sources: one run folder, or records and folders of records. Folders of rows that ``look_folder`` wrote count as
            records.
        looks: validation pictures of a run to show, with where its model looks; or rows to draw.
        scores: the file that 'saccade evaluate --json' wrote about the run. None: no scores.
        out: the HTML file to write. None: report.html on the command line.
        device: where to compute: auto, cpu, cuda, cuda:N or mps.

    Returns:
        The page; its ``.save("report.html")`` writes it too.

    Example:
        >>> saccade.report("runs/soft", out="soft.html")  # doctest: +SKIP
    """
    paths = [Path(source) for source in ([sources] if isinstance(sources, (str, Path)) else sources)]
    if len(paths) == 1 and (paths[0] / "config.yaml").is_file():
        scored = ([], "") if scores is None else _score_sections(Path(scores), paths[0], device)
        page = report_from_run(paths[0], run_looks(paths[0], looks, device), *scored)
    else:
        if scores is not None:
            raise ConfigError("`scores` goes with the page of one run; records have none")
        page = report_from_records(*_records(paths, looks))
    if out is not None:
        page.save(out)
    return page


def _records(sources: Sequence[Path], looks: int) -> tuple[list[Record], str]:
    """The records to draw, and a sentence about the rows that are not drawn; empty where all are."""
    paths: list[Path] = []
    records: list[Record] = []
    left_out: list[str] = []
    for source in sources:
        if (source / "job.json").is_file():  # of look --engine
            from saccade.adapters.folder import row_records

            drawn, total, errors = row_records(source, looks)
            records += drawn
            if total > len(drawn):
                failed = f", {errors:,} of them without an answer" if errors else ""
                left_out.append(
                    f"Of the {total:,} rows in {source}, the first {len(drawn):,} with an answer are drawn and "
                    f"{total - len(drawn):,} are left out{failed}. The option looks sets how many are drawn."
                )
            continue
        inside = [source] if source.exists() or source.with_name(f"{source.name}.json").exists() else []
        if source.is_dir():
            inside = sorted(path for path in source.glob("*.json") if path.with_suffix(".safetensors").is_file())
        if not inside:  # such as the name of a shipped model
            raise DataError(
                f"{source}: no record, no folder of records and no run; 'saccade look --out DIR' writes records, "
                "'saccade train' a run"
            )
        paths += inside
    return records + [read_record(path) for path in paths], " ".join(left_out)


def _score_sections(path: Path, run: Path, device: str) -> tuple[list[Section], str]:
    try:
        result = parse_json(read_regular(path).decode("utf-8"))
        sections = [scores_section(result), *answer_sections(result)]
        if "mistakes" in result:
            sections.append(mistake_looks(run, result["mistakes"], str(result["split"]), device))
        Report(str(path), sections=sections).html()
    except (OSError, ValueError, TypeError, LookupError, AttributeError) as error:
        raise DataError(
            f"{path}: not a file of scores ({type(error).__name__}: {error}); 'saccade evaluate RUN --json' writes one"
        ) from error
    return sections, str(result.get("verdict", ""))


def run_looks(run: Path, count: int, device: str = "auto") -> Section | None:
    """Answers to the first ``count`` validation examples of ``run``, look by look.

    Without its files, the section says so; a run that has not kept a model yet has none.
    """
    if not count or not (run / "model" / CONFIG).is_file():
        return None
    try:
        predictor = load(run, device)
        data = predictor.facts.data  # a model forgets where its files were, the recipe of the run does not
        settings = {**data, "name": RunFolder(run).recorded().data.get("name", data["name"])}
        examples, summary = predictor.family.task().show_split(settings, "val", count, facts=predictor.facts)
        seen = [(predictor.look(one.source, ask=one.question), one) for one in examples]
        of = f", {summary}" if summary and ":" not in summary else ""
        blocks = look_blocks(seen, f"The first of the validation split{of}")
    except SaccadeError as error:
        return Section(TITLE, f"The examples of the validation split cannot be shown: {error}")
    return Section(TITLE, blocks=blocks)


def mistake_looks(run: Path, mistakes: Sequence[Mapping[str, Any]], split: str, device: str = "auto") -> Section:
    """The surest wrong answers that the model of ``run`` gave on ``split``, each with where it looked."""
    pictures: list[Figure] = []
    missing = ""
    try:
        predictor = load(run, device)
        for mistake in mistakes[:MISTAKES]:
            seen = predictor.look(mistake["picture"], ask=mistake.get("asked"))
            text = f"{caption(mistake)}. {Path(mistake['picture']).name}"
            shown = seen.overlay()
            shown.thumbnail((_PANEL, _PANEL))
            pictures.append(Figure(shown, text, f"{Path(mistake['picture']).name} with the map over it"))
    except SaccadeError as error:
        missing = f"Not all can be shown: {error}"
    return mistakes_section(pictures, f"{split} pictures", missing)


def look_blocks(seen: Sequence[tuple[Sighting, Example]], title: str) -> list[Block]:
    """A gallery of pictures; or, of what was no picture, a table for each."""
    pictures, tables = [], list[Block]()
    for sighting, example in seen:
        asked = "" if example.question is None else f"{example.question}: "
        true = f"; true: {example.truth}" if example.truth else ""
        text = f"{asked}{sighting.answer}, {sighting.confidence:.0%} sure{true}"
        if not sighting.is_spatial:
            tables.append(SlotHeat(sighting.slot_grid, text))
            continue
        evidence = [Mask(mask.numpy()) for mask in example.masks]
        outline: dict[str, Any] = {} if sighting.is_caption else {"outline": evidence}
        panel = 150 if example.question is None else 200  # many steps, small panels
        pictures.append(Figure(sighting.filmstrip(panel=panel, **outline), text, alt=f"Every look; {text}"))
    caption = f"{title}; the evidence is outlined where it is known"
    return [*([Gallery(pictures, caption, wide=True)] if pictures else []), *tables]


def show(page: Report, arguments: Mapping[str, Any], remark: Remark) -> None:
    """Say where the page is; without a place it is report.html."""
    out = arguments["out"] or Path("report.html")
    if arguments["out"] is None:
        page.save(out)
    if page.left_out:
        remark(page.left_out)
    remark(f"wrote {out}")


COMMAND = Command(
    report,
    show,
    place={"sources": "RUN|RECORD"},
    names={"out": "-o"},
    json=False,
    example="saccade report runs/soft --out soft.html\nsaccade report looks/ --out looks.html",
)
