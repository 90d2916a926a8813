"""Table 1 of Xu et al. (2015, arXiv:1502.03044) from recorded runs: captions with soft and hard attention.

The paper prints BLEU without a brevity penalty; the same with it, and further scores, stand in a second table. Its
pictures are fetched by hand, so a cell is trained only where ``--data READER:PATH`` says where they are. The curve of
Section 4.3, BLEU against the log-likelihood over training, is drawn from the validations that records keep.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from matplotlib.figure import Figure

from saccade.errors import ConfigError, nearest
from saccade.families.caption.published import PUBLISHED, XU_2015
from saccade.recorded import RecordedRun, difference, gain, measure
from saccade.show.curves import Line, Theme, course, line_panels
from saccade.show.report import Report, Section
from saccade.verbs.plain_table import PlainTable
from saccade.verbs.reproduction.cells import GAIN_NOTE, Setting, TableCell, gain_text, mean_text, measured_text
from saccade.verbs.reproduction.drawing import Drawing
from saccade.verbs.reproduction.page import reproduction_page, table_block
from saccade.verbs.reproduction.training import Job

DATA = {"flickr8k": "Flickr8k", "flickr30k": "Flickr30k", "coco": "COCO"}
SYSTEMS = {"sat-soft": "Soft attention", "sat-hard": "Hard attention"}
PAPER = {"sat-soft-paper": "Soft, the paper's setting", "sat-hard-paper": "Hard, the paper's setting"}
"""Encoder, optimiser, words and sizes as the paper has them for Flickr8k: shown where they have a run."""
TUNED = {
    "sat-soft-tuned": "Soft, tuned further",
    "sat-hard-tuned": "Hard, tuned further",
    "sat-none-tuned": "No attention, tuned further",
}
"""With an encoder that learns too, then captions of their own: shown where they have a run."""
COMPARED = (("sat-soft-tuned", "sat-none-tuned"), ("sat-soft-tuned", "sat-hard-tuned"))
"""Pairs whose difference is told."""
UNEQUAL = "Hard attention was tuned by other rewards than soft. METEOR has no interval on record."
ABLATIONS = {
    "sat-soft-unpenalised": "Soft, λ = 0",
    "sat-soft-ungated": "Soft, no β",
    "sat-none": "No attention",
}
"""What the paper argues for, taken away: recipes of their own, shown where they have a run."""
OTHERS = {
    "google-nic": "Google NIC",
    "log-bilinear": "Log Bilinear",
    "cmu": "CMU/MS Research",
    "msr": "MS Research",
    "brnn": "BRNN",
}
"""Systems that the paper quotes and saccade does not have."""
COLUMNS = {"bleu_1_nobp": "B-1", "bleu_2_nobp": "B-2", "bleu_3_nobp": "B-3", "bleu_4_nobp": "B-4", "meteor": "METEOR"}
BESIDE = {
    "bleu_1": "B-1",
    "bleu_4": "B-4",
    "length_ratio": "length",
    "rouge_l": "ROUGE-L",
    "cider": "CIDEr-D",
    "meteor_lite": "METEOR-lite",
}
"""Scores that the paper does not print."""
SCENES = "scenes"
ON_SCENES = {
    "exact_match": "exact",
    "bleu_4": "B-4",
    "true_positive_strength": "on its digit",
    "selectivity": "selective",
    "pointing": "peak on it",
    "causal_follow": "follows",
    "causal_hold": "holds",
}
"""Scores of captions of scenes, where the place of every word is known."""
RIVALS = {"uniform": "bound: even", "all_objects": "bound: all digits", "grid_oracle": "bound: best on this grid"}
OFFICIAL, DEV = "official", "dev"
"""Protocols: the lists as they are; or, without test pictures, the dev pictures in their place."""
ON_DEV = "on the dev pictures, the model chosen on 500 training pictures; the paper measures on the test pictures"
LEGEND = (
    "Measured (published); below it, seeds × test pictures; ± is the standard deviation over seeds. BLEU in Table 1 is "
    "without the brevity penalty, as the paper has it, and so gains by short captions: the length ratio stands below. "
    "METEOR is version 1.5 of the jar, where Java was there; METEOR-lite is another score and never stands beside it."
)
SCENES_NOTE = (
    "On its digit: the share of a word's attention that lies on the pixels of what it names, over words of size, "
    "colour and digit. A digit is drawn in another colour: its colour word follows and no other word changes "
    "(follows); every other word is as before (holds)."
)


@dataclass(frozen=True)
class CaptionTable:
    """The recorded runs on these data sets, and the tables that are made of them.

    Args:
        runs: of any systems and data sets.
        data: data sets to show, by name.
        sources: READER:PATH by data set, where the pictures are there to train on.
        protocol: which splits to train and measure with.
    """

    runs: Sequence[RecordedRun]
    data: Sequence[str] = tuple(DATA)
    sources: Mapping[str, str] = field(default_factory=dict)
    protocol: str = OFFICIAL

    def __post_init__(self) -> None:
        if self.protocol not in (OFFICIAL, DEV):
            raise ConfigError(f"protocol '{self.protocol}': {nearest(self.protocol, (OFFICIAL, DEV))}")
        for name in self.data:
            if name not in DATA:
                raise ConfigError(f"data '{name}': {nearest(name, DATA)}; with its folder as in flickr8k:FOLDER")

    @classmethod
    def of_references(
        cls, runs: Sequence[RecordedRun], references: Sequence[str] | None, protocol: str = OFFICIAL
    ) -> CaptionTable:
        """The table of data sets called NAME or NAME:PATH; None: all of them."""
        named = {each.partition(":")[0]: each for each in (DATA if references is None else references)}
        sources = {name: each for name, each in named.items() if ":" in each}
        return cls(runs, tuple(named), sources, protocol)

    @property
    def setting(self) -> Setting:
        """How the runs of this table are trained."""
        return Setting(self.protocol, compared=True)

    def with_runs(self, more: Iterable[RecordedRun]) -> CaptionTable:
        """The same table with further runs; where a cell already has a run of that seed, that one stays."""
        there = {(run.system, run.on, run.protocol, run.seed) for run in self.runs}
        new = [run for run in more if (run.system, run.on, run.protocol, run.seed) not in there]
        return replace(self, runs=(*self.runs, *new))

    @property
    def systems(self) -> dict[str, str]:
        """Rows by name: the paper's two, what is made of them and whatever else was recorded, those of others."""
        recorded = {run.system for run in self.runs if run.on in DATA}
        made = {system: label for system, label in (PAPER | TUNED | ABLATIONS).items() if system in recorded}
        more = {system: system for system in sorted(recorded - SYSTEMS.keys() - made.keys())}
        return SYSTEMS | made | more | OTHERS

    def of(self, system: str, data: str) -> list[RecordedRun]:
        """The runs of one cell."""
        return [run for run in self.runs if (run.system, run.on, run.protocol) == (system, data, self.protocol)]

    def cell(self, metric: str, system: str, data: str) -> TableCell:
        """One score with its published neighbour."""
        measured = measure(self.of(system, data), metric)
        row = PUBLISHED.get((system, data))
        published = None if row is None else row.metrics.get(metric)
        apart = difference(measured, published) if measured is not None and published is not None else None
        return TableCell(metric, system, data, self.setting, measured, published, apart)

    def cells(self) -> list[TableCell]:
        """Every cell that is measured or printed, data set by data set."""
        every = [
            self.cell(metric, system, data)
            for data in self.data
            for system in self.systems
            for metric in (*COLUMNS, *BESIDE)
        ]
        return [cell for cell in every if cell.measured is not None or cell.published is not None]

    def printed(self, data: str) -> PlainTable:
        """Table 1 for one data set."""
        rows = []
        for system, label in self.systems.items():
            found = [self.cell(metric, system, data) for metric in COLUMNS]
            if system in OTHERS:
                texts = ["–" if cell.published is None else f"({100 * cell.published:.2f})" for cell in found]
            else:
                texts = [self._text(cell) for cell in found]
            is_shown = any(cell.measured or cell.published for cell in found)
            if system in SYSTEMS:  # without a run it gives way to the paper's setting
                is_shown = bool(self.of(system, data)) or not self.of(f"{system}-paper", data)
            if is_shown:
                rows.append([label, self._encoder(system, data), *texts])
        title = f"Table 1: BLEU without brevity penalty, and METEOR, % on {DATA[data]}, measured (published)"
        note = f"Measured {ON_DEV}." if self.protocol == DEV else ""
        return PlainTable(title, ["", "encoder", *COLUMNS.values()], rows, note)

    def _encoder(self, system: str, data: str) -> str:
        """The network that sees the pictures, of the runs of a cell."""
        runs = self.of(system, data)
        return runs[0].recipe["model"].get("config", {}).get("backbone", "–") if runs else "–"

    def _text(self, cell: TableCell) -> str:
        """Measured beside printed; a run that lacks the score, as METEOR without Java, is a run even so."""
        if cell.measured is None and self.of(cell.system, cell.data):
            return "–" if cell.published is None else f"– ({100 * cell.published:.2f})"
        return measured_text(cell.measured, beside=cell.published)

    def differences(self, data: str) -> PlainTable:
        """By how many points one system writes better than another; a line for each pair that has runs."""
        rows = []
        for one, other in COMPARED:
            found = [gain(self.of(one, data), self.of(other, data), metric) for metric in COLUMNS]
            if any(found):
                rows.append([f"{TUNED[one]} against {TUNED[other]}", *map(gain_text, found)])
        return PlainTable(
            f"differences on {DATA[data]}, points", ["", *COLUMNS.values()], rows, f"{GAIN_NOTE} {UNEQUAL}"
        )

    def beside(self, data: str) -> PlainTable:
        """Scores that the paper does not print: one line a system that has a run."""
        rows = [
            [label, *(mean_text(measure(runs, metric)) for metric in BESIDE)]
            for system, label in self.systems.items()
            if (runs := self.of(system, data))
        ]
        return PlainTable(f"with brevity penalty, and more, % on {DATA[data]}", ["", *BESIDE.values()], rows)

    def otherwise(self, variants: Sequence[RecordedRun], data: str) -> PlainTable:
        """Runs with other settings, or of the phases before the last: one line each, by name."""
        columns = {**COLUMNS, "length_ratio": BESIDE["length_ratio"]}
        rows = [
            [run.name, *(mean_text(measure([run], metric)) for metric in columns)]
            for run in variants
            if (run.on, run.protocol) == (data, self.protocol)
        ]
        return PlainTable(f"otherwise taught, % on {DATA[data]}", ["run", *columns.values()], rows)

    def scenes(self) -> PlainTable:
        """What is said of generated scenes, and whether each word looked at what it names; one line a system."""
        rows, reference = [], []
        for system in sorted({run.system for run in self.runs if run.on == SCENES}, reverse=True):
            reference = [run for run in self.runs if (run.system, run.on) == (system, SCENES)]
            rows.append([SYSTEMS.get(system, system), *(mean_text(measure(reference, name)) for name in ON_SCENES)])
        for rival, label in RIVALS.items():
            found = [measure(reference, metric, of=rival) for metric in ON_SCENES]
            rows += [[label, *map(mean_text, found)]] if any(found) else []
        n = f", n = {reference[0].evaluation.n:,}" if reference else ""
        return PlainTable(f"captions of scenes, %{n}", ["", *ON_SCENES.values()], rows, SCENES_NOTE if rows else "")

    def missing(self, seeds: int) -> list[Job]:
        """The runs of seeds 0 … ``seeds`` − 1 that cells lack whose pictures are there."""
        return [
            Job(system, system, data, self.setting, seed, source=self.sources[data])
            for data in self.data
            if data in self.sources
            for system in SYSTEMS
            for seed in range(seeds)
            if seed not in {run.seed for run in self.of(system, data)}
        ]


def likelihood_figure(table: CaptionTable) -> list[Drawing]:
    """BLEU-4 against the log-likelihood of a word, validation by validation, of the first run of each system."""
    panels: dict[str, dict[str, Line]] = {}
    for name in table.data:
        for system, label in (SYSTEMS | TUNED | ABLATIONS).items():
            runs = sorted(table.of(system, name), key=lambda run: run.seed)
            line = next((found for run in runs if (found := _line(run))), None)
            if line is not None:
                panels.setdefault(DATA[name], {})[label] = line
    if not panels:
        return []
    caption = "Section 4.3: BLEU-4 on the validation split against the log-likelihood of a word, over training."
    source = "validation, the first seed of each system"
    return [Drawing("sat-likelihood", caption, source, _plot(panels))]


def _line(run: RecordedRun) -> Line | None:
    """The validations of a run as points (log-likelihood, BLEU-4), in their order; None for fewer than two."""
    likelihood = dict(course(run.course, "log_likelihood", "validation"))
    bleu = dict(course(run.course, "bleu_4", "validation"))
    steps = [step for step in bleu if step in likelihood]
    return Line([likelihood[step] for step in steps], [bleu[step] for step in steps]) if len(steps) > 1 else None


def _plot(panels: Mapping[str, Mapping[str, Line]]) -> Callable[[Theme], Figure]:
    def draw(theme: Theme) -> Figure:
        order = (*SYSTEMS.values(), *TUNED.values(), *ABLATIONS.values())
        return line_panels(panels, xlabel="log-likelihood of a word", ylabel="BLEU-4", order=order, theme=theme)[0]

    return draw


def caption_page(table: CaptionTable, figures: Sequence[Drawing]) -> Report:
    """Table 1, differences between systems, what stands beside it, and the figure."""
    return reproduction_page(
        "Show, Attend and Tell, Table 1",
        f"{XU_2015}, measured again. Numbers in the tables come from recorded runs.",
        [
            Section("Table 1", LEGEND, [table_block(table.printed(data)) for data in table.data]),
            Section(
                "Differences", "", [table_block(each) for data in table.data if (each := table.differences(data)).rows]
            ),
            Section("Beside it", "", [table_block(found) for data in table.data if (found := table.beside(data)).rows]),
            Section("Scenes", "", [table_block(found) for found in (table.scenes(),) if found.rows]),
            Section("Figures", "", [figure.block() for figure in figures]),
        ],
        again="By training what has no run yet; the pictures are fetched by hand.",
        commands=(
            "saccade reproduce sat-table1 --data flickr8k:FOLDER --train --out reproduction",
            "saccade reproduce sat-table1 --data flickr8k:FOLDER --protocol dev --train --out reproduction",
        ),
    )
