// SOFT: stages, one soft attention on the last map, one linear layer (saccade.models.soft).

import { Convolution, Linear, softmax, stage, weightedSum } from "./layers.js";
import { Scorer } from "./scorer.js";

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
