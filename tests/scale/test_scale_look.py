"""Rows of many pictures on one machine: what they hold, from which sources, what is refused, and how a job goes on."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import fsspec
import numpy as np
import pyarrow.parquet
import pytest
import torch
from scale_pictures import assert_same_rows, folder_of, png, shard_of, table_of

from saccade import scale
from saccade.errors import ConfigError, DataError, MissingExtraError, OutputError
from saccade.predict import load
from saccade.scale import output, ray_engine, schema
from saccade.scale.job import Job, Member, Part
from saccade.scale.sources import parts_of
from saccade.scale.worker import Worker, digest_of
from tiny_models import save_tiny


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> str:
    return str(save_tiny(tmp_path_factory.mktemp("models") / "tiny"))


@pytest.fixture(scope="module")
def pictures(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return folder_of(tmp_path_factory.mktemp("pictures"), 7)


def rows_of(sources, model: str, out: Path | str, **options) -> list[dict]:
    scale.look(sources, model=model, ask=1, out=out, device="cpu", **options)
    return list(scale.read(out))


@pytest.fixture(scope="module")
def plain(model: str, pictures: Path, tmp_path_factory: pytest.TempPathFactory) -> list[dict]:
    """The rows of the seven pictures in parts of three."""
    return rows_of(pictures, model, tmp_path_factory.mktemp("plain") / "out", part=3, batch_size=2)


def test_a_row_says_what_the_predictor_says(model: str, pictures: Path, plain: list[dict]) -> None:
    assert [(row["part"], row["row"]) for row in plain] == [(n // 3, n % 3) for n in range(7)]
    predictor = load(model, "cpu")
    for row in plain:
        seen = predictor.look(row["source"], 1)
        assert row["answer"] == seen.answer
        assert row["confidence"] == pytest.approx(seen.confidence, abs=1e-6)
        assert [each["answer"] for each in row["alternatives"]] == [word for word, _ in seen.alternatives]
        assert (row["height"], row["width"], row["question"], row["error"]) == (20, 31, "1", None)
        assert row["name"] == Path(row["source"]).stem
        (told,) = row["maps"]
        expected = seen.trace.image_map("total", (20, 31))[0].numpy()
        np.testing.assert_allclose(scale.decode_map(told), expected, rtol=2e-3, atol=1e-6)
        y, x = np.unravel_index(scale.decode_map(told).argmax(), (20, 31))
        assert abs(row["peak_x"] - x) <= 1
        assert abs(row["peak_y"] - y) <= 1


def test_a_map_keeps_its_values_to_eleven_bits_and_small_ones_too() -> None:
    values = torch.rand(9, 4).numpy() * 1e-7 + np.eye(9, 4, dtype=np.float32) * 1e-4
    back = scale.decode_map(schema.encode_map(values))
    np.testing.assert_allclose(back, values, rtol=2**-11, atol=values.max() * 2**-24)
    assert scale.decode_map(schema.encode_map(np.zeros((2, 3), np.float32))).tolist() == [[0.0] * 3] * 2
    with pytest.raises(DataError, match="do not fit together"):
        scale.decode_map({**schema.encode_map(values), "height": 8})


def test_all_maps_of_a_model_with_crops_and_none(tmp_path: Path) -> None:
    folder_of(tmp_path / "in", 1)
    rows = rows_of(tmp_path / "in", "stn-mref", tmp_path / "all", maps="all")
    assert {each["look"] for each in rows[0]["maps"]} > {"total"}
    (box,) = rows[0]["boxes"]
    assert box["x0"] < box["x1"]
    assert box["y0"] < box["y1"]
    assert rows_of(tmp_path / "in", "stn-mref", tmp_path / "none", maps="none")[0]["maps"] == []


def test_every_file_has_the_version_and_the_counts_in_its_metadata(model: str, tmp_path: Path) -> None:
    folder_of(tmp_path / "in", 2)
    (tmp_path / "in" / "bad.png").write_bytes(b"nothing")
    rows_of(tmp_path / "in", model, tmp_path / "out")
    (file,) = (tmp_path / "out").glob("*.parquet")
    told = json.loads(pyarrow.parquet.read_metadata(file).metadata[b"saccade"])
    assert told == {"format": "saccade-looks", "schema_version": 1, "rows": 3, "errors": 1, "unlike": 0}
    schema.parse_metadata({b"saccade": json.dumps(told).encode()}, "x")
    with pytest.raises(DataError, match=r"version 2.*update saccade"):
        schema.parse_metadata({b"saccade": json.dumps({**told, "schema_version": 2}).encode()}, "x")
    with pytest.raises(DataError, match="no rows that"):
        schema.parse_metadata({}, "x")


def test_a_shard_a_table_and_a_store_give_the_rows_of_the_folder(
    model: str, pictures: Path, plain: list[dict], tmp_path: Path
) -> None:
    files = sorted(pictures.glob("*.png"))
    (tmp_path / "in").mkdir()
    shard_of(tmp_path / "in" / "a.tar", {file.name: file.read_bytes() for file in files[:3]})
    structs = [{"bytes": file.read_bytes(), "path": None} for file in files[3:6]]
    table_of(tmp_path / "in" / "b.parquet", "image", structs)
    shutil.copy(files[6], tmp_path / "in" / "c.png")
    rows = rows_of(tmp_path / "in", model, tmp_path / "out", batch_size=2)
    assert_same_rows(rows, plain, but=("source", "name"))
    assert [row["name"] for row in rows][2:5] == ["a.tar/002", "b.parquet/000000", "b.parquet/000001"]
    assert rows[0]["source"] == f"{tmp_path}/in/a.tar#000.png"
    store = fsspec.filesystem("memory")
    for file in sorted((tmp_path / "in").iterdir()):
        store.pipe_file(f"/scale-in/{file.name}", file.read_bytes())
    far = rows_of("memory://scale-in", model, "memory://scale-out", batch_size=2)
    assert_same_rows(far, rows, but=("source",))
    assert far[-1]["source"] == "memory://scale-in/c.png"


def test_a_column_of_paths_stays_in_its_folder(model: str, tmp_path: Path) -> None:
    folder_of(tmp_path / "in" / "files", 1)
    shutil.copy(tmp_path / "in" / "files" / "000.png", tmp_path / "outside.png")
    wanted = ["files/000.png", "../outside.png", str(tmp_path / "outside.png"), "https://x.y/z.png", None]
    table_of(tmp_path / "in" / "t.parquet", "file_name", wanted)
    rows = rows_of(tmp_path / "in" / "t.parquet", model, tmp_path / "out")
    assert [row["error"] is None for row in rows] == [True, False, False, False, False]
    assert "leaves the folder" in rows[1]["error"]
    assert "found nothing" in rows[4]["error"]


def test_files_of_the_same_name_in_different_folders_stay_apart(model: str, tmp_path: Path) -> None:
    sources = [folder_of(tmp_path / "x" / "a", 1), folder_of(tmp_path / "y" / "a", 1)]
    rows = rows_of([*sources, sources[0] / "000.png"], model, tmp_path / "out")
    assert [row["name"] for row in rows] == ["x/a/000", "y/a/000"]  # and the one that was named twice comes once


def test_a_bad_picture_is_a_row_with_an_error(model: str, plain: list[dict], pictures: Path, tmp_path: Path) -> None:
    shutil.copytree(pictures, tmp_path / "in")
    (tmp_path / "in" / "001x.png").write_bytes(png(1)[:40])
    (tmp_path / "in" / "001y.png").write_bytes(b"")
    rows = rows_of(tmp_path / "in", model, tmp_path / "out", batch_size=2, part=5)
    bad = [row for row in rows if row["error"]]
    assert [row["name"] for row in bad] == ["001x", "001y"]
    assert all(row["answer"] is None and str(tmp_path) in row["error"] for row in bad)
    good = [row for row in rows if not row["error"]]
    assert [(row["name"], row["answer"]) for row in good] == [(row["name"], row["answer"]) for row in plain]


def test_pictures_are_decoded_with_the_limits_of_untrusted_ones(
    model: str, pictures: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("saccade.data.pictures.reading.PIXEL_LIMIT", 100)
    rows = rows_of(pictures, model, tmp_path / "out")
    assert all("31×20 pixels are more than" in row["error"] for row in rows)


@pytest.mark.parametrize(("kept", "whole_ones"), [(5 * 512 + 100, 1), (4 * 512 + 100, 1), (-1, 3)])
def test_a_shard_that_is_cut_off_says_so_behind_what_was_whole(
    model: str, tmp_path: Path, kept: int, whole_ones: int
) -> None:
    """Cut in the second picture, in its header, and where only the end mark is missing."""
    flat = {f"{n}.png": png(n, (6, 6)) for n in range(3)}  # a header and a block each, and as much for its text
    data = shard_of(tmp_path / "a.tar", flat).read_bytes()
    (tmp_path / "a.tar").write_bytes(data[: 12 * 512 if kept < 0 else kept])
    rows = rows_of(tmp_path / "a.tar", model, tmp_path / "out")
    assert [bool(row["error"]) for row in rows] == [False] * whole_ones + [True]
    assert "cut off" in rows[-1]["error"]
    assert rows[-1]["source"] == str(tmp_path / "a.tar")


def test_a_damaged_table_and_one_without_pictures_are_rows_with_an_error(model: str, tmp_path: Path) -> None:
    folder_of(tmp_path / "in", 1)
    (tmp_path / "in" / "bad.parquet").write_bytes(b"PAR1")
    table_of(tmp_path / "in" / "none.parquet", "text", ["a"])
    rows = rows_of(tmp_path / "in", model, tmp_path / "out")
    assert rows[0]["error"] is None
    assert "damaged or no Parquet file" in rows[1]["error"]
    assert "no column of pictures, say which with `column`; found label, text" in rows[2]["error"]


def test_a_batch_that_does_not_fit_into_memory_is_one_line(
    model: str, pictures: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from saccade.models.soft import SoftModel

    def encode(*_):
        raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2 GiB")

    monkeypatch.setattr(SoftModel, "encode", encode)
    with pytest.raises(
        ConfigError, match=r"do not fit into memory .*take a smaller `batch_size`.*`resume=True` continues"
    ):
        rows_of(pictures, model, tmp_path / "out")
    assert not list((tmp_path / "out").glob("part-*"))
    with pytest.raises(DataError, match=r"unfinished .0 parts so far"):
        list(scale.read(tmp_path / "out"))


def test_a_job_that_ended_in_the_middle_goes_on(
    model: str, pictures: Path, plain: list[dict], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing is lost, nothing is there twice, and what was done is not done again."""
    out = tmp_path / "out"
    with monkeypatch.context() as patched:
        patched.setattr(output.Folder, "write", _dies_after(3, output.Folder.write))
        with pytest.raises(KeyboardInterrupt):
            rows_of(pictures, model, out, part=3, batch_size=2)
    (done,) = out.glob("part-000000-*")
    before = done.stat().st_mtime_ns
    looked = scale.look(pictures, model=model, ask=1, out=out, part=3, batch_size=2, device="cpu", resume=True)
    assert (looked.rows, looked.errors, looked.parts, looked.resumed) == (7, 0, 3, 1)
    assert done.stat().st_mtime_ns == before
    assert_same_rows(list(scale.read(out)), plain)


def _dies_after(many: int, write):
    calls = iter(range(many))

    def once(self, name: str, data: bytes) -> None:
        if next(calls, None) == many - 1:
            raise KeyboardInterrupt
        write(self, name, data)

    return once


def test_another_question_model_or_picture_is_not_mixed_in(tmp_path: Path) -> None:
    source, model = folder_of(tmp_path / "in", 2), str(save_tiny(tmp_path / "tiny"))
    rows_of(source, model, tmp_path / "out", part=1)
    kept = sorted(file.name for file in (tmp_path / "out").iterdir())
    options = {"model": model, "out": tmp_path / "out", "part": 1, "device": "cpu"}
    with pytest.raises(OutputError, match="exists and is not empty; add `resume=True`"):
        scale.look(source, ask=1, **options)
    with pytest.raises(OutputError, match="ask was '1' and is '2' now"):
        scale.look(source, ask=2, resume=True, **options)
    (source / "000.png").write_bytes(png(99))
    with pytest.raises(OutputError, match=r"the pictures have changed since it was begun .1 parts"):
        scale.look(source, ask=1, resume=True, **options)
    save_tiny(tmp_path / "tiny", seed=1)
    with pytest.raises(OutputError, match="digest was"):
        scale.look(source, ask=1, resume=True, **options)
    assert sorted(file.name for file in (tmp_path / "out").iterdir()) == kept


def test_a_folder_of_something_else_is_left_alone(model: str, pictures: Path, tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "thesis.txt").write_text("mine")
    for resume, said in ((False, "choose another `out`"), (True, "nothing to resume")):
        with pytest.raises(OutputError, match=said):
            scale.look(pictures, model=model, ask=1, out=tmp_path / "out", resume=resume)
    assert [file.name for file in (tmp_path / "out").iterdir() if file.name != ".lock"] == ["thesis.txt"]


def test_a_part_that_is_gone_or_damaged_is_noticed(model: str, tmp_path: Path) -> None:
    source, out = folder_of(tmp_path / "in", 2), tmp_path / "out"
    rows_of(source, model, out, part=1)
    _, second = sorted(out.glob("part-*"))
    second.write_bytes(second.read_bytes()[:-9])
    with pytest.raises(DataError, match="damaged"):
        list(scale.read(out))
    second.unlink()
    with pytest.raises(DataError, match="2 parts were written and 1 are there"):
        list(scale.read(out))
    looked = scale.look(source, model=model, ask=1, out=out, part=1, device="cpu", resume=True)
    assert (looked.rows, looked.resumed) == (2, 1)


def test_a_part_that_another_machine_wrote_elsewhere_is_missed(tmp_path: Path) -> None:
    job, part = Job("m", "d"), Part(0, "files", (Member("a.png", "a", "1"),))
    folder = output.Folder(str(tmp_path / "out"))
    output.begin(folder, job, [part], resume=False)
    with pytest.raises(OutputError, match="a folder that all machines share"):
        output.finish(folder, job, [part], [output.Receipt(0, 1)], 1.0)
    assert not folder.has("looks.json")


def test_a_part_that_ends_its_worker_again_and_again_is_given_up(model: str, pictures: Path, tmp_path: Path) -> None:
    """As one does that needs more memory than there is: the kernel kills the worker, Ray starts another."""
    (part,) = parts_of([pictures], 100)
    job, out = Job(model, digest_of(model), "1"), tmp_path / "out"
    folder = output.Folder(str(out))
    output.begin(folder, job, [part], resume=False)
    options = {"batch": 4, "device": "cpu", "counts_tries": True}
    for tries in range(1, 6):
        assert output.begin_try(folder, part.file(job)) == tries  # and then the worker is gone
    with Worker(job, str(out), **options) as worker:
        assert "ended its worker 5 times" in worker.do(part).failed
        assert "a smaller `batch_size` than 4" in worker.do(part).failed
        output.begin(folder, job, [part], resume=True)  # the user tries again
        assert worker.do(part).rows == 7
    assert not list(out.glob("trying-*"))


def test_wrong_requests_are_refused_before_anything_is_written(model: str, pictures: Path, tmp_path: Path) -> None:
    wrong = [
        ({"engine": "spark"}, ConfigError, "choose from local, ray"),
        ({"actors": 2}, ConfigError, "for `engine=ray`"),
        ({"maps": "some"}, ConfigError, "maps: "),
        ({"side": 0}, ConfigError, "side: expected 1 to 1024"),
        ({"part": 0}, ConfigError, "part: expected 1 or more"),
        ({"ask": "nobody"}, DataError, "nobody"),
        ({"model": "memn2n-babi"}, ConfigError, "does not read pictures"),
        ({"sources": tmp_path / "nowhere"}, DataError, "no such file or folder"),
        ({"sources": "memory://nowhere"}, DataError, "no such file"),
        ({"sources": "nostore://x"}, DataError, "nostore"),
    ]
    for change, kind, said in wrong:
        request = {"sources": pictures, "model": model, "ask": 1, "device": "cpu", **change}
        with pytest.raises(kind, match=said):
            scale.look(request.pop("sources"), out=tmp_path / "out", **request)
    assert not (tmp_path / "out" / "job.json").exists()


def test_an_old_ray_is_refused_by_its_version() -> None:
    for version in ("2.51.0", "2.60.0", "3.0.0", "main"):
        ray_engine.check_version(version)
    with pytest.raises(MissingExtraError, match=r"Ray 2.50.1 is here and 2.51 is the oldest.*\[ray\]"):
        ray_engine.check_version("2.50.1")


def test_parts_travel_as_text() -> None:
    part = Part(3, "parquet", (Member("s3://a/é.parquet", "é.parquet", "9-x"),), "img")
    assert Part.from_json(part.to_json()) == part
    assert part.file(Job("m", "d")) != part.file(Job("m", "e"))
    receipt = output.Receipt(1, 2, 1, ("why",), "")
    assert output.Receipt.from_json(receipt.to_json()) == receipt


def test_globs_and_sizes_of_parts(tmp_path: Path) -> None:
    folder_of(tmp_path / "in", 5)
    parts = parts_of([str(tmp_path / "in" / "*.png")], 2)
    assert [[member.name for member in part.members] for part in parts] == [["000", "001"], ["002", "003"], ["004"]]
