"""Requests that the page may send: small, and checked before anything is done."""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

from propos.review.studio.work import Clusters, Form, How, Identity, Split, Text


class _Asked(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)


class Folder(_Asked):
    """Look at a folder."""

    source: Text
    clusters: Clusters | None = None


class NewRun(Folder):
    """Start a run; its id is the page's, so that what is sent twice starts once."""

    id: Identity


class Dropped(_Asked):
    """Find a folder that was dropped on the page, by its name and some of its files."""

    name: Annotated[str, Field(min_length=1, max_length=255)]
    files: Annotated[list[Annotated[str, Field(max_length=255)]], Field(max_length=5)]


class Named(_Asked):
    """Do something with a run, or with an entry of the trash or the queue."""

    name: Text


class Learn(Named):
    """Continue a run with its corrections."""

    id: Identity


class Predict(Learn):
    """Assign the images of another folder."""

    source: Text


class Export(Learn):
    """Export labels: to a path, or without one to a file that is downloaded."""

    form: Form
    how: How = "symlink"
    split: Split | None = None
    output: Text | None = None
