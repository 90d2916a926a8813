"""The folder of a probe: a model folder, or the head alone of a folder of maps, results.json and the page.

The page has the verdict, the rivals, what is learned from less, and what the kept head gets wrong.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from safetensors.torch import save

from saccade.data.pictures.reading import read_picture
from saccade.data.tables.doubts import pluralise
from saccade.errors import OutputError
from saccade.files import parse_json, read_regular, write_bytes, write_json
from saccade.metrics.result import Part
from saccade.metrics.verdict import BLIND
from saccade.models.facts import CONFIG, InputsNote, ModelFacts, read_facts
from saccade.models.folder import note_inputs, save_model
from saccade.models.likeness import ENCODING, FEWEST, fit_likeness, pooled
from saccade.models.probe_heads import LINEAR, PYRAMID
from saccade.probing.heads import ALL_TITLES
from saccade.probing.pictures import ProbedPictures
from saccade.probing.plan import SHOTS
from saccade.probing.rivals import ProbeResult
from saccade.show.overlay import fit_panel, overlay
from saccade.show.report import Figure, Report, Section
from saccade.show.score_tables import caption, classes_section, confusion_section, mistakes_section, rests_on_section
from saccade.show.tables import Cell, ShownRow, ShownTable, percent
from saccade.tasks.describing import MIN_ANSWERS, halves, shown_by
from saccade.tasks.task import evenly_spaced

if TYPE_CHECKING:
    from saccade.probing.probe import Probe

RESULTS, PAGE = "results.json", "report.html"
MAX_DESCRIBED, DESCRIBED_AT_ONCE = 2000, 100
HEAD = "head.safetensors"
"""The kept head of a probe that has no network: its tensors, and in their metadata what the answers mean."""
_PANEL = 320  # pixels of a mistake's longer side
_BINS = 10  # of confidence
_COPIES = 20
_QUESTIONS = 200


def write_folder(probe: Probe, folder: Path) -> Part:
    """Write the model or its head, results.json and the page into ``folder``; returns what results.json holds."""
    result, pictures, plan, facts = probe.result, probe.pictures, probe.plan, probe.facts(folder.name)
    described = {}
    if probe.maps is None:
        save_model(probe.model(), folder, facts)
        described["inputs"] = _describe(probe, folder, facts)
    else:
        head, centre, spread = result.final
        tensors = {"centre": centre, "spread": spread, **head.state_dict()}
        meaning = {"head": result.kept, "answers": json.dumps(facts.answers), "model": json.dumps(facts.model)}
        folder.mkdir(parents=True, exist_ok=True)
        write_bytes(folder / HEAD, save({name: tensor.contiguous() for name, tensor in tensors.items()}, meaning))
    results: Part = {
        "backbone": plan.backbone,
        "data": probe.reference,
        "size": list(probe.size),
        "pictures": len(pictures.paths),
        **result.to_json(pictures.place),
        "remarks": list(pictures.remarks),
        "copies": [list(pair) for pair in pictures.copies],
        **described,
        **probe.taught,
        "settings": probe.settings,
        "seconds": round(probe.seconds, 1),
    }
    write_json(folder / RESULTS, results)
    data = Path(probe.reference.partition(":")[2] or probe.reference).name
    probe_page(probe, title=f"{plan.backbone} on {data}").save(folder / PAGE)
    return results


def _describe(probe: Probe, folder: Path, facts: ModelFacts) -> str:
    """Store what the features of its pictures look like with the model; what was done, in one line."""
    count, head = len(probe.pictures.paths), probe.result.kept
    numbers = evenly_spaced(count, MAX_DESCRIBED)
    if len(numbers) < 2 * FEWEST:
        return f"fit: not available, {pluralise(count, 'picture')} are too few"
    means = [pooled(probe.features.encoded(head, part).cpu()) for part in torch.split(numbers, DESCRIBED_AT_ONCE)]
    values = torch.cat(means)  # (N,2C)
    fitting, comparing = halves(len(values))
    likeness = fit_likeness(values[fitting], values[comparing])
    note = InputsNote(ENCODING, shown_by(facts), "pictures of the probe", len(fitting), len(comparing), sha256="")
    note_inputs(folder, likeness, note, None)
    return f"fit: measured by features of {len(values):,} of its pictures"


def check_folder(folder: Path, settings: Mapping[str, Any]) -> None:
    """Refuse a folder that holds anything but a probe with these ``settings``; it may be new or empty."""
    if not (folder / RESULTS).is_file():
        is_free = not folder.exists() or (folder.is_dir() and not any(folder.iterdir()))
        is_probe = (folder / CONFIG).is_file() and "verdict" in read_facts(folder).training  # killed before its results
        if not is_free and not is_probe:
            raise OutputError(f"{folder}: holds something that no probe wrote; choose a new or empty folder")
        return
    try:
        before = parse_json(read_regular(folder / RESULTS).decode("utf-8"))["settings"]
        changed = [f"{name} was {before.get(name)}" for name, value in settings.items() if before.get(name) != value]
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise OutputError(f"{folder / RESULTS}: damaged; choose another folder, or delete that folder") from error
    if changed:
        raise OutputError(
            f"{folder}: holds another probe ({'; '.join(changed)}); choose another folder, or delete that folder"
        )


def probe_page(probe: Probe, *, title: str) -> Report:
    """The page of a probe that was fitted."""
    result, pictures = probe.result, probe.pictures
    sections = [
        _rivals(result),
        _by_question(result),
        _maps_beside(result),
        rests_on_section(result.rests_on),
        learning_section(result),
        low_shot_section(result),
        confusion_section(result.details["confusion"], len(pictures.classes)),
        classes_section(result.details["per_class"], "results.json"),
        _mistakes(probe),
        _calibration(result),
        _data(pictures),
    ]
    lead = f"{result.verdict}.".replace(" %", "\u00a0%")
    return Report(title=title, lead=lead, sections=[section for section in sections if section is not None])


def _rivals(result: ProbeResult) -> Section:
    rows: list[ShownRow] = []
    for row in result.trials.values():
        difference = row.difference
        test = Cell(row.score.mean, row.score.percent())
        against, differs = Cell(None), ""
        if difference is not None:
            against = Cell(difference.mean, difference.percent(signed=True))
            differs = "yes" if difference.is_beyond_zero else "no"
        rows.append([row.title, test, against, differs, percent(row.mean_val)])
    plan, splits = result.plan, result.splits
    text = (
        f"{pluralise(len(splits), 'split')}, {pluralise(plan.seeds, 'seed')}. In each split three parts are kept "
        "apart: one to learn from, one to choose settings with, one to be tested on. Pictures that look the same "
        "are in the same part. Test pictures choose nothing.\n\n"
        f"Each head was trained with {len(plan.settings(PYRAMID))} settings ({ALL_TITLES[LINEAR]}: "
        f"{len(plan.settings(LINEAR))}), {result.steps} steps of {plan.batch_size} pictures. In brackets is the 95 % "
        "interval, with the correction of Nadeau and Bengio (2003) for splits that share pictures; it ends where "
        "accuracies do. Differences are paired. The verdict is about the attention head that validation chose; the "
        "other rows are not corrected for their number."
    )
    if not plan.grid:
        text += "\n\nThis was a quick probe. With `--grid`, all heads are compared, over more settings."
    if result.examples.questions.are_asked:
        text += (
            "\n\nEvery rival is told the question: the linear one has a linear layer for each question, nearest "
            "neighbours vote among pictures that are asked the same, and of the attention heads it is the query."
        )
    if plan.evidence_weight:
        text += (
            f"\n\nThe attention heads were taught where to look: boxes and masks are an extra loss, with weight "
            f"{plan.evidence_weight:g}. So it is no surprise that their maps lie there."
        )
    best = [*result.trials].index(result.kept)
    columns = ("rival", "test accuracy, %", f"less {ALL_TITLES[LINEAR]}, points", "differs", "validation")
    return Section("Rivals", text, [ShownTable(columns, rows, best_row=best, dash="compared with itself")])


def _by_question(result: ProbeResult) -> Section | None:
    """Scores of each question, the worst of the kept head first."""
    scores, kept = result.by_question(), result.kept
    if len(scores) < 2:
        return None
    names = [*dict.fromkeys((kept, LINEAR))]
    order = sorted(scores, key=lambda word: (scores[word][kept], word))
    rows: list[ShownRow] = [
        [word, int(scores[word]["n"]), *(percent(scores[word][name]) for name in (*names, "commonest_answer"))]
        for word in order[:_QUESTIONS]
    ]
    text = "Test accuracy of each question (first seed), the worst first."
    if len(scores) > len(rows):
        text += f" {len(scores) - len(rows)} better ones are in results.json."
    columns = ("question", "asked", *(ALL_TITLES[name] for name in names), ALL_TITLES["prior"])
    return Section("Scores of questions", text, [ShownTable(columns, rows)])


def _maps_beside(result: ProbeResult) -> Section | None:
    """The maps of the kept head beside those that do not look; None where no evidence is known."""
    maps = result.maps
    if not maps.get("blind_maps"):
        return None
    rows: list[ShownRow] = [[ALL_TITLES[result.kept], percent(maps["value"]), Cell(None)]]
    for name, blind in sorted(maps["blind_maps"].items(), key=lambda pair: -(pair[1]["value"] or 0)):
        low, high = blind["interval"]
        less = Cell(blind["difference"], f"{100 * blind['difference']:+.1f} ({100 * low:+.1f} to {100 * high:+.1f})")
        rows.append(
            [BLIND[name] + (", to the pixel" if name.endswith("_exact") else ""), percent(blind["value"]), less]
        )
    where = (
        "within a tenth of the object's diagonal of the click"
        if maps["score"] == "pointing_at"
        else "on the evidence (box, mask or a disc round the point)"
    )
    text = (
        f"How often the peak of a map lies {where}, on test pictures. The other maps do not look at the picture; "
        "chance is the best of them. Differences are paired, with a 95 % interval."
    )
    columns = ("map", "peak there", "head less this map, points")
    return Section("Where it looked", text, [ShownTable(columns, rows, best_row=0, dash="compared with itself")])


def _mistakes(probe: Probe) -> Section:
    result, pictures = probe.result, probe.pictures
    split_of = {int(number): at for at, split in enumerate(result.splits) for number in split.test}
    drawn = []
    for mistake in result.details["mistakes"]:
        example, place = mistake["example"], pictures.place(mistake["example"])
        path = Path(place["picture"])
        shown = fit_panel(read_picture(path).image, _PANEL)
        number = torch.tensor([example])
        trace = probe.trace(split_of[example], number).placed(*pictures.canvas(number))
        text = caption({**mistake, **place})
        drawn.append(
            Figure(
                overlay(shown, trace.image_map("total", (shown.height, shown.width))[0]),
                f"{text}. {path.parent.name}/{path.name}",
                f"{path.name} with the map of the head over it",
            )
        )
    return mistakes_section(drawn, "test pictures")


def _calibration(result: ProbeResult) -> Section:
    if len(result.probabilities) < MIN_ANSWERS:
        few = pluralise(len(result.probabilities), "test answer")
        return Section(
            "Calibration", f"{few}: too few to tell how true the confidences are. It takes {MIN_ANSWERS}.", []
        )
    confidence, answers = result.probabilities.max(1)  # (N,) each
    right, rows = answers == result.examples.labels, list[ShownRow]()
    for number in range(_BINS):
        inside = (confidence * _BINS).long().clamp(max=_BINS - 1) == number  # (N,)
        if bool(inside.any()):
            means = (percent(float(values[inside].double().mean())) for values in (confidence, right))
            rows.append([f"{number / _BINS:.0%} – {(number + 1) / _BINS:.0%}", int(inside.sum()), *means])
    text = (
        f"How sure the kept head was, and how often it was right, on test pictures. Expected calibration error "
        f"{100 * result.calibration:.1f} points: 0 means that of answers given with 80 % confidence, 80 % are "
        "right."
    )
    return Section("Calibration", text, [ShownTable(("confidence", "answers", "mean confidence", "accuracy"), rows)])


def _data(pictures: ProbedPictures) -> Section:
    count, copies = pluralise(len(pictures.paths), "picture"), pictures.copies
    line = f"{count} in {pluralise(len(pictures.classes), 'class', 'classes')}."
    if pictures.questions.are_asked:
        asked = pluralise(len(pictures.questions.words), "question")
        answers = pluralise(len(pictures.classes), "answer")
        line = f"{asked}, asked {len(pictures):,} times about {count}; {answers}."
    lines = [line, *(f"{remark}." for remark in pictures.remarks), "No two pictures are the same file."]
    if copies:
        lines[-1] = (
            f"{pluralise(len(copies), 'picture')} has the bytes of another one. Both stay in the same part of every "
            "split, so no test picture leaks into training."
        )
    blocks = [ShownTable(("picture", "same as"), copies[:_COPIES])] if copies else []
    return Section("The pictures", "\n\n".join(lines), blocks)


_WIDTH, _HEIGHT, _LEFT, _RIGHT, _TOP, _BOTTOM = 560, 240, 48, 150, 12, 44
_LIGHT, _DARK = ("#16191f", "#c2410c", "#0b5cd5"), ("#e7eaef", "#fb923c", "#6ea1f5")  # ink, linear, attention


def learning_section(result: ProbeResult) -> Section:
    """How much more pictures would help."""
    rows: list[ShownRow] = [[name, *map(percent, curve)] for name, curve in _curves(result, "shares").items()]
    text = (
        "Test accuracy after learning from a part of the training pictures (first seed, mean over splits). Where it "
        "still rises between the last two columns, more pictures are likely to help."
    )
    columns = ["", *(f"{share:.0%}" for share in (*result.plan.shares, 1.0))]
    return Section("Would more pictures help?", text, [ShownTable(columns, rows)])


def _curves(result: ProbeResult, parts: str) -> dict[str, list[float]]:
    """Title of the linear and of the kept head → accuracies after learning from each of the parts, then from all."""
    curves = {}
    for name in dict.fromkeys((LINEAR, result.kept)):
        trial = result.trials[name]
        by_part = [*getattr(trial, parts).values(), [seeds[0] for seeds in trial.test]]
        curves[ALL_TITLES[name]] = [sum(scores) / len(scores) for scores in by_part]
    return curves


def low_shot_section(result: ProbeResult) -> Section | None:
    """The curves of the linear head and the kept one; None where they were not asked for."""
    if not result.plan.shots:
        return None
    curves = _curves(result, "shots")
    columns = [*map(str, SHOTS), "all"]
    text = (
        "Test accuracy after learning from so many training pictures of each class (first seed, mean over splits), "
        "with the setting that is best for all of them. Features are standardised by all training pictures of a split."
    )
    alt = "a line for each row of the table below"
    drawn = Figure(_drawn(curves, columns, _LIGHT), alt=alt, dark=_drawn(curves, columns, _DARK))
    rows: list[ShownRow] = [[name, *map(percent, curve)] for name, curve in curves.items()]
    return Section("How few pictures are enough?", text, [drawn, ShownTable(["", *columns], rows)])


def _drawn(curves: Mapping[str, Sequence[float]], columns: Sequence[str], colours: Sequence[str]) -> str:
    """The curves as SVG, from 0 to 100 %."""
    ink, *lines = colours
    apart = (_WIDTH - _LEFT - _RIGHT) / (len(columns) - 1)
    across = [round(_LEFT + 8 + apart * place, 1) for place in range(len(columns))]

    def down(share: float) -> float:
        return round(_TOP + (1 - share) * (_HEIGHT - _TOP - _BOTTOM), 1)

    def words(x: float, y: float, text: str, anchor: str, fill: str = ink) -> str:
        return f'<text x="{x}" y="{y}" text-anchor="{anchor}" fill="{fill}">{escape(text)}</text>'

    parts = []
    for share in (0.0, 0.5, 1.0):
        parts.append(f'<path d="M{_LEFT} {down(share)}H{across[-1]}" stroke="{ink}" stroke-opacity="0.25"/>')
        parts.append(words(_LEFT - 6, down(share) + 4, f"{share:.0%}", "end"))
    parts += [words(x, _HEIGHT - _BOTTOM + 18, word, "middle") for x, word in zip(across, columns)]
    parts.append(words(across[len(across) // 2], _HEIGHT - 6, "training pictures of each class", "middle"))
    last, lowest = sorted(curves.items(), key=lambda pair: -pair[1][-1]), 0.0
    for name, curve in last:  # from above, so that no name stands on another
        colour = lines[[*curves].index(name)]
        points = " ".join(f"{x},{down(share)}" for x, share in zip(across, curve))
        parts.append(f'<polyline points="{points}" fill="none" stroke="{colour}" stroke-width="2"/>')
        lowest = max(down(curve[-1]) + 4, lowest + 16)
        parts.append(words(across[-1] + 8, lowest, name, "start", colour))
    head = f'<svg xmlns="http://www.w3.org/2000/svg" width="{_WIDTH}" height="{_HEIGHT}" font-family="sans-serif"'
    return f'{head} font-size="12" viewBox="0 0 {_WIDTH} {_HEIGHT}">{"".join(parts)}</svg>'
