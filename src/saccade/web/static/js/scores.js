// How much of a map lies on what was asked for, beside maps that know nothing: computed in the page, for one picture.

import { COLOURS } from "./colours.js";
import { project } from "./frames.js";

const SIGMA = 0.25; // of the centre Gaussian, as a share of the picture's sides
const METRICS = { true_positive_strength: "Attention on the evidence" };
const BASELINES = { uniform: "spread evenly", centre_gaussian: "always the centre", all_objects_exact: "every digit" };

/**
 * {title, rows: [{label, value, own}]}: the share of weight on the evidence, of the map and of its baselines.
 *
 * `evidence` is {width, height, mask}; `others` the masks of all objects, or null where they are not known.
 */
export function onTarget(map, evidence, others, title = METRICS.true_positive_strength) {
  const { width, height, mask } = evidence;
  const rows = [
    { label: "this model", value: share(project(map, evidence, width, height), mask), own: true },
    { label: BASELINES.uniform, value: share(new Float32Array(mask.length).fill(1), mask) },
    { label: BASELINES.centre_gaussian, value: share(centre(width, height), mask) },
  ];
  if (others) rows.push({ label: BASELINES.all_objects_exact, value: share(union(others), mask) });
  return { title, rows };
}

/** The scores that came with a view ({attention, baselines}), as tables of the same form. */
export function scoresOfView(scores) {
  return Object.entries(METRICS).flatMap(([metric, title]) => {
    const own = scores?.attention?.[metric];
    if (typeof own !== "number") return [];
    const others = Object.entries(scores.baselines ?? {}).filter(([, found]) => typeof found?.[metric] === "number");
    const rows = others.map(([name, found]) => ({
      label: BASELINES[name] ?? name.replaceAll("_", " "),
      value: found[metric],
    }));
    return [{ title, rows: [{ label: "this model", value: own, own: true }, ...rows] }];
  });
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
