"""A Sighting: what a model answered about one input, and the trace of where it looked."""

from __future__ import annotations

import io
import math
import re
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import torch
from PIL import Image
from torch import Tensor

from saccade import geometry
from saccade.data.pictures.reading import Picture
from saccade.errors import DataError
from saccade.families.answering import Item
from saccade.files import write_bytes
from saccade.models.likeness import InputFit
from saccade.trace import Answer, AttentionTrace, Look

if TYPE_CHECKING:
    from saccade.record import Record
    from saccade.show.slot_table import SlotGrid

_INLINE = 640  # The longer side of the picture in a notebook, in pixels.

_SHOWN = 60  # Characters of a name, a question and an answer in a repr.

_FORMATS = {".png": "PNG", ".jpg": "JPEG", ".jpeg": "JPEG", ".webp": "WEBP"}

EVEN = 1.25  # A map whose peak has less than this, in means of the map, looks everywhere alike.

_LONGEST_STEM = 120  # Longest file name, in characters; questions may be long.


@dataclass(frozen=True, eq=False, repr=False)
class Sighting:
    """An answer with its evidence; shows itself in a notebook."""

    full_answer: Answer  #: The answer in words, with its confidence and alternatives.
    question: str | None
    source: Item  #: What was looked at.
    trace: AttentionTrace  #: The trace of this one example, in main memory; its maps lie on the original picture.
    model: str
    #: Further answers that a search found, likeliest first, each with a trace of its own.
    others: tuple[Sighting, ...] = ()
    remarks: tuple[str, ...] = ()  #: What of the input and the question the model could not use.
    #: Whether the input is like those that the model learned from.
    fit: InputFit = InputFit()  # noqa: RUF009  # frozen

    @property
    def unlike(self) -> bool | None:
        """Whether the input is unlike those that the model learned from; None: not known."""
        return self.fit.unlike

    @property
    def notes(self) -> tuple[str, ...]:
        """What was done to the input on the way in, the :attr:`remarks`, and a warning where the input is unlike."""
        return (*self.source.notes, *self.remarks, *filter(None, (self.fit.warning,)))

    @property
    def answer(self) -> str:
        """The answer in words."""
        return self.full_answer.text

    @property
    def is_answered(self) -> bool:
        """Whether there is an answer: a model without a head gives none."""
        return self.full_answer.kind != "none"

    @property
    def confidence(self) -> float:
        """Probability of the answer, 0..1, calibrated where that is known; see :class:`~saccade.trace.Answer`."""
        return self.full_answer.confidence

    @property
    def alternatives(self) -> tuple[tuple[str, float], ...]:
        """The other answers and their probabilities, likeliest first."""
        return self.full_answer.alternatives

    @property
    def labels(self) -> tuple[tuple[str, float], ...] | None:
        """The labels one after the other, each with its probability; None for one label."""
        return self.full_answer.parts

    @property
    def log_probability(self) -> float | None:
        """Log-probability of the whole sentence, including its end."""
        return self.full_answer.log_probability

    @property
    def on_the_way(self) -> tuple[tuple[str, str, float], ...]:
        """What it would have answered before it had seen all: where, the answer, its probability; mostly nothing."""
        return self.full_answer.on_the_way

    @property
    def picture(self) -> Picture:
        """The picture that was looked at; a DataError where it was something else."""
        if not isinstance(self.source, Picture):
            raise DataError(f"'{self.source.name}' is no picture: there is nothing to draw on; see filmstrip()")
        return self.source

    def map(self, look: str = "total") -> npt.NDArray[np.float32]:
        """A look (or the total) on the picture's pixels as an array (H,W); (T,H,W) for a look with steps."""
        laid = self.total_map if look == "total" else self.trace.image_map(look)[0]
        return laid.float().numpy()

    def overlay(
        self, look: str = "total", *, colormap: str | None = None, alpha: float | None = None, **options: Any
    ) -> Image.Image:
        """The picture with a look (or the total) over it; options as in :func:`saccade.show.overlay.overlay`.

        The total of several crops is nested frames (:func:`saccade.show.acts.nested_crops`). Where no look lies
        on a place, as for masks of channels, the total is the picture alone.
        """
        from saccade.show.acts import nested_crops
        from saccade.show.colours import by_own_ends
        from saccade.show.overlay import overlay

        image = self.picture.image
        if look == "total" and not self.has_places:
            return image.convert("RGB")
        if look == "total" and self.trace.is_nested:
            hidden = {} if alpha is None else {"opacity": alpha}
            return nested_crops(image, self.trace, **{"captions": self._said_at(), **hidden, **options})
        attention = self.total_map if look == "total" else self.trace.image_map(look)[0]  # (H,W) or (T,H,W)
        flat = attention if attention.dim() == 2 else attention.mean(0)  # (H,W)
        shown = self.trace.looks_of_total if look == "total" else (self.trace.look(look),)
        base = shown[0].base if look != "total" else 0.0  # the total has it already
        scaled = by_own_ends(flat, base=base) if all(act.base for act in shown) else flat
        return overlay(image, scaled, colormap=colormap, alpha=alpha, **options)

    def filmstrip(self, **options: Any) -> Image.Image:
        """Every look side by side: options as in :func:`saccade.show.filmstrip.filmstrip`.

        Looks over slots are a table (:func:`saccade.show.slot_table.slot_table`). What was read label by label is shown
        so (``glimpse_strip``), and a caption word by word (``word_strip``).
        """
        from saccade.show.filmstrip import filmstrip, glimpse_strip, has_glimpses, word_strip

        if not self.is_spatial:
            from saccade.show.slot_table import slot_table

            answer = f"{self.answer} ({self.confidence:.0%})"
            texts: dict[str, Any] = {"question": self.question or "", "answer": answer, "supporting": self.supporting}
            return slot_table(self.trace, self.slots, **{**texts, **options})
        if not self.has_places:
            return self.overlay()
        if self.is_caption:
            texts = {"words": self.labels or (), "answer": self.answer}
            return word_strip(self.picture.image, self.trace, **{**texts, **options})
        answer = f"{self.answer} ({self.confidence:.0%})" if self.is_answered else ""
        if has_glimpses(self.trace):
            texts = {"labels": self.labels or (), "answer": answer}
            return glimpse_strip(self.picture.image, self.trace, **{**texts, **options})
        texts = {"question": self.question or "", "answer": answer}
        captions = {name: f"{name}: {text}" for name, text in self._said_at().items()}
        titles: dict[str, Any] = {"captions": captions} if captions else {}
        if apart := [f"{name}: {text} ({share:.0%})" for name, text, share in self.on_the_way if name not in captions]:
            titles["whole"] = "; ".join(apart)  # what was said before anything was cut out of the picture
        return filmstrip(self.picture.image, self.trace, **{**texts, **titles, **options})

    def _said_at(self) -> dict[str, str]:
        names = {look.name for look in self.trace.looks}
        return {name: f"{answer} ({share:.0%})" for name, answer, share in self.on_the_way if name in names}

    @property
    def is_spatial(self) -> bool:
        """Whether it looked at a picture; else at slots, such as the sentences of a story."""
        return self.source.image is not None

    @property
    def has_places(self) -> bool:
        """Whether a look lies on places of the picture; masks of channels do not."""
        return self.is_spatial and bool(self.trace.looks_of_total)

    @property
    def slots(self) -> list[str]:
        """The texts that a look over slots lies on, or their numbers; slots after them are empty."""
        texts = self.trace.meta.get("slots")
        weights = self.trace.looks[-1].weights if self.trace.looks else None
        count = 0 if weights is None else weights.shape[-1]
        return list(texts) if texts else [str(number + 1) for number in range(count)]

    @property
    def supporting(self) -> tuple[int, ...]:
        """Numbers of the slots that the answer needs, where that is known."""
        return tuple(self.trace.meta.get("supporting", ()))

    @property
    def slot_grid(self) -> SlotGrid:
        """Every look over slots as one table: a row for each slot, a column for each step."""
        from saccade.show.slot_table import slot_grid

        return slot_grid(self.trace, self.slots, self.supporting)

    @property
    def top_slot(self) -> str | None:
        """The text with the most weight in the last step of a look over slots; None where it looked at a picture.

        A step that chose a slot of the model's own, such as the end of its passes, is skipped if there is another.
        """
        if self.is_spatial or not self.trace.looks:
            return None
        count = len(self.slots)
        own_slots = range(count - int(self.trace.meta.get("own_slots", 0)), count)
        grid = self.slot_grid
        chosen: list[int] = grid.weights.argmax(0).tolist()  # (T,); the last row may be that of empty slots
        return grid.texts[next((row for row in reversed(chosen) if row not in own_slots), chosen[-1])]

    @cached_property
    def total_map(self) -> Tensor:
        """All looks together on the picture's pixels (H,W); projected once."""
        return self.trace.image_map()[0]

    @property
    def peak(self) -> tuple[int, int]:
        """(x, y) of the picture's pixel with the most weight in total; of equal ones, the nearest to the middle.

        Edge cells extend to the border, so a peak there is a plateau; its inner end, the centre of the cell, counts. Of
        several crops it is the middle of the last.
        """
        if not self.is_spatial:
            raise DataError(f"{self.source.name} is no picture: it has no peak; see slot_grid and top_slot")
        if not self.trace.is_nested:
            return geometry.peak(self.total_map)
        look, (height, width) = self.trace.looks[-1], self.picture.size
        rows, columns = look.grid or (1, 1)
        frame = self.trace.frame_on(look, (height, width)).reshape(2, 3)
        x, y = geometry.apply(frame, torch.tensor([columns / 2, rows / 2], dtype=torch.float64)).floor().long().tolist()
        return min(max(x, 0), width - 1), min(max(y, 0), height - 1)

    @property
    def looked_at(self) -> list[tuple[int, int]]:
        """(x, y) of the pixels to name in a few words: the last glimpse before each label, or the :attr:`peak`."""
        if not self.has_places:
            return []
        return [spots[-1] for spots in self.glimpses()] or [self.peak]

    @property
    def is_even(self) -> bool:
        """Whether the total map is about the same everywhere, so that its :attr:`peak` is a matter of chance."""
        return (
            self.has_places and not self.trace.is_nested and bool(self.total_map.max() < EVEN * self.total_map.mean())
        )

    def glimpses(self) -> list[list[tuple[int, int]]]:
        """For each label that was read: the pixels (x, y) that the model glimpsed before it named the label.

        Of a glimpse beside the picture, on the border that made it fit the network, the nearest pixel.
        """
        look = next((look for look in self.trace.looks if look.is_spatial and look.role == "policy"), None)
        labels = self.trace.answer
        if not self.labels or self.is_caption or look is None or look.choice is None or labels is None:
            return []
        height, width = self.picture.size
        points = self.trace.chosen_on(look)[0].floor().long()  # (T·k,2)
        spots = [(min(max(x, 0), width - 1), min(max(y, 0), height - 1)) for x, y in points.tolist()]
        per_label = len(spots) // labels.shape[-1]  # glimpses of one label
        return [spots[step * per_label : (step + 1) * per_label] for step in range(len(self.labels))]

    @property
    def is_caption(self) -> bool:
        """Whether the answer is a sentence."""
        return self.full_answer.kind == "sentence"

    def words(self) -> list[dict[str, object]]:
        """For each word of a sentence: its log-probability, the gate β, the peak weight and its pixel (x, y).

        The last three where a look has a step for each word, and lies on a picture.
        """
        look = next((look for look in self.trace.looks if look.is_spatial and look.emits is not None), None)
        entries = []
        for step, (word, share) in enumerate(self.labels or ()):
            entry: dict[str, Any] = {"word": word}
            entry |= {"log_probability": round(math.log(share), 6)} if share > 0 else {}
            if look is None:
                entries.append(entry)
                continue
            act = look.step(step)
            entry |= {} if act.gain is None else {"gate": round(float(act.gain), 6)}
            entry |= {} if act.weights is None else {"peak_weight": round(float(act.weights.max()), 6)}
            entries.append({**entry, "peak": list(geometry.peak(self.trace.image_map(act)[0]))})
        return entries

    def to_json(self) -> dict[str, object]:
        """The answer and what belongs to it as plain values."""
        values: dict[str, Any] = {"model": self.model}
        name = self.source.name
        values |= {"picture": name, "size": list(self.picture.size)} if self.is_spatial else {"source": name}
        values |= {"question": self.question, "answer": self.answer if self.is_answered else None}
        if self.is_caption:
            if self.log_probability is not None:
                values["log_probability"] = round(self.log_probability, 6)
            values["words"] = self.words()
            if self.others:
                values["other_captions"] = [other.to_json() for other in self.others]
        elif self.labels is not None:
            values["labels"] = [[word, round(share, 6)] for word, share in self.labels]
            values["glimpses"] = [[list(spot) for spot in spots] for spots in self.glimpses()]
        values["confidence"] = round(self.confidence, 6) if self.is_answered else None
        if self.is_answered:
            values["calibrated"] = self.full_answer.is_calibrated
        if self.is_answered and self.full_answer.is_calibrated:
            values["raw_confidence"] = round(self.full_answer.raw_confidence, 6)
        values["fit"] = self.fit.to_json()
        values["alternatives"] = [[word, round(share, 6)] for word, share in self.alternatives]
        if self.on_the_way:
            steps = [{"at": at, "answer": word, "confidence": round(share, 6)} for at, word, share in self.on_the_way]
            values["on_the_way"] = steps
        if self.has_places:
            values["peak"] = list(self.peak)
        elif not self.is_spatial:
            values["slots"] = self.slots
            if self.supporting:
                values["supporting"] = list(self.supporting)
        values["looks"] = [
            {"name": look.name, "kind": look.kind, "role": look.role, **self._slot_weights(look)}
            for look in self.trace.looks
        ]
        values["notes"] = list(self.notes)
        return values

    def _slot_weights(self, look: Look) -> dict[str, object]:
        """For a look over slots: its weight on each text, and the sum on empty slots; with steps, a list of each."""
        if look.is_spatial or look.weights is None:
            return {}
        weights, many = look.weights[0].double().round(decimals=6), len(self.slots)  # (S,) or (T,S)
        empty = look.weights[0].double()[..., many:].sum(-1).round(decimals=6)
        values = {"weights": weights[..., :many].tolist(), "on_empty_slots": empty.tolist()}
        return values | ({} if look.active is None else {"active": look.active[0].tolist()})

    def record(self) -> Record:
        """The sighting as a record, which reports and the page read."""
        from saccade.record import Record

        return Record(self.trace, self.to_json(), self.source.image)

    @property
    def stem(self) -> str:
        """The name of its files: picture and question, then ``-edited`` where attention was given to the model."""
        question = "" if self.question is None else f"-ask-{self.question.strip(' ?!.')}"
        stem = re.sub(r"[^\w.-]+", "_", f"{self.source.stem}{question}").strip(".")[:_LONGEST_STEM] or "look"
        return f"{stem}-edited" if self.trace.meta.get("given") else stem

    def save(
        self, folder: Path | str, stem: str | None = None, *, filmstrip: bool | None = None, cells: bool = False
    ) -> list[Path]:
        """Write ``STEM.png`` (overlay or filmstrip), ``STEM.json`` and ``STEM.safetensors`` (the record).

        Further captions follow as ``STEM-caption-2`` and so on. ``save("x.png")`` writes that one picture alone.

        Args:
            folder: made if it is not there; or the name of a picture file (.png, .jpg, .webp).
            stem: what the files are called; by default :attr:`stem`.
            filmstrip: every look side by side instead of the total over the picture; None: for what was said label by
                label or word by word, for masks that only add, whose total says little, and for nested crops.
            cells: paint the cells of a filmstrip flat instead of smooth; the total has none.
        """
        from saccade.record import write_record
        from saccade.show.overlay import png_bytes

        kind = _FORMATS.get(Path(folder).suffix.lower())
        if stem is None and kind is not None and not Path(folder).is_dir():
            stream = io.BytesIO()
            self._shown(filmstrip, cells).convert("RGB").save(stream, format=kind)
            return [write_bytes(Path(folder), stream.getvalue())]
        place = Path(folder) / (stem or self.stem)
        shown = place.with_name(f"{place.name}.png")
        image = png_bytes(self._shown(filmstrip, cells))
        record = write_record(place, self.record())
        written = [write_bytes(shown, image), record, place.with_name(f"{place.name}.safetensors")]
        for number, other in enumerate(self.others, start=2):
            written += other.save(folder, f"{place.name}-caption-{number}", filmstrip=filmstrip, cells=cells)
        return written

    def _shown(self, filmstrip: bool | None = None, cells: bool = False) -> Image.Image:
        is_strip = self._is_strip if filmstrip is None else filmstrip
        if cells and not is_strip:
            raise DataError("cells: the total of all looks has none; they are painted in a filmstrip alone")
        painted = {"cells": cells} if self.is_spatial else {}
        return self.filmstrip(**painted) if is_strip else self.overlay()

    @property
    def _is_strip(self) -> bool:
        adds = self.has_places and any(look.base for look in self.trace.looks_of_total)
        return self.labels is not None or not self.is_spatial or adds or self.trace.is_nested

    def __repr__(self) -> str:
        question = "" if self.question is None else f", ask {self.question[:_SHOWN]}"
        name = self.source.name
        name = name if len(name) <= _SHOWN else f"…{name[-_SHOWN:]}"
        answer = self.answer if len(self.answer) <= _SHOWN else f"{self.answer[:_SHOWN]}…"
        outcome = f"{answer}, {self.confidence:.2f}" if self.is_answered else "no answer"
        return f"Sighting({name}{question}: {outcome})"

    def _repr_html_(self) -> str:
        from saccade.show.overlay import data_url, png_bytes
        from saccade.show.report import render

        if not self.is_spatial:
            return render("sighting.html", seen=self, picture="", room="")
        shown = self._shown()
        if not self._is_strip:
            shown.thumbnail((_INLINE, _INLINE))  # a photograph at full size would swell the notebook by megabytes
        room = "100%" if self._is_strip else "400px"
        return render("sighting.html", seen=self, picture=data_url(png_bytes(shown)), room=room)
