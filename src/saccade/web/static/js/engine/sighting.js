// A sighting as view JSON, the form in which the page draws answers wherever they were computed.

import { softmax } from "./layers.js";
import { combine, project } from "./projection.js";
import { base64FromFloats } from "./tensor.js";

const VIEW_SCHEMA = "saccade.view/1";

/** What a model (its facts) saw in one picture of the size of its input: `logits` and the `weights` of its looks. */
export function viewOf(facts, question, { logits, weights }) {
  const maps = facts.looks.map((look, number) => project(weights[number], look.grid, look.frame, facts.size));
  return {
    ...said(facts, facts.queries[question], ranked(facts, softmax(logits.map((logit) => logit / (facts.temperature ?? 1))))),
    picture: { name: null, width: facts.size[1], height: facts.size[0], png: null },
    looks: facts.looks.map((look, number) => ({ ...look, ...written(weights[number]), ...ONCE })),
    total: { grid: facts.size, frame: [[1, 0, 0], [0, 1, 0]], ...written(combine(maps, facts.total)) },
  };
}

/**
 * What a model said of something that is no picture: `answers` are [word, share], likeliest first, and `looks` are
 * {weights, slots}, in the order of the facts' looks.
 */
export function viewOfSlots(facts, { question, answers, looks, notes }) {
  const look = ({ weights, slots }, number) => ({ ...facts.looks[number], ...written(weights), ...ONCE, slots, own_slots: 0 });
  return { ...said(facts, question, answers), looks: looks.map(look), notes };
}

/** Every answer with its share, likeliest first. */
function ranked(facts, shares) {
  const named = Array.from(shares, (share, answer) => [facts.answers[answer], share]);
  return named.sort((first, second) => second[1] - first[1]);
}

/** A view of an answer, with nothing looked at. */
function said(facts, question, [best, ...others]) {
  return {
    schema: VIEW_SCHEMA,
    model: facts.model,
    family: facts.family,
    picture: null,
    question,
    answer: best[0],
    kind: "label",
    confidence: best[1],
    calibrated: Boolean(facts.temperature),
    // The page computes no features to compare.
    fit: {
      verdict: "not known",
      p: null,
      level: 0.01,
      sentence: "not known whether this is like what the model learned from",
    },
    alternatives: others,
    labels: null,
    words: null,
    looks: [],
    total: null,
    evidence: null,
    scores: null,
    notes: [],
  };
}

/** What a look has that happens once and weighs every cell. */
const ONCE = { steps: 1, active: [true], gain: null, choice: null, emits: null, box: null };

function written(weights) {
  return { weights: base64FromFloats(weights), dtype: "float32" };
}
