"""Causal sets of photographs: twins change what they say and nothing else; holes are filled in; nothing is silent."""

import json
from types import SimpleNamespace

import numpy as np
import pytest
from PIL import Image
from typer.testing import CliRunner

from saccade.commands.door import app
from saccade.data import read_causal_set
from saccade.data.causal.photographs import filling, making, marking
from saccade.data.causal.photographs.filling import filler, smooth_fill
from saccade.data.causal.photographs.making import make_photographs
from saccade.data.causal.photographs.marking import UnusablePictureError, labeller, marker
from saccade.data.causal.scenes import read_drawn_set
from saccade.data.pictures.reading import read_picture
from saccade.errors import CheckpointError, DataError, MissingExtraError, OutputError
from saccade.families.question.readers import CausalOptions, read_causal
from saccade.files import RemoteFile, file_digest


def ground(number, size=(48, 64)):
    """Soft noise (H,W,3) of its own for each number."""
    rng = np.random.default_rng(number)
    small = Image.fromarray(rng.integers(60, 200, (6, 8, 3), dtype=np.uint8))
    return np.array(small.resize(size[::-1], Image.Resampling.BILINEAR))


def square(size=(48, 64), top=10, left=12, side=12):
    mask = np.zeros(size, bool)
    mask[top : top + side, left : left + side] = True
    return mask


def painted(number, *masks, size=(48, 64)):
    pixels = ground(number, size)
    for at, mask in enumerate(masks):
        pixels[mask] = [(250, 20, 20), (20, 250, 20), (20, 20, 250), (250, 250, 20), (250, 20, 250)][at]
    return pixels


def label_map(*masks):
    return sum(np.where(mask, np.uint8(at + 1), np.uint8(0)) for at, mask in enumerate(masks))


def pets(folder, count=6):
    """Folders ``images`` and ``masks`` of pictures with one square each, and ``labels.csv``."""
    for number in range(count):
        mask = square(top=4 + 3 * number, left=5 + 5 * number)
        save(folder / "images" / f"pet{number}.png", painted(number, mask))
        save(folder / "masks" / f"pet{number}.png", mask.astype(np.uint8) * 255)
    rows = "".join(f"pet{number}.png,{'cat' if number % 2 else 'dog'}\n" for number in range(count))
    (folder / "labels.csv").write_text("image,label\n" + rows)
    return folder


def save(path, values, **options):
    path.parent.mkdir(parents=True, exist_ok=True)
    (values if isinstance(values, Image.Image) else Image.fromarray(values)).save(path, **options)


def coco(path, names, annotations, size=(48, 64), categories=("dog", "ball")):
    """A file of COCO annotations: (number of the picture, category, polygon or run lengths, whether a crowd)."""
    keys, (height, width) = ("image_id", "category_id", "segmentation", "iscrowd"), size
    images = [{"id": at, "file_name": name, "height": height, "width": width} for at, name in enumerate(names)]
    named = [{"id": at, "name": name} for at, name in enumerate(categories, start=1)]
    listed = [dict(zip(keys, annotation)) for annotation in annotations]
    path.write_text(json.dumps({"images": images, "categories": named, "annotations": listed}))


HOLE = square(size=(60, 80), top=14, left=20, side=31)


def test_a_constant_and_a_ramp_are_continued_exactly():
    rows, columns = np.mgrid[:60, :80]
    for plane in (np.full((60, 80), 93), 3 * columns, 4 * rows, 2 * columns + rows):
        pixels = np.repeat(plane.astype(np.uint8)[..., None], 3, 2)
        spoilt = np.where(HOLE[..., None], np.uint8(255), pixels)
        assert np.array_equal(smooth_fill(spoilt, HOLE), pixels)


def test_each_pixel_of_the_hole_is_the_mean_of_its_neighbours_and_others_stay():
    values = np.random.default_rng(0).integers(0, 256, (21, 26, 3)).astype(np.float64)
    hole = square(size=(21, 26), top=0, left=3, side=12) | square(size=(21, 26), top=15, left=18, side=6)
    solved = filling._harmonic(values, hole)
    padded = np.pad(solved, ((1, 1), (1, 1), (0, 0)))
    count = filling._neighbours(np.ones((21, 26, 1)))
    mean = (padded[:-2, 1:-1] + padded[2:, 1:-1] + padded[1:-1, :-2] + padded[1:-1, 2:]) / count
    assert np.abs(solved - mean)[hole].max() < 1e-3
    assert np.array_equal(solved[~hole], values[~hole])
    assert count[0, 0] == 2


class Upside:
    """Stands in for MI-GAN: fills each hole with the numbers of the rows that it sees, and spoils what is kept."""

    def __init__(self, path, options, providers):
        pass

    def run(self, outputs, inputs):
        image, keep = inputs["image"], inputs["mask"]
        rows = np.arange(image.shape[2], dtype=np.uint8)[:, None]
        return [np.where(keep == 0, rows, image // 2)]


def test_migan_is_used_where_its_file_is_and_sees_pictures_upside_down(tmp_path, monkeypatch):
    monkeypatch.setenv("SACCADE_HOME", str(tmp_path))
    assert filler("auto") == ("smooth", smooth_fill)
    with pytest.raises(DataError, match="saccade data get migan"):
        filler("migan")
    file = tmp_path / "migan" / "migan_pipeline_v2.onnx"
    file.parent.mkdir()
    file.write_bytes(b"another network")
    runtime = SimpleNamespace(SessionOptions=SimpleNamespace, InferenceSession=Upside)
    monkeypatch.setattr(filling.importlib, "import_module", lambda name: runtime)
    with pytest.raises(CheckpointError, match="damaged"):
        filler("auto")
    monkeypatch.setitem(filling.FILES, "migan", (RemoteFile(file.name, file.stat().st_size, file_digest(file)),))
    name, fill = filler("auto")
    hole, pixels = square(size=(48, 64)), painted(1)
    filled = fill(pixels, hole)
    assert name == "migan"
    assert np.array_equal(filled[hole][:, 0], 47 - hole.nonzero()[0])
    assert np.array_equal(filled[~hole], pixels[~hole])

    monkeypatch.setattr(filling.importlib, "import_module", lambda name: __import__("no_such_package"))
    with pytest.raises(MissingExtraError, match="photo"):
        filler("migan")
    assert filler("auto")[0] == "smooth"


SMOOTH = {"fill": "smooth"}


def make(folder, out="set", **options):
    options = {"masks": str(folder / "masks"), **SMOOTH, **options}
    make_photographs(folder / out, pictures=folder / "images", **options)
    return read_causal_set(folder / out)


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """Six pictures with one square each; for reading only."""
    folder = pets(tmp_path_factory.mktemp("pets"))
    return make(folder, labels=folder / "labels.csv")


@pytest.fixture(scope="module")
def two(tmp_path_factory):
    """One picture of two squares that touch; for reading only."""
    folder = tmp_path_factory.mktemp("two")
    left, right = square(top=14, left=8, side=14), square(top=16, left=22, side=10)
    save(folder / "images" / "a.png", painted(3, left, right))
    save(folder / "masks" / "a.png", label_map(left, right))
    return next(iter(make(folder)))


def blocks(changed):
    """(H,W): all 8 × 8 blocks of a JPEG in which something changed."""
    height, width = (-(-side // 8) * 8 for side in changed.shape)
    padded = np.zeros((height, width), bool)
    padded[: changed.shape[0], : changed.shape[1]] = changed
    any_in = padded.reshape(height // 8, 8, width // 8, 8).any((1, 3))
    return any_in.repeat(8, 0).repeat(8, 1)[: changed.shape[0], : changed.shape[1]]


def files_of(folder):
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_every_photograph_has_its_twins_and_the_set_verifies(whole):
    whole.verify()
    assert len(whole) == len(list(whole)) == 6
    assert whole.facts.twins == {"removed": 6, "moved": 6, "background": 6, "empty": 12}
    assert (whole.facts.masks, whole.facts.fill, whole.facts.labels) == ("binary", "smooth", ("cat", "dog"))
    assert whole.facts.left_out == {}
    for photograph in whole:
        assert list(photograph.twins) == ["removed-0", "moved", "background", "empty-0", "empty-1"]
        assert photograph.label == ("cat" if int(photograph.name[3]) % 2 else "dog")
        assert photograph.objects[0].share == pytest.approx(144 / (48 * 64), abs=1e-6)
        assert [twin.label for twin in photograph.twins.values()] == [None, *[photograph.label] * 4]
        assert photograph.twins["background"].row["ground"] != photograph.name


def test_twins_change_what_they_say_and_nothing_else(whole):
    for photograph in whole:
        mask = photograph.masks[0]
        for name, twin in photograph.twins.items():
            differs = (photograph.image != twin.image).any(2)
            assert differs.any(), name
            assert not (differs & ~blocks(twin.changed)).any(), name
        removed, moved, background = (photograph.twins[name] for name in ("removed-0", "moved", "background"))
        assert not removed.masks.any()
        assert (removed.changed & mask).sum() == mask.sum()
        true = ground(int(photograph.name[3])).astype(int)  # of soft noise the fill is not far off
        assert np.abs(removed.image.astype(int) - true)[mask].mean() < 25
        assert moved.masks[0].sum() == mask.sum()
        assert not (moved.masks[0] & mask).any()
        x0, y0, x1, y1 = moved.row["box"]
        assert moved.masks[0][y0:y1, x0:x1].all()
        assert np.abs(moved.image[moved.masks[0]].astype(int).mean(0) - [250, 20, 20]).max() < 30
        assert np.array_equal(background.masks, photograph.masks)
        assert np.abs(background.image[mask].astype(int).mean(0) - [250, 20, 20]).max() < 30
        for name in ("empty-0", "empty-1"):
            twin = photograph.twins[name]
            assert not (twin.changed & mask).any()
            assert np.array_equal(twin.masks, photograph.masks)


def test_removing_an_object_does_not_eat_into_one_that_touches_it(two):
    first, second = two.masks
    for number, (gone, kept) in enumerate(((first, second), (second, first))):
        twin = two.twins[f"removed-{number}"]
        assert (twin.changed & gone).sum() == gone.sum()
        assert not (twin.changed & kept).any()
        assert np.array_equal(twin.masks[1 - number], kept)
        assert not twin.masks[number].any()
    assert two.target == 0  # the larger
    assert not (two.twins["moved"].masks[0] & second).any()


def test_an_object_that_a_border_cuts_off_stays_at_it(tmp_path):
    save(tmp_path / "images" / "a.png", painted(1, square(left=0, top=20)))
    save(tmp_path / "masks" / "a.png", square(left=0, top=20))
    twin = next(iter(make(tmp_path))).twins["moved"]
    x0, y0, _, _ = twin.row["box"]
    assert (x0, y0 != 20) == (0, True)


def test_a_network_marks_what_stands_out(monkeypatch):
    class Session:
        def get_inputs(self):
            return [SimpleNamespace(name="input")]

        def run(self, outputs, inputs):  # (1,3,320,320): what is redder than the mean stands out
            return [(inputs["input"][:, :1] > 1.5).astype(np.float32)]

    monkeypatch.setattr(marking, "network", lambda name, feature: Session())
    kind, mark = marker("auto", ["a.png"])
    things = mark("a.png", read_picture(painted(1, square())))
    assert kind == "auto"
    assert (things.map.astype(bool) ^ square()).sum() < 30


def test_a_run_that_was_stopped_goes_on_to_the_same_set(tmp_path, whole, monkeypatch):
    pets(tmp_path)
    options = {"labels": tmp_path / "labels.csv"}

    def stop(what, done, total):
        assert total == 6
        if done == 4:
            raise KeyboardInterrupt

    monkeypatch.setattr(making, "twins_of", lambda *arguments: stop("photographs", 4, 6))
    with pytest.raises(KeyboardInterrupt):  # before the first photograph
        make(tmp_path, **options)
    monkeypatch.undo()
    with pytest.raises(KeyboardInterrupt):
        make(tmp_path, on_progress=stop, resume=True, **options)
    with pytest.raises(DataError, match="no causal set"):
        read_causal_set(tmp_path / "set")
    with (tmp_path / "set" / "truth.jsonl").open("a") as lines:
        lines.write('{"id": "0000')  # a line that was cut short
    with pytest.raises(OutputError, match="not an empty folder"):
        make(tmp_path, **options)
    with pytest.raises(OutputError, match="other settings \\(seed\\)"):
        make(tmp_path, seed=3, resume=True, **options)
    steps = []
    again = make(tmp_path, resume=True, on_progress=lambda what, done, total: steps.append(done), **options)
    assert steps == [5, 6]
    assert files_of(again.folder) == files_of(whole.folder)
    assert make(tmp_path, resume=True, **options).facts == whole.facts
    with pytest.raises(OutputError, match="finished, with 6"):
        make(tmp_path, resume=True, count=3, **options)


def test_what_cannot_be_used_is_left_out_and_counted(tmp_path):
    pets(tmp_path, 2)
    images, masks = tmp_path / "images", tmp_path / "masks"
    for name, mask in {
        "empty": np.zeros((48, 64), np.uint8),
        "all": np.full((48, 64), 255, np.uint8),
        "other": np.zeros((30, 30), np.uint8),
        "speck": square(side=2).astype(np.uint8) * 255,
    }.items():
        save(images / f"{name}.png", ground(9))
        save(masks / f"{name}.png", mask)
    save(images / "unmarked.png", ground(9))
    (images / "broken.jpg").write_bytes(b"\xff\xd8\xff nothing")
    save(masks / "broken.png", np.zeros((48, 64), np.uint8))
    save(images / "torn.png", ground(9))
    (masks / "torn.png").write_bytes(b"\x89PNG\r\n")
    made = make(tmp_path)
    assert len(made) == 2
    assert made.facts.left_out == {
        "picture: no object": 1,
        "picture: object over 25% of the picture": 1,
        "picture: mask of another size": 1,
        "picture: object under 0.2% of the picture": 1,
        "picture: no mask": 1,
        "picture: picture that cannot be read": 1,
        "picture: mask that cannot be read": 1,
    }
    assert "| picture: no mask | 1 |" in (made.folder / "README.md").read_text()
    for path in (*images.glob("pet*"),):
        path.unlink()
    with pytest.raises(DataError, match="none of 7 photographs could be used: picture: "):
        make(tmp_path, "none")
    assert not (tmp_path / "none").exists()


def test_what_is_marked_in_a_picture_that_is_used_is_an_object_or_counted(tmp_path):
    small = [square(top=2 + 11 * (at % 3), left=2 + 11 * (at // 3), side=9 - at) for at in range(5)]
    large = square(top=0, left=34, side=30) | square(top=20, left=34, side=28)
    save(tmp_path / "images" / "a.png", painted(1, *small))
    crowd, ball = (0, 3, runs(square(top=40, left=2, side=7)), 1), {"categories": ["dog", "ball", "dog flock"]}
    dogs = [(0, 1, runs(mask), 0) for mask in (*small, large)]
    coco(tmp_path / "a.json", ["a.png"], [*dogs, (0, 2, [], 0), crowd], **ball)
    masks = f"coco:{tmp_path / 'a.json'}"
    photograph = next(iter(make(tmp_path, masks=masks)))
    assert ([each.name for each in photograph.objects], photograph.label) == (["dog"] * 4, "dog")
    assert sorted(reason for reason in photograph.row["left_out"] if reason.startswith("object")) == [
        "object beyond the 4 largest", "object over 25% of the picture", "object under 0.2% of the picture"
    ]  # fmt: skip
    rest = photograph.label_map == 255
    assert (rest & large).sum() == large.sum()
    assert photograph.row["rest"] == pytest.approx(rest.mean(), abs=1e-6)
    assert photograph.twins["removed-0"].label == "dog"  # others are left
    for twin in photograph.twins.values():
        assert twin.change == "background" or not (twin.changed & rest).any()
    coco(tmp_path / "a.json", ["a.png"], [dogs[0], crowd], categories=["dog", "ball", "dog"])
    assert next(iter(make(tmp_path, "crowd", masks=masks))).twins["removed-0"].label == "dog"  # as is the crowd


def runs(mask):
    flat = mask.T.ravel()
    edges = np.flatnonzero(np.diff(flat.astype(int))) + 1
    ends = [0, *edges, flat.size]
    counts = np.diff(ends).tolist()
    return {"size": list(mask.shape), "counts": ([0] if flat[0] else []) + counts}


@pytest.mark.parametrize("kind", ["binary", "trimaps", "labels", "grey", "colours", "turned"])
def test_how_masks_are_meant_is_read_off_their_values(tmp_path, kind):
    one, other = square(top=10, left=10, side=20), square(top=8, left=40, side=8)
    soft = np.zeros((48, 64), np.uint8)
    soft[8:32, 8:32] = np.arange(576).reshape(24, 24) % 120 + 8
    soft[10:30, 10:30] = 255
    trimap = np.full((48, 64), 2, np.uint8)
    trimap[8:32, 8:32] = 3
    trimap[12:28, 12:28] = 1
    exif = Image.Exif()
    exif[0x0112] = 3  # upside down
    values, options = {
        "binary": (one.astype(np.uint8) * 255, {}),
        "trimaps": (trimap, {}),
        "labels": (label_map(one, other), {}),
        "grey": (soft, {}),
        "colours": (np.stack([one * 0, other * 90, one * 255], -1).astype(np.uint8), {}),  # blue is no 255
        "turned": (one[::-1, ::-1].astype(np.uint8), {"exif": exif}),
    }[kind]
    save(tmp_path / "a.png", values, **options)
    reading, mark = marker(str(tmp_path), ["a.jpg"])
    things = mark("a.jpg", read_picture(ground(0)))
    assert reading == {"colours": "labels", "turned": "binary"}.get(kind, kind)
    assert np.array_equal(things.map == 1, one)
    assert np.array_equal(things.map == 2, other & (reading == "labels"))
    assert marker(f"labels:{tmp_path}", ["a.jpg"])[0] == "labels"


def test_a_binary_mask_among_masks_of_labels_is_said(tmp_path):
    save(tmp_path / "a.png", label_map(square(), square(left=40)))
    save(tmp_path / "b.png", square().astype(np.uint8) * 255)
    reading, mark = marker(str(tmp_path), ["a.jpg", "b.jpg"])
    assert reading == "labels"
    assert mark("a.jpg", read_picture(ground(0))).map.any()
    with pytest.raises(UnusablePictureError, match="0 and 255 alone among masks of labels"):
        mark("b.jpg", read_picture(ground(0)))


def test_a_bare_name_is_enough_unless_several_share_it(tmp_path):
    for name in ("one", "two", "b/two"):
        save(tmp_path / "masks" / f"{name}.png", square().astype(np.uint8))
    names = ["a/one.jpg", "a/two.jpg", "b/two.jpg"]
    _, mark = marker(str(tmp_path / "masks"), names)
    for name in ("a/one.jpg", "b/two.jpg"):
        assert mark(name, read_picture(ground(0))).map.any()
    with pytest.raises(UnusablePictureError, match="no mask"):
        mark("a/two.jpg", read_picture(ground(0)))
    (tmp_path / "labels.csv").write_text("image,label\nx/one.jpg,cat\nb/two.jpg,dog\nb/two.jpg,dog\n")
    assert [*map(labeller(tmp_path / "labels.csv", names), names)] == ["cat", None, "dog"]
    (tmp_path / "labels.csv").write_text("image,label\nb/two.jpg,dog\nb/two.jpg,cat\nb/two.jpg,dog\n")
    assert labeller(tmp_path / "labels.csv", names)("b/two.jpg") is None


def test_a_ground_that_cannot_be_filled_in_is_none(tmp_path):
    pets(tmp_path, 2)
    specks = np.zeros((48, 64), np.uint8)
    specks[1::4, 1::4] = 255  # belong to nobody; grown they cover everything
    specks[square(top=4, left=5)] = 1
    save(tmp_path / "masks" / "pet0.png", specks)
    save(tmp_path / "masks" / "pet1.png", label_map(square(top=7, left=10)))
    rows = {row.name: row for row in make(tmp_path, masks=f"labels:{tmp_path / 'masks'}")}
    assert "background" in rows["pet0.png"].twins
    assert "background: no other photograph with a ground" in rows["pet1.png"].row["left_out"]


def test_composed_scenes_without_an_object_are_exact(tmp_path):
    for number, called in enumerate(("cup", "ball", "key")):
        values = np.zeros((30, 30, 4), np.uint8)
        values[5:25, 5 + number : 25] = [40 * number, 200, 90, 255]
        save(tmp_path / "cut" / called / f"{number}.png", values)
    for number in range(3):
        save(tmp_path / "grounds" / f"{number}.png", ground(number))
    save(tmp_path / "cut" / "key" / "opaque.png", ground(1))
    how = {"backgrounds": tmp_path / "grounds", "count": 5}
    make_photographs(tmp_path / "set", cutouts=tmp_path / "cut", **how)
    made = read_causal_set(tmp_path / "set")
    made.verify()
    assert made.facts.fill == "exact"
    assert made.facts.twins["empty"] == 0
    assert made.facts.left_out["picture: cut-out without a transparent ground"] >= 1
    for scene in made:
        behind = ground(int(scene.row["sources"][0][0])).astype(int)
        names = [each.name for each in scene.objects]
        assert 2 <= len(set(names)) == len(names)
        assert scene.label == names[scene.target]
        assert [source.split("/")[0] for source in scene.row["sources"][1:]] == names
        for number in range(len(names)):
            twin = scene.twins[f"removed-{number}"]
            others = blocks(np.delete(scene.masks, number, 0).any(0))
            assert np.abs(twin.image - behind)[~others].mean() < 2  # the ground itself, as a JPEG has it
            assert not ((scene.image != twin.image).any(2) & ~blocks(twin.changed)).any()
    make_photographs(tmp_path / "again", cutouts=tmp_path / "cut", **how)
    assert files_of(tmp_path / "again") == files_of(tmp_path / "set")


def test_it_is_a_table_of_what_photographs_show(whole):
    table = read_causal(whole.folder, CausalOptions(check=True))
    assert (len(table.rows), set(table.answers)) == (6, {"cat", "dog"})
    assert {row.mask_grey for row in table.rows} == {1}
    assert len(read_causal(whole.folder, CausalOptions(twins=True)).rows) == 6 * 5
    with pytest.raises(DataError, match="photographs, where one of drawn scenes"):
        read_drawn_set(whole.folder)


def test_damage_and_paths_that_lead_out_are_refused(tmp_path):
    folder = make(pets(tmp_path, 3)).folder
    truth = (folder / "truth.jsonl").read_text()
    save(folder / "images" / "00000001.jpg", ground(5))
    with pytest.raises(DataError, match="00000001 is not as it was written"):
        read_causal_set(folder).verify()
    (folder / "truth.jsonl").write_text(truth.replace("images/00000000.jpg", "../00000000.jpg"))
    with pytest.raises(DataError, match=r"line 1 is not a photograph .*leads out"):
        list(read_causal_set(folder))
    (folder / "truth.jsonl").write_text(truth.replace('"removed-0"', '"removed-7"'))
    with pytest.raises(DataError, match="line 1 is not a photograph"):
        list(read_causal_set(folder))
    (folder / "truth.jsonl").write_text("".join(truth.splitlines(keepends=True)[:2]))
    with pytest.raises(DataError, match="2 photographs of digest"):
        list(read_causal_set(folder))


def test_the_command_makes_and_shows_a_set_and_refuses_bad_input(tmp_path):
    pets(tmp_path, 3)

    def run(*args):
        result = CliRunner().invoke(app, ["data", *map(str, args)])
        return result.exit_code, " ".join(result.output.split())

    out, images, masks = tmp_path / "set", tmp_path / "images", tmp_path / "masks"
    begin = ("make", "causal", "--pictures", images, "--out", out)
    for options, said in (
        ((), "masks: needed with pictures"),
        (("--masks", tmp_path / "nowhere"), "is not a folder"),
        (("--masks", f"coco:{tmp_path / 'no.json'}"), "cannot be read"),
        (("--masks", masks, "--cutouts", masks), "cutouts: does not go with pictures"),
        (("--masks", masks, "--labels", tmp_path / "no.csv"), "cannot be read"),
    ):
        code, output = run(*begin, *options)
        assert (code, said in output, out.exists()) == (2, True, False), output
    assert run("make", "causal", "--cutouts", images, "--out", out)[0] == 2
    assert "goes with pictures or cutouts" in run("make", "causal", "--masks", masks, "--out", out)[1]
    assert "which is read" in run("make", "causal", "--pictures", images, "--out", images / "set", "--masks", masks)[1]
    code, output = run(*begin, "--masks", masks, "--fill", "smooth", "--count", "2")
    assert (code, "photographs: 2" in output) == (0, True), output
    (images / "pet0.png").write_bytes(b"")
    code, output = run(*begin[:-1], tmp_path / "fewer", "--masks", masks, "--fill", "smooth")
    assert (code, "cannot be read 1 pet0.png" in output) == (0, True), output
    sheet = tmp_path / "sheet.png"
    code, output = run("show", f"causal:{out}", "--out", sheet)
    assert (code, "2 photographs with twins, fill smooth" in output) == (0, True), output
    assert Image.open(sheet).width > 6 * 128
