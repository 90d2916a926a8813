// Bringing something in: a picture or a record, chosen, dropped or pasted.

import { part } from "./dom.js";
import { pictureOfFile } from "./pictures.js";
import { openRecord } from "./records.js";

/** `on` says what to do: picture(picture), views(views), wrong(error). */
export function listenForFiles(root, on) {
  const open = async (file) => {
    try {
      if (file.type === "application/json" || file.name.endsWith(".json")) on.views(await openRecord(file));
      else on.picture(await pictureOfFile(file));
    } catch (error) {
      on.wrong(error);
    }
  };
  for (const name of ["picture-file", "record-file"]) {
    const field = part(root, name);
    field.addEventListener("change", () => {
      if (field.files[0]) open(field.files[0]);
      field.value = ""; // so that the same file can be chosen again
    });
  }
  root.addEventListener("dragover", (event) => event.preventDefault());
  root.addEventListener("drop", (event) => {
    event.preventDefault();
    if (event.dataTransfer.files[0]) open(event.dataTransfer.files[0]);
  });
  document.addEventListener("paste", (event) => {
    if (event.clipboardData?.files[0]) open(event.clipboardData.files[0]);
  });
}
