"""The leaderboard of maps: models whose truth is known beforehand, rows by hand, records and tables."""

from __future__ import annotations

import dataclasses
import json
import math
from pathlib import Path

import pytest
import torch
from torch import Tensor, nn

import saccade.families.question.reproduction.board as verb
from saccade.data.scenes.drawing import COLOURS, rgb
from saccade.errors import ConfigError, DataError
from saccade.families.question.board.measuring import Board, Entrant
from saccade.families.question.board.methods import LAYERS, METHODS, OWN, ROLLOUT, maker
from saccade.families.question.board.rows import Row, summarised
from saccade.families.question.reproduction.board.recording import BoardRecord, recorded_boards, write_board
from saccade.families.question.reproduction.board.tables import (
    about_model,
    about_scene,
    board_tables,
    by_answer,
    planted_table,
)
from saccade.families.question.scenes.data import SceneData, SceneDataConfig
from saccade.models.base import QueryModel, Raw
from saccade.models.film import FilmModel
from saccade.models.hattnet import HAttNetModel
from saccade.models.io.facts import read_facts
from saccade.models.picture_query import PictureQueryConfig
from saccade.models.soft import SoftConfig, SoftModel
from saccade.models.vit import VitConfig, VitModel
from saccade.trace import Look
from saccade.verbs.reproduction.request import Request
from saccade.zoo import shipped

N = 30
PALETTE = rgb(torch.arange(len(COLOURS)), torch.zeros(len(COLOURS), dtype=torch.int64)).float() / 255  # (5,3)


class CornerReader(QueryModel):
    """Answers the colour of the picture's corner, and shows a map of the whole picture."""

    def __init__(self) -> None:
        super().__init__()
        self.anchor = nn.Parameter(torch.zeros(1))

    def encode(self, images: Tensor) -> Tensor:
        return images

    def ask(self, encoding: Tensor, query: Tensor) -> Raw:
        seen = encoding[:, :, 0, 0]  # (B,3)
        logits = 50 * (2 * seen @ PALETTE.T - PALETTE.square().sum(1))  # (B,5): the nearest colour
        return {"logits": logits, "cell.weights": torch.full((len(query), 5, 5), 0.04)}

    def looks(self, raw: Raw) -> tuple[Look, ...]:
        frame = torch.tensor([[20.0, 0.0, 0.0], [0.0, 20.0, 0.0]], dtype=torch.float64)
        return (Look("cell", "soft", "multiplier", raw["cell.weights"], norm="softmax", frame=frame),)


def measured(planted: str, entrants: list[Entrant], count: int = N) -> Board:
    board = Board(entrants, SceneData(SceneDataConfig(glyphs="pack", planted=planted), "test"))
    board.measure(count)
    return board


def entrant(model: QueryModel, *methods: str, label: str = "model") -> Entrant:
    return Entrant(label, model.eval(), methods, {"from": "a test"})


def as_record(board: Board, planted: str = "none") -> BoardRecord:
    return BoardRecord(
        data="mref",
        planted=planted,
        split="test",
        n=N,
        seed=0,
        glyphs="pack",
        backgrounds="black",
        machine="a test",
        command="none",
        seconds=1.0,
        **board.record(),
    )


@pytest.fixture(scope="module")
def corner() -> BoardRecord:
    return as_record(measured("corner", [entrant(CornerReader(), OWN, "gradxinput")]), "corner")


def scores(record: BoardRecord, model: str, method: str) -> dict[str, float]:
    row = record.row(model, method)
    assert row is not None
    return row["scores"]


def test_on_a_planted_cause_the_digit_asked_for_loses_and_the_cause_wins(corner: BoardRecord) -> None:
    target, cause = (scores(corner, "no model", name) for name in ("the digit asked for", "the planted cause"))
    assert (target["cause_top"], target["misplaced"]) == (0.0, 1.0)
    assert (cause["cause_top"], cause["cause_pairs"], cause["misplaced"]) == (1.0, 1.0, 0.0)
    one = pytest.approx(1.0, abs=1e-5)
    assert (target["map_follow"], target["map_turn"]) == (one, one)  # and about the scene it is the other way round
    assert (cause["map_follow"], cause["map_turn"]) == (0.0, 0.0)


def test_gradients_of_what_reads_the_corner_lie_there(corner: BoardRecord) -> None:
    found = scores(corner, "model", "gradxinput")
    assert found["cause_top"] == 1.0
    assert found["misplaced"] == 0.0
    assert corner.models["model"]["accuracy"] == 1.0


def test_rivals_that_know_nothing_are_at_chance(corner: BoardRecord) -> None:
    for method in ("uniform", "centre", "frozen noise"):
        found = scores(corner, "no model", method)
        assert found["map_follow"] == pytest.approx(0, abs=1e-6)
        assert found["map_turn"] == pytest.approx(0, abs=1e-6)
        assert (found["map_specific"], found["map_hold"]) == (0.5, pytest.approx(1.0))
    noise = scores(corner, "no model", "noise")
    assert abs(noise["map_follow"]) < 0.01
    assert abs(noise["map_turn"]) < 0.01
    assert 0.3 < noise["map_specific"] < 0.7
    assert scores(corner, "no model", "all digits")["map_turn"] == 0.0


def test_weights_that_nothing_has_taught_are_at_chance() -> None:
    torch.manual_seed(0)
    record = as_record(measured("none", [entrant(SoftModel(SoftConfig(channels=8)), OWN)], 24))
    found = scores(record, "model", OWN)
    assert abs(found["map_follow"]) < 0.02
    assert abs(found["map_turn"]) < 0.02
    assert scores(record, "no model", "the digit asked for")["map_follow"] == pytest.approx(1.0, abs=1e-5)


def test_maps_of_every_method_on_every_kind_of_model() -> None:
    torch.manual_seed(0)
    images, query = torch.rand(3, 3, 100, 100), torch.tensor([1, 1, 7])
    small = {"channels": 8, "dropout": 0.0}
    models: list[QueryModel] = [
        SoftModel(SoftConfig(**small)),
        FilmModel(PictureQueryConfig(**small)),
        HAttNetModel(HAttNetModel.Config(**small)),
        VitModel(VitConfig(**small, width=16, heads=2, layers=4)),
    ]
    for model in models:
        model.eval()
        for method in METHODS:
            if method == "occlusion" or (method in (ROLLOUT, *LAYERS) and not isinstance(model, VitModel)):
                continue
            made = maker(method, model)(images, query)
            assert made.shape == (3, 100, 100), method
            assert made.isfinite().all()
            assert (made >= 0).all()
            assert not made.requires_grad
            again = maker(method, model)(images[1:], query[1:])
            torch.testing.assert_close(made[1:], again, atol=1e-5, rtol=1e-3)  # no picture knows of another
    with pytest.raises(ConfigError, match="has none"):
        maker(ROLLOUT, models[0])
    with pytest.raises(ConfigError, match="no method 'own2'"):
        maker("own2", models[0])


def filled(name: str, values: Tensor, right: Tensor | None = None, start: int = 0) -> Row:
    row = Row(name, "own", "map")
    numbers = torch.arange(start, start + len(values))
    is_right = torch.ones(len(values), dtype=torch.bool) if right is None else right
    row.add(
        {"map_turn": values, "misplaced": 1 - values},
        question=numbers,
        scene=numbers // 2,
        right=is_right,
        empty=torch.zeros(len(values), dtype=torch.bool),
    )
    return row


def test_halves_and_right_answers_by_hand() -> None:
    """Eight questions, two a scene: halves are the scenes 0, 2 and 1, 3; the last three answers are wrong."""
    values = torch.tensor([0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8])
    told = filled("a", values, torch.arange(8) < 5).summary()
    parts = {name: part["map_turn"] for name, part in told["parts"].items()}
    assert parts == pytest.approx({"first_half": 0.35, "second_half": 0.55, "right": 0.3, "wrong": 0.7})
    assert (told["parts"]["wrong"]["n"], told["scenes"], told["n"]) == (3, 4, 8)


def test_the_leader_is_compared_on_the_questions_that_both_have() -> None:
    torch.manual_seed(0)
    best = 0.8 + 0.1 * torch.rand(40)
    rows = [filled("best", best), filled("same", best[10:] - 1e-3 * torch.rand(30).sub(0.5), start=10)]
    rows += [filled("worse", best - 0.3 + 0.1 * torch.rand(40)), filled("worst", torch.rand(40) * 0.2)]
    told = summarised(rows)
    found = told["comparisons"]["map_turn"]
    assert found["leader"] in ("best: own", "same: own")
    others = {each["row"]: each for each in found["others"]}
    assert others["worse: own"]["p_holm"] < 1e-6
    assert others["worse: own"]["difference"] > 0.2
    assert all(each["p_holm"] >= each["p"] for each in others.values())
    assert told["comparisons"]["misplaced"]["leader"] == found["leader"]  # less is better there
    assert told["kendall_tau"]["map_turn"] > 0.6


def test_swept_values_of_fewer_questions_are_no_others() -> None:
    row = filled("a", torch.arange(4.0))
    row.values.add_values({"deletion": torch.tensor([0.5, 0.75])})
    assert row.of("deletion")[:2].tolist() == [0.5, 0.75]
    assert all(math.isnan(value) for value in row.of("deletion")[2:].tolist())


def test_a_record_is_read_as_it_was_written(corner: BoardRecord, tmp_path: Path) -> None:
    path = write_board(corner, tmp_path / "board")
    assert path.name == "mref-corner.json"
    (again,) = recorded_boards(tmp_path)
    assert again.name == "mref-corner"
    assert scores(again, "no model", "the planted cause") == pytest.approx(
        scores(corner, "no model", "the planted cause")
    )
    path.write_text(json.dumps({"data": "mref"}))
    with pytest.raises(DataError, match="no board of maps"):
        recorded_boards(tmp_path)


def test_tables_keep_the_two_questions_apart(corner: BoardRecord) -> None:
    plain = dataclasses.replace(corner, planted="none")
    scene, model = about_scene(plain), about_model(plain)
    assert scene.columns[2:6] == ["follow", "turn", "specific", "hold"]
    assert model.columns[2:5] == ["top cause", "pairs", "misplaced ↓"]
    assert not set(scene.columns[2:-1]) & set(model.columns[2:-1])
    assert "Grad-CAM" not in model.note  # no such row here
    fewer = [{**row, "counts": {**row["counts"], "map_follow": 3, "misplaced": 2}} for row in plain.rows]
    told = [make(dataclasses.replace(plain, rows=fewer)) for make in (about_scene, about_model)]
    assert [table.rows[0][-1] for table in told] == [f"3–{N}", f"2–{N}"]
    assert "follow 3," in told[0].note
    assert "misplaced 2," in told[1].note
    assert len(by_answer(plain).rows) == 2
    planted = planted_table([corner])
    named = {row[2]: row[3] for row in planted.rows}
    assert (named["the digit asked for"], named["the planted cause"]) == ("0.0", "100.0")
    assert [table.title.split(",")[0] for table in board_tables([plain, corner])][-1].startswith("planted causes")


def test_the_verb_prints_the_records(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, corner: BoardRecord) -> None:
    """What is measured here is another test's: it stands in for a board of one model."""
    plain = dataclasses.replace(corner, planted="none")
    asked = []

    def measure(name: str, **settings: object) -> BoardRecord:
        asked.append((name, settings["count"], settings["methods"], settings["untaught"]))
        return plain

    monkeypatch.setattr(verb, "recorded_boards", lambda: [plain, corner])
    monkeypatch.setattr(verb, "measure_board", measure)
    found = verb.reproduce(Request("causal-benchmark", data=["mref"], quick=True, folder=tmp_path))
    assert [table.title.partition(",")[0] for table in found.tables] == [
        "about the scene",
        "about the model",
        "right and wrong answers apart",
        "planted causes: models of which it is known what they use",
        "checked on this machine",
    ]
    assert asked == [("mref", verb.QUICK, (OWN,), False)]
    assert found.confirmed[0]["here"] == found.confirmed[0]["recorded"]
    assert "the planted cause" in (tmp_path / "report.html").read_text()
    with pytest.raises(ConfigError, match="trains nothing"):
        verb.reproduce(Request("causal-benchmark", train=True))
    with pytest.raises(ConfigError, match="data 'mrf'"):
        verb.reproduce(Request("causal-benchmark", data=["mrf"]))


def test_every_record_holds_what_the_tables_say() -> None:
    """On recorded planted causes the digit asked for loses, and the planted cause wins over it."""
    boards = {board.planted: board for board in recorded_boards() if board.planted != "none"}
    for planted in ("corner", "largest"):
        target, cause = (
            scores(boards[planted], "no model", f"the {who}") for who in ("digit asked for", "planted cause")
        )
        assert target["cause_top"] < 0.2 < 0.9 < cause["cause_top"]
        assert cause["misplaced"] < 0.05 < 0.7 < target["misplaced"]


def test_rows_of_weights_that_ship_no_more_are_told(corner: BoardRecord) -> None:
    """Only a shipped model can be outdated: a run that is not shipped stays what it was."""
    ships = read_facts(shipped()["soft-mref"]).sha256
    models = {
        "SOFT": {"from": "soft-mref", "sha256": "0" * 64},
        "HARD": {"from": "soft-mref", "sha256": ships},
        "ViT": {"from": "vit-mref", "sha256": "0" * 64},
        "SOFT, random": {"from": "soft-mref, its weights drawn anew, seed 0"},
    }
    record = dataclasses.replace(corner, models=models)
    assert record.outdated == ("SOFT",)
    assert "not measured again here: SOFT;" in about_scene(record).note
    assert "measured again" not in about_scene(dataclasses.replace(corner, models={})).note
