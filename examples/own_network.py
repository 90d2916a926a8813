"""Attention in a network of your own, drawn on the right pixels of your picture."""

import torch
from torch import nn

from saccade import AttentionTrace, SoftAttention, overlay
from saccade.attention import frame_of

body = nn.Sequential(nn.Conv2d(3, 16, 7, 2, 3), nn.ReLU(), nn.MaxPool2d(3, 2, 1), nn.Conv2d(16, 32, 3, 4, 1))
attention = SoftAttention(channels=32, query_size=10)
image, query = torch.rand(1, 3, 224, 224), torch.rand(1, 10)

context, look = attention(body(image), query, frame=frame_of(body, (224, 224)))  # (1,32), weights (1,14,14)
trace = AttentionTrace((look,))
where = trace.image_map(size=(224, 224))  # (1,224,224): on the pixels of the picture
overlay(image[0], where[0].detach()).save("own_network.png")
