"""Activations of a small transformer for ``docs/ratios.md``: tensors that are no pictures.

``python -m docs.transformer`` trains it on a core of this machine, some minutes, and writes :data:`SAMPLE`. It needs
the extra ``torch``. The text is that of Python's help topics, whose bytes another version of Python may have changed;
seeds are fixed, but another processor or version of PyTorch may round otherwise. So the sample is part of the
repository.

The network is a decoder of characters: four blocks of width 128 with four heads, LayerNorm in front of each part, GELU.
"""

from pathlib import Path

import numpy as np

__all__ = ["KINDS", "SAMPLE", "load"]

SAMPLE = Path(__file__).parent / "records/transformer.npz"
KINDS = ("hidden", "attention", "gelu")
"""Names of tensors begin so: the sums between blocks, [batch, position, feature]; attention behind the softmax, [batch,
head, position, position]; what enters the last layer of a block's perceptron, [batch, position, feature]."""

WIDTH, HEADS, BLOCKS, LENGTH, BATCH, STEPS = 128, 4, 4, 128, 8, 1500
WARM = 100  # steps until the learning rate is whole
SHOWN = (2, 4)  # blocks


def load(kind):
    """The sample's tensors of a kind."""
    with np.load(SAMPLE) as arrays:
        return [arrays[name] for name in arrays.files if name.startswith(kind)]


def text():
    """Indices of characters, and how many different ones there are."""
    from pydoc_data.topics import topics

    whole = "\n".join(topics[name] for name in sorted(topics))
    letters = sorted(set(whole))
    return np.array([letters.index(one) for one in whole]), len(letters)


def train(say=print):
    """The sample of a network that has been trained: {name: array}."""
    import torch
    from torch import nn
    from torch.nn.functional import cross_entropy

    class Block(nn.Module):
        def __init__(self):
            super().__init__()
            self.before, self.behind = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
            self.mixed, self.joined = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)
            self.wide, self.narrow = nn.Linear(WIDTH, 4 * WIDTH), nn.Linear(4 * WIDTH, WIDTH)

        def forward(self, x, activations):
            n, length, _ = x.shape
            mixed = self.mixed(self.before(x)).chunk(3, -1)
            q, k, v = (part.view(n, length, HEADS, -1).transpose(1, 2) for part in mixed)
            scores = q @ k.transpose(-2, -1) / (WIDTH // HEADS) ** 0.5
            future = torch.ones(length, length, dtype=torch.bool).triu(1)
            activations["attention"] = attention = scores.masked_fill(future, -torch.inf).softmax(-1)
            x = x + self.joined((attention @ v).transpose(1, 2).reshape(n, length, WIDTH))
            activations["gelu"] = wide = nn.functional.gelu(self.wide(self.behind(x)))
            activations["hidden"] = x = x + self.narrow(wide)
            return x

    class Network(nn.Module):
        def __init__(self, letters):
            super().__init__()
            self.letter, self.place = nn.Embedding(letters, WIDTH), nn.Embedding(LENGTH, WIDTH)
            self.blocks = nn.ModuleList(Block() for _ in range(BLOCKS))
            self.end, self.head = nn.LayerNorm(WIDTH), nn.Linear(WIDTH, letters)

        def forward(self, indices):
            self.activations = [{} for _ in self.blocks]
            x = self.letter(indices) + self.place(torch.arange(LENGTH))
            for block, activations in zip(self.blocks, self.activations, strict=True):
                x = block(x, activations)
            return self.head(self.end(x))

    torch.set_num_threads(1)
    torch.manual_seed(0)
    torch.use_deterministic_algorithms(True)
    random = np.random.default_rng(0)
    indices, letters = text()
    network = Network(letters)
    optimizer = torch.optim.AdamW(network.parameters(), 1e-3)
    rise = torch.optim.lr_scheduler.LinearLR(optimizer, 0.01, 1, WARM)
    for step in range(STEPS):
        starts = random.integers(0, len(indices) - LENGTH, BATCH)
        batch = torch.from_numpy(np.stack([indices[start : start + LENGTH + 1] for start in starts]))
        loss = cross_entropy(network(batch[:, :-1]).flatten(0, 1), batch[:, 1:].flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        rise.step()
        if step % 100 == 99:
            say(f"step {step + 1}: {loss.item():.3f} nats a character")
    with torch.no_grad():
        network(batch[:1, :-1])
    return {f"{kind}{block}": network.activations[block - 1][kind].contiguous().numpy()
            for kind in KINDS for block in SHOWN}


if __name__ == "__main__":
    np.savez_compressed(SAMPLE, **train())
