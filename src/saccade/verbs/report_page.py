"""Runs and records as one self-contained page."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from saccade.config import by_path
from saccade.errors import ConfigError, DataError
from saccade.record import Record, read_record
from saccade.show.report import Report
from saccade.show.report_sources import report_from_records, report_from_run
from saccade.show.score_tables import answer_sections, scores_section
from saccade.untrusted import parse_json, read_regular


def make_report(
    sources: Sequence[Path | str], *, looks: int, scores: Path | str | None = None, device: str = "auto"
) -> Report:
    """The page of one run, or of records; see :func:`saccade.report`."""
    paths = [Path(source) for source in sources]
    if len(paths) == 1 and (paths[0] / "config.yaml").is_file():
        from saccade.verbs.looking.run import mistake_looks, run_looks  # brings torch and a model; records need neither

        result = {} if scores is None else _scores(Path(scores))  # a wrong file is told before the model is asked
        shown = run_looks(paths[0], looks, device)
        scored = [scores_section(result), *answer_sections(result)] if result else []
        if "mistakes" in result:
            scored.append(mistake_looks(paths[0], result["mistakes"], str(result["split"]), device))
        return report_from_run(paths[0], shown, scored, str(result.get("verdict", "")))
    _check_there(paths)
    if scores is not None:
        raise ConfigError("`scores` goes with the page of one run; records have none")
    records, left_out = _records(paths, looks)
    return report_from_records(records, left_out)


def _check_there(sources: Sequence[Path]) -> None:
    """Refuse names of nothing, such as that of a shipped model, which has no run folder."""
    for source in sources:
        if not (source.exists() or source.with_name(f"{source.name}.json").exists()):
            raise DataError(
                f"{source}: no such record or run folder; 'saccade look --out DIR' writes records, 'train' a run"
            )


def _records(sources: Sequence[Path], looks: int) -> tuple[list[Record], str]:
    """The records to draw, and a sentence about the rows that are not drawn; empty where all are."""
    paths: list[Path] = []
    rows: list[Record] = []
    left_out: list[str] = []
    for source in sources:
        if (source / "job.json").is_file():  # of look --engine
            from saccade.adapters.folder import row_records

            drawn, total, errors = row_records(source, looks)
            rows += drawn
            if total > len(drawn):
                failed = f", {errors:,} of them without an answer" if errors else ""
                left_out.append(
                    f"Of the {total:,} rows in {source}, the first {len(drawn):,} with an answer are drawn and "
                    f"{total - len(drawn):,} are left out{failed}. The option looks sets how many are drawn."
                )
            continue
        if any(source.glob("seed-*/config.yaml")):
            raise DataError(f"{source} holds several runs: a page shows one of them, so name the folder of that one")
        if source.is_dir():
            inside = sorted(path for path in source.glob("*.json") if path.with_suffix(".safetensors").is_file())
            if not inside:
                raise DataError(f"{source}: neither a run folder (no config.yaml) nor a folder of records (*.json)")
            paths += inside
        else:
            paths.append(source)
    return rows + [read_record(path) for path in paths], " ".join(left_out)


def _scores(path: Path) -> dict[str, Any]:
    try:
        result = parse_json(read_regular(path).decode("utf-8"))
    except (OSError, ValueError) as error:
        raise DataError(f"{path}: not a file of scores ({error}); 'saccade evaluate RUN --json' writes one") from error
    if not isinstance(result, dict) or not {"model", "data", "split", "n", "metrics"} <= result.keys():
        raise DataError(f"{path}: JSON, but no scores; 'saccade evaluate RUN --json > {path.name}' writes them")
    wrong = _wrong_in(result)
    if wrong is not None:
        raise DataError(f"{path}: '{wrong[:80]}' is no score; 'saccade evaluate RUN --json > {path.name}' writes them")
    return result


def _wrong_in(result: Mapping[str, Any]) -> str | None:
    """The first entry of ``result`` that the tables cannot show; None if there is none."""
    for name in ("metrics", "attention", "baselines", "counts"):
        wrong = _no_scores(result.get(name, {}), name, depth=3)
        if wrong is not None:
            return wrong
    wrong = _wrong_interventions(result.get("interventions", {}))
    if wrong is not None:
        return wrong
    for group in (result.get("baselines", {}), result.get("attention", {}).get("by_look", {})):
        for name, scores in group.items() if isinstance(group, dict) else [("attention.by_look", group)]:
            if not isinstance(scores, dict):
                return str(name)
    intervals = result.get("intervals", {})
    if not isinstance(intervals, dict):
        return "intervals"
    for name, bounds in intervals.items():
        if bounds is not None and (not isinstance(bounds, list) or not all(map(_is_score, bounds))):
            return f"intervals.{name}"
    for name, count in by_path(result.get("counts", {})).items():
        if not isinstance(count, int) and count != {}:
            return f"counts.{name}"
    if (wrong := _wrong_details(result)) is not None:
        return wrong
    texts = [
        name
        for name in ("note", "protocol", "verdict", "maps_supervised")
        if not isinstance(result.get(name), str | None)
    ]
    return texts[0] if texts else None if isinstance(result["n"], int) else "n"


def _wrong_details(result: Mapping[str, Any]) -> str | None:
    """The first of the parts about single answers that the page cannot show; None if there is none."""
    rests, confusion = result.get("rests_on", {}), result.get("confusion", {})
    per_class, mistakes = result.get("per_class", {}), result.get("mistakes", [])
    if not isinstance(rests, dict) or _no_scores(rests.get("accuracy", {}), "accuracy", depth=1):
        return "rests_on"
    ends = rests.get("intervals", {})
    if not isinstance(ends, dict) or not all(map(_are_scores, ends.values())):
        return "rests_on.intervals"
    if not isinstance(rests.get("n", 0), int) or not isinstance(rests.get("says", ""), str):
        return "rests_on"
    if not isinstance(confusion, dict) or not _is_confusion(confusion):
        return "confusion"
    if not isinstance(per_class, dict) or not all(map(_is_class, per_class.values())):
        return "per_class"
    return None if isinstance(mistakes, list) and all(map(_is_mistake, mistakes)) else "mistakes"


def _is_confusion(found: Mapping[str, Any]) -> bool:
    names, matrix, pairs = found.get("classes", []), found.get("matrix", []), found.get("mistakes", [])
    if not all(isinstance(each, list) for each in (names, matrix, pairs)) or len(matrix) != len(names):
        return False
    square = all(
        isinstance(row, list) and len(row) == len(names) and all(type(n) is int for n in row) for row in matrix
    )
    return square and all(map(_is_pair, pairs)) and all(isinstance(name, str) for name in names)


def _is_pair(pair: Any) -> bool:
    return (
        isinstance(pair, dict)
        and type(pair.get("n")) is int
        and {type(pair.get(key)) for key in ("true", "said")} == {str}
    )


def _are_scores(values: Any) -> bool:
    return isinstance(values, list) and all(map(_is_score, values))


def _is_class(score: Any) -> bool:
    keys = ("pictures", "recall", "precision")
    return isinstance(score, dict) and all(key in score and _is_score(score[key]) for key in keys)


def _is_mistake(mistake: Any) -> bool:
    if not isinstance(mistake, dict) or not isinstance(mistake.get("asked"), str | None):
        return False
    words = {type(mistake.get(key)) for key in ("picture", "true", "said")}
    return words == {str} and isinstance(mistake.get("confidence"), float)


def _wrong_interventions(found: Any) -> str | None:
    """The first entry of the scores of re-rendered scenes that the tables cannot show."""
    if not isinstance(found, dict):
        return "interventions"
    for group, held in found.items():
        if _is_score(held):
            continue
        if not isinstance(held, dict):
            return f"interventions.{group}"
        for part, depth in (("scores", 1), ("baselines", 2), ("counts", 1)):
            wrong = _no_scores(held.get(part, {}), f"interventions.{group}.{part}", depth)
            if wrong is not None:
                return wrong
        if not all(isinstance(scores, dict) for scores in held.get("baselines", {}).values()):
            return f"interventions.{group}.baselines"
        edits = held.get("edits", {})
        wrong = _no_scores(edits, f"interventions.{group}.edits", 3)
        if wrong is not None:
            return wrong
        for by_look in (edits.get("changed", {}), edits.get("right", {})):
            if not isinstance(by_look, dict) or not all(isinstance(scores, dict) for scores in by_look.values()):
                return f"interventions.{group}.edits"
        intervals = held.get("intervals", {})
        if not isinstance(intervals, dict) or not all(
            isinstance(ends, list) and all(map(_is_score, ends)) for ends in intervals.values()
        ):
            return f"interventions.{group}.intervals"
    return None


def _no_scores(group: Any, name: str, depth: int) -> str | None:
    """The first entry of ``group`` that is neither a number nor a group of them, none deeper than ``depth``."""
    if not isinstance(group, dict) or not depth:
        return name
    for key, value in group.items():
        wrong = None if _is_score(value) else _no_scores(value, f"{name}.{key}", depth - 1)
        if wrong is not None:
            return wrong
    return None


def _is_score(value: Any) -> bool:
    return value is None or (isinstance(value, (int, float)) and not isinstance(value, bool))
