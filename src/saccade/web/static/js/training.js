// The scenes that a model learned from, and whether one on the page is like them.
//
// `trained` is {digits: [fewest, most], sizes: [[low, high], …], colours, repeats, background}, as the source tells it;
// nothing is known of a model without one, and every scene is welcome.

const COUNTS = ["no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten"];
const BEHIND = {
  black: "on black",
  distractors: "among coloured clutter",
  clutter: "among grey clutter",
  photo: "on photographs",
};

/** In what `scene` is unlike those of training: {count, colours, sizes, repeats, background}, true where it is. */
export function unlike(trained, { digits, background }) {
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
