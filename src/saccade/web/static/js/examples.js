// Scenes worth a look, each with the question that shows why; a digit is [digit, glyph, x, y, size, colour].

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
