"""Networks of the hub as small folders: real classes of transformers with random weights."""

import json

import pytest
import torch

SMALL = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2, "image_size": 28, "patch_size": 14}
INNER = {"intermediate_size": 48}
TEXT = {
    "hidden_size": 32,
    "num_hidden_layers": 1,
    "num_attention_heads": 2,
    "vocab_size": 99,
    "bos_token_id": 97,
    "eos_token_id": 98,
    **INNER,
}
WORDS = ["a", "photo", "of", ".", "red", "car", "dog", "tree", "cat", "bus", "house", "river"]
PIXELS = {"image_mean": [0.4, 0.5, 0.6], "image_std": [0.2, 0.25, 0.3]}
STEPS = {"do_resize": True, "do_rescale": True, "rescale_factor": 1 / 255, "do_normalize": True, "resample": 3}
CROPPED = {"size": {"shortest_edge": 48}, "do_center_crop": True, "crop_size": {"height": 42, "width": 42}}
KINDS = ("dinov2", "dinov2_with_registers", "clip", "siglip")
CARD = """---
license: apache-2.0
datasets:
- imaginary/pictures
---
# A network
"""


def hub_folder(folder, kind="dinov2", seed=0, **changed):
    """Save a small network into a folder of the hub's layout, and return the folder."""
    transformers = pytest.importorskip("transformers", reason="the extra hub is not installed")
    torch.manual_seed(seed)
    if kind == "dinov2":
        model = transformers.Dinov2Model(transformers.Dinov2Config(**SMALL, **changed))
    elif kind == "dinov2_with_registers":
        model = transformers.Dinov2WithRegistersModel(transformers.Dinov2WithRegistersConfig(**SMALL, **changed))
    elif kind == "clip":
        parts = {"vision_config": {**SMALL, **INNER}, "text_config": TEXT}
        model = transformers.CLIPModel(transformers.CLIPConfig(**parts, projection_dim=16))
    else:
        parts = {"vision_config": {**SMALL, **INNER}, "text_config": TEXT}
        model = transformers.SiglipModel(transformers.SiglipConfig(**parts))
    model.save_pretrained(folder)
    if kind == "clip":
        save_tokenizer(folder)
    sizes = {
        "clip": {"size": 28, "do_center_crop": True, "crop_size": 28},  # as its authors' file has them
        "siglip": {"size": {"height": 28, "width": 28}},
    }.get(kind, CROPPED)
    (folder / "preprocessor_config.json").write_text(json.dumps({**STEPS, **PIXELS, **sizes}))
    (folder / "README.md").write_text(CARD)
    return folder


def save_tokenizer(folder):
    """Save a tokenizer of whole words, with the marks of begin and end that CLIP has."""
    tokenizers = pytest.importorskip("tokenizers")
    vocabulary = {word: number for number, word in enumerate(["?", *WORDS])} | {"<begin>": 97, "<end>": 98}
    made = tokenizers.Tokenizer(tokenizers.models.WordLevel(vocabulary, "?"))
    made.normalizer = tokenizers.normalizers.Lowercase()
    made.pre_tokenizer = tokenizers.pre_tokenizers.Whitespace()
    marks = [("<begin>", 97), ("<end>", 98)]
    made.post_processor = tokenizers.processors.TemplateProcessing("<begin> $A <end>", None, marks)
    made.save(str(folder / "tokenizer.json"))


def own_texts(folder, texts):
    """Return what transformers' own tokenizer and model make of texts, each by itself, as unit vectors."""
    import transformers

    tokenizer = transformers.PreTrainedTokenizerFast(tokenizer_file=str(folder / "tokenizer.json"))
    model = transformers.CLIPModel.from_pretrained(folder).eval()
    with torch.no_grad():
        rows = [model.get_text_features(**tokenizer(text, return_tensors="pt")).pooler_output for text in texts]
    return torch.nn.functional.normalize(torch.cat(rows), dim=1)


def own_features(folder, kind, images):
    """Return the features of Pillow images by transformers' own processor and model."""
    import transformers

    module = {"clip": "clip", "siglip": "siglip"}.get(kind, "bit")
    package = f"transformers.models.{module}.image_processing_pil_{module}"
    name = {"clip": "CLIPImageProcessorPil", "siglip": "SiglipImageProcessorPil"}.get(kind, "BitImageProcessorPil")
    processor = getattr(__import__(package, fromlist=[name]), name).from_pretrained(folder)
    classes = {
        "dinov2": transformers.Dinov2Model,
        "dinov2_with_registers": transformers.Dinov2WithRegistersModel,
        "clip": transformers.CLIPModel,
        "siglip": transformers.SiglipModel,
    }
    model = classes[kind].from_pretrained(folder).eval()
    pixels = processor(images=images, return_tensors="pt")["pixel_values"]
    with torch.no_grad():
        if kind in ("clip", "siglip"):
            return model.get_image_features(pixel_values=pixels).pooler_output
        return model(pixel_values=pixels).pooler_output
