# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Architectures of transformers and diffusers at small sizes, with random weights.

An entry is data: the library's class, its configuration, the inputs with their sizes, and the
results that are compared. A size is a number, or a name: `batch`, `length`, ... Named sizes are
those that an export leaves open; `sizes` gives the numbers of the two runs.
"""

from __future__ import annotations

import dataclasses
import importlib
from collections.abc import Callable, Mapping
from typing import Any

import torch

Size = int | str
Sizes = Mapping[str, int]


@dataclasses.dataclass(frozen=True)
class Input:
    """One tensor: what fills it, and its sizes, of which the named ones vary."""

    fill: Callable[[tuple[int, ...], torch.Generator], torch.Tensor]
    shape: tuple[Size, ...]

    def make(self, sizes: Sizes, generator: torch.Generator) -> torch.Tensor:
        """The tensor for these sizes, its numbers from the generator."""
        shape = tuple(size if isinstance(size, int) else sizes[size] for size in self.shape)
        return self.fill(shape, generator)


def tokens(*shape: Size, vocabulary: int = 99) -> Input:
    """i64 numbers of tokens; never 0 … 3, which are padding and the like in most of them."""
    return Input(
        lambda shape, generator: torch.randint(4, vocabulary, shape, generator=generator), shape
    )


def mask(*shape: Size) -> Input:
    """i64 ones, but zeros at the end of the last row."""

    def fill(shape: tuple[int, ...], generator: torch.Generator) -> torch.Tensor:
        ones = torch.ones(shape, dtype=torch.int64)
        ones[-1, -2:] = 0
        return ones

    return Input(fill, shape)


def normal(*shape: Size) -> Input:
    """f32 normally distributed numbers."""
    return Input(lambda shape, generator: torch.randn(shape, generator=generator), shape)


def uniform(*shape: Size) -> Input:
    """f32 numbers from 0 to 1: images."""
    return Input(lambda shape, generator: torch.rand(shape, generator=generator), shape)


def ones(*shape: Size) -> Input:
    """i64 ones: labels of points, pixels that count."""
    return Input(lambda shape, generator: torch.ones(shape, dtype=torch.int64), shape)


@dataclasses.dataclass(frozen=True)
class Architecture:
    """A model class with a configuration, and what goes in and comes out.

    `config` holds the arguments of the configuration class of `model`, which is a class of
    `library`. `inputs` are keyword arguments of forward; `options` more of them, constants.
    `results` names those of the output that are tensors and compared. `open_sizes` names the
    sizes that a dynamic export leaves open, `sizes` gives every named size its two numbers.
    `dtype` is that of parameters and of floating-point inputs.
    """

    name: str
    model: str
    config: Mapping[str, Any]
    inputs: Mapping[str, Input]
    results: tuple[str, ...]
    open_sizes: tuple[str, ...] = ("batch", "length")
    sizes: Mapping[str, tuple[int, int]] = dataclasses.field(
        default_factory=lambda: {"batch": (2, 3), "length": (8, 13)}
    )
    options: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    library: str = "transformers"
    dtype: torch.dtype = torch.float32

    def build(self) -> torch.nn.Module:
        """The model, random weights, in evaluation mode; returns a tuple of `results`.

        Raises:
            ImportError: the library is not installed.
            AttributeError: its version has no such architecture.
        """
        library = importlib.import_module(self.library)
        kind = getattr(library, self.model)
        torch.manual_seed(0)
        if self.library == "transformers":
            model = kind(kind.config_class(**self.config))
        else:
            model = kind(**self.config)
        _spread(model)
        return Results(model.eval().to(self.dtype), self.results, self.options)

    def arguments(self, run: int = 0) -> dict[str, torch.Tensor]:
        """The inputs of the first or second run, by name."""
        sizes = {
            name: numbers[run if name in self.open_sizes else 0]
            for name, numbers in self.sizes.items()
        }
        generator = torch.Generator().manual_seed(run)
        made = {name: given.make(sizes, generator) for name, given in self.inputs.items()}
        return {
            name: tensor.to(self.dtype) if tensor.is_floating_point() else tensor
            for name, tensor in made.items()
        }

    def dynamic_shapes(self) -> dict[str, Any]:
        """What `torch.export.export` is to be told for `open_sizes`.

        Raises:
            AttributeError: this PyTorch (before 2.6) cannot work out a size's range itself.
        """
        open_ = torch.export.Dim.DYNAMIC
        return {
            "inputs": {
                name: {
                    axis: open_ for axis, size in enumerate(given.shape) if size in self.open_sizes
                }
                for name, given in self.inputs.items()
            }
        }


class Results(torch.nn.Module):
    """Calls a model with a dict as keyword arguments; returns the named fields of its output.

    One dict, since torch.export of 2.13 mistakes dynamic shapes of `**inputs`.
    """

    def __init__(
        self, model: torch.nn.Module, results: tuple[str, ...], options: Mapping[str, Any]
    ) -> None:
        super().__init__()
        self.model = model
        self.results = results
        self.options = dict(options)

    def forward(self, inputs: dict[str, torch.Tensor]) -> tuple[torch.Tensor, ...]:
        output = self.model(**inputs, **self.options)
        return tuple(getattr(output, name) for name in self.results)


def _spread(model: torch.nn.Module) -> None:
    """Gives constant floating-point parameters (ones, zeros) random contents.

    Fresh models start with biases of zero and scales of one, which hide an operand that was
    forgotten or swapped.
    """
    for parameter in model.parameters():
        if parameter.is_floating_point() and parameter.numel() > 1:
            flat = parameter.data.flatten()
            if bool((flat == flat[0]).all()):
                parameter.data.add_(torch.randn_like(parameter) * 0.1)


_TEXT = {"input_ids": tokens("batch", "length"), "attention_mask": mask("batch", "length")}
_SMALL = {
    "vocab_size": 99,
    "hidden_size": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "intermediate_size": 64,
    "max_position_embeddings": 64,
}
_NO_CACHE = {"use_cache": False}
_DECODER = {**_SMALL, "num_key_value_heads": 2, "pad_token_id": 0, **_NO_CACHE}
_IMAGE = {"pixel_values": uniform("batch", 3, 32, 32)}
_BATCH = {"open_sizes": ("batch",), "sizes": {"batch": (2, 3)}}
_HIDDEN = ("last_hidden_state",)
_POOLED = ("last_hidden_state", "pooler_output")

ARCHITECTURES: tuple[Architecture, ...] = (
    # Encoders of text
    Architecture("BERT", "BertModel", _SMALL, _TEXT, _POOLED),
    Architecture(
        "DistilBERT",
        "DistilBertForSequenceClassification",
        {
            "vocab_size": 99, "dim": 32, "n_layers": 2, "n_heads": 4, "hidden_dim": 64,
            "max_position_embeddings": 64,
        },
        _TEXT,
        ("logits",),
    ),
    Architecture("RoBERTa", "RobertaForMaskedLM", _SMALL, _TEXT, ("logits",)),
    Architecture(
        "DeBERTa",
        "DebertaV2Model",
        {
            **_SMALL, "relative_attention": True, "position_buckets": 8,
            "pos_att_type": ["p2c", "c2p"], "position_biased_input": False,
        },
        _TEXT,
        _HIDDEN,
    ),
    Architecture(
        "ModernBERT",
        "ModernBertModel",
        {
            **_SMALL, "global_attn_every_n_layers": 2, "local_attention": 8, "pad_token_id": 0,
            "bos_token_id": 1, "eos_token_id": 2, "cls_token_id": 1, "sep_token_id": 2,
        },
        _TEXT,
        _HIDDEN,
    ),
    Architecture(
        "Longformer",
        "LongformerModel",
        {**_SMALL, "attention_window": 4},
        _TEXT,
        _HIDDEN,
        sizes={"batch": (2, 3), "length": (8, 16)},
    ),
    Architecture(
        "BigBird",
        "BigBirdModel",
        {**_SMALL, "attention_type": "original_full"},
        _TEXT,
        _HIDDEN,
    ),
    # Decoders of text
    Architecture(
        "GPT-2",
        "GPT2LMHeadModel",
        {
            "vocab_size": 99, "n_embd": 32, "n_layer": 2, "n_head": 4, "n_positions": 64,
            **_NO_CACHE,
        },
        _TEXT,
        ("logits",),
    ),
    Architecture(
        "OPT",
        "OPTForCausalLM",
        {
            **_SMALL, "ffn_dim": 64, "word_embed_proj_dim": 32, **_NO_CACHE,
        },
        _TEXT,
        ("logits",),
    ),
    Architecture(
        "Bloom",
        "BloomForCausalLM",
        {"vocab_size": 99, "hidden_size": 32, "n_layer": 2, "n_head": 4, **_NO_CACHE},
        _TEXT,
        ("logits",),
    ),
    Architecture("Falcon", "FalconForCausalLM", {**_SMALL, **_NO_CACHE}, _TEXT, ("logits",)),
    Architecture("Llama", "LlamaForCausalLM", _DECODER, _TEXT, ("logits",)),
    Architecture(
        "Llama, bf16", "LlamaForCausalLM", _DECODER, _TEXT, ("logits",), dtype=torch.bfloat16
    ),
    Architecture(
        "Mistral", "MistralForCausalLM", {**_DECODER, "sliding_window": 4}, _TEXT, ("logits",)
    ),
    Architecture("Qwen3", "Qwen3ForCausalLM", {**_DECODER, "head_dim": 8}, _TEXT, ("logits",)),
    Architecture("Gemma 2", "Gemma2ForCausalLM", {**_DECODER, "head_dim": 8}, _TEXT, ("logits",)),
    Architecture(
        "Gemma 3",
        "Gemma3ForCausalLM",
        {
            **_DECODER, "head_dim": 8, "sliding_window": 4,
            "layer_types": ["sliding_attention", "full_attention"],
        },
        _TEXT,
        ("logits",),
    ),
    Architecture("Phi-3", "Phi3ForCausalLM", _DECODER, _TEXT, ("logits",)),
    Architecture(
        "Mixtral",
        "MixtralForCausalLM",
        {
            **_DECODER, "num_local_experts": 4, "num_experts_per_tok": 2,
            "experts_implementation": "batched_mm",
        },
        _TEXT,
        ("logits",),
    ),
    Architecture(
        "Qwen3 MoE",
        "Qwen3MoeForCausalLM",
        {
            **_DECODER, "head_dim": 8, "num_experts": 4, "num_experts_per_tok": 2,
            "moe_intermediate_size": 16, "decoder_sparse_step": 1,
        },
        _TEXT,
        ("logits",),
    ),
    # Recurrent ones
    Architecture(
        "Mamba",
        "MambaForCausalLM",
        {
            "vocab_size": 99, "hidden_size": 32, "state_size": 4, "num_hidden_layers": 2,
            **_NO_CACHE,
        },
        {"input_ids": tokens("batch", "length")},
        ("logits",),
        open_sizes=("batch",),
    ),
    Architecture(
        "RWKV",
        "RwkvForCausalLM",
        {
            "vocab_size": 99, "hidden_size": 32, "num_hidden_layers": 2, "context_length": 64,
            # Otherwise it rescales its weights at its first call.
            "rescale_every": 0,
            **_NO_CACHE,
        },
        {"input_ids": tokens("batch", "length")},
        ("logits",),
        open_sizes=("batch",),
    ),
    # Text to text
    Architecture(
        "T5",
        "T5ForConditionalGeneration",
        {
            "vocab_size": 99, "d_model": 32, "d_kv": 8, "d_ff": 64, "num_layers": 2,
            "num_heads": 4, **_NO_CACHE,
        },
        {**_TEXT, "decoder_input_ids": tokens("batch", "target")},
        ("logits", "encoder_last_hidden_state"),
        open_sizes=("batch", "length", "target"),
        sizes={"batch": (2, 3), "length": (8, 13), "target": (5, 7)},
    ),
    Architecture(
        "BART",
        "BartForConditionalGeneration",
        {
            "vocab_size": 99, "d_model": 32, "encoder_layers": 1, "decoder_layers": 1,
            "encoder_attention_heads": 4, "decoder_attention_heads": 4, "encoder_ffn_dim": 64,
            "decoder_ffn_dim": 64, "max_position_embeddings": 64, **_NO_CACHE,
        },
        {**_TEXT, "decoder_input_ids": tokens("batch", "target")},
        ("logits", "encoder_last_hidden_state"),
        open_sizes=("batch", "length", "target"),
        sizes={"batch": (2, 3), "length": (8, 13), "target": (5, 7)},
    ),
    # Images
    Architecture(
        "ViT",
        "ViTForImageClassification",
        {**_SMALL, "image_size": 32, "patch_size": 8},
        _IMAGE,
        ("logits",),
        **_BATCH,
    ),
    Architecture(
        "ViT, f16",
        "ViTForImageClassification",
        {**_SMALL, "image_size": 32, "patch_size": 8},
        _IMAGE,
        ("logits",),
        dtype=torch.float16,
        **_BATCH,
    ),
    Architecture(
        "DINOv2",
        "Dinov2Model",
        {**_SMALL, "mlp_ratio": 2, "image_size": 32, "patch_size": 8},
        _IMAGE,
        _POOLED,
        **_BATCH,
    ),
    Architecture(
        "Swin",
        "SwinForImageClassification",
        {
            "image_size": 32, "patch_size": 2, "embed_dim": 16, "depths": [2, 2],
            "num_heads": [2, 4], "window_size": 4,
        },
        _IMAGE,
        ("logits",),
        **_BATCH,
    ),
    Architecture(
        "ConvNeXt",
        "ConvNextForImageClassification",
        {"hidden_sizes": [16, 32], "depths": [1, 1], "num_stages": 2},
        _IMAGE,
        ("logits",),
        **_BATCH,
    ),
    Architecture(
        "ResNet",
        "ResNetForImageClassification",
        {"embedding_size": 16, "hidden_sizes": [16, 32], "depths": [1, 1]},
        _IMAGE,
        ("logits",),
        **_BATCH,
    ),
    Architecture(
        "SegFormer",
        "SegformerForSemanticSegmentation",
        {
            "num_encoder_blocks": 2, "depths": [1, 1], "sr_ratios": [4, 2],
            "hidden_sizes": [16, 32], "patch_sizes": [7, 3], "strides": [4, 2],
            "num_attention_heads": [1, 2], "mlp_ratios": [2, 2], "decoder_hidden_size": 16,
        },
        _IMAGE,
        ("logits",),
        **_BATCH,
    ),
    Architecture(
        "DETR",
        "DetrForObjectDetection",
        {
            "use_timm_backbone": False, "use_pretrained_backbone": False, "backbone": None,
            "backbone_config": {
                "model_type": "resnet", "embedding_size": 16, "hidden_sizes": [16, 32],
                "depths": [1, 1], "out_features": ["stage2"],
            },
            "d_model": 32, "encoder_layers": 1, "decoder_layers": 1,
            "encoder_attention_heads": 4, "decoder_attention_heads": 4, "encoder_ffn_dim": 64,
            "decoder_ffn_dim": 64, "num_queries": 5,
        },
        {**_IMAGE, "pixel_mask": ones("batch", 32, 32)},
        ("logits", "pred_boxes"),
        **_BATCH,
    ),
    Architecture(
        "SAM",
        "SamModel",
        {
            "vision_config": {
                "hidden_size": 32, "output_channels": 16, "num_hidden_layers": 2,
                "num_attention_heads": 4, "image_size": 32, "patch_size": 8, "window_size": 2,
                "global_attn_indexes": [1], "mlp_dim": 64, "num_pos_feats": 8,
            },
            "prompt_encoder_config": {
                "hidden_size": 16, "image_size": 32, "patch_size": 8, "mask_input_channels": 4,
            },
            "mask_decoder_config": {
                "hidden_size": 16, "mlp_dim": 32, "num_hidden_layers": 1,
                "num_attention_heads": 2, "iou_head_hidden_dim": 16,
            },
        },
        {
            **_IMAGE,
            "input_points": uniform("batch", 1, 2, 2),
            "input_labels": ones("batch", 1, 2),
        },
        ("iou_scores", "pred_masks"),
        **_BATCH,
    ),
    Architecture(
        "CLIP",
        "CLIPModel",
        {
            "text_config": {**_SMALL, "eos_token_id": 2, "bos_token_id": 1, "pad_token_id": 0},
            "vision_config": {**_SMALL, "image_size": 32, "patch_size": 8},
            "projection_dim": 16,
        },
        {**_TEXT, "pixel_values": uniform("images", 3, 32, 32)},
        ("logits_per_image", "text_embeds", "image_embeds"),
        open_sizes=("batch", "length", "images"),
        sizes={"batch": (2, 3), "length": (8, 13), "images": (3, 5)},
    ),
    # Sound
    Architecture(
        "Whisper",
        "WhisperForConditionalGeneration",
        {
            "vocab_size": 99, "d_model": 32, "encoder_layers": 1, "decoder_layers": 1,
            "encoder_attention_heads": 4, "decoder_attention_heads": 4, "encoder_ffn_dim": 64,
            "decoder_ffn_dim": 64, "num_mel_bins": 16, "max_source_positions": 20,
            "max_target_positions": 32, "pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2,
            "decoder_start_token_id": 3, **_NO_CACHE,
        },
        {
            "input_features": normal("batch", 16, 40),
            "decoder_input_ids": tokens("batch", "target"),
        },
        ("logits", "encoder_last_hidden_state"),
        open_sizes=("batch", "target"),
        sizes={"batch": (2, 3), "target": (5, 7)},
    ),
    Architecture(
        "Wav2Vec2",
        "Wav2Vec2ForCTC",
        {
            **_SMALL, "conv_dim": [16, 16], "conv_kernel": [10, 3], "conv_stride": [5, 2],
            "num_feat_extract_layers": 2, "num_conv_pos_embeddings": 8,
            "num_conv_pos_embedding_groups": 4,
        },
        {"input_values": normal("batch", "length")},
        ("logits",),
        sizes={"batch": (2, 3), "length": (160, 230)},
    ),
    # Diffusion
    Architecture(
        "UNet",
        "UNet2DConditionModel",
        {
            "sample_size": 16, "in_channels": 4, "out_channels": 4, "block_out_channels": [16, 32],
            "down_block_types": ["CrossAttnDownBlock2D", "DownBlock2D"],
            "up_block_types": ["UpBlock2D", "CrossAttnUpBlock2D"], "layers_per_block": 1,
            "cross_attention_dim": 16, "attention_head_dim": 4, "norm_num_groups": 4,
        },
        {
            "sample": normal("batch", 4, 16, 16),
            "timestep": tokens(1),
            "encoder_hidden_states": normal("batch", "length", 16),
        },
        ("sample",),
        library="diffusers",
    ),
    Architecture(
        "AutoencoderKL",
        "AutoencoderKL",
        {
            "block_out_channels": [16, 32], "latent_channels": 4, "norm_num_groups": 4,
            "down_block_types": ["DownEncoderBlock2D", "DownEncoderBlock2D"],
            "up_block_types": ["UpDecoderBlock2D", "UpDecoderBlock2D"], "layers_per_block": 1,
            "sample_size": 16,
        },
        {"sample": uniform("batch", 3, 16, 16)},
        ("sample",),
        library="diffusers",
        **_BATCH,
    ),
)  # fmt: skip
