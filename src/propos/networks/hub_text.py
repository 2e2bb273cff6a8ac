"""The part of CLIP that reads: texts as unit vectors, comparable with the features of the part that sees."""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor, nn

from propos.common.errors import InputError, shown
from propos.common.plain import read_text
from propos.config import StartSettings
from propos.config.description import Description
from propos.networks.hub import folder_of
from propos.networks.hub_files import CONFIG, TOKENIZER, checked_mapping, read_json, read_weights
from propos.networks.hub_models import load_model

SEES = "clip_vision_model"
LARGEST_TOKENIZER = 20_000_000  # bytes
TEXTS = 64  # that are read at a time
USUAL_LENGTH = 77  # tokens of a text, where a network's configuration says nothing else


@dataclass(frozen=True)
class Reader:
    """A network that reads, its tokenizer, and the factor of cosines in logits."""

    model: nn.Module
    tokenizer: Any
    scale: float

    @torch.inference_mode()
    def embed(self, texts: Sequence[str]) -> Float[Tensor, "T F"]:
        """Return a unit vector for each text. Texts of one length are read together, so none is padded."""
        tokens = [self.tokenizer.encode(text).ids for text in texts]
        order = sorted(range(len(texts)), key=lambda place: len(tokens[place]))
        rows, places = [], []
        for _, same in groupby(order, key=lambda place: len(tokens[place])):
            group = list(same)
            for part in (group[start : start + TEXTS] for start in range(0, len(group), TEXTS)):
                rows.append(self._read(torch.tensor([tokens[place] for place in part])))
                places += part
        return torch.cat(rows)[torch.tensor(places).argsort()]

    def _read(self, tokens: Int[Tensor, "T L"]) -> Float[Tensor, "T F"]:
        return F.normalize(self.model(input_ids=tokens).text_embeds, dim=1)


def can_read(start: StartSettings) -> bool:
    """Return whether a run's network has a part that reads."""
    return start.description is not None and Description.from_json(start.description, "it").kind == SEES


def reader_of(start: StartSettings) -> Reader:
    """Read the part that reads from the files of a run's network; they must be those that the run started with."""
    folder, name = folder_of(start), str(start.network)
    state, digest = read_weights(folder, reads=True)
    if digest != start.sha256:
        raise InputError(f"{folder}: is not the network that the run started with (SHA-256 {str(start.sha256)[:12]}…)")
    config = read_json(folder / CONFIG)
    told = dict(checked_mapping(config.get("text_config", {}), str(folder / CONFIG)))
    told["projection_dim"] = config.get("projection_dim", told.get("projection_dim"))
    scale = float(state.pop("logit_scale").exp()) if "logit_scale" in state else 100.0
    model = load_model("CLIPTextModelWithProjection", "CLIPTextConfig", told, name, state).eval()
    return Reader(model, _tokenizer(folder / TOKENIZER, int(told.get("max_position_embeddings", USUAL_LENGTH))), scale)


def _tokenizer(path: Path, longest: int) -> Any:
    if not path.is_file():
        raise InputError(f"{path}: is missing: copy the whole folder of the network")
    text = read_text(path, LARGEST_TOKENIZER)
    try:
        tokenizer = importlib.import_module("tokenizers").Tokenizer.from_str(text)
        tokenizer.no_padding()
        tokenizer.enable_truncation(longest)
    except Exception as error:  # any error of its reader
        words = shown(" ".join(str(error).split()), quoted=False)
        raise InputError(f"{path}: cannot be read ({words[:200]}): download it again") from None
    return tokenizer
