"""Maps that an attribution method makes of one of our models, to be scored as any other maps are.

==========  ====================================================================================================  ======
method      the map                                                                                               by
==========  ====================================================================================================  ======
own         the attention that the model returns with its answer
gradcam     relu(Σ_c ᾱ_c A_c), ᾱ_c the mean gradient of the answer over the last feature map A; Selvaraju 2017    captum
hirescam    relu(Σ_c A_c ⊙ ∂y/∂A_c); Draelos and Carin 2020
gradxinput  Σ_c x_c ⊙ ∂y/∂x_c; Shrikumar et al. 2016
ig          integrated gradients from a black picture; Sundararajan et al. 2017                                   captum
occlusion   how much the answer loses when a black window lies there; Zeiler and Fergus 2014                      captum
rollout     attention multiplied through layers of self-attention; Abnar and Zuidema 2020
==========  ====================================================================================================  ======

y is the logit of the model's own answer. Maps of the last three kinds that have a sign keep it; the policy ``signed``
says what becomes of it.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator
from pathlib import Path
from typing import Any, cast

import torch
from torch import Tensor, nn

from saccade import geometry
from saccade.backbones import Stages
from saccade.data.files import find_files
from saccade.data.maps.arrays import picture_of
from saccade.data.pictures.decoding import SUFFIXES
from saccade.errors import ConfigError, DataError, MissingExtraError, nearest
from saccade.metrics.maps.faithfulness import hirescam
from saccade.models.base import ImageModel
from saccade.outputs import ModelOutput
from saccade.predict import Predictor
from saccade.scoring.maps import Maps, Named, as_tensor, readable
from saccade.scoring.truths import Truths

METHODS = ("own", "gradcam", "hirescam", "gradxinput", "ig", "occlusion", "rollout")
CAMS = ("gradcam", "hirescam")
_STEPS = 32  # of integrated gradients
_WINDOWS = 8  # of occlusion along each side; they move by half their width

MapOf = Callable[[Path, str | None], Any]
"""Path of a picture, and a question or None → a map (H,W) over that picture."""


class MethodMaps(Maps):
    """Maps made while they are scored: one for each truth about a picture of ``folder``.

    Args:
        folder: of pictures.
        make: what makes a map.
        truths: what maps are wanted for.
        separator: between picture and question.
        where: what they are called.
        questions: those that can be asked, without case; None: all, where the truth has questions.
    """

    def __init__(
        self,
        folder: Path,
        make: MapOf,
        truths: Truths,
        *,
        separator: str,
        where: str,
        questions: Collection[str] | None = None,
    ) -> None:
        self._make, self._truths, self._separator, self._questions = make, truths, separator, questions
        files = find_files([folder], SUFFIXES, "picture")
        self._files = {file.relative_to(folder).with_suffix("").as_posix(): file for file in files}
        super().__init__(where, self._files, lambda path: torch.zeros(0))

    def each(self, first: Iterable[str] = ()) -> Iterator[Named]:
        """See :class:`saccade.scoring.maps.Maps`: a map for each truth whose question, if it has one, can be asked."""
        known = [name for name in self._truths.wanted if picture_of(name, self._separator) in self._names]
        with_question = [name for name in known if self._question(name) is not None]
        asks = bool(with_question) if self._questions is None else bool(self._questions)
        if asks and not with_question:
            raise DataError(
                f"{self._truths.where}: no questions; call a truth PICTURE{self._separator}QUESTION, or label it"
            )
        for name in known:
            question = self._question(name)
            if asks and question is not None:
                is_wanted = self._questions is None or question.casefold() in self._questions
            else:
                is_wanted = not asks and question is None
            if is_wanted:
                yield name, readable(self.read, name)

    def read(self, name: str) -> Tensor:
        """See :class:`saccade.scoring.maps.Maps`; the map is made again."""
        file = self._files[self._names[picture_of(name, self._separator)]]
        return as_tensor(self._make(file, self._question(name)), name).cpu()

    def _question(self, name: str) -> str | None:
        picture = picture_of(name, self._separator)
        return None if picture == name else name[len(picture) + len(self._separator) :]


def method_maps(
    folder: Path, method: str | MapOf, model: Predictor | None, truths: Truths, separator: str
) -> MethodMaps:
    """The maps of a method, by its name and a model, or of a function of yours."""
    if not isinstance(method, str):
        called = getattr(method, "__name__", type(method).__name__)
        return MethodMaps(folder, method, truths, separator=separator, where=f"{called} of {folder}")
    if method not in METHODS:
        raise ConfigError(f"no method '{method}': {nearest(method, METHODS)}")
    if model is None:
        raise ConfigError(f"method={method} needs a model: a zoo name, a model folder or a run folder")
    questions = {query.casefold() for query in model.facts.queries}
    make, where = _Method(method, model), f"{method} of {model.name}"
    return MethodMaps(folder, make, truths, separator=separator, where=where, questions=questions)


class _Method:
    """One attribution method on one model."""

    def __init__(self, method: str, predictor: Predictor) -> None:
        self._method, self._predictor = method, predictor
        if method == "own":
            return
        if predictor.facts.preprocessing is None:
            raise ConfigError(f"method={method}: '{predictor.name}' reads no picture")
        if method == "rollout" and not hasattr(predictor.model, "rollout"):
            raise ConfigError(
                f"method=rollout multiplies the attention of self-attention layers, and '{predictor.name}' has none; "
                "its own attention is method=own"
            )
        self._model = cast(ImageModel, predictor.model)
        self._stages = next((part for part in self._model.children() if isinstance(part, Stages)), None)
        if method in CAMS and self._stages is None:
            raise ConfigError(f"method={method}: '{predictor.name}' has no feature map of the whole picture")
        if method in ("gradcam", "ig", "occlusion"):
            _captum(method)

    def __call__(self, picture: Path, question: str | None) -> Tensor:
        """The map (H,W) over the picture."""
        if self._method == "own":
            return torch.from_numpy(self._predictor.look(picture, question).map())
        item = self._predictor.reads.item(picture)
        prepared = self._predictor.reads.prepare((item,), self._predictor.facts)
        (images,) = (tensor.to(self._predictor.device) for tensor in prepared.inputs)  # (1,3,H,W)
        (read,) = prepared.items
        canvas, image_size = cast(Tensor, read.canvas), cast(Tensor, read.image_size)  # as of all pictures
        query = self._predictor.question(question)
        made, frame = self._on_input(images, query)  # (1,h,w), (2,3)
        height, width = image_size.tolist()
        placed = geometry.compose(canvas.double().cpu(), frame.double().cpu())
        return geometry.project(made.detach().cpu().float(), placed, (height, width))[0]

    def _on_input(self, images: Tensor, query: Any) -> tuple[Tensor, Tensor]:
        """The map (1,h,w), and the frame (2,3) of its cells in the network input."""
        with torch.no_grad():
            output = self._raw(images, query)
            answer = int(self._model.logits_and_answer(output)[1][0])
            if self._method in CAMS and any(look.kind == "crop" for look in self._model.looks(output)):
                raise ConfigError(f"method={self._method}: the features of '{self._predictor.name}' lie on a crop")

        def logit(pictures: Tensor) -> Tensor:
            return self._model.logits_and_answer(self._raw(pictures, query))[0][:, answer]  # (B,)

        size = (images.shape[-2], images.shape[-1])
        if self._method == "rollout" and self._stages is not None:
            with torch.no_grad():
                shares = cast(Any, self._model).rollout(self._model.encode(images), *self._asked(images, query))
            return shares, self._stages.frames[self._stages.names[-1]]
        if self._method in CAMS and self._stages is not None:
            name = self._stages.names[-1]
            return self._cam(self._stages.stages[name], images, logit), self._stages.frames[name]
        return _input_map(self._method, images, logit, size), geometry.identity()

    def _cam(self, layer: nn.Module, images: Tensor, logit: Callable[[Tensor], Tensor]) -> Tensor:
        if self._method == "gradcam":
            made: Tensor = _captum("gradcam").LayerGradCam(logit, layer).attribute(images, relu_attributions=True)
            return made[:, 0]  # (1,h,w)
        held: list[Tensor] = []
        handle = layer.register_forward_hook(lambda module, given, made: held.append(made))
        try:
            with torch.enable_grad():
                score = logit(images.detach().requires_grad_()).sum()
                (gradient,) = torch.autograd.grad(score, held[-1])
        finally:
            handle.remove()
        return hirescam(held[-1].detach(), gradient)  # (1,h,w)

    def _raw(self, images: Tensor, query: Any) -> ModelOutput:
        return self._model.forward_raw(images, *self._asked(images, query))

    def _asked(self, images: Tensor, query: Any) -> list[Tensor]:
        """What each of the pictures is asked, of a model that is asked anything."""
        return [torch.full((len(images),), int(query), device=images.device)] if self._predictor.facts.queries else []


def _input_map(method: str, images: Tensor, logit: Callable[[Tensor], Tensor], size: geometry.Size) -> Tensor:
    """A map (1,H,W) of the pixels of the network input, with its sign."""
    if method == "gradxinput":
        with torch.enable_grad():
            pixels = images.detach().requires_grad_()
            (gradient,) = torch.autograd.grad(logit(pixels).sum(), pixels)
        return (images * gradient).sum(1)  # (1,H,W)
    captum = _captum(method)
    if method == "ig":
        made: Tensor = captum.IntegratedGradients(logit).attribute(images, n_steps=_STEPS, internal_batch_size=_STEPS)
        return made.sum(1)  # (1,H,W)
    window = tuple(max(1, side // _WINDOWS) for side in size)
    steps = tuple(max(1, side // 2) for side in window)
    made = captum.Occlusion(logit).attribute(
        images, sliding_window_shapes=(3, *window), strides=(3, *steps), baselines=0.0, perturbations_per_eval=32
    )
    return made.sum(1)  # (1,H,W)


def _captum(method: str) -> Any:
    try:
        from captum import attr
    except ImportError as error:
        raise MissingExtraError(f"the method {method}", "attribution") from error
    return attr
