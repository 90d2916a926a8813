// The five colours of digits, as the scene generator has them, in the order of their labels.

export const COLOURS = {
  green: [16, 166, 81],
  yellow: [255, 241, 78],
  white: [224, 224, 224],
  red: [146, 16, 16],
  blue: [16, 98, 192],
};
