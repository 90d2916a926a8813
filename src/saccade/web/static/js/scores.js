// How much of a map lies on what was asked for, beside maps that know nothing: computed in the page, for one picture.

import { COLOURS } from "./colours.js";
import { project } from "./frames.js";

const SIGMA = 0.25; // of the centre Gaussian, as a share of the picture's sides

/**
 * {title, rows: [{label, value, own}]}: the share of weight on the evidence, of the map and of its baselines.
 *
 * `evidence` is {width, height, mask}; `others` the masks of all objects, or null where they are not known.
 */
export function onTarget(map, evidence, others, title = "Attention on the evidence") {
  const { width, height, mask } = evidence;
  const rows = [
    { label: "this model", value: share(project(map, evidence, width, height), mask), own: true },
    { label: "spread evenly", value: share(new Float32Array(mask.length).fill(1), mask) },
    { label: "always the centre", value: share(centre(width, height), mask) },
  ];
  if (others) rows.push({ label: "every digit", value: share(union(others), mask) });
  return { title, rows };
}

function share(values, mask) {
  let [inside, all] = [0, 0];
  values.forEach((value, at) => {
    all += value;
    if (mask[at]) inside += value;
  });
  return all ? inside / all : 0;
}

function centre(width, height) {
  return new Float32Array(width * height).map((_, at) => {
    const x = (((at % width) + 0.5) / width - 0.5) / SIGMA;
    const y = ((Math.floor(at / width) + 0.5) / height - 0.5) / SIGMA;
    return Math.exp(-0.5 * (x * x + y * y));
  });
}

function union(masks) {
  return new Float32Array(masks[0].length).map((_, at) => (masks.some((mask) => mask[at]) ? 1 : 0));
}

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
