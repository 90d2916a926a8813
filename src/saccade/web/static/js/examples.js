// Scenes worth a look, each with the question that shows why, and whether a scene is like those that a model learned from.
//
// A digit of an example is [digit, glyph, x, y, size, colour]. `trained` is {digits: [fewest, most], sizes: [[low, high],
// …], colours, repeats, background}, as the source tells it; without one, every scene is welcome.

/** By name, in the order they are offered; one whose background cannot be drawn is left out by whoever offers them. */
export const EXAMPLES = {
  "Five digits": example("7", [
    [7, 0, 6, 8, 34, "red"],
    [3, 2, 50, 4, 44, "blue"],
    [2, 1, 34, 48, 30, "green"],
    [5, 4, 4, 62, 26, "yellow"],
    [9, 0, 64, 60, 32, "white"],
  ]),
  "Two digits": example("7", [
    [7, 0, 8, 30, 44, "red"],
    [4, 1, 66, 38, 24, "blue"],
  ]),
  "A multiset": example("3", [
    [3, 2, 10, 12, 38, "white"],
    [3, 5, 60, 14, 30, "white"],
    [7, 3, 34, 62, 32, "white"],
  ], "clutter"),
  "A set": example("8", [
    [8, 0, 8, 20, 30, "white"],
    [1, 3, 54, 6, 44, "white"],
    [4, 0, 62, 60, 32, "white"],
  ], "clutter"),
  "Nine of them": example("4", [
    [0, 1, 2, 2, 26, "white"],
    [1, 3, 36, 4, 26, "red"],
    [8, 2, 68, 2, 28, "green"],
    [3, 0, 2, 36, 28, "yellow"],
    [4, 5, 38, 37, 26, "blue"],
    [6, 1, 70, 36, 26, "red"],
    [9, 4, 2, 70, 26, "green"],
    [2, 3, 36, 70, 28, "white"],
    [7, 6, 70, 70, 26, "yellow"],
  ]),
  "Small among large": example("6", [
    [8, 0, 0, 0, 56, "yellow"],
    [0, 3, 44, 46, 54, "blue"],
    [6, 2, 70, 12, 16, "red"],
    [5, 1, 8, 66, 30, "green"],
  ]),
  "Two that touch": example("2", [
    [2, 2, 22, 26, 40, "green"],
    [8, 4, 44, 38, 40, "white"],
    [1, 0, 4, 66, 28, "red"],
  ]),
  "Not in the scene": example("1", [
    [7, 3, 8, 10, 36, "blue"],
    [4, 1, 54, 12, 34, "red"],
    [9, 2, 30, 56, 38, "yellow"],
  ]),
  "Coloured clutter": example("3", [
    [3, 1, 54, 50, 34, "blue"],
    [5, 4, 8, 10, 32, "green"],
    [7, 0, 56, 6, 30, "white"],
    [0, 4, 10, 58, 30, "red"],
    [2, 1, 40, 34, 16, "yellow"],
  ], "distractors"),
  "On a photograph": example("8", [
    [8, 1, 52, 8, 36, "yellow"],
    [5, 3, 8, 14, 30, "blue"],
    [6, 0, 14, 58, 34, "white"],
    [4, 2, 62, 60, 30, "red"],
    [1, 3, 38, 38, 18, "green"],
  ], "photo:palace"),
};

/** What the page opens with. */
export const FIRST = EXAMPLES["Five digits"];

function example(question, rows, background = "black") {
  const digits = rows.map(([digit, glyph, x, y, size, colour]) => ({ digit, glyph, x, y, size, colour }));
  return { question, scene: { digits, background, seed: 1 } };
}

const COUNTS = ["no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten"];
const BEHIND = {
  black: "on black",
  distractors: "among coloured clutter",
  clutter: "among grey clutter",
  photo: "on photographs",
};

/** In what `scene` is unlike those of training: {count, colours, sizes, repeats, background}, true where it is. */
function unlike(trained, { digits, background }) {
  if (!trained) return {};
  const [fewest, most] = trained.digits;
  const behind = background.split(":")[0];
  const isBare = behind === "black" && trained.background !== "photo"; // clutter lies on black too
  const hasSize = ({ size }) => trained.sizes.some(([low, high]) => size >= low && size <= high);
  return {
    count: digits.length < fewest || digits.length > most,
    colours: !digits.every(({ colour }) => trained.colours.includes(colour)),
    sizes: !digits.every(hasSize),
    repeats: !trained.repeats && new Set(digits.map(({ digit }) => digit)).size < digits.length,
    background: behind !== trained.background && !isBare,
  };
}

export function fits(trained, scene) {
  return !Object.values(unlike(trained, scene)).includes(true);
}

/** "Trained on scenes of one or two digits", naming only in what `scene` is unlike them; empty where it is not. */
export function adviceOn(trained, scene) {
  if (fits(trained, scene)) return "";
  const differs = unlike(trained, scene);
  const what = [
    differs.count && countOf(trained.digits),
    differs.colours && trained.colours.join(" or "),
    differs.count && trained.digits[1] === 1 ? "digit" : "digits",
  ];
  const how = [
    differs.sizes && `${trained.sizes.map((range) => range.join("–")).join(" or ")} px large`,
    differs.repeats && "none of them twice",
    differs.background && BEHIND[trained.background],
  ];
  return `Trained on scenes of ${[what.filter(Boolean).join(" "), ...how.filter(Boolean)].join(", ")}.`;
}

function countOf([fewest, most]) {
  if (fewest === most) return COUNTS[most];
  if (!fewest) return `at most ${COUNTS[most]}`;
  return `${COUNTS[fewest]} ${most === fewest + 1 ? "or" : "to"} ${COUNTS[most]}`;
}
