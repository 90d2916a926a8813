// The colour maps of the page: lightness rises in all of them, so they read without any sense of red and green.

export const COLOURS = {
  green: [16, 166, 81],
  yellow: [255, 241, 78],
  white: [224, 224, 224],
  red: [146, 16, 16],
  blue: [16, 98, 192],
};

const ANCHORS = {
  saccade: [
    [36, 0, 89],
    [17, 39, 131],
    [0, 81, 126],
    [2, 113, 136],
    [3, 145, 145],
    [4, 179, 143],
    [104, 207, 121],
    [189, 226, 104],
    [255, 241, 155],
  ],
  viridis: [
    [68, 1, 84],
    [71, 45, 123],
    [59, 82, 139],
    [44, 114, 142],
    [33, 145, 140],
    [40, 174, 128],
    [94, 201, 98],
    [173, 220, 48],
    [253, 231, 37],
  ],
  cividis: [
    [0, 34, 78],
    [26, 56, 111],
    [67, 78, 108],
    [97, 101, 111],
    [125, 124, 120],
    [155, 148, 118],
    [188, 174, 108],
    [222, 201, 88],
    [254, 232, 56],
  ],
};

const LEVELS = 512;
const tables = new Map();

export const COLOUR_MAPS = Object.keys(ANCHORS);

/** How much of the picture the colour hides where there is no weight, as a share of what it hides at the peak. */
export const FLOOR = 0.45;

/** RGB bytes (3 × LEVELS) of a colour map. */
export function colourTable(name) {
  if (!tables.has(name)) {
    const anchors = ANCHORS[name];
    const table = new Uint8ClampedArray(3 * LEVELS);
    for (let level = 0; level < LEVELS; level++) {
      const at = (level / (LEVELS - 1)) * (anchors.length - 1);
      const low = Math.min(Math.floor(at), anchors.length - 2);
      for (let channel = 0; channel < 3; channel++) {
        const [from, to] = [anchors[low][channel], anchors[low + 1][channel]];
        table[3 * level + channel] = from + (at - low) * (to - from);
      }
    }
    tables.set(name, table);
  }
  return tables.get(name);
}

/** RGBA pixels of values between 0 and 1: colour by value, and more of it where there is more weight. */
export function heat(values, name, opacity, into) {
  const table = colourTable(name);
  for (let i = 0; i < values.length; i++) {
    const value = values[i];
    const at = 3 * Math.round(value * (LEVELS - 1));
    into[4 * i] = table[at];
    into[4 * i + 1] = table[at + 1];
    into[4 * i + 2] = table[at + 2];
    into[4 * i + 3] = 255 * opacity * (FLOOR + (1 - FLOOR) * value);
  }
  return into;
}
