// Looks that repeat together: one beat for each thing said, and in a beat every look, in the order of the trace.

/** What looks that share a beat are called there; any other look keeps its own name. */
const WORDS = {
  saliency: "saliency before",
  covert: "covert mask",
  priority: "priority map",
  inhibited: "saliency after",
};
const END = "end";

/** How many beats the looks share; 0 where fewer than two of them repeat, or have no beat in common. */
export function beatsOf(looks) {
  const repeating = looks.map(({ steps }) => steps).filter((steps) => steps > 1);
  const beats = Math.min(...repeating);
  return repeating.length > 1 && repeating.every((steps) => steps % beats === 0) ? beats : 0;
}

/** Acts beat by beat, in the order of the trace within each; what happens once stays before or behind them. */
export function inTime(acts) {
  const first = acts.findIndex(({ beat }) => beat !== null);
  const when = new Map(acts.map((act, number) => [act, act.beat ?? (number < first ? -1 : Infinity)]));
  return [...acts].sort((one, two) => (when.get(one) === when.get(two) ? 0 : when.get(one) - when.get(two)));
}

/** The name of a look within a beat of which it fills `steps`. */
export function nameInBeat(look, step, steps) {
  const name = WORDS[look.name] ?? look.name;
  return steps > 1 ? `${name} ${(step % steps) + 1}` : name;
}

/** Whether the answer is one "label", "labels" said one after the other, or a "sentence"; older views show it. */
export function kindOf(view) {
  return view.kind ?? (view.words ? "sentence" : view.labels ? "labels" : "label");
}

/** The words or labels of an answer that was said one after the other; null for one label. */
export function spokenIn(view) {
  return view.words ?? view.labels?.map(([word]) => word) ?? null;
}

/** The word or label of a beat, the end behind the last of them; undefined where nothing is said. */
export function saidAt(view, beat) {
  const said = spokenIn(view);
  return said?.[beat] ?? (beat === said?.length ? END : undefined);
}
