"""`propos suggest-k`: suggest a number of clusters."""

from __future__ import annotations

import json
import shlex
from contextlib import nullcontext, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from propos.cli.prechecks import check_source
from propos.cli.streams import say

Rule = Literal["stability", "autopropos"]

if TYPE_CHECKING:
    from propos.clustering import Suggestion
    from propos.runner import Request


def suggest_k(
    what: Annotated[str, typer.Argument(metavar="RUN|SOURCE", help="A finished run, or images as for `propos run`.")],
    clusters: Annotated[str, typer.Option("-k", metavar="A..B", help="Range to choose from.")] = "2..40",
    by: Annotated[Rule, typer.Option(help="Rule: the stability of clusterings, or AutoProPos's.")] = "stability",
    method: Annotated[str | None, typer.Option(help="Method (see `propos methods`).")] = None,
    recipe: Annotated[str | None, typer.Option(help="Recipe (see `propos recipes`).")] = None,
    seed: Annotated[int | None, typer.Option(help="Random seed.")] = None,
    epochs: Annotated[
        int | None, typer.Option(help="Number of epochs of a whole run; about half of them are trained.")
    ] = None,
    settings: Annotated[
        list[str] | None, typer.Option("--set", metavar="KEY=VALUE", help="Change a setting; repeatable.")
    ] = None,
    data: Annotated[Path | None, typer.Option(help="Folder of data sets (default: PROPOS_DATA).")] = None,
    device: Annotated[str, typer.Option(help="auto, cpu, cuda or mps.")] = "auto",
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Suggest a number of clusters: from a run's embeddings, or by training up to the epoch that needs it."""
    check_source(what)
    from propos.config import parse_assignments, parse_clusters

    parse_clusters(clusters)
    given = parse_assignments(settings or [])
    from propos.cli.threads import set_wait_policy

    set_wait_policy()
    from propos.runner import Length, Request

    is_run = (Path(what) / "run.json").is_file()
    request = Request(
        source=what,
        clusters=clusters,
        method=method,
        recipe=recipe,
        seed=seed,
        length=Length(epochs=epochs),
        settings=given if is_run else {"suggest.by": by, **given},
        data=data,
    )
    suggestion = _of_run(request, by) if is_run else _of_source(request, device, quiet=as_json)
    proposed = is_run and _propose(Path(what), suggestion)
    if as_json:
        typer.echo(json.dumps(suggestion.plain()))
        return
    _print(suggestion)
    if proposed:
        accept = f"propos proposals {shlex.quote(what)} --accept {_cut_id(suggestion)}"
        say(f"Cut the run's tree into {suggestion.chosen} clusters: {accept}")


def _of_run(request: Request, by: Rule) -> Suggestion:
    """Suggest from the embeddings of a finished run, which were trained with its own number."""
    import torch

    from propos.clustering import SUGGEST, sample_positions
    from propos.common.errors import InputError
    from propos.methods.seeds import generator
    from propos.runs import Run

    if any(value is not None for value in (request.method, request.recipe, request.length.epochs)) or request.settings:
        only = "give only -k, --by and --seed"
        raise InputError(f"{request.source}: is a finished run, which is not trained again: {only}")
    lowest, highest = _limits(request)
    embeddings = Run.open(Path(str(request.source))).embedding_rows
    if lowest <= len(embeddings) // 2:
        highest = min(highest, len(embeddings) // 2)
    draw = generator(request.seed or 0, "suggestion")
    sample = embeddings[sample_positions(len(embeddings), highest, draw).numpy()]
    return SUGGEST[by](torch.from_numpy(sample), lowest, highest, draw)


def _cut_id(suggestion: Suggestion) -> str:
    """Return the id of the proposed cut: one for each number of clusters."""
    return f"cut-{suggestion.chosen}"


def _propose(folder: Path, suggestion: Suggestion) -> bool:
    """Propose the cut of the run's tree into the suggested number of clusters; return False if it has none."""
    from propos.runs import Cut, Proposal, Run, write_proposals

    run = Run.open(folder)
    tree = run.tree()
    if tree is None or suggestion.chosen > len(tree.leaves):
        return False
    edit = Cut(v=1, id=_cut_id(suggestion), op="cut", node=tree.root, open=tree.coarsest(suggestion.chosen))
    evidence = " ".join(suggestion.why.split())[:500]
    write_proposals(folder, "cut", [Proposal(id=edit.id, kind="cut", source="suggest-k", evidence=evidence, edit=edit)])
    return True


def _of_source(request: Request, device_name: str, quiet: bool) -> Suggestion:
    """Train until a number is needed; nothing is written."""
    from propos.cli.display import Terminal
    from propos.common.errors import Interrupted
    from propos.runner import execute_plan, plan

    _limits(request)
    # The run stops as soon as the number is chosen; it is printed once, after all that were tried.
    with (
        Terminal(quiet, tells_choice=False) as terminal,
        plan(request, device_name, terminal) as planned,
        suppress(Interrupted),
    ):
        execute_plan(planned, None, terminal, lambda: nullcontext(lambda: terminal.suggested is not None))
    assert terminal.suggested is not None
    return terminal.suggested


def _limits(request: Request) -> tuple[int, int]:
    from propos.common.errors import InputError
    from propos.config import parse_clusters

    limits: tuple[int, int] | None = parse_clusters(str(request.clusters))["suggest.range"]
    if limits is None:
        raise InputError(f"-k {request.clusters}: give a range to choose from, as in -k 5..40")
    return limits


def _print(suggestion: Suggestion) -> None:
    typer.echo("  ".join(["  K", *suggestion.scores]))
    for clusters, *scores in zip(suggestion.tried, *suggestion.scores.values(), strict=True):
        mark = "  ←" if clusters == suggestion.chosen else ""
        columns = (f"{score:{len(name)}.3f}" for name, score in zip(suggestion.scores, scores, strict=True))
        typer.echo("  ".join([f"{clusters:3}", *columns]) + mark)
    typer.echo(suggestion.why)
