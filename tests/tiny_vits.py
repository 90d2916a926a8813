"""Vision transformers of a few hundred weights in plain torch, one for each way in which attention is computed."""

import math
from typing import Literal

import torch
import torch.nn.functional as F
from torch import Tensor, nn

Way = Literal["sdpa", "eager", "bmm", "einsum", "module"]
WAYS: tuple[Way, ...] = ("sdpa", "eager", "bmm", "einsum", "module")


class Attention(nn.Module):
    """Self-attention of all tokens."""

    def __init__(self, width: int, heads: int, way: Way) -> None:
        super().__init__()
        self.heads, self.way = heads, way
        self.qkv = nn.Linear(width, 3 * width)
        self.module = nn.MultiheadAttention(width, heads, batch_first=True)
        self.drop = nn.Dropout(0.3)

    def forward(self, tokens: Tensor) -> Tensor:
        if self.way == "module":
            return self.module(tokens, tokens, tokens, need_weights=False)[0]
        batch, count, width = tokens.shape
        q, k, v = self.qkv(tokens).reshape(batch, count, 3, self.heads, -1).permute(2, 0, 3, 1, 4)  # (B,h,N,d)
        if self.way == "sdpa":
            made = F.scaled_dot_product_attention(q, k, v)
        elif self.way == "bmm":
            q, k, v = (each.reshape(-1, *each.shape[2:]) for each in (q, k, v))  # (B·h,N,d)
            weights = F.softmax(torch.bmm(q, k.transpose(1, 2)) / math.sqrt(q.shape[-1]), dim=-1)
            made = torch.bmm(self.drop(weights), v).reshape(batch, self.heads, count, -1)
        else:
            weights = self.drop((q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])).softmax(dim=-1))
            made = torch.einsum("bhqk,bhkd->bhqd", weights, v) if self.way == "einsum" else weights @ v
        return made.transpose(1, 2).reshape(batch, count, width)


class Block(nn.Module):
    def __init__(self, width: int, heads: int, way: Way) -> None:
        super().__init__()
        self.norm, self.attention = nn.LayerNorm(width), Attention(width, heads, way)

    def forward(self, tokens: Tensor) -> Tensor:
        return tokens + self.attention(self.norm(tokens))


class Pool(nn.Module):
    """A learnt query that reads the patches."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.probe = nn.Parameter(torch.randn(1, 1, width))
        self.attention = nn.MultiheadAttention(width, heads, batch_first=True)

    def forward(self, tokens: Tensor) -> Tensor:
        return self.attention(self.probe.expand(len(tokens), -1, -1), tokens, tokens)[0][:, 0]


class TinyViT(nn.Module):
    """Patches of 8 pixels, two layers of three heads; ``registers`` stand after the class token.

    Args:
        way: how attention is computed.
        registers: tokens between that of the class and the patches.
        head: what the classes are made of: the class token, a pooling head, or the mean of the patches.
        classes: how many; 0 for a model without a head.
    """

    def __init__(self, way: Way = "sdpa", registers: int = 0, head: str = "token", classes: int = 5) -> None:
        super().__init__()
        torch.manual_seed(3)
        width, heads = 24, 3
        self.num_classes, self.global_pool = classes, {"mean": "avg"}.get(head, head)
        self.has_class_token = head == "token"
        self.num_prefix_tokens = registers + self.has_class_token
        self.patches = nn.Conv2d(3, width, 8, 8)
        self.prefix = nn.Parameter(torch.randn(1, self.num_prefix_tokens, width))
        self.blocks = nn.ModuleList(Block(width, heads, way) for _ in range(2))
        self.pool = Pool(width, heads) if head == "map" else None
        self.classify = nn.Linear(width, classes) if classes else nn.Identity()
        for weight in self.parameters():
            nn.init.normal_(weight, std=0.3)

    def forward(self, images: Tensor) -> Tensor:
        tokens = self.patches(images).flatten(2).transpose(1, 2)  # (B,cells,D)
        tokens = torch.cat([self.prefix.expand(len(tokens), -1, -1), tokens], 1)  # (B,N,D)
        for block in self.blocks:
            tokens = block(tokens)
        if self.pool is not None:
            return self.classify(self.pool(tokens))
        return self.classify(tokens[:, 0] if self.has_class_token else tokens.mean(1))

    def reference(self, images: Tensor) -> list[Tensor]:
        """Weights (B,h,N,N) of each layer by the textbook: softmax of scaled products, nothing else."""
        found = []
        tokens = self.patches(images).flatten(2).transpose(1, 2)
        tokens = torch.cat([self.prefix.expand(len(tokens), -1, -1), tokens], 1)
        for block in self.blocks:
            attention, normed = block.attention, block.norm(tokens)
            is_module = attention.way == "module"
            weight = attention.module.in_proj_weight if is_module else attention.qkv.weight
            bias = attention.module.in_proj_bias if is_module else attention.qkv.bias
            q, k, _ = F.linear(normed, weight, bias).chunk(3, -1)  # (B,N,D)
            q, k = (each.unflatten(-1, (attention.heads, -1)).transpose(1, 2) for each in (q, k))  # (B,h,N,d)
            scores = torch.stack([a @ b.mT for a, b in zip(q.flatten(0, 1), k.flatten(0, 1))])  # (B·h,N,N)
            shares = torch.exp(scores / math.sqrt(q.shape[-1]))
            found.append((shares / shares.sum(-1, keepdim=True)).unflatten(0, q.shape[:2]))
            tokens = block(tokens)
        return found


class OfLayers(nn.Module):
    """torch's own encoder, which in eval mode takes a fast path of its own through each layer."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(4)
        layer = nn.TransformerEncoderLayer(24, 4, 32, batch_first=True)
        self.patches, self.layers = nn.Conv2d(3, 24, 8, 8), nn.TransformerEncoder(layer, 2)
        self.class_token = nn.Parameter(torch.randn(1, 1, 24))

    def forward(self, images: Tensor) -> Tensor:
        tokens = self.patches(images).flatten(2).transpose(1, 2)
        return self.layers(torch.cat([self.class_token.expand(len(tokens), -1, -1), tokens], 1))


class Windowed(nn.Module):
    """Attention inside windows of 2 × 2 patches."""

    def __init__(self) -> None:
        super().__init__()
        self.patches, self.attention, self.num_classes = nn.Conv2d(3, 24, 8, 8), Attention(24, 3, "sdpa"), 24

    def forward(self, images: Tensor) -> Tensor:
        tokens = self.patches(images)  # (B,D,4,4)
        windows = F.unfold(tokens, 2, stride=2).unflatten(1, (-1, 4)).permute(0, 3, 2, 1).flatten(0, 1)  # (B·4,4,D)
        return self.attention(windows).unflatten(0, (-1, 4)).mean((1, 2))


class Halved(nn.Module):
    """A second layer on half the tokens: it drops patches."""

    def __init__(self) -> None:
        super().__init__()
        self.whole, self.num_prefix_tokens, self.num_classes = TinyViT(), 1, 5

    def forward(self, images: Tensor) -> Tensor:
        tokens = self.whole.patches(images).flatten(2).transpose(1, 2)
        tokens = torch.cat([self.whole.prefix.expand(len(tokens), -1, -1), tokens], 1)
        first, second = self.whole.blocks
        return self.whole.classify(second(first(tokens)[:, :9])[:, 0])


class Captioner(nn.Module):
    """Words that look at the patches of a vision model and at each other, as captioners of transformers do."""

    def __init__(self) -> None:
        super().__init__()
        self.vision_model, self.num_prefix_tokens = TinyViT(classes=0), 1
        self.words, self.text_decoder = nn.Embedding(9, 24), nn.ModuleList([Attention(24, 3, "sdpa") for _ in range(2)])
        self.cross = nn.ModuleList([nn.MultiheadAttention(24, 3, batch_first=True) for _ in range(2)])

    def forward(self, images: Tensor, input_ids: Tensor) -> Tensor:
        vision = self.vision_model
        tokens = vision.patches(images).flatten(2).transpose(1, 2)
        tokens = torch.cat([vision.prefix.expand(len(tokens), -1, -1), tokens], 1)
        for block in vision.blocks:
            tokens = block(tokens)
        said = self.words(input_ids)  # (B,T,D)
        for own, cross in zip(self.text_decoder, self.cross):
            said = said + own(said)
            said = said + cross(said, tokens, tokens, need_weights=False)[0]
        return said
