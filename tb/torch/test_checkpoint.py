"""Checkpoints that are compressed: a block runs twice, as with checkpoints alone, and what is kept in between is the
inputs of the blocks, compressed."""

import pytest
import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.checkpoint import checkpoint

import actcodec.torch as at
from tb.torch.memory import measured
from tb.torch.models import relative

BLOCKS, CHANNELS, SIZE = 4, 16, 64


class Block(nn.Sequential):
    """Ends in a ReLU, whose output is the input of the next block. It has no statistics that would differ."""

    def __init__(self):
        super().__init__(nn.Conv2d(CHANNELS, CHANNELS, 3, padding=1), nn.ReLU(),
                         nn.Conv2d(CHANNELS, CHANNELS, 3, padding=1), nn.ReLU())
        self.runs = 0

    def forward(self, x):
        self.runs += 1
        return super().forward(x)


class Blocks(nn.Module):
    def __init__(self, checkpointed=True):
        super().__init__()
        self.first = nn.Conv2d(3, CHANNELS, 3, padding=1)
        self.blocks = nn.ModuleList(Block() for _ in range(BLOCKS))
        self.fc = nn.Linear(CHANNELS, 10)
        self.checkpointed = checkpointed

    def forward(self, x):
        x = self.first(x)
        for block in self.blocks:
            x = checkpoint(block, x, use_reentrant=False) if self.checkpointed else block(x)
        return self.fc(x.mean((2, 3)))


def step(preset, checkpointed=True):
    """Bytes that the forward pass leaves, runs of each block, and the gradient."""
    torch.manual_seed(0)
    model = Blocks(checkpointed)
    x, y = torch.randn(8, 3, SIZE, SIZE), torch.randint(0, 10, (8,))
    compress = at.Compress(model, preset)

    def forward():
        with compress:
            return F.cross_entropy(model(x), y)

    forward().backward()
    model.zero_grad()
    for block in model.blocks:
        block.runs = 0
    memory = measured(forward)
    memory.result.backward()
    return memory, [block.runs for block in model.blocks], torch.cat([one.grad.view(-1) for one in model.parameters()])


ONE = 8 * CHANNELS * SIZE * SIZE * 4  # bytes of an activation


@pytest.mark.parametrize("preset", ["none", "zvc", "sfpr", "jpeg-act", "gist"])
def test_a_block_runs_twice(preset):
    assert step(preset)[1] == [2] * BLOCKS


def test_what_is_held_is_the_inputs_compressed():
    memory = step("sfpr")[0]
    plain = step("none")[0]
    assert plain.left == pytest.approx(BLOCKS * ONE, rel=0.02)
    assert memory.left == pytest.approx(BLOCKS * ONE / 4, rel=0.02)
    assert memory.peak < plain.peak
    without = step("none", checkpointed=False)[0]
    assert without.left == pytest.approx((2 * BLOCKS + 1) * ONE, rel=0.02)


def test_gradients_are_those_without_loss():
    exact = step("none", checkpointed=False)[2]
    assert relative(step("none")[2], exact) == 0 == relative(step("zvc")[2], exact)
    assert 0 < relative(step("sfpr")[2], exact) < 0.1
