"""Captioned scenes and files as batches: true sentences, vocabularies, like lengths; tables, COCO and Flickr."""

import json
from functools import partial
from itertools import pairwise
from pathlib import Path

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

import saccade
from caption_stubs import save_tiny_captioner
from saccade.data import Table
from saccade.data.scenes.drawing import COLOURS, render
from saccade.data.scenes.glyphs import glyphs_for
from saccade.data.scenes.layout import SceneLayout
from saccade.errors import CheckpointError, DataError
from saccade.families.caption import published
from saccade.families.caption.data import CaptionDataConfig, CaptionFiles, CaptionScenes, bucketed_order, vocabulary_of
from saccade.families.caption.published import CocoOptions, FlickrOptions, read_coco, read_flickr
from saccade.families.caption.scenes import (
    MARGIN,
    SCENE_VOCABULARY,
    SIDES,
    check_words,
    describe,
    sample_captioned,
    scene_spec,
    scene_vocabulary,
)
from saccade.families.caption.task import CaptionTask, summary_of
from saccade.families.caption.vocabulary import END, UNKNOWN, Vocabulary, tokenise
from saccade.predict import Predictor
from small_tables import pretend_pictures, table_of

DIGITS = ("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine")


def sample(numbers: torch.Tensor, size: int = 100, seed: int = 0, empty: float = 0.0) -> SceneLayout:
    return sample_captioned(scene_spec(size, empty), glyphs_for("train", "pack"), seed, numbers)


def said(layout: SceneLayout) -> list[str]:
    return [SCENE_VOCABULARY.decode(words) for words in describe(layout)[0].tolist()]


@pytest.fixture(scope="module")
def thousand() -> SceneLayout:
    return sample(torch.arange(1000))


@pytest.mark.parametrize("size", [40, 137])
def test_one_sentence_is_true_by_a_margin(size):
    layout = sample(torch.arange(5000), size)
    percent = layout.side[layout.present]
    small, large = ([bound * size // 100 for bound in bounds] for bounds in SIDES)
    assert set(percent.unique().tolist()) == {*range(small[0], small[1] + 1), *range(large[0], large[1] + 1)}
    for edge in (layout.x, layout.y):
        assert (edge >= 0).all()
        assert (edge + layout.side <= size)[layout.present].all()
    two = layout[(layout.count == 2).nonzero().squeeze(1)]
    across, down = ((2 * edge + two.side).diff(dim=1).squeeze(1) for edge in (two.x, two.y))  # half pixels
    assert ((down.abs() - across.abs()).abs() >= 2 * (MARGIN * size // 100)).all()
    above = down.abs() > across.abs()
    assert (down[above] > 0).all()  # the first is the upper one …
    assert (across[~above] > 0).all()  # … or the left one
    gap = torch.where(above, two.y[:, 1] - two.y[:, 0] - two.side[:, 0], two.x[:, 1] - two.x[:, 0] - two.side[:, 0])
    assert (gap >= 0).all()
    assert (two.classes[:, 0] != two.classes[:, 1]).all()


def test_sentences_say_what_is_there(thousand):
    """Each sentence spelled out by hand from the layout."""

    def phrase(b: int, k: int) -> str:
        size = "small" if thousand.side[b, k] <= 27 else "large"
        return f"a {size} {COLOURS[int(thousand.colour[b, k])]} {DIGITS[int(thousand.classes[b, k])]}"

    for b, sentence in enumerate(said(thousand)):
        if not thousand.present[b, 1]:
            assert sentence == phrase(b, 0)
            continue
        x0, y0, x1, y1 = (thousand.boxes[b, :, :2] * 2 + thousand.side[b, :, None]).flatten().tolist()
        relation = "above" if abs(y1 - y0) > abs(x1 - x0) else "left of"
        assert sentence == f"{phrase(b, 0)} {relation} {phrase(b, 1)}"


def test_of_an_empty_scene_nothing_is_said_shown_or_named():
    layout = sample(torch.arange(30), empty=1.0)
    words, names = describe(layout)
    assert words.tolist() == [[23, 0, *[-1] * 9]] * 30
    assert set(said(layout)) == {"nothing"}
    assert (names == -1).all()
    assert not render(layout).any()
    assert not layout.masks().any()
    with pytest.raises(DataError, match="lacks 'nothing'"):
        check_words(scene_vocabulary(empty=False), empty=True)


def generated(split: str = "val", **settings) -> CaptionScenes:
    return CaptionScenes(CaptionDataConfig(glyphs="pack", **settings), split)


@pytest.fixture
def table(tmp_path: Path) -> Path:
    """Four training pictures of one colour each, one of them as flat as a line, and one to test on."""
    rows = []
    for number, (colour, size) in enumerate(
        [("red", (40, 30)), ("blue", (30, 40)), ("green", (1, 300)), ("white", (20, 20)), ("red", (50, 20))]
    ):
        Image.new("RGB", size, colour).save(tmp_path / f"{number}.png")
        split = "test" if number == 4 else "train"
        rows += [
            {"image": f"{number}.png", "caption": f"a {colour} picture{tail}", "split": split} for tail in ("", " .")
        ]
    rows.append({"image": "0.png", "caption": "A red picture on this page", "split": "train"})
    (tmp_path / "t.jsonl").write_text("\n".join(json.dumps(row) for row in rows))
    return tmp_path / "t.jsonl"


def opened(table: Path, split: str = "train", words: Vocabulary | None = None, **settings) -> CaptionFiles:
    config = CaptionDataConfig(f"jsonl:{table}", **{"size": (32, 32), "at_least": 2, **settings})
    rows = CaptionTask.read(config)
    return CaptionFiles(config, rows, split, vocabulary=words or vocabulary_of(rows, config))


def test_masks_of_words_are_the_pixels_of_their_digit():
    data = generated()
    batch = data.take(torch.arange(60))
    masks = batch.word_masks()
    assert masks.shape == (60, 11, 100, 100)
    assert torch.equal(masks.flatten(2).any(-1), batch.has_mask)
    tint = torch.tensor([{"green": 1, "blue": 2, "red": 0}.get(name, -1) for name in COLOURS])
    for b in range(60):
        text = [data.vocabulary[word] if word >= 0 else "" for word in batch.words[b].tolist()]
        assert [word for word, has in zip(text, batch.has_mask[b]) if has] == [
            word for word in text if word not in {"", "a", "above", "left", "of", "<end>"}
        ]
        for t, word in enumerate(text):
            if word in COLOURS and (channel := int(tint[COLOURS.index(word)])) >= 0:
                assert int(batch.images[b][:, masks[b, t]].mean(1).argmax()) == channel
    both = (masks[:, 1] & masks[:, 6]).flatten(1).any(-1) | (masks[:, 1] & masks[:, 7]).flatten(1).any(-1)
    assert not both.any()  # two digits share no pixel


def test_recolouring_changes_one_word_and_its_pixels():
    data = generated("train")
    batch = data.take(torch.arange(80))
    for which in (0, 1):
        here = batch if which == 0 else data.take((batch.layout.count == 2).nonzero().squeeze(1))
        changed = here.recolour(which)
        differs = changed.words != here.words
        assert (differs.sum(1) == 1).all()
        assert (here.names[differs] == which).all()
        old, new = here.words[differs].tolist(), changed.words[differs].tolist()
        assert all(data.vocabulary[word] in COLOURS for word in (*old, *new))
        pixels = (changed.images != here.images).any(1)
        inside = here.layout.mask_of(torch.full((len(here),), which))
        assert not (pixels & ~inside).any()
        assert pixels.flatten(1).any(1).all()
        assert torch.equal(changed.word_masks(), here.word_masks())


def test_captions_and_pictures_of_files(table):
    data = opened(table)
    assert data.vocabulary.words == ("a", "picture", "red", "blue", "green", "white")
    assert (data.size, data.picture_count) == (9, 4)
    batch = data.take(torch.tensor([2, 0]))
    assert batch.words.tolist() == [[2, 4, 3, 1, 1, 1, 0], [2, 4, 3, 0, -1, -1, -1]]
    assert batch.picture.tolist() == [0, 0]
    assert data.lengths.tolist() == [4, 4, 7, 4, 4, 4, 4, 4, 4]
    assert batch.word_masks() is None
    assert not batch.has_mask.any()
    pictures = data.of_pictures(torch.arange(4))
    assert pictures.words.shape == (4, 4)
    assert torch.equal(pictures.images[0], batch.images[0])
    assert data.references(1) == ("a blue picture", "a blue picture .")


def test_words_come_from_training_captions_and_a_model_brings_its_own(table):
    test = opened(table, "test")
    assert test.vocabulary == opened(table).vocabulary
    own = opened(table, "test", Vocabulary(("picture", "a")))
    assert own.take(torch.tensor([0])).words.tolist() == [[3, 1, 2, 0]]


def test_captions_without_a_known_word_are_no_pairs_but_stay_references(table):
    with pytest.warns(UserWarning, match="6 × no known word .1.png"):
        data = opened(table, words=Vocabulary(("red",)))
    assert data.size == 3
    assert data.picture_count == 4
    assert data.references(1) == ("a blue picture", "a blue picture .")
    assert data.of_pictures(torch.tensor([1])).words.tolist() == [[1, 1, 1, 0]]
    with pytest.raises(DataError, match="no known word"):
        opened(table, words=Vocabulary(("dog",)))


CAPTIONS = ("A dog.", "a cat and a dog", "the Dog")  # dog 3, a 3, and 1, cat 1, the 1


def test_the_most_frequent_come_first_and_ties_go_by_the_alphabet():
    vocabulary = Vocabulary.build(CAPTIONS, at_least=1)
    assert vocabulary.words == ("a", "dog", "and", "cat", "the")
    assert vocabulary.entries == ("<end>", "<unknown>", "a", "dog", "and", "cat", "the")
    assert len(vocabulary) == 7
    assert [vocabulary[number] for number in range(7)] == list(vocabulary.entries)
    assert "dog" in vocabulary
    assert "<end>" not in vocabulary


def test_frequency_and_number_cut_it():
    assert Vocabulary.build(CAPTIONS, at_least=2).words == ("a", "dog")
    assert Vocabulary.build(CAPTIONS, at_least=1, most=3).words == ("a", "dog", "and")


def test_there_and_back():
    vocabulary = Vocabulary(("a", "dog"))
    assert vocabulary.encode("A dog, a CAT!") == [2, 3, 2, UNKNOWN]
    assert vocabulary.decode([2, 3, 2, UNKNOWN, END, 3]) == "a dog a <unknown>"
    assert vocabulary.decode([2, -1, 3]) == "a"
    assert vocabulary.decode([]) == vocabulary.decode([END]) == ""
    assert vocabulary.encode("") == []


def test_damaged_words_of_a_model_are_refused():
    for entries in ([], ["a", "b"], ["<end>", "<unknown>", "a", "a"]):
        with pytest.raises(CheckpointError):
            Vocabulary.of_model(entries)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("The dog's ball, isn't it?", "the dog 's ball is n't it"),
        ("They’re at the boys’ park", "they 're at the boys park"),
        ("can't won't n't", "ca n't wo n't n't"),
        ("ＡＢＣ ﬁsh CAFÉ", "abc fish café"),
        ("काला कुत्ता दौड़ता है।", "काला कुत्ता दौड़ता है"),
        ("<end> a-b- -c . , ! \n\t", "end a-b c"),
    ],
)
def test_words(text, words):
    assert tokenise(text) == words.split()


@given(st.lists(st.integers(1, 9), min_size=1, max_size=60), st.integers(1, 9), st.integers(0, 99), st.integers(0, 9))
def test_every_caption_comes_once_and_full_batches_are_neighbours_in_length(lengths, batch_size, seed, epoch):
    given_lengths = torch.tensor(lengths)
    order = bucketed_order(given_lengths, batch_size, seed, epoch)
    assert sorted(order.tolist()) == list(range(len(lengths)))
    assert torch.equal(order, bucketed_order(given_lengths, batch_size, seed, epoch))
    batches = given_lengths[order].split(batch_size)
    assert all(len(batch) == batch_size for batch in batches[:-1])
    # Batches cut from one sorted row: two of them share at most one length.
    spans = sorted((int(batch.min()), int(batch.max())) for batch in batches[: len(lengths) // batch_size])
    assert all(before[1] <= after[0] for before, after in pairwise(spans))


@pytest.fixture(scope="module", params=["soft", "hard"])
def teller(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Predictor:
    folder = save_tiny_captioner(tmp_path_factory.mktemp("models") / request.param, hard=request.param == "hard")
    return saccade.load(folder, "cpu")


@pytest.mark.parametrize(("beam", "captions"), [(2, 3), (0, 1), (1, 0)])
def test_more_captions_than_the_beam_follows_are_refused(teller: Predictor, beam: int, captions: int) -> None:
    with pytest.raises(DataError, match="no more than the beam follows"):
        teller.look("no-such-picture.png", beam=beam, captions=captions)


@pytest.fixture
def pictures_folder(tmp_path: Path) -> Path:
    return pretend_pictures(tmp_path)


def csv(pictures_folder: Path, text: str, **options: object) -> Table:
    return table_of(pictures_folder / "t.csv", text, "caption", **options)


def jsonl(pictures_folder: Path, *rows: object) -> Table:
    return table_of(pictures_folder / "t.jsonl", "\n".join(map(json.dumps, rows)), "caption")


THREE = 'image,caption,split\na.png,A dog.,train\nb.png,"A cat, red.",test\na.png,  Two \t dogs ,train\n'


def test_rows_of_one_picture_are_gathered(pictures_folder):
    table = csv(pictures_folder, THREE, strict=True)
    assert [(row.image.name, row.labels, row.split) for row in table.rows] == [
        ("a.png", ("A dog.", "Two dogs"), "train"),
        ("b.png", ("A cat, red.",), "test"),
    ]
    assert [table.count(split) for split in ("train", "val", "test")] == [1, 0, 1]
    assert "3 captions, 9 words" in summary_of(table, Vocabulary(tuple("abcdefghi")))
    assert [row.labels for row in csv(pictures_folder, THREE, captions=1).rows] == [("A dog.",), ("A cat, red.",)]


@pytest.mark.parametrize(
    ("row", "skipped"),
    [
        ({"image": "a.png", "caption": "..."}, "empty caption: line 2, '...' has no word"),
        ({"image": "a.png", "caption": "A dog"}, "duplicate: line 2, A dog"),
        ({"image": "a.png", "caption": ["x"]}, 'no caption: line 2, found ["x"]'),
    ],
)
def test_rows_that_cannot_be_used(pictures_folder, row, skipped):
    table = jsonl(pictures_folder, {"image": "a.png", "caption": "A dog"}, row)
    assert table.skipped == (skipped,)
    assert [row.labels for row in table.rows] == [("A dog",)]


PLAIN, WITH_REST = CocoOptions(), CocoOptions(restval=True)


def coco_pictures(coco: Path, part: str, count: int) -> list[str]:
    (coco / part).mkdir(parents=True)
    names = [f"COCO_{part}_{number:012d}.jpg" for number in range(count)]
    for name in names:
        (coco / part / name).write_bytes(b"not read")
    return names


def annotate(coco: Path, part: str, names: list[str], each: int = 6) -> dict:
    content = {
        "info": {"year": 2014},
        "images": [{"id": number, "file_name": name} for number, name in enumerate(names)],
        "annotations": [
            {"id": each * number + n, "image_id": number, "caption": f"Caption {n}"}
            for n in range(each)
            for number in range(len(names))
        ],
    }
    (coco / "annotations").mkdir(exist_ok=True)
    (coco / "annotations" / f"captions_{part}.json").write_text(json.dumps(content))
    return content


@pytest.fixture
def coco(tmp_path: Path) -> Path:
    for part, count in (("train2014", 4), ("val2014", 9)):
        annotate(tmp_path, part, coco_pictures(tmp_path, part, count))
    return tmp_path


def test_annotations_are_cut_into_val_test_and_the_rest(coco, monkeypatch):
    assert counts(read_coco(coco, PLAIN)) == [4, 4, 4]  # fewer than 10,000: half of them each
    monkeypatch.setattr(published, "COCO_HELD_OUT", 2)
    assert counts(read_coco(coco, PLAIN)) == [4, 2, 2]
    table = read_coco(coco, WITH_REST)
    assert counts(table) == [9, 2, 2]
    assert table.skipped == ()
    assert all(len(row.labels) == 5 for row in table.rows)  # the sixth is dropped
    assert table.rows[0].labels == tuple(f"Caption {n}" for n in range(5))


def test_karpathys_splits(coco):
    def entry(part: str, number: int, split: str) -> dict:
        name = f"COCO_{part}_{number:012d}.jpg"
        return {"filepath": part, "filename": name, "split": split, "sentences": [{"raw": "A dog"}] * 6}

    entries = [entry("train2014", 0, "train"), entry("val2014", 0, "val"), entry("val2014", 1, "test")]
    entries += [entry("val2014", 2, "restval"), entry("val2014", 99, "test")]
    (coco / "dataset_coco.json").write_text(json.dumps({"images": entries, "dataset": "coco"}))
    table = read_coco(coco, PLAIN)
    assert counts(table) == [1, 1, 1]
    assert table.skipped == ("no such picture: COCO_val2014_000000000099.jpg, val2014/COCO_val2014_000000000099.jpg",)
    assert table.rows[0].labels == ("A dog",) * 5  # said by several people
    assert counts(read_coco(coco / "dataset_coco.json", WITH_REST)) == [2, 1, 1]


def test_what_is_not_coco_is_named(coco, tmp_path):
    with pytest.raises(DataError, match=r"neither dataset_coco\.json"):
        read_coco(tmp_path / "nowhere", PLAIN)
    (coco / "annotations/captions_train2014.json").write_text('{"images": [3]}')
    with pytest.raises(DataError, match="captions_train2014"):
        read_coco(coco, PLAIN)


PICTURES = {"train": [f"t{n}.jpg" for n in range(6)], "val": ["v0.jpg", "v1.jpg"], "test": ["s0.jpg"]}
LISTS = {"train": "Flickr_8k.trainImages.txt", "val": "Flickr_8k.devImages.txt", "test": "Flickr_8k.testImages.txt"}
OFFICIAL, ON_DEV = FlickrOptions(), FlickrOptions(splits="dev")
read_flickr8k = partial(read_flickr, "flickr8k")


def token_lines(names: list[str], each: int = 2) -> str:
    return "".join(f"{name}#{n}\tCaption {n} of {name} .\n" for name in names for n in range(each))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Flickr8k in small; one picture is in no list."""
    (tmp_path / "Images").mkdir()
    everything = [name for names in PICTURES.values() for name in names]
    for name in (*everything, "unlisted.jpg"):
        (tmp_path / "Images" / name).write_bytes(b"not read")
    for split, names in PICTURES.items():
        (tmp_path / LISTS[split]).write_text("\n".join(names))
    (tmp_path / "Flickr8k.token.txt").write_text(token_lines([*everything, "unlisted.jpg"]))
    return tmp_path


def add(folder: Path, line: bytes) -> None:
    tokens = folder / "Flickr8k.token.txt"
    tokens.write_bytes(tokens.read_bytes() + line)


def counts(table) -> list[int]:
    return [table.count(split) for split in ("train", "val", "test")]


def test_the_official_lists(folder):
    table = read_flickr8k(folder, OFFICIAL)
    assert counts(table) == [6, 2, 1]
    assert table.skipped == ()
    assert table.rows[0].labels == ("Caption 0 of t0.jpg .", "Caption 1 of t0.jpg .")
    assert table.rows[0].image == folder / "Images" / "t0.jpg"
    assert "unlisted.jpg" not in {row.image.name for row in table.rows}


def test_reporting_on_dev_holds_training_pictures_out(folder, monkeypatch):
    monkeypatch.setattr(published, "FLICKR_HELD_OUT", 2)
    table = read_flickr8k(folder, ON_DEV)
    assert counts(table) == [4, 2, 2]
    by_split = {split: {row.image.name for row in table.rows if row.split == split} for split in PICTURES}
    assert by_split["test"] == set(PICTURES["val"])
    assert by_split["train"] | by_split["val"] == set(PICTURES["train"])
    assert {row.image.name for row in read_flickr8k(folder, ON_DEV).rows if row.split == "val"} == by_split["val"]


@pytest.mark.parametrize(
    ("line", "skipped"),
    [
        (b"t0.jpg#5\n", "not PICTURE#NUMBER, tab, caption: Flickr8k.token.txt line 21, 't0.jpg#5'"),
        (b"t0.jpg#5\tcaf\xe9\n", "unreadable caption: Flickr8k.token.txt line 21, 'caf\\udce9'"),
    ],
)
def test_captions_that_cannot_be_used(folder, line, skipped):
    add(folder, line)
    table = read_flickr8k(folder, OFFICIAL)
    assert table.skipped == (skipped,)
    assert counts(table) == [6, 2, 1]


def test_folders_that_cannot_be_used(folder, tmp_path):
    for place in (tmp_path / "nowhere", folder / "Flickr8k.token.txt"):
        with pytest.raises(DataError, match="no pictures"):
            read_flickr8k(place, OFFICIAL)
    (folder / LISTS["val"]).write_text("t0.jpg\n")
    with pytest.raises(DataError, match="t0 is listed for train too"):
        read_flickr8k(folder, OFFICIAL)


def test_a_file_of_another_layout_is_named(folder):
    (folder / "dataset_flickr8k.json").write_text('{"images": [{"id": 3}]}')
    with pytest.raises(DataError, match="lacks filename, split or sentences"):
        read_flickr8k(folder, OFFICIAL)


def test_flickr30k_by_lists_of_bare_numbers(tmp_path):
    (tmp_path / "flickr30k-images").mkdir()
    for name in ("1.jpg", "2.jpg", "3.jpg"):
        (tmp_path / "flickr30k-images" / name).write_bytes(b"")
    (tmp_path / "results_20130124.token").write_text(token_lines(["1.jpg", "2.jpg", "3.jpg"], each=5))
    for split, number in (("train", "1"), ("val", "2"), ("test", "3")):
        (tmp_path / f"{split}.txt").write_text(f"{number}\n")
    table = read_flickr("flickr30k", tmp_path, OFFICIAL)
    assert [(row.image.name, row.split, len(row.labels)) for row in table.rows] == [
        ("1.jpg", "train", 5),
        ("2.jpg", "val", 5),
        ("3.jpg", "test", 5),
    ]
