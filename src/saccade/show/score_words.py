"""What the scores ask, in words, and whom they are compared with."""

from __future__ import annotations

ASKS = {
    "accuracy": "is the answer right",
    "weighted_map": "are the right labels ranked before the wrong ones (mean average precision, weighted by frequency)",
    "swapped_query": "asked for something else in the picture, does it still give the first answer",
    "exact_match": "is every label given exactly as often as it occurs",
    "true_positive_strength": "which share of the attention lies on the evidence",
    "selectivity": "attention on the target ÷ attention on all objects",
    "pointing": "does the peak lie on the evidence",
    "iou": "does the map, cut at half its peak, cover the evidence and nothing else",
    "pr_auc": "does the map segment the evidence at any cut; pixels of all pictures pooled",
    "pointing_at": "does the peak lie near the clicked point: within a tenth of the diagonal of the object's box",
    "attention_near": "which share of the attention lies that close",
    "distance": "how far the peak lies from the clicked point, in diagonals of the object's box",
    "deletion": "the mean probability of the answer while pixels are removed, most attended first",
    "insertion": "the mean probability of the answer while pixels are added back, most attended first",
    "causal_follow": "the target is rendered again with another answer: does the answer follow",
    "causal_hold": "another object is changed or removed: does the answer stay",
    "map_follow": "the target is moved: how much of the map goes with it, more than with another object that is moved",
    "map_turn": "another object is asked for: how much of the map turns to it",
    "map_specific": "does it move more when the target is moved or removed than when another object is; ½ by chance",
    "map_hold": "another object changes: how much of the map stays; an even map scores 1, so read it with the others",
    "cause_top": "is the object with most of the map the one whose recolouring moves the answer most",
    "cause_pairs": "of two objects, has the one with more effect on the answer more of the map; ½ by chance",
    "misplaced": "which share of the map on objects lies on those without an effect on the answer",
    "edit_necessity": "no weight on the target: answers that change ÷ those that change when it leaves the picture",
    "edit_sufficiency": "weight on the target alone: answers that stay ÷ those that stay when all else is gone",
    "off_objects": "which share of the map lies on no object",
    "word_evidence_blur_raw": "the tenth of the picture that a word's map marks is blurred: how much log p of the word "
    "falls (nats), less the same for other words' maps",
    "word_evidence_patch_raw": "the same with the pixels of another picture",
    "word_drop_blur_raw": "how much it falls before other words' maps are subtracted",
    "word_drop_patch_raw": "the same with the pixels of another picture",
    "function_evidence_blur_raw": "the first for words that name nothing to be seen, such as a and on: a control",
    "function_evidence_patch_raw": "the same with the pixels of another picture",
    "word_map_distance": "how far the maps of two content words of a caption are apart: 0 the same, 1 nothing shared",
}
"""Where a picture has no box, its diagonal is that of the picture."""

RIVALS = {
    "training_prior": "always the commonest answer of training",
    "commonest_label": "always the commonest label of the scored pictures",
    "training_prior_by_query": "the commonest answer of training to each question",
    "uniform": "attention spread evenly; pixels in random order",
    "centre_gaussian": "a blob in the middle of the picture",
    "shuffled": "the model's own maps, of other pictures (and of the twins of these)",
    "all_objects": "every object alike, on the model's grids",
    "box_centre": "the middle of the object's box, on the model's grids",
    "part_prior": "the mean training position of the part inside the box, on the model's grids",
    "foreground": "the model's own map, cut to pixels brighter than 5 %",
    "target_mask": "the pixels of what is asked for: it knows the question and nothing of the model",
    "object_area": "objects ranked by their size",
    "noise": "maps of noise on the model's cells",
    "random_cells": "as many cells elsewhere, drawn at random",
    "heaviest_cells": "as many cells elsewhere, the heaviest",
    "grid_oracle": "the map of the model's grids with the largest share on the evidence: a bound of that score alone",
}
"""What is called ``_exact`` is the same to the pixel, not on the model's grids."""

QUESTIONS = {
    "scene": "does the map lie on what was asked for? a segmenter that knows the question passes",
    "model": "does the map show what the answer depends on?",
}
"""What the groups of scores under intervention ask."""

REMARKS = {
    "map_hold": "a map that never moves holds by 100 %: read map hold beside the others",
    "map_specific": "shuffled maps move with a scene of their own",
}
"""What must be known to read a column."""

WAYS = {
    "unchanged": "the whole picture",
    "evidence_blurred": "evidence blurred",
    "evidence_swapped": "evidence from another picture",
    "rest_blurred": "all but the evidence blurred",
    "rest_swapped": "all but the evidence from another picture",
    "guess": "guessing",
}
"""What ``saccade.metrics.verdict`` changes, in words."""
