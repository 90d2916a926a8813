// What went wrong, said once, where it is seen and read aloud.

import { part } from "./dom.js";

export class Notices {
  constructor(root) {
    this.bar = part(root, "notice");
    this.text = part(root, "notice-text");
    part(root, "notice-close").addEventListener("click", () => this.clear());
  }

  /** Say what is wrong; `about` names the matter, so that only its own success takes it back. */
  say(error, about = "") {
    this.about = about;
    const message = error instanceof Error ? error.message : String(error);
    const opensWithFile = /^\S*\.\w+\b/.test(message); // zero.png is not Zero.png
    this.text.textContent = opensWithFile ? message : message.charAt(0).toUpperCase() + message.slice(1);
    this.bar.hidden = false;
  }

  clear() {
    this.bar.hidden = true;
  }

  /** `about` is well again. */
  settled(about) {
    if (this.about === about) this.clear();
  }
}
