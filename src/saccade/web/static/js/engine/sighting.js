// A sighting as view JSON, the form in which the page draws answers wherever they were computed.

import { softmax } from "./layers.js";
import { combine, project } from "./projection.js";
import { base64FromFloats } from "./tensor.js";

const VIEW_SCHEMA = "saccade.view/1";

/** What a model (its facts) saw in one picture of the size of its input: `logits` and the `weights` of its looks. */
export function viewOf(facts, question, { logits, weights }) {
  const shares = Array.from(softmax(logits), (share, answer) => [facts.answers[answer], share]);
  const [best, ...others] = shares.sort((first, second) => second[1] - first[1]);
  const maps = facts.looks.map((look, number) => project(weights[number], look.grid, look.frame, facts.size));
  return {
    schema: VIEW_SCHEMA,
    model: facts.model,
    family: facts.family,
    picture: { name: null, width: facts.size[1], height: facts.size[0], png: null },
    question: facts.queries[question],
    answer: best[0],
    kind: "label",
    confidence: best[1],
    alternatives: others,
    labels: null,
    words: null,
    looks: facts.looks.map((look, number) => ({ ...look, ...written(weights[number]), ...ONCE })),
    total: { grid: facts.size, frame: [[1, 0, 0], [0, 1, 0]], ...written(combine(maps, facts.total)) },
    evidence: null,
    scores: null,
  };
}

/** What a look has that happens once and weighs every cell. */
const ONCE = { steps: 1, active: [true], gain: null, choice: null, emits: null, box: null };

function written(weights) {
  return { weights: base64FromFloats(weights), dtype: "float32" };
}
