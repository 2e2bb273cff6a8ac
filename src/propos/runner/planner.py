"""Planning in five steps: look at the source, sample it, choose the settings, open the images, complete the settings.

Every command and function that trains or inspects plans with `plan`, which returns one `Decision`.
"""

from __future__ import annotations

from contextlib import AbstractContextManager, ExitStack
from dataclasses import replace
from pathlib import Path

import numpy as np
from jaxtyping import Shaped

from propos.augment import measure_invariance
from propos.config import Config
from propos.data import Source, StreamedSource, UnopenedSource, What, refusal
from propos.data.arrays import check_labels
from propos.methods import stages_of
from propos.runner.choice import Choice, choose, take_sample
from propos.runner.decision import Decision, Reason
from propos.runner.progress import Reporter, SilentReporter, describe_skipped
from propos.runner.ranks import estimate
from propos.runner.request import Request, parse_duration, run_name
from propos.runner.resolved_request import ResolvedRequest, resolve_request
from propos.runner.sources import open_run_images, opened
from propos.runs import Run
from propos.training import check_tensorboard, choose_device, fitting_channels, prepare, start_from


def plan(
    request: Request, device: str = "auto", reporter: Reporter | None = None, assumed_clusters: int | None = None
) -> Decision:
    """Decide everything that a request leaves open, and open its source.

    If neither the request nor labels give the number of clusters, it is `assumed_clusters`, else training chooses it.
    """
    reporter = reporter or SilentReporter()
    resolved = resolve_request(request, device, reporter)
    sample = take_sample(resolved)
    choice = choose(resolved, sample)
    check_tensorboard(choice.config)
    for reason in choice.reasons:
        reporter.note(str(reason))
    with ExitStack() as stack:
        source = stack.enter_context(_open(resolved, sample.unopened, choice.config, reporter))
        _report_reading(source, choice.config, reporter)
        decision = _complete(replace(resolved, unopened=sample.unopened), choice, source, assumed_clusters)
        for reason in decision.reasons[len(choice.reasons) :]:
            reporter.note(str(reason))
        for note in () if resolved.earlier is None else resolved.earlier.notes_on_edits():
            reporter.warn(note)
        _report_skipped(source, reporter)  # also those that were found damaged while planning
        return replace(decision, closing=stack.pop_all())


def plan_resumed(
    run: Run,
    device: str = "auto",
    reporter: Reporter | None = None,
    data: str | Path | None = None,
    what: What | None = None,
    labels: Shaped[np.ndarray, " N"] | None = None,
) -> Decision:
    """Decide how an unfinished run is resumed, and open its images.

    `what` and `labels` are given again if they were in memory only.
    """
    reporter = reporter or SilentReporter()
    info, config = run.info, run.config
    check_tensorboard(config)
    method = Reason.of_method(config)
    reporter.note(str(method))
    chosen = choose_device(info.device if device == "auto" else device)
    with ExitStack() as stack:
        source = stack.enter_context(open_run_images(run, data, reporter.show_task, what))
        _label(source, labels)
        _report_reading(source, config, reporter)
        _report_skipped(source, reporter)
        made = Decision(
            config, source, chosen, info.command or "", run.path.name, (method,), resumed_hash=info.plan or ""
        )
        return replace(made, closing=stack.pop_all())


def _open(
    resolved: ResolvedRequest, unopened: UnopenedSource, config: Config, reporter: Reporter
) -> AbstractContextManager[Source]:
    """Open the images with the channels that the settings need."""
    channels = None
    if resolved.earlier is not None:
        channels = fitting_channels(resolved.earlier, config, unopened, str(resolved.what))
    if channels is None and config.start.network is not None and unopened.scan is not None:
        channels = 3  # as the pretrained network takes them
    return opened(unopened, config, channels or unopened.channels, show_task=reporter.show_task)


def _complete(resolved: ResolvedRequest, choice: Choice, source: Source, assumed_clusters: int | None) -> Decision:
    """Complete the settings by the opened images: clusters, views, pixel statistics, and epochs for --time."""
    request, config, reasons = resolved.request, choice.config, list(choice.reasons)
    if config.labels == "folders":
        reasons.append(Reason("labels", str(resolved.unopened.folders)))
    _label(source, request.given_labels())
    if config.clusters is None and source.labels is None and assumed_clusters is not None:
        config = config.with_settings({"clusters": min(assumed_clusters, len(source))})
    # A published set's own recipe has the paper's views.
    if resolved.given is None and request.recipe is None and config.recipe != resolved.unopened.published:
        views = _fit_views(config, source, request)
        config, reasons = views.config, [*reasons, *views.reasons]
    config = prepare(config, source)
    seconds = None
    if request.length.time is not None:
        seconds = estimate(config, source, resolved.device)
        if stages := stages_of(config):  # if nothing is trained, nothing can take longer
            epochs = max(len(stages), int(config.train.epochs * parse_duration(request.length.time) / seconds))
            seconds *= epochs / config.train.epochs
            # Prepared again: a short run may have no epoch left before it needs clusters.
            config = prepare(config.with_epochs(epochs), source)
    earlier = resolved.earlier
    start = None if earlier is None else start_from(earlier, source, resolved.device, config)
    return Decision(
        config,
        source,
        resolved.device,
        request.output.command,
        run_name(resolved.what),
        tuple(reasons),
        resolved.unopened,
        earlier,
        start,
        seconds,
    )


def _fit_views(config: Config, source: Source, request: Request) -> Choice:
    """Choose views that keep these images recognisable; settings of the request stay as they are."""
    if "views.preset" in request.settings or config.start.network is not None:  # a pretrained network has no views
        return Choice(config, ())
    kept = measure_invariance(source)
    if kept is None:
        return Choice(config, ())
    fitting = {key: value for key, value in kept.settings(source.channels).items() if key not in request.settings}
    reasons = (Reason("views", str(kept)),) if "views.flip" in fitting else ()
    return Choice(config.with_settings(fitting), reasons)


def _label(source: Source, labels: Shaped[np.ndarray, " N"] | None) -> None:
    """Give images the labels of an array."""
    if labels is not None:
        source.labels = check_labels(labels, len(source), "y")


def _report_reading(source: Source, config: Config, reporter: Reporter) -> None:
    """Report how the images are read."""
    for note in source.notes:
        reporter.warn(note)
    if isinstance(source, StreamedSource) and not config.start.has_frozen_part:  # features are computed once
        why = refusal(source.entries, source.side, source.channels, source.shaped) or "as when the run started"
        reporter.note(f"Images are decoded again whenever they are needed: {why}.")


def _report_skipped(source: Source, reporter: Reporter) -> None:
    """Report which files were skipped."""
    if source.skipped:
        reporter.warn(describe_skipped(source.skipped))
