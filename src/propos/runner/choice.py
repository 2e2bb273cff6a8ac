"""The third step of planning: choose the settings by the request and a sample of the images, and say why."""

from __future__ import annotations

from dataclasses import dataclass

from propos.common.errors import InputError
from propos.common.plurals import counted
from propos.config import Config
from propos.data import Sample, without_colours
from propos.methods import complete_sections, find_method
from propos.networks import is_hub, read_pretrained
from propos.runner.decision import Reason
from propos.runner.recipes import TUNING, build_recipe, choose_recipe, continue_with_method, fit_length, for_method
from propos.runner.request import Request, wants_pretrained
from propos.runner.resolved_request import ResolvedRequest
from propos.training import default_precision

GREYSCALE = Reason("colour", "the files are RGB but contain no colour: treating them as greyscale")


@dataclass(frozen=True)
class Choice:
    """The settings as far as they are known before the images are opened, and the reasons for them."""

    config: Config
    reasons: tuple[Reason, ...]


def take_sample(resolved: ResolvedRequest) -> Sample:
    """Return a sample of the source: as greyscale if it contains no colour, unless settings are for colour images."""
    sample, mean = Sample(resolved.unopened), resolved.known.pixels.mean
    return sample if mean is not None and len(mean) != 1 else without_colours(sample)


def choose(resolved: ResolvedRequest, sample: Sample) -> Choice:
    """Choose the recipe, the length and the pretrained network, as far as the request leaves them open."""
    request, known = resolved.request, resolved.known
    base = Choice(resolved.given, ()) if resolved.given is not None else _recipe(resolved, sample)
    config = base.config
    if resolved.given is not None and known.method != resolved.given.method:
        below = resolved.asked.get(f"{known.method}.pretext")
        continues = resolved.earlier is not None
        config = (
            continue_with_method(config, known.method) if continues else for_method(config, known.method, False, below)
        )
    if known.start.learns != "nothing" and config.start.learns == "nothing":
        config = config.with_settings(TUNING)
    if request.length.epochs is not None:
        config = config.with_epochs(request.length.epochs)
    config = config.with_settings({**resolved.asked, "pixels": known.pixels.model_dump()})
    where = "--set" if request.settings else "settings"
    started = _start(complete_sections(config, where), request)
    grey = () if sample.unopened is resolved.unopened else (GREYSCALE,)
    return Choice(started.config, (Reason.of_method(started.config), *grey, *base.reasons, *started.reasons))


def _recipe(resolved: ResolvedRequest, sample: Sample) -> Choice:
    """Build the recipe that the request names, else the one that suits the images, with a fitting length."""
    request, method, device = resolved.request, resolved.asked.get("method"), resolved.device
    reasons = []
    named = request.recipe or ("pretrained" if wants_pretrained(request) else None)
    name = named
    if name is None:
        by_images = request.origin.start is None and (method is None or "images" not in find_method(method).inputs)
        name, why = choose_recipe(sample, device.type, by_images)
        reasons.append(Reason("recipe", f"{name}, chosen for {why}"))
    precision = default_precision(device)
    if precision != "float32" and "train.precision" not in request.settings:
        off = "--set train.precision=float32 turns it off"
        reasons.append(Reason("precision", f"the backbone computes in {precision}; {off}"))
    config = build_recipe(name, method, resolved.asked.get(f"{method}.pretext"))
    config = config.with_settings({"train.precision": precision})
    if named is not None or request.length.epochs is not None or "train.epochs" in request.settings:
        return Choice(config, tuple(reasons))
    clusters = resolved.asked.get("clusters")
    fitted = fit_length(config, sample.unopened.images, clusters)
    # With --time the length follows later.
    if request.length.time is None and fitted.train.epochs != config.train.epochs and find_method(fitted.method).trains:
        by_clusters = clusters and fitted != fit_length(config, sample.unopened.images)
        why = "the numbers of images and clusters" if by_clusters else "the number of images"
        length = f"{counted(fitted.train.epochs, 'epoch')}, by {why}"
        default = f"(recipe's default: {config.train.epochs}); --epochs or --time changes it"
        reasons.append(Reason("length", f"{length} {default}"))
    return Choice(fitted, tuple(reasons))


def _start(config: Config, request: Request) -> Choice:
    """Complete the settings of a pretrained network: its name and the hash of its weights."""
    wanted, of_features = wants_pretrained(request), config.network.backbone == "whitened"
    if wanted is not None and wanted != of_features:
        settings = "the settings" if config.recipe is None else f"recipe {config.recipe}"
        learn = "a pretrained network's features" if of_features else "images"
        raise InputError(
            f"--start {request.origin.start or 'pretrained'}: {settings} learns from {learn}: leave out one of them"
        )
    if not of_features:
        return Choice(config, ())
    given = request.origin.start or ""
    named = given if is_hub(given) else given.partition(":")[2] or None
    name, file = named or config.start.network, config.start.weights if named in (None, config.start.network) else None
    if request.origin.weights is not None:
        name, file = named, str(request.origin.weights.resolve())
    weights = read_pretrained(name, file)
    found = weights.network
    features = Reason(
        "features", f"{found.name} (pretrained on {found.origin.trained_on}; licence: {found.origin.licence})"
    )
    side = {"views.size": found.side} if config.start.learns == "all" else {}
    start = {
        "start.network": found.name,
        "start.weights": weights.file,
        "start.sha256": weights.sha256,
        "start.description": found.description,
    }
    return Choice(config.with_settings({**start, **side}), (features,) if wanted else ())
