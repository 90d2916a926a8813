// The networks that the engine computes: SOFT, HAttNet and HAttNet-CTX (saccade.models.soft, saccade.models.hattnet).

import { floatsFromBase64 } from "../views.js";
import {
  Convolution,
  convolve,
  gated,
  Linear,
  matrixFromStored,
  sigmoid,
  softmax,
  stage,
  weightedSum,
} from "./layers.js";

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

export class SoftModel {
  constructor({ stages, attention, head }) {
    this.stages = stages.map(({ convolution }) => new Convolution(convolution));
    this.answer = new SoftAnswer(attention, head);
  }

  /** What does not depend on the question, of a picture as a feature map of three channels. */
  encode(picture) {
    const features = this.stages.reduce(stage, picture);
    return { features, seen: this.answer.scorer.see(features) };
  }

  /** Logits, and the weights of every look in order. */
  ask({ features, seen }, question) {
    const { logits, weights } = this.answer.of(features, seen, question);
    return { logits, weights: [weights] };
  }
}

/** The last act of SOFT and of HAttNet: a softmax over the cells, their sum, the classifier. */
export class SoftAnswer {
  constructor(attention, head) {
    this.scorer = new Scorer(attention);
    this.head = new Linear(head);
  }

  of(features, seen, question) {
    const weights = softmax(this.scorer.meet(seen, question));
    return { logits: this.head.apply(weightedSum(features, weights)), weights };
  }
}

export class HAttNetModel {
  constructor({ stages, attention, head }) {
    this.stages = stages.map(({ norm, convolution, gate }) => ({
      layer: new Convolution(convolution, norm),
      gate: gate && new Scorer(gate),
    }));
    this.answer = new SoftAnswer(attention, head);
    this.first = this.stages.findIndex(({ gate }) => gate); // the stage behind which the question enters
    if (this.first < 0) this.first = this.stages.length - 1;
  }

  /** The stages before the question enters, and what its first scorer sees; half of the cost of a look. */
  encode(picture) {
    const features = this.stages.slice(0, this.first + 1).reduce((map, { layer }) => stage(map, layer), picture);
    return { features, seen: this.scorerAt(this.first).see(features) };
  }

  /** Logits, and the weights of every look in order: gate by gate to the last stage, then the classifier. */
  ask({ features, seen }, question) {
    const looks = [];
    for (let number = this.first; number < this.stages.length - 1; number++) {
      const { gate } = this.stages[number];
      if (gate) {
        const weights = sigmoid(gate.meet(seen ?? gate.see(features), question));
        features = gated(features, weights);
        looks.push(weights);
      }
      features = stage(features, this.stages[number + 1].layer);
      seen = null; // it was of the map before
    }
    const { logits, weights } = this.answer.of(features, seen ?? this.answer.scorer.see(features), question);
    return { logits, weights: [...looks, weights] };
  }

  scorerAt(number) {
    return this.stages[number].gate ?? this.answer.scorer;
  }
}
