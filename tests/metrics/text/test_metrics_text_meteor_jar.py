"""The protocol with METEOR's program, tried on a stand-in for Java; the real one is in test_metrics_captions.py."""

import math
import stat
import sys
import tempfile
from pathlib import Path

import pytest

from saccade.errors import ConfigError, DataError, MissingExtraError
from saccade.metrics import meteor_jar, meteor_missing


def stand_in(folder: Path, monkeypatch: pytest.MonkeyPatch, program: str = "print(0.25)") -> Path:
    """A ``java`` that keeps its arguments and files in ``folder`` and then runs ``program``; a jar for it."""
    jar = folder / "site" / "pycocoevalcap" / "meteor" / "meteor-1.5.jar"
    (jar.parent / "data").mkdir(parents=True)
    jar.write_bytes(b"not really")
    (jar.parent / "data" / "paraphrase-en.gz").write_bytes(b"nor this")
    monkeypatch.setenv("SACCADE_HOME", str(folder / "home"))
    java = folder / "bin" / "java"
    java.parent.mkdir()
    java.write_text(
        f"#!{sys.executable}\n"
        "import sys, shutil, time\n"
        f"said, known = sys.argv[5:7]\nshutil.copy(said, {str(folder)!r} + '/said')\n"
        f"shutil.copy(known, {str(folder)!r} + '/known')\n"
        f"open({str(folder)!r} + '/arguments', 'w').write(' '.join(sys.argv[1:]))\n"
        f"{program}\n"
    )
    java.chmod(java.stat().st_mode | stat.S_IXUSR)
    monkeypatch.setenv("PATH", str(java.parent))
    monkeypatch.syspath_prepend(str(folder / "site"))
    return jar


def lines(file: Path) -> list[str]:
    return file.read_text(encoding="utf-8").split("\n")[:-1]


def test_captions_go_line_by_line_and_references_are_made_equally_many(tmp_path, monkeypatch):
    jar = stand_in(tmp_path, monkeypatch)
    assert meteor_missing() is None
    assert meteor_jar(["a dog", "two  birds"], [("a dog runs",), ("birds", "two birds", "b")]) == 0.25
    assert lines(tmp_path / "said") == ["a dog", "two birds"]
    assert lines(tmp_path / "known") == ["a dog runs"] * 3 + ["birds", "two birds", "b"]
    arguments = (tmp_path / "arguments").read_text()
    assert f"-jar {jar} " in arguments
    assert arguments.endswith(f"-l en -norm -a {jar.parent}/data/paraphrase-en.gz -q -r 3")


def test_no_caption_can_break_the_lines(tmp_path, monkeypatch):
    stand_in(tmp_path, monkeypatch)
    odd = ["one\ntwo\r\nthree\u2028four\x85five", "a ||| b ||| EVAL", "", "café 日本 🐦", "half \ud800 pair"]
    meteor_jar(odd, [("x",)] * 5)
    assert lines(tmp_path / "said") == [
        "one two three four five", "a | | | b | | | eval", "", "café 日本", "half pair"
    ]  # fmt: skip


def test_nothing_is_left_behind(tmp_path, monkeypatch):
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(scratch))
    stand_in(tmp_path, monkeypatch, "sys.exit(3)")
    with pytest.raises(ConfigError):
        meteor_jar(["a"], [("a",)])
    assert list(scratch.iterdir()) == []


@pytest.mark.parametrize(
    ("program", "complaint"),
    [
        ("sys.stderr.write('loading\\nOutOfMemoryError: heap\\n'); sys.exit(1)", "exit code 1.*OutOfMemoryError: heap"),
        ("print(0.25); sys.exit(1)", "exit code 1"),
        ("print('Usage: java')", "exit code 0, it said 'Usage: java'"),
        ("print('NaN')", "it said 'NaN'"),
        ("pass", "it said 'nothing'"),
    ],
)
def test_a_program_that_fails_is_quoted(tmp_path, monkeypatch, program, complaint):
    stand_in(tmp_path, monkeypatch, program)
    with pytest.raises(ConfigError, match=complaint):
        meteor_jar(["a"], [("a",)])


def test_a_program_that_hangs_is_ended(tmp_path, monkeypatch):
    stand_in(tmp_path, monkeypatch, "time.sleep(60)")
    with pytest.raises(ConfigError, match=r"ended after 0\.3 s"):
        meteor_jar(["a"], [("a",)], timeout_seconds=0.3)


def test_what_is_missing_is_named(tmp_path, monkeypatch):
    stand_in(tmp_path, monkeypatch)
    monkeypatch.setenv("PATH", str(tmp_path / "nothing"))
    with pytest.raises(MissingExtraError, match="no 'java' on the PATH; install a Java runtime"):
        meteor_jar(["a"], [("a",)])
    (tmp_path / "site" / "pycocoevalcap" / "meteor" / "meteor-1.5.jar").unlink()
    why = meteor_missing() or ""
    assert "'saccade data get meteor' brings it" in why
    assert "pip install 'saccade-attention[meteor]'" in why
    with pytest.raises(MissingExtraError, match="it is not here"):
        meteor_jar([], [])


def test_what_was_fetched_comes_before_what_is_installed(tmp_path, monkeypatch):
    stand_in(tmp_path, monkeypatch)
    fetched = tmp_path / "home" / "meteor"
    fetched.mkdir(parents=True)
    (fetched / "meteor-1.5.jar").write_bytes(b"not really")
    meteor_jar(["a"], [("a",)])
    assert str(fetched) not in (tmp_path / "arguments").read_text()  # half a program is none
    (fetched / "paraphrase-en.gz").write_bytes(b"nor this")
    meteor_jar(["a"], [("a",)])
    arguments = (tmp_path / "arguments").read_text()
    assert f"-jar {fetched}/meteor-1.5.jar " in arguments
    assert f"-a {fetched}/paraphrase-en.gz " in arguments


def test_no_pictures_start_nothing(tmp_path, monkeypatch):
    stand_in(tmp_path, monkeypatch)
    assert math.isnan(meteor_jar([], []))
    assert not (tmp_path / "arguments").exists()
    with pytest.raises(DataError, match="captions"):
        meteor_jar(["a", "b"], [("a",)])
