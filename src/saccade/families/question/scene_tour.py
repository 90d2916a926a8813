"""The tour's section on an attribute model: its looks, its answers when the scene changes, and its scores."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch

from saccade.families.question.query_model import query_model
from saccade.families.question.scenes.data import SceneBatch, SceneData, SceneDataConfig
from saccade.families.question.scenes.scores import SceneScores, score_scenes
from saccade.metrics.labels import SCALE_EDGES
from saccade.predict import Predictor, load
from saccade.show.contact_sheet import contact_sheet
from saccade.show.curves import accuracy_by_scale, figure_svg, precision_recall_curves
from saccade.show.marks import Mask
from saccade.show.report import Bar, Bars, Cell, Gallery, KeyFigures, Picture, Section, Table, percent
from saccade.show.report_tables import BarKind
from saccade.sighting import Sighting
from saccade.tasks.published import Published, published_for
from saccade.trace import Look
from saccade.verbs.plain_table import PlainTable
from saccade.verbs.touring.page import Progress, Stop
from saccade.verbs.touring.scores import as_score, headline

QUICK, FULL = 500, 5000  # scenes
SWEEPS = {True: 50, False: 200}  # scenes for deletion and insertion
BOUNDED = "true_positive_strength"
"""What the best map of the grids bounds; of other scores it is one more map to compare with."""
LABELS = {
    "uniform": "attention spread evenly",
    "centre_gaussian": "always the centre",
    "shuffled": "its own map of another scene",
    "all_objects": "every digit, on its grids",
    "all_objects_exact": "every digit, exact pixels",
    "grid_oracle": "best map of its grids",
}


def scene_stop(name: str, *, quick: bool, device: str, progress: Progress) -> Stop:
    """Score the shipped model ``name`` on scenes of shipped glyphs and say what came out."""
    predictor = load(name, device)
    config = _data_config(predictor)
    data = SceneData(config, "test", device=predictor.device, allow_pack=True)
    limit = QUICK if quick else FULL
    scores = score_scenes(
        query_model(predictor),
        data,
        limit=limit,
        sweeps=SWEEPS[quick],
        progress=lambda done, total: progress(name, done, total),
    )
    found = scores.summary()
    published = published_for(predictor.facts)
    where = f"questions about scenes of {data.glyphs.name}, test split, seed {config.seed}, computed just now"
    section = Section(
        f"{name}: what colour is the 7?",
        f"{_about(predictor)} The outlined digit is the one asked for; brighter means more weight. The map is drawn "
        "at the centres of the receptive fields of its cells; beyond the outermost centres, edge cells are "
        "extended to the border.",
        [
            _key_figures(found, published, where),
            _strips(predictor, data),
            _changes(predictor, data),
            _score_table(predictor, found, published, where),
            _bars(
                "true_positive_strength",
                "Share of the attention that lies on the digit asked for",
                found,
                published,
                where,
            ),
            _bars("selectivity", "Attention on the digit asked for ÷ attention on all digits", found, None, where),
            _attention_table(found, where),
            _scale_figure(found, where),
            _recall_figure(scores, where),
        ],
    )
    here = as_score({"data": config.name, "split": "test", **found})
    return Stop(section, headline(name, predictor.facts, "accuracy", here), [_terminal_table(name, found)])


def _data_config(predictor: Predictor) -> SceneDataConfig:
    return SceneDataConfig(name=predictor.facts.data.get("name", "mref"))


def _about(predictor: Predictor) -> str:
    height, width = predictor.responder.input_size or (100, 100)
    seen = predictor.look(torch.zeros(3, height, width), ask=predictor.facts.queries[0])
    acts = ", then ".join(_in_words(look) for look in seen.trace.looks)
    return (
        f"A model of {predictor.facts.parameters:,} parameters sees five to nine coloured digits and is asked for the "
        f"colour of one of them. It looks by {acts}."
    )


def _in_words(look: Look) -> str:
    """What kind of act a look is, and how fine."""
    if look.weights is None:
        return "a window that it cuts out of the picture"
    acts = {"gate": "a gate on each of", "hard": "a choice among"}
    return f"{acts.get(look.kind, 'attention over')} {'×'.join(map(str, look.weights.shape[-2:]))} cells"


def _look(predictor: Predictor, batch: SceneBatch, row: int, query: int | None = None) -> Sighting:
    asked = int(batch.query[row]) if query is None else query
    return predictor.look(batch.images[row].cpu(), ask=predictor.facts.queries[asked])


def _strips(predictor: Predictor, data: SceneData) -> Gallery:
    """Three right answers at different scales and one wrong one, if there is one: mistakes teach more."""
    batch = data.take(data.one_per_scene(64))
    sightings = [_look(predictor, batch, row) for row in range(len(batch))]
    right = [seen.answer == data.answers[int(label)] for seen, label in zip(sightings, batch.label)]
    by_scale = sorted((row for row in range(len(batch)) if right[row]), key=lambda row: float(batch.scale[row]))
    chosen = [by_scale[int(share * (len(by_scale) - 1))] for share in (0.2, 0.6, 0.95)] if by_scale else []
    chosen += [row for row in range(len(batch)) if not right[row]][:1]
    masks = batch.evidence().cpu()
    strips = []
    for row in chosen:
        truth = data.answers[int(batch.label[row])]
        verdict = "right" if right[row] else f"wrong, it is {truth}"
        strips.append(
            Picture(
                sightings[row].filmstrip(
                    question=f"colour of the {sightings[row].question}?", outline=Mask(masks[row]), panel=200
                ),
                f"Asked for the {sightings[row].question} (scale {float(batch.scale[row]):.1f}): "
                f"{sightings[row].answer}, {sightings[row].confidence:.0%} sure: {verdict}.",
                alt=f"Scene, attention and attended scene; the answer is {verdict}",
            )
        )
    return Gallery(strips, "The scene, its attention (above), and the scene times its attention (below)", wide=True)


def _changes(predictor: Predictor, data: SceneData) -> Picture:
    """One scene, five times: as it is, another question, target recoloured, another digit recoloured or removed."""
    batch = data.take(data.one_per_scene(64))
    recoloured, other, removed = batch.recolour_target(), batch.recolour_other(), batch.remove_other()
    row = _telling_row(predictor, batch, recoloured)
    other_query = int(batch.other_query()[row])
    asked = data.queries[int(batch.query[row])]
    shown = [
        (f"the {asked}", _look(predictor, batch, row)),
        (f"the {data.queries[other_query]} instead", _look(predictor, batch, row, other_query)),
        (f"the {asked}, made {data.answers[int(recoloured.label[row])]}", _look(predictor, recoloured, row)),
        (f"the {asked}, the {data.queries[other_query]} recoloured", _look(predictor, other, row)),
        (f"the {asked}, the {data.queries[other_query]} removed", _look(predictor, removed, row)),
    ]
    target = Mask(batch.evidence()[row].cpu())
    scene = batch.layout[row : row + 1]
    instead = Mask(scene.mask_of(scene.classes.eq(other_query).long().argmax(1))[0].cpu())
    sheet = contact_sheet(
        [seen.overlay(outline=instead if number == 1 else target) for number, (_, seen) in enumerate(shown)],
        [f"{what}: {seen.answer} ({seen.confidence:.0%})" for what, seen in shown],
        columns=5,
    )
    return Picture(
        sheet,
        "The same scene rendered again with one thing changed. The answer should follow the digit asked "
        "for and hold when anything else changes.",
        alt="Five renderings of one scene with the model's attention and answers",
    )


def _telling_row(predictor: Predictor, batch: SceneBatch, recoloured: SceneBatch) -> int:
    """The first scene that is answered rightly before and after recolouring, else the first."""
    before = predictor.model(batch.images, batch.query).trace.answer
    after = predictor.model(recoloured.images, recoloured.query).trace.answer
    good = ((before == batch.label) & (after == recoloured.label)).nonzero()
    return int(good[0]) if len(good) else 0


def _note(found: Mapping[str, Any], metric: str, where: str) -> str:
    """How many examples a number rests on, and which: the sweeps are measured on fewer."""
    return f"n = {found['counts'].get(metric, found['n'])} {where}"


def _recorded(predictor: Predictor) -> Any:
    """The evaluation on the full test set that came with the model, if any."""
    return predictor.facts.scores[0] if predictor.facts.scores else None


def _key_figures(found: Mapping[str, Any], published: Published | None, where: str) -> KeyFigures:
    metrics, attention = found["metrics"], found["attention"]
    figures = [("right answers", percent(metrics["accuracy"], note=_note(found, "accuracy", where)))]
    if published is not None:
        figures.append(
            ("published", percent(published.metrics["accuracy"], note=f"{published.source}; {published.note}"))
        )
    figures += [
        (
            "follows the target recoloured",
            percent(attention["causal_follow"], note=_note(found, "causal_follow", where)),
        ),
        ("holds when others change", percent(attention["causal_hold"], note=_note(found, "causal_hold", where))),
    ]
    return KeyFigures(figures)


def _score_table(predictor: Predictor, found: Mapping[str, Any], published: Published | None, where: str) -> Table:
    recorded = _recorded(predictor)
    rows: list[list[Cell | str]] = []
    for metric, group, label in (
        ("accuracy", "metrics", "right answers"),
        ("true_positive_strength", "attention", "true-positive strength"),
    ):
        low, high = found["intervals"][metric]
        full = Cell(None)
        if recorded is not None:
            note = (
                f"n = {recorded.n}, {recorded.split} split, {recorded.data}, {recorded.protocol}, seed {recorded.seed}"
            )
            full = percent(getattr(recorded, group).get(metric), note=f"{note}; recorded when the model was trained")
        printed = Cell(None)
        if published is not None and metric in published.metrics:
            printed = percent(published.metrics[metric], note=f"{published.source}; {published.note}")
        here = percent(
            found[group][metric],
            note=f"{_note(found, metric, where)}; 95 % interval {100 * low:.1f} to {100 * high:.1f}",
        )
        rows.append([label, here, full, printed])
    blind = percent(
        found["metrics"]["swapped_query"],
        note=f"{_note(found, 'swapped_query', where)}; asked for another digit that is present",
    )
    rows.append(
        [
            "same answer when asked for another digit (20 % ideal, 42 % if it ignores the question)",
            blind,
            Cell(None),
            Cell(None),
        ]
    )
    return Table(
        ["", "measured here", "full test", "published"],
        rows,
        caption="Score beside the published one",
        source="the published true-positive strength depends on a projection its paper does not state",
    )


def _bars(metric: str, caption: str, found: Mapping[str, Any], published: Published | None, where: str) -> Bars:
    low, high = found["intervals"][metric]
    bars = [Bar("this model", found["attention"][metric], "score", (low, high), _note(found, metric, where))]
    if published is not None and metric in published.metrics:
        bars.append(Bar("the paper's", published.metrics[metric], "published", note=published.source))
    for name, values in found["baselines"].items():
        kind: BarKind = "bound" if name == "grid_oracle" and metric == BOUNDED else "baseline"
        bars.append(Bar(LABELS[name], values[metric], kind, note=_note(found, metric, where)))
    return Bars(bars, caption, source="all maps through the same projection")


def _attention_table(found: Mapping[str, Any], where: str) -> Table:
    names = [name for name in found["baselines"].get("uniform", {}) if name in found["attention"]]
    own = [percent(found["attention"][name], note=_note(found, name, where)) for name in names]
    rows: list[list[Cell | str]] = [["this model", *own]]
    for baseline, values in found["baselines"].items():
        rows.append([LABELS[baseline], *(percent(values.get(name)) for name in names)])
    return Table(
        ["map", *(name.replace("_", " ") for name in names)],
        rows,
        caption="Every attention score, beside baselines (deletion: lower is better). The best map of its grids is "
        "the best in true-positive strength, and a bound of that alone",
        best_row=0,
    )


def _scale_figure(found: Mapping[str, Any], where: str) -> Picture:
    values = [value if value is not None else float("nan") for value in found["metrics"]["accuracy_by_scale"].values()]
    drawn = {
        theme: accuracy_by_scale({"measured": values}, edges=SCALE_EDGES, theme=theme)[0] for theme in ("light", "dark")
    }
    counts = ", ".join(str(n) for n in found["counts"]["accuracy_by_scale"].values())
    return Picture(
        figure_svg(drawn["light"]), "Right answers by the scale of the digit asked for.",
        alt="Bars of accuracy in five ranges of scale", source=f"{where}; n in each bin: {counts}",
        dark=figure_svg(drawn["dark"]),
    )  # fmt: skip


def _recall_figure(scores: SceneScores, where: str) -> Picture:
    rivals = scores.maps.baselines
    maps = {"this model": scores.maps.total, "best map of its grids": rivals.get("grid_oracle"),
            "every digit": rivals.get("all_objects")}  # fmt: skip
    found = {name: kept.curve() for name, kept in maps.items() if kept is not None}
    curves = {name: (curve.recall.tolist(), curve.precision.tolist()) for name, curve in found.items()}
    drawn = {theme: precision_recall_curves(curves, theme=theme)[0] for theme in ("light", "dark")}
    return Picture(
        figure_svg(drawn["light"]), "The map as a segmentation: precision and recall of its pixels at every threshold.",
        alt="Precision against recall", source=where, dark=figure_svg(drawn["dark"]),
    )  # fmt: skip


def _terminal_table(name: str, found: Mapping[str, Any]) -> PlainTable:
    shown = {
        "true_positive_strength": "on target",
        "selectivity": "selectivity",
        "pointing": "pointing",
        "pr_auc": "PR area",
    }

    def row(label: str, values: Mapping[str, Any]) -> list[str]:
        return [label, *(f"{100 * values[metric]:.1f}" for metric in shown)]

    rows = [row("this model", found["attention"])]
    rows += [row(LABELS[baseline], values) for baseline, values in found["baselines"].items()]
    return PlainTable(f"{name}: attention %, beside baselines and bounds", ("map", *shown.values()), rows)
