"""Tables of Wang et al. (2017, arXiv:1704.06904) and Fu et al. (CVPR 2017) that the founding slides name."""

from __future__ import annotations

from saccade.families.contract import PaperItem

_WANG, _FU = "Wang et al. 2017", "Fu et al. 2017"
_ABSENT = "is not fetched by saccade and was not at hand: no run exists"
_BY_FOLDER = "The reader (folder:FOLDER, pictures in a folder for each class) and"

_RAN, _RACNN = "saccade reproduce ran-table", "saccade reproduce racnn-table"

COVERAGE = (
    PaperItem(_WANG, "Figures 2 and 3", "drawing", "a module, its mask; docs/papers.md leads from equations to files"),
    PaperItem(
        _WANG,
        "Attention-56 on CIFAR-10",
        "reproduced",
        f"{_RAN}: below the published error, with a shorter schedule, one seed; the residual network of its size, "
        "which the paper does not have, errs a little less",
    ),
    PaperItem(
        _WANG,
        "Attention-92 on CIFAR-10",
        "differs",
        f"{_RAN}: .2 points above the published error after 100 epochs, one seed; the residual network of its size, "
        "which the paper does not have, errs a little more",
    ),
    PaperItem(
        _WANG,
        "other masks, naive learning",
        "differs",
        f"{_RAN}: after 15 epochs, three seeds, all signs are against the paper's and no difference is certain; "
        "the whole schedule has no run",
    ),
    PaperItem(
        _WANG,
        "errors on CIFAR-100",
        "no data",
        f"CIFAR-100 {_ABSENT}. {_BY_FOLDER} the recipes (ran-56, ran-92) are there",
    ),
    PaperItem(
        _WANG,
        "errors on ImageNet",
        "no data",
        f"ImageNet {_ABSENT}. {_BY_FOLDER} a recipe for 224 × 224 (ran-56-photos) are there",
    ),
    PaperItem(
        _WANG,
        "noisy labels, mask structures",
        "no data",
        "no recipe has noisy labels or masks of local convolutions: no run exists",
    ),
    PaperItem(
        _FU,
        "finer scales beat the coarse one",
        "differs",
        f"{_RACNN}: scale 2 does on generated details and on birds; scale 3 has less than scale 2 on details and more "
        "on birds, where the paper has it a little below scale 2",
    ),
    PaperItem(
        _FU,
        "accuracy on CUB-200-2011",
        "differs",
        f"{_RACNN} --data cub:FOLDER: below the published accuracy, with a small network at 112 px for VGG-19 at 448, "
        "on 1,000 test pictures, one seed; its gain over centred crops, trained alike, is within chance",
    ),
    PaperItem(
        _FU,
        "accuracy on Stanford Dogs",
        "no data",
        f"Stanford Dogs {_ABSENT}. {_BY_FOLDER} the recipe (racnn) are there",
    ),
    PaperItem(
        _FU,
        "accuracy on Stanford Cars",
        "no data",
        f"Stanford Cars {_ABSENT}. {_BY_FOLDER} the recipe (racnn) are there",
    ),
)
"""Paper by paper."""
