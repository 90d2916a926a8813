"""What may be sent to the server and what comes back, as versioned schemas, from which OpenAPI is written; and errors.

An error is ``{"error": {"code", "message"}}``. A status in the 400s is the sender's mistake; 500 is a fault of saccade.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field
from starlette.responses import JSONResponse, Response

from saccade.data.scenes.drawing import COLOURS
from saccade.data.scenes.glyphs import CLASSES
from saccade.errors import SaccadeError
from saccade.families.page import CANVAS
from saccade.trace import AnswerKind
from saccade.web.page import PageEntry


class ApiError(SaccadeError):
    """A request that is refused, with the status and a word that a script can act on."""

    def __init__(self, status: int, code: str, message: str) -> None:
        self.status, self.code = status, code
        super().__init__(message)


class PlainJson(JSONResponse):
    """JSON in ASCII, in which a lone surrogate, which UTF-8 cannot hold, passes as its escape."""

    def render(self, content: object) -> bytes:
        """The bytes of ``content``."""
        return json.dumps(content, allow_nan=False, separators=(",", ":")).encode("ascii")


def error_response(status: int, code: str, message: str, headers: Mapping[str, str] | None = None) -> Response:
    """The one form that every error has."""
    body = {"error": {"code": code, "message": " ".join(message.split())}}
    return PlainJson(body, status, headers=dict(headers or {}))


LEAST, MOST = 7, CANVAS  # Sides of a digit's box in pixels.
DIGITS = 24  # Digits in a scene at most.

Id = Annotated[str, Field(pattern=r"^[A-Za-z0-9_-]{1,64}$")]
ModelName = Annotated[str, Field(min_length=1, max_length=200)]
LookName = Annotated[str, Field(min_length=1, max_length=60)]
Weight = Annotated[float, Field(ge=0, le=1e6, allow_inf_nan=False)]
CELLS = 16_384  # Weights of one edited look at most.
LOOKS = 16  # Edited looks of one question at most.
Asked = Annotated[str, Field(max_length=200)] | Annotated[int, Field(ge=0, lt=1 << 31)]
DataUrl = Annotated[str, Field(description="the picture as data:image/…;base64,…", min_length=1)]


class _Strict(BaseModel):
    """A request: unknown keys are a mistake, and numbers are numbers."""

    model_config = ConfigDict(extra="forbid", strict=True)


class Digit(_Strict):
    """One digit of a scene."""

    digit: int = Field(ge=0, lt=CLASSES)
    x: int = Field(description="left edge of its box in pixels", ge=0, lt=CANVAS)
    y: int = Field(description="top edge", ge=0, lt=CANVAS)
    size: int = Field(description="side of its box in pixels", ge=LEAST, le=MOST)
    colour: Literal["green", "yellow", "white", "red", "blue"]
    glyph: int = Field(0, description="which of the handwritten ones of this digit", ge=0, lt=200)
    noise: int = Field(0, description="added to all channels of the colour", ge=-60, le=60)


class Scene(_Strict):
    """A scene to render; the later digit lies in front."""

    digits: list[Digit] | None = Field(
        None, description="none: those the generator draws for the seed", max_length=DIGITS
    )
    background: str = Field("black", description="black, distractors, clutter or photo:NAME", max_length=60)
    seed: int = Field(0, description="of the background, and of the digits where none are given", ge=0, lt=1 << 31)


class Upload(_Strict):
    """A picture to look at."""

    picture: DataUrl
    name: str = Field("picture", max_length=400)
    model: ModelName | None = Field(None, description="encode it for this model at once")


class Questions(_Strict):
    """Every question that a model knows, about one encoded picture or scene."""

    model: ModelName
    encoding: Id | None = None
    scene: Scene | None = None


class SingleQuestion(Questions):
    """One question about them."""

    question: Asked | None = Field(None, description="null for a model that says by itself what it sees")
    picture: bool = Field(True, description="whether the view carries the picture")


class Question(SingleQuestion):
    """A question about an encoded picture, a scene or another input; the model says which questions it knows."""

    input: Any = Field(None, description="what a model reads that takes JSON, such as a list of sentences")


class EditedQuestion(SingleQuestion):
    """A question that is answered with edited attention: the named looks get these weights."""

    attention: dict[LookName, Annotated[list[Weight], Field(min_length=1, max_length=CELLS)]] = Field(
        description="weights of each edited look, row by row; the model computes the later looks that are not named",
        min_length=1,
        max_length=LOOKS,
    )


class ErrorBody(BaseModel):
    """The body of every error."""

    error: dict[Literal["code", "message"], str]


class ScoreEntry(BaseModel):
    """A model's headline number."""

    metric: str
    value: float
    data: str
    split: str
    n: int


@dataclass(frozen=True, kw_only=True)
class ModelEntry(PageEntry):
    """What can be asked of one model."""

    name: str
    score: ScoreEntry | None
    problem: str | None  # Why it cannot be asked here, once that is known.


class ModelList(BaseModel):
    """The models of this server."""

    schema_: Annotated[Literal["saccade.models/1"], Field(serialization_alias="schema")] = "saccade.models/1"
    models: list[ModelEntry]


class PictureEntry(BaseModel):
    """A picture as it is kept and drawn."""

    name: str
    width: int
    height: int
    png: str | None
    notes: list[str] = []


class Encoding(BaseModel):
    """A picture that can now be asked about."""

    schema_: Annotated[Literal["saccade.encoding/1"], Field(serialization_alias="schema")] = "saccade.encoding/1"
    encoding: str
    picture: PictureEntry


class DigitTruth(BaseModel):
    """Where one digit of a scene is."""

    digit: int
    colour: str
    box: tuple[int, int, int, int]
    mask_png: str


class RenderedScene(Encoding):
    """A scene as a picture that can be asked about, what it was made of, and where everything is."""

    schema_: Annotated[Literal["saccade.scene/1"], Field(serialization_alias="schema")] = "saccade.scene/1"  # type: ignore[assignment]  # another schema
    scene: Scene
    truth: list[DigitTruth]


class SceneMaterial(BaseModel):
    """What scenes can be made of."""

    schema_: Annotated[Literal["saccade.material/1"], Field(serialization_alias="schema")] = "saccade.material/1"
    canvas: int = CANVAS
    sizes: tuple[int, int] = (LEAST, MOST)
    digits: int = DIGITS
    colours: list[str] = list(COLOURS)
    backgrounds: list[str]
    glyphs: int = 200


class View(BaseModel):
    """``saccade.view/1``: an answer and everything there is to draw of it; see the module ``saccade.web.views``."""

    model_config = ConfigDict(extra="allow")
    schema_: Literal["saccade.view/1"] = Field(serialization_alias="schema")
    model: str
    family: str
    picture: dict[str, Any] | None = Field(description="null where the model read something else")
    question: str | None
    answer: str
    kind: AnswerKind = Field(description="one label, labels said one after the other, or the words of a sentence")
    confidence: float | None
    calibrated: bool = Field(False, description="whether confidences were put right by the model's temperature")
    fit: dict[str, Any] = Field({}, description="whether the input is like those that the model learned from")
    alternatives: list[tuple[str, float | None]]
    labels: list[tuple[str, float | None]] | None
    on_the_way: list[tuple[str, str, float | None]] = Field(
        default=[], description="what it would have answered before it had seen all: where, the answer, its share"
    )
    words: list[str] | None
    looks: list[dict[str, Any]]
    total: dict[str, Any] | None
    evidence: dict[str, Any] | None
    scores: dict[str, Any] | None
    notes: list[str] = Field(description="what was done to the input on the way in")
    editable: list[str] = Field([], description="looks whose weights /api/edit takes")
    edited: dict[str, Any] | None = Field(None, description="what was edited, and the answer without it")
    record: str | None = Field(None, description="by which it can be fetched again")


class Views(BaseModel):
    """An answer to every question, in the order of the model's."""

    schema_: Annotated[Literal["saccade.views/1"], Field(serialization_alias="schema")] = "saccade.views/1"
    views: list[View]
