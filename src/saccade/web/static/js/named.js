// Which digits of a composed scene a word is about: "seven" and "7" the sevens, "blue" the only blue one.

import { COLOURS } from "./palette.js";

const DIGITS = ["zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine"];

/** The pixels (bytes 0 or 1) of what `word` names among `digits` with their `masks`; null where it names none. */
export function maskNamed(word, digits, masks) {
  const spelled = DIGITS.indexOf(word);
  const wanted = spelled < 0 ? word : String(spelled);
  const isColour = word in COLOURS;
  const named = masks.filter((_, number) => {
    const { digit, colour } = digits[number];
    return isColour ? colour === word : String(digit) === wanted;
  });
  if (!named.length || (isColour && named.length > 1)) return null;
  return named[0].map((_, at) => (named.some((mask) => mask[at]) ? 1 : 0));
}
