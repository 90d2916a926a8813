"""The page and its server know no family: what they show of one, the family says, and anybody may add one."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from other_families import Tales, lines

from saccade.errors import ConfigError
from saccade.families import families
from saccade.models.facts import Preprocessing, read_facts
from saccade.web.page import page_entry
from saccade.zoo import shipped
from tiny_models import save_tiny, tiny_facts


def test_models_that_ship_say_how_they_are_asked() -> None:
    facts = {name: read_facts(folder) for name, folder in shipped().items()}
    told = {name: page_entry(each) for name, each in facts.items()}
    asked = {name for name, entry in told.items() if entry.asks == "choice"}
    assert asked == {name for name, each in facts.items() if each.queries}
    seeing = {name for name, each in facts.items() if each.preprocessing is not None}
    assert {told[name].asks for name in seeing - asked} == {"none"}
    assert {(told[name].reads, told[name].takes, told[name].panel) for name in seeing} == {("picture", "picture", None)}
    assert {told[name].takes for name in told.keys() - seeing} <= {"json"}  # or nobody could ask them here
    prompted = {name for name, entry in told.items() if entry.prompt is not None}
    assert prompted == asked  # all of them are asked for colours
    assert told["soft-mref"].prompt == "What colour is the …"


def test_a_family_that_is_not_installed_is_named() -> None:
    with pytest.raises(ConfigError, match="no family 'gone'"):
        page_entry(tiny_facts(family="gone", architecture="gone-1"))


@pytest.fixture
def model_of_lines(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Callable[..., Path]:
    """A model of the family "lines", made with the given changes of the family."""

    def made(**changes: Any) -> Path:
        monkeypatch.setitem(families(), "lines", lines(tmp_path, **changes))
        size = Preprocessing((34, 34))  # a page without a server shows its models square pictures
        return save_tiny(tmp_path / "m", name="liner", family="lines", architecture="line-soft", preprocessing=size)

    return made


@pytest.mark.web
def test_the_server_gives_declared_panels_and_nothing_else(model_of_lines: Callable[..., Path], tmp_path: Path) -> None:
    from live_server import serving

    folder = model_of_lines()
    (tmp_path / "secret.js").write_text("// export function panel(place) {}", encoding="utf-8")
    with serving(folder) as server:
        (entry,) = server.get("/api/models").json["models"]
        assert entry["panel"] == "families/lines/panel.js"
        reply = server.get(f"/{entry['panel']}")
        assert reply.body == (tmp_path / "panel.js").read_bytes()
        assert reply.headers["content-type"] == "text/javascript; charset=utf-8"
        assert "script-src 'self'" in reply.headers["content-security-policy"]
        assert server.get("/families/question/panel.js").code == "unknown_panel"
        assert server.get("/families/nobody/panel.js").code == "unknown_panel"
        for path in ("/families/lines/secret.js", "/families/lines/../lines/secret.js", "/families/lines/m/config.json",
                     "/families/..%2Flines/panel.js", "/families/lines/%2e%2e/panel.js", "/families/lines/",
                     "/families/lines/panel.js/..%2f..%2fsecret.js", "/families/%00/panel.js"):  # fmt: skip
            assert server.get(path).status == 404, path


@pytest.mark.web
def test_a_model_that_reads_no_pictures_is_listed_and_refused_in_words(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    from live_server import serving

    tales = lines(tmp_path, None, Tales, name="tales")
    monkeypatch.setitem(families(), "tales", tales)
    folder = save_tiny(tmp_path / "m", name="teller", family="tales", architecture="line-soft", preprocessing=None)
    with serving(folder) as server:
        (entry,) = server.get("/api/models").json["models"]
        assert (entry["family"], entry["reads"], entry["size"], entry["asks"]) == ("tales", "story", None, "choice")
        encoding = server.post("/api/scene", {"seed": 1}).json["encoding"]
        for path, body in (
            ("ask", {"model": "teller", "scene": {"seed": 1}, "question": "1"}),
            ("ask", {"model": "teller", "encoding": encoding, "question": "1"}),
            ("ask_all", {"model": "teller", "encoding": encoding}),
            ("encode", {"model": "teller", "picture": "data:image/png;base64,AAAA"}),
        ):
            reply = server.post(f"/api/{path}", body)
            assert (reply.status, reply.code) == (422, "reads_no_pictures")
            assert "'teller' does not read pictures; it reads: story" in reply.message
