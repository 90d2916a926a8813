// The worker's end of the engine: one message in, one message out, in order, so that the page never waits for a look.

import { Looker } from "./looker.js";

const looker = new Looker();
const verbs = {
  load: ({ weights }) => looker.load(weights),
  look: ({ input, question, model }) => looker.look(input, question, model),
};

self.onmessage = ({ data: { id, verb, ...given } }) => {
  try {
    self.postMessage({ id, result: verbs[verb](given) });
  } catch (error) {
    self.postMessage({ id, error: error.message });
  }
};
