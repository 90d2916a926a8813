// HAttNet and HAttNet-CTX: gates between the stages, a soft attention on the last (saccade.models.hattnet).

import { Convolution, gated, sigmoid, stage } from "./layers.js";
import { Scorer } from "./scorer.js";
import { SoftAnswer } from "./soft.js";

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
