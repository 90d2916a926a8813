// Attention scores: how well each cell of a map fits a question (saccade.attention.scores, Eq. 2 and 9 of Seo et al.).

import { Convolution, convolve } from "./layers.js";
import { floatsFromBase64, matrixFromStored } from "./tensor.js";

/** g_att: features and question are each mapped to a few hidden units, added, rectified and read out by one. */
export class Scorer {
  constructor({ see, asked, read, bias }) {
    this.layer = new Convolution(see);
    this.asked = matrixFromStored(asked); // questions × hidden units
    this.read = floatsFromBase64(read);
    this.bias = bias;
  }

  /** What of the scores does not depend on the question; nearly all of their cost. */
  see(features) {
    return convolve(features, this.layer);
  }

  /** The score of every cell of what was seen, for a question by its number. */
  meet(seen, question) {
    const { read, bias } = this;
    const hidden = seen.channels;
    const asked = this.asked.subarray(question * hidden, (question + 1) * hidden);
    const scores = new Float32Array(seen.height * seen.width);
    for (let cell = 0, at = 0; cell < scores.length; cell++) {
      let score = bias;
      for (let unit = 0; unit < hidden; unit++, at++) {
        score += Math.max(0, seen.data[at] + asked[unit]) * read[unit];
      }
      scores[cell] = score;
    }
    return scores;
  }
}
