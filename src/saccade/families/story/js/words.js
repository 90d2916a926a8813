// How a text is cut into words: the same words as saccade.families.story.stories.words_of gives.

const SPACES = "\t-\r\x1c-\x20\x85\xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000"; // those that Python splits at
const BETWEEN = new RegExp(`([${SPACES},]+)`);
const SPACE = new RegExp(`[${SPACES}]+`);
const AROUND = ".?!\"'“”‘’„«»`";

/** The words of `text` in lower case, without the marks around them. */
export function wordsOf(text) {
  return piecesOf(text)
    .map(({ word }) => word)
    .filter(Boolean);
}

/** `text` cut into pieces that make it up again: {text, word}, where `word` is empty for what stands between words. */
export function piecesOf(text) {
  const cut = text.split(BETWEEN);
  return cut.map((piece, at) => ({ text: piece, word: at % 2 ? "" : stripped(piece.toLowerCase()) }));
}

/** `text` with single spaces, and none at its ends. */
export function tidy(text) {
  return text.split(SPACE).filter(Boolean).join(" ");
}

function stripped(piece) {
  let [start, end] = [0, piece.length];
  while (start < end && AROUND.includes(piece[start])) start += 1;
  while (end > start && AROUND.includes(piece[end - 1])) end -= 1;
  return piece.slice(start, end);
}
