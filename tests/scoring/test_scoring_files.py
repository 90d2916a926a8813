"""Files of strangers as maps and as truth: what is read, and what is refused with the reason."""

import io
import json
import subprocess
import sys
import tarfile
import tracemalloc
import zipfile

import numpy as np
import pytest
from PIL import Image

import saccade
from saccade.errors import ConfigError, DataError, MissingExtraError

STRENGTH = "true_positive_strength"
SIZE = (12, 10)


def masks() -> np.ndarray:
    marked = np.zeros((4, *SIZE), bool)
    for number in range(4):
        marked[number, number : number + 4, 2:6] = True
    return marked


@pytest.fixture
def truth(tmp_path):
    """Masks of four pictures, as .npy."""
    folder = tmp_path / "truth"
    folder.mkdir()
    for number, mask in enumerate(masks()):
        np.save(folder / f"p{number}.npy", mask)
    return folder


def maps() -> np.ndarray:
    return np.random.default_rng(0).integers(1, 200, (4, *SIZE)).astype(np.uint8)


def write_all(folder, write):
    folder.mkdir()
    for number, map_ in enumerate(maps()):
        write(folder / f"p{number}", map_)
    return folder


def as_npz(stem, map_):
    np.savez_compressed(stem.with_suffix(".npz"), weights=map_)


def as_palette(stem, map_):
    image = Image.fromarray(map_, mode="L").convert("P")
    image.putpalette([value for grey in range(256) for value in (grey, grey, grey)])
    image.save(stem.with_suffix(".png"))


def as_h5(stem, map_):
    import h5py

    with h5py.File(stem.with_suffix(".h5"), "w") as file:
        file["map"] = map_


def as_picture(change, suffix=".png"):
    return lambda stem, map_: change(map_).save(stem.with_suffix(suffix))


WAYS = {
    "npz": as_npz,
    "grey": as_picture(Image.fromarray),
    "deep": as_picture(lambda map_: Image.fromarray(map_.astype(np.uint16) * 300)),
    "palette": as_palette,
    "colours": as_picture(lambda map_: Image.fromarray(map_).convert("RGB")),
    "tiff": as_picture(lambda map_: Image.fromarray(map_.astype(np.float32)), ".tiff"),
    "h5": as_h5,
    "batch": lambda stem, map_: np.save(stem.with_suffix(".npy"), map_[None, None].astype(np.float64)),
}


@pytest.mark.parametrize("way", WAYS)
def test_every_format_gives_the_same_scores(way, tmp_path, truth):
    expected = saccade.score(maps(), masks()).values[STRENGTH]
    found = saccade.score(write_all(tmp_path / "maps", WAYS[way]), truth)
    assert found.values[STRENGTH].tolist() == pytest.approx(expected.tolist(), rel=1e-5)


def test_archives_and_files_of_several_arrays_give_the_same_scores(tmp_path, truth):
    import h5py

    folder = write_all(tmp_path / "maps", as_npz)
    with zipfile.ZipFile(tmp_path / "maps.zip", "w") as archive:
        for file in folder.iterdir():
            archive.write(file, f"inner/{file.name}")
        archive.writestr("__MACOSX/inner/._p0.npz", b"junk")
        archive.writestr("readme.txt", b"hello")
    with tarfile.open(tmp_path / "maps.tar.gz", "w:gz") as archive:
        archive.add(folder, "inner")
    named = {f"p{number}": map_ for number, map_ in enumerate(maps())}
    np.savez(tmp_path / "maps.npz", **named)
    with h5py.File(tmp_path / "maps.h5", "w") as file:
        for name, map_ in named.items():
            file[f"test/{name}"] = map_
    np.save(tmp_path / "maps.npy", maps())
    np.save(tmp_path / "truth.npy", masks())
    expected = saccade.score(maps(), masks()).values[STRENGTH].tolist()
    for name in ("maps.zip", "maps.tar.gz", "maps.npz", "maps.h5"):
        found = saccade.score(tmp_path / name, truth)
        assert dict(zip(found.names, found.values[STRENGTH].tolist())) == pytest.approx(
            dict(zip(("p0", "p1", "p2", "p3"), expected))
        )
    assert saccade.score(tmp_path / "maps.zip", truth).counts["ignored"] == 1
    stacked = saccade.score(tmp_path / "maps.npy", tmp_path / "truth.npy")
    assert stacked.values[STRENGTH].tolist() == pytest.approx(expected)


def broken(tmp_path, truth, name, data: bytes) -> str:
    folder = write_all(tmp_path / "maps", lambda stem, map_: np.save(stem.with_suffix(".npy"), map_))
    (folder / "p0.npy").unlink()
    (folder / name).write_bytes(data)
    with pytest.raises(DataError) as told:
        saccade.score(folder, truth)
    found = saccade.score(folder, truth, broken="skip")
    assert (found.counts["broken"], found.counts["scored"]) == (1, 3)
    assert "p0" in found.notes
    return str(told.value)


def npy(array: np.ndarray, **options) -> bytes:
    stream = io.BytesIO()
    np.save(stream, array, **options)
    return stream.getvalue()


def npz(**arrays) -> bytes:
    stream = io.BytesIO()
    np.savez(stream, **arrays)
    return stream.getvalue()


class Bomb:
    """Would make a file if it were unpickled."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return open, (str(self.path), "w")


def test_an_object_array_is_never_unpickled(tmp_path, truth):
    bomb = np.array([Bomb(tmp_path / "ran")], dtype=object)
    for name, data in (("p0.npy", npy(bomb, allow_pickle=True)), ("p0.npz", npz(map=bomb))):
        (tmp_path / name[3:]).mkdir()
        broken(tmp_path / name[3:], truth, name, data)
    assert not (tmp_path / "ran").exists()


def png(pixels: np.ndarray) -> bytes:
    stream = io.BytesIO()
    Image.fromarray(pixels).save(stream, "PNG")
    return stream.getvalue()


BROKEN = {
    "npz cut short": ("p0.npz", npz(map=maps()[0])[:-40], "p0.npz"),
    "npz of two": ("p0.npz", npz(one=maps()[0], two=maps()[1]), "one, two"),
    "header of a giant": ("p0.npy", npy(maps()[0]).replace(b"(12, 10)", b"(99999, 99999)"), "(99999, 99999)"),
    "colours": ("p0.png", png(np.random.default_rng(0).integers(0, 255, (*SIZE, 3), dtype=np.uint8)), "p0.png"),
    "h5": ("p0.h5", b"\x89HDF\r\n\x1a\nrest", "p0.h5"),
    "long side": ("p0.npy", npy(np.ones((1, 4_000_000), np.int8)), "4000000"),
}


@pytest.mark.parametrize("what", BROKEN)
def test_a_broken_file_is_named_or_skipped_and_counted(tmp_path, truth, what):
    name, data, said = BROKEN[what]
    told = broken(tmp_path, truth, name, data)
    assert said in told
    assert "p0" in told
    assert "=" in told.partition("`")[2]  # how to go on without it


def test_the_kind_of_an_hdf5_map_is_checked_before_it_is_read(tmp_path, truth):
    """In a kilobyte: sixty million texts of a hundred bytes, none of which was written."""
    h5py = pytest.importorskip("h5py")
    with h5py.File(tmp_path / "x.h5", "w") as file:
        file.create_dataset("map", (60_000, 1_000), "S100", chunks=(600, 1_000), compression="gzip")
    data = (tmp_path / "x.h5").read_bytes()
    (tmp_path / "x.h5").unlink()
    assert len(data) < 10_000
    tracemalloc.start()
    assert "S100" in broken(tmp_path, truth, "p0.h5", data)
    assert tracemalloc.get_traced_memory()[1] < 50 << 20
    tracemalloc.stop()


def test_an_h5_file_never_leads_to_another_file(tmp_path, truth):
    import h5py

    folder = tmp_path / "maps"
    folder.mkdir()
    with h5py.File(tmp_path / "secret.h5", "w") as file:
        file["map"] = maps()[0]
    with h5py.File(folder / "p0.h5", "w") as file:
        file["map"] = h5py.ExternalLink(str(tmp_path / "secret.h5"), "map")
        file["other"] = maps()[0]
    for key in ("saliency", "map"):
        with pytest.raises(DataError, match=f"'{key}'"):
            saccade.score(folder, truth, key=key)
    assert saccade.score(folder, truth, key="other").counts["scored"] == 1


def test_h5_without_h5py_names_the_extra(tmp_path, truth, monkeypatch):
    folder = write_all(tmp_path / "maps", as_h5)
    monkeypatch.setitem(sys.modules, "h5py", None)
    with pytest.raises((MissingExtraError, DataError), match=r"saccade-attention\[tables\]"):
        saccade.score(folder, truth)


def test_wrong_places_are_named(tmp_path, truth):
    twice = write_all(tmp_path / "twice", WAYS["grey"])
    np.save(twice / "p0.npy", maps()[0])
    (tmp_path / "bare").mkdir()
    for name in ("notes.txt", "maps.zip", "maps.tar.gz"):
        (tmp_path / name).write_bytes(b"nothing of the kind")
    with zipfile.ZipFile(tmp_path / "lzma.zip", "w", zipfile.ZIP_LZMA) as archive:
        archive.writestr("p0.npy", npy(maps()[0]))
    data = bytearray((tmp_path / "lzma.zip").read_bytes())
    data[45:60] = bytes(range(200, 215))
    (tmp_path / "lzma.zip").write_bytes(data)
    for name in ("twice", "bare", "nowhere", "notes.txt", "maps.zip", "maps.tar.gz", "lzma.zip"):
        with pytest.raises(DataError, match=name):
            saccade.score(tmp_path / name, truth)


BOXES = [[2, 0, 6, 4], [2, 1, 6, 5], [2, 2, 6, 6], [2, 3, 6, 7]]


def test_boxes_as_csv_json_and_coco_are_the_masks_they_describe(tmp_path):
    expected = saccade.score(maps(), masks()).values[STRENGTH].tolist()
    given = {f"p{number}": map_ for number, map_ in enumerate(maps())}
    csv = "image,x1,y1,x2,y2\n" + "".join(f"p{n}.jpg,{','.join(map(str, box))}\n" for n, box in enumerate(BOXES))
    (tmp_path / "boxes.csv").write_text(csv)
    (tmp_path / "boxes.json").write_text(json.dumps({f"p{n}.jpg": [box] for n, box in enumerate(BOXES)}))
    (tmp_path / "rows.json").write_text(json.dumps([{"image": f"p{n}.jpg", "box": box} for n, box in enumerate(BOXES)]))
    (tmp_path / "rows.jsonl").write_text(
        "".join(json.dumps({"file_name": f"p{n}.png", "box": b}) + "\n" for n, b in enumerate(BOXES))
    )
    for name in ("boxes.csv", "boxes.json", "rows.json", "rows.jsonl"):
        found = saccade.score(given, tmp_path / name)
        assert found.kind == "boxes"
        assert found.values[STRENGTH].tolist() == pytest.approx(expected), name
    memory = saccade.score(given, {f"p{n}": [box] for n, box in enumerate(BOXES)}, kind="boxes")
    assert memory.values[STRENGTH].tolist() == pytest.approx(expected)


def coco(tmp_path, annotations):
    images = [{"id": n, "file_name": f"train/p{n}.jpg", "height": SIZE[0], "width": SIZE[1]} for n in range(4)]
    categories = [{"id": 1, "name": "cat"}, {"id": 2, "name": "dog"}]
    values = {"images": images, "annotations": annotations, "categories": categories}
    (tmp_path / "instances.json").write_text(json.dumps(values))
    return tmp_path / "instances.json"


def test_coco_by_picture_by_category_and_by_polygon(tmp_path):
    cats = [{"image_id": n, "category_id": 1, "bbox": [2, n, 4, 4]} for n in range(4)]
    dogs = [{"image_id": n, "category_id": 2, "bbox": [7, 0, 3, 3]} for n in range(3)]
    path = coco(tmp_path, cats + dogs)
    by_picture = saccade.score({f"p{n}": np.ones(SIZE) for n in range(4)}, path)
    assert by_picture.values[STRENGTH].tolist() == pytest.approx([25 / 120] * 3 + [16 / 120])
    by_cat = saccade.score({f"p{n}__cat": np.ones(SIZE) for n in range(4)}, path)
    assert by_cat.scores["selectivity"].mean == pytest.approx((3 * 16 / 25 + 1) / 4)
    assert by_cat.counts["missing"] == 3  # the dogs
    with pytest.raises(DataError, match="score them apart"):
        saccade.score({"p0": np.ones(SIZE), "p1__cat": np.ones(SIZE)}, path)
    runs = {"size": list(SIZE), "counts": [0, 24, 96]}  # the first two columns
    shapes = [{"image_id": 0, "category_id": 1, "segmentation": runs}]
    drawn = saccade.score({"p0": np.ones(SIZE), "p1": np.ones(SIZE)}, coco(tmp_path, shapes))
    assert drawn.values[STRENGTH][0] == pytest.approx(24 / 120)
    assert drawn.counts["empty"] == 1


def test_a_table_of_questions_is_the_truth_of_a_map_for_each_question(tmp_path):
    """In a table to train on, the label is the answer. A map of what is marked elsewhere alone has no truth."""
    rows = ["p0.jpg,heart,blue,2 0 6 4", "p0.jpg,circle,red,7 0 9 4", "p1.jpg,heart,red,2 0 6 4"]
    (tmp_path / "train.csv").write_text("\n".join(["image,query,label,box", *rows]) + "\n")
    asked = {name: np.ones(SIZE) for name in ("p0__heart", "p0__circle", "p1__heart", "p1__circle")}
    scored = saccade.score(asked, tmp_path / "train.csv")
    assert scored.values[STRENGTH].tolist() == pytest.approx([16 / 120, 8 / 120, 16 / 120])
    assert (scored.counts["scored"], scored.counts["extra"]) == (3, 1)


def test_wrong_rows_stop_or_are_counted(tmp_path):
    given = {f"p{number}": map_ for number, map_ in enumerate(maps())}
    (tmp_path / "boxes.csv").write_text("image,x1,y1,x2,y2\np0.jpg,2,0,6,4\np1.jpg,6,0,2,4\n,1,1,2,2\n")
    with pytest.raises(DataError, match="line 3"):
        saccade.score(given, tmp_path / "boxes.csv")
    found = saccade.score(given, tmp_path / "boxes.csv", broken="skip")
    assert (found.counts["rows"], found.counts["scored"], found.counts["extra"]) == (2, 1, 3)


def test_a_table_that_is_no_truth_is_named(tmp_path):
    box = "image,x1,y1,x2,y2\np0.jpg,2,0,6,4\n"
    for number, (text, options) in enumerate([
        ("image,colour\na,red\n", {}), ("image,x,y\n", {}), (box, {"kind": "points"}), (box, {"objects": "masks"}),
    ]):  # fmt: skip
        (tmp_path / f"t{number}.csv").write_text(text)
        with pytest.raises((ConfigError, DataError), match=f"t{number}.csv"):
            saccade.score({"p0": maps()[0]}, tmp_path / f"t{number}.csv", **options)
    (tmp_path / "t.json").write_text("{")
    with pytest.raises(DataError, match=r"t.json"):
        saccade.score({"p0": maps()[0]}, tmp_path / "t.json")


def test_records_of_a_model_against_the_scenes_it_looked_at(tmp_path):
    """What ``data make`` and ``look --out`` write is read as it is: boxes of digits, and the maps of records."""
    from saccade.families.question.task import QuestionTask

    QuestionTask.write_split({"name": "mref", "glyphs": "pack"}, "test", 2, tmp_path / "scenes")
    digits = [json.loads(line)["objects"][0]["class"] for line in (tmp_path / "scenes" / "scenes.jsonl").open()]
    predictor = saccade.load("soft-mref", "cpu")
    for number, digit in enumerate(digits):
        predictor.look(tmp_path / "scenes" / f"{number:08d}.png", ask=digit).save(tmp_path / "looks")
    found = saccade.score(tmp_path / "looks", tmp_path / "scenes")
    assert found.counts["scored"] == 2
    assert found.scores["selectivity"].mean > found.baselines["uniform"]["selectivity"]


def test_a_file_of_several_arrays_ends_in_an_error_and_not_in_a_crash(tmp_path, truth):
    """An HDF5 file that stays open while the interpreter ends crashes it: exit code 139 in place of 2."""
    h5py = pytest.importorskip("h5py")
    (tmp_path / "maps").mkdir()
    with h5py.File(tmp_path / "maps" / "p0.h5", "w") as file:
        file["one"] = file["two"] = np.ones((8, 8))
    masks = tmp_path / "masks"
    masks.mkdir()
    np.save(masks / "p0.npy", np.eye(8))
    command = [sys.executable, "-m", "saccade", "score", tmp_path / "maps", "--truth", masks]
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "key" in done.stderr
