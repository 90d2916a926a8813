"""What zooming gives: each scale by itself and all together, beside controls that keep all but one thing.

Table 2 of Fu et al. (CVPR 2017) has the scales on CUB-200-2011. The controls are ours: crops in the middle, anywhere,
round the evidence; three networks without crops; three networks that see every pixel. Further tables say where the
crops lie, beside centred ones of the same side, and what crops and answers do when a generated picture is drawn again
with one thing changed.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from saccade.errors import ConfigError, nearest
from saccade.families.classify.published import FU_2017, ZOOM
from saccade.recorded import RecordedRun, difference, measure
from saccade.show.report import Report, Section
from saccade.verbs.plain_table import PlainTable
from saccade.verbs.reproduction.cells import Setting, TableCell, mean_text, measured_text
from saccade.verbs.reproduction.page import reproduction_page, table_block
from saccade.verbs.reproduction.training import Job

DATA = {"details": "details", "cub": "CUB-200-2011"}
SYSTEMS = {
    "racnn": "RA-CNN",
    "racnn-centre": "control: crops in the middle",
    "racnn-random": "control: crops anywhere",
    "racnn-box": "control: crops round the evidence",
    "racnn-whole": "control: three networks, no crop",
    "racnn-full": "control: three networks, all pixels",
}
METRICS = {
    "scale1_accuracy": "scale 1",
    "scale2_accuracy": "scale 2",
    "scale3_accuracy": "scale 3",
    "accuracy": "together",
}
CROPS = {
    "scale2_covers_evidence": "scale 2 covers",
    "scale2_inside_evidence": "scale 2 inside",
    "scale3_covers_evidence": "scale 3 covers",
    "scale3_inside_evidence": "scale 3 inside",
}
REDRAWN = {
    "moved_follow": "moved: the crop follows",
    "moved_hold": "moved: the answer stays",
    "rewoven_follow": "other mark: the answer follows",
    "rewoven_hold": "other mark: the crop stays",
    "surrounded_hold": "all else new: the answer stays",
    "surrounded_crop_hold": "all else new: the crop stays",
}
CENTRED = "centred_crop"
SETTINGS = {"details": Setting("unlimited"), "cub": Setting("", compared=True)}
LEGEND = (
    "Accuracy in %, measured (published); below it, seeds × test pictures. Published: VGG-19 on 448 and 224 pixels, "
    "all 5,794 test pictures of CUB-200-2011; ours sees the whole picture at 112 pixels and crops of a picture "
    "of 224, on birds with a MobileNetV2. Details are generated: at 112 pixels the "
    "class cannot be told but for its colour, so 25 % is all that scale 1 can have. Covers: share of the evidence in "
    "the crop; inside: share of the crop in the evidence's box; in brackets, a centred crop of the same side."
)
REDRAWN_NOTE = (
    "Drawn again with one thing changed; the crop is that of scale 3. It follows where it covers half or more of the "
    "mark at its new place, and stays where it overlaps the old crop by half or more. n: only pictures that were "
    "answered correctly, by a crop that covered half or more of the mark. "
    "Where no crop is made, it is the whole picture."
)


@dataclass(frozen=True)
class ZoomTable:
    """The recorded runs of models that zoom and of their controls."""

    runs: Sequence[RecordedRun]
    data: Sequence[str] = tuple(DATA)
    """Names, or READER:PATH of pictures that have to be read."""

    def __post_init__(self) -> None:
        for name in self.names:
            if name not in DATA:
                raise ConfigError(f"data '{name}': {nearest(name, DATA)}")

    @property
    def names(self) -> tuple[str, ...]:
        """The data sets, without paths."""
        return tuple(each.partition(":")[0] for each in self.data)

    def with_runs(self, more: Iterable[RecordedRun]) -> ZoomTable:
        """The same table with further runs; where a cell already has a run of that seed, that one stays."""
        there = {(run.system, run.on, run.seed) for run in self.runs}
        return replace(self, runs=(*self.runs, *(run for run in more if (run.system, run.on, run.seed) not in there)))

    def of(self, system: str, data: str) -> list[RecordedRun]:
        """The runs of one row on one data set."""
        return [run for run in self.runs if (run.system, run.on) == (system, data)]

    def cell(self, metric: str, system: str, data: str) -> TableCell:
        """One accuracy with its published neighbour."""
        measured = measure(self.of(system, data), metric)
        row = ZOOM.get((system, data))
        published = None if row is None else row.metrics.get(metric)
        apart = difference(measured, published) if measured is not None and published is not None else None
        return TableCell(metric, system, data, SETTINGS[data], measured, published, apart)

    def cells(self) -> list[TableCell]:
        """Every cell, data set by data set."""
        return [self.cell(metric, system, data) for data in self.names for system in SYSTEMS for metric in METRICS]

    def answers(self, data: str) -> PlainTable:
        """How right each scale is."""
        rows = []
        for system, label in SYSTEMS.items():
            cells = [self.cell(metric, system, data) for metric in METRICS]
            rows.append([label, *(measured_text(cell.measured, beside=cell.published) for cell in cells)])
        return PlainTable(f"accuracy % on {DATA[data]}, measured (published)", ("", *METRICS.values()), rows)

    def crops(self, data: str) -> PlainTable:
        """Where the crops lie; one line a system that has a run."""
        rows = []
        for system, label in SYSTEMS.items():
            runs = self.of(system, data)
            found = [(measure(runs, name), measure(runs, name, of=CENTRED)) for name in CROPS]
            if any(own for own, _ in found):
                rows.append([label, *(f"{mean_text(own)} ({mean_text(centred)})" for own, centred in found)])
        return PlainTable(f"crops on {DATA[data]}, % (centred)", ("", *CROPS.values()), rows)

    def redrawn(self, data: str) -> PlainTable:
        """What crops and answers do when a picture is drawn again; one line a system that was asked."""
        rows = []
        for system, label in SYSTEMS.items():
            runs = self.of(system, data)
            found = [measure(runs, name) for name in REDRAWN]
            if any(found):
                counted = ", ".join(f"{run.evaluation.counts.get('moved_follow', run.evaluation.n):,}" for run in runs)
                rows.append([label, *map(mean_text, found), counted])
        return PlainTable(f"{DATA[data]} drawn again, %", ("", *REDRAWN.values(), "n"), rows, REDRAWN_NOTE)

    def further(self) -> list[PlainTable]:
        """The tables behind the accuracies that have a row."""
        made = [self.crops(data) for data in self.names] + [self.redrawn(data) for data in self.names]
        return [table for table in made if table.rows]

    def missing(self, seeds: int) -> list[Job]:
        """The runs that its cells lack of seeds 0 … ``seeds`` − 1; of files only where their place is named."""
        found = []
        for each, data in zip(self.data, self.names):
            source = each if ":" in each else None
            if data == "details" or source is not None:
                for system in SYSTEMS:
                    recipe = f"{system}-details" if data == "details" else system
                    known = {run.seed for run in self.of(system, data)}
                    found += [
                        Job(recipe, system, data, SETTINGS[data], seed, source)
                        for seed in range(seeds)
                        if seed not in known
                    ]
        return found


def zoom_page(tables: Sequence[PlainTable]) -> Report:
    """The tables as a page."""
    return reproduction_page(
        "Looking closer, Table 2",
        f"{FU_2017}, measured again, with controls of the zoom. Numbers in the tables come from recorded runs.",
        [Section("What each scale says, and where it looks", LEGEND, [table_block(each) for each in tables])],
        again="By training what has no run yet; the birds have to be fetched by hand.",
        commands=(
            "saccade reproduce racnn-table --data details --train --out reproduction",
            "saccade reproduce racnn-table --data cub:FOLDER --train --out reproduction",
        ),
    )
