"""Maps that an attribution method makes of a model, to be scored as any other maps are.

==========  ==================================================================================================  ========
method      the map                                                                                             by
==========  ==================================================================================================  ========
own         the attention that the model returns with its answer
gradcam     relu(Σ_c ᾱ_c A_c), ᾱ_c the mean gradient of the answer over the last feature map A; Selvaraju 2017
hirescam    relu(Σ_c A_c ⊙ ∂y/∂A_c); Draelos and Carin 2020
layercam    relu(Σ_c A_c ⊙ relu(∂y/∂A_c)); Jiang et al. 2021                                                    network
gradxinput  Σ_c x_c ⊙ ∂y/∂x_c, x = 0 where the picture is black; Shrikumar et al. 2016
ig          integrated gradients from a black picture; Sundararajan et al. 2017                                 captum
smoothgrad  Σ_c |mean of ∂y/∂x_c over 25 noisy copies of x|; Smilkov et al. 2017                                network
occlusion   how much the answer loses when a black window lies there; Zeiler and Fergus 2014                    captum
rise        mean over 400 random masks M of p(x ⊙ M) M, divided by the mean of M; Petsiuk et al. 2018           network
rollout     attention multiplied through layers of self-attention; Abnar and Zuidema 2020
==========  ==================================================================================================  ========

y is the logit of the model's own answer, p its share. Maps that have a sign keep it; the policy ``signed`` says what
becomes of it.

This is for our models; other classifiers, and all on causal sets of photographs, have their maps from
:mod:`saccade.scoring.attribution`, which needs no extra.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator
from functools import partial
from pathlib import Path
from typing import Any, cast

import torch
from torch import Tensor, nn

from saccade import geometry
from saccade.backbones import Stages
from saccade.data.maps import picture_of
from saccade.data.pictures.files import SUFFIXES, find_files
from saccade.data.pictures.reading import read_picture
from saccade.errors import ConfigError, DataError, MissingExtraError
from saccade.models.base import ImageModel
from saccade.predict import Predictor, load
from saccade.scoring.attribution import STEPS, WINDOWS, attribution, check_method, slope
from saccade.scoring.cam import Attribute, CellMaps, Logit, cam, hooked
from saccade.scoring.networks import Network, NetworkOptions, is_file, open_network
from saccade.scoring.sources import Maps, Named, Truths, map_of, readable
from saccade.tracing.published import is_published

METHODS = ("own", "gradcam", "hirescam", "gradxinput", "ig", "occlusion", "rollout")
MODEL_CAMS = ("gradcam", "hirescam")  # of our models
OF_CAPTUM = ("ig", "occlusion")

MapOf = Callable[[Path, str | None], Any]
"""Path of a picture, and a question or None → a map (H,W) over that picture."""


class MethodMaps(Maps):
    """Maps made while they are scored: one for each truth about a picture of ``folder``.

    ``questions`` are those that can be asked, without case; None: all, where the truth has questions.
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
        method: str = "",
        model: str | None = None,
    ) -> None:
        self.method, self.model = method, model  # what they are called
        self._make, self._truths, self._separator, self._questions = make, truths, separator, questions
        files = find_files([folder], SUFFIXES, "picture")
        self._files = {file.relative_to(folder).with_suffix("").as_posix(): file for file in files}
        super().__init__(where, self._files)

    def each(self, first: Iterable[str] = ()) -> Iterator[Named]:
        """A map for each truth whose question, if it has one, can be asked."""
        wanted = [(name, *self._parts(name)) for name in self._truths.wanted]
        wanted = [(name, picture, question) for name, picture, question in wanted if picture in self.names]
        has_questions = any(question is not None for _, _, question in wanted)
        asks = has_questions
        if self._questions is not None:  # a model of one question is asked that one, also where truths have none
            asks = len(self._questions) >= (1 if has_questions else 2)
        if asks and not has_questions:
            raise DataError(
                f"{self._truths.where}: no questions; call a truth PICTURE{self._separator}QUESTION, or label it"
            )
        for name, _, question in wanted:
            can_ask = question is not None and (self._questions is None or question.casefold() in self._questions)
            if can_ask if asks else question is None:
                yield name, readable(self.read, name)

    def read(self, name: str) -> Tensor:
        """The map, made now or again."""
        picture, question = self._parts(name)
        return map_of(self._make(self._files[self.names[picture]], question), name).cpu()

    def _parts(self, name: str) -> tuple[str, str | None]:
        picture = picture_of(name, self._separator)
        return picture, None if picture == name else name[len(picture) + len(self._separator) :]


def method_maps(
    folder: Path,
    method: str | MapOf,
    model: Any,
    truths: Truths,
    separator: str,
    options: NetworkOptions,
) -> MethodMaps:
    """The maps of a method, by its name and a model, or of a function of yours; see :func:`saccade.score`."""
    if callable(method) and model is None:
        called = getattr(method, "__name__", type(method).__name__)
        return MethodMaps(folder, method, truths, separator=separator, where=f"{called} of {folder}", method=called)
    check_method(method)
    if model is None:
        raise ConfigError(f"method={method} needs a model: a zoo name, a folder, timm:NAME, hf:NAME or my_net.py:build")
    is_strange = isinstance(model, nn.Module) or is_file(model) or is_published(model)
    if is_strange or not isinstance(method, str) or method not in METHODS:
        network = open_network(model, options)
        called, attribute = attribution(method, network, layer=options.layer)
        where = {"where": f"{called} of {network.name}", "method": called, "model": network.name}
        make = partial(_of_network, network, attribute)
        return MethodMaps(folder, make, truths, separator=separator, questions=(), **where)
    if options != NetworkOptions(device=options.device):
        raise ConfigError("layer, size and fit are for networks from elsewhere; leave them out")
    predictor = load(model, options.device) if isinstance(model, (str, Path)) else model

    def own(picture: Path, question: str | None) -> Tensor:
        return torch.from_numpy(predictor.look(picture, question).map())

    questions = {query.casefold() for query in predictor.facts.queries}
    make_own: MapOf = own if method == "own" else _Method(str(method), predictor)
    where = {"where": f"{method} of {predictor.name}", "method": str(method), "model": predictor.name}
    return MethodMaps(folder, make_own, truths, separator=separator, questions=questions, **where)


def _of_network(network: Network, attribute: Attribute, picture: Path, question: str | None) -> Tensor:
    """The map (H,W) of a picture, of the network's own answer."""
    image = read_picture(picture)
    prepared, canvas = network.prepare(image)
    inputs = prepared[None].to(network.device)  # (1,3,h,w)
    with network.evaluating():
        with torch.no_grad():
            answer = network.logits(inputs).argmax(-1)
        return attribute(inputs, answer).over(canvas, image.size)[0]


class _Method:
    def __init__(self, method: str, predictor: Predictor) -> None:
        self._method, self._predictor = method, predictor
        self._model = cast(ImageModel, predictor.model)
        self._stages = next((part for part in self._model.children() if isinstance(part, Stages)), None)
        lacks = None
        if predictor.facts.preprocessing is None:
            lacks = "reads no picture"
        elif method == "rollout" and not hasattr(self._model, "rollout"):
            lacks = "has no layers of self-attention; its own attention is method=own"
        elif method in MODEL_CAMS and self._stages is None:
            lacks = "has no feature map of the whole picture"
        if lacks is not None:
            raise ConfigError(f"method={method}: '{predictor.name}' {lacks}")
        if method in OF_CAPTUM:
            _captum(method)  # what is missing is said before pictures are read

    def __call__(self, picture: Path, question: str | None) -> Tensor:
        """The map (H,W) over the picture."""
        reads = self._predictor.reads
        prepared = reads.prepare((reads.item(picture),), self._predictor.facts)
        (images,) = (tensor.to(self._predictor.device) for tensor in prepared.inputs)  # (1,3,H,W)
        (read,) = prepared.items
        canvas, image_size = cast(Tensor, read.canvas), cast(Tensor, read.image_size)  # as of all pictures
        height, width = image_size.tolist()
        return self._cells(images, self._predictor.question(question)).over(canvas, (height, width))[0]

    def _cells(self, images: Tensor, query: Any) -> CellMaps:
        """The map (1,h,w) on its cells."""
        model, method, stages = self._model, self._method, self._stages

        def asked(pictures: Tensor) -> list[Tensor]:
            has_questions = bool(self._predictor.facts.queries)
            return [torch.full((len(pictures),), int(query), device=pictures.device)] if has_questions else []

        with torch.no_grad():
            output = model.forward_raw(images, *asked(images))
            answer = int(model.logits_and_answer(output)[1][0])
        if method in MODEL_CAMS and any(look.kind == "crop" for look in model.looks(output)):
            raise ConfigError(f"method={method}: the features of '{self._predictor.name}' lie on a crop")

        def logit(pictures: Tensor) -> Tensor:
            return model.logits_and_answer(model.forward_raw(pictures, *asked(pictures)))[0][:, answer]  # (B,)

        if stages is None or method not in (*MODEL_CAMS, "rollout"):
            return CellMaps(_input_map(method, images, logit), geometry.identity())
        name = stages.names[-1]
        if method == "rollout":
            with torch.no_grad():
                map = cast(Any, model).rollout(model.encode(images), *asked(images))
        else:
            features: list[Tensor] = []
            keep = {stages.stages[name]: lambda module, inputs, output: features.append(output)}
            with torch.enable_grad(), hooked(keep):
                score = logit(images.detach().requires_grad_()).sum()
                (gradient,) = torch.autograd.grad(score, features[-1])
            map = cam(method, features[-1].detach(), gradient)  # (1,h,w)
        return CellMaps(map, stages.frames[name])


def _input_map(method: str, images: Tensor, logit: Logit) -> Tensor:
    """A map (1,H,W) of the pixels of the network input, with its sign."""
    if method == "gradxinput":
        return (images * slope(logit, images)).sum(1)  # (1,H,W)
    captum = _captum(method)
    if method == "ig":
        map: Tensor = captum.IntegratedGradients(logit).attribute(images, n_steps=STEPS, internal_batch_size=STEPS)
        return map.sum(1)  # (1,H,W)
    window = tuple(max(1, side // WINDOWS) for side in images.shape[-2:])
    steps = tuple(max(1, side // 2) for side in window)
    map = captum.Occlusion(logit).attribute(
        images, sliding_window_shapes=(3, *window), strides=(3, *steps), baselines=0.0, perturbations_per_eval=32
    )
    return map.sum(1)  # (1,H,W)


def _captum(method: str) -> Any:
    try:
        from captum import attr
    except ImportError as error:
        raise MissingExtraError(f"the method {method}", "attribution") from error
    return attr
