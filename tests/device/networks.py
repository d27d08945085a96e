"""Networks of the catalogue (data/workloads) as PyTorch modules, layer by layer.

The modules are written here because torchvision is not installed everywhere and because the
catalogue follows Keras for most networks: ResNet-50 to 152 have biases in their convolutions and
the stride in the first 1 x 1 convolution, Inception v3 trains no gamma, MobileNets use ReLU6. The
last softmax of a Keras network is part of the loss. There is no drop-out.

"Same" padding is symmetric here: with odd windows the lengths of the output are those of
TensorFlow's asymmetric padding, and so is the work.

    python3 networks.py [--stepcast BINARY] [NAME ...]

counts trainable parameters; with the program it also compares every tensor, and the work of every
convolution and dense layer, with what `stepcast workloads NAME` prints.
"""
from __future__ import annotations

import argparse
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional

Pair = tuple[int, int]


class Add(nn.Module):
    """The sum of two tensors, written over the first where `inplace`."""

    inplace = True

    def forward(self, x: Tensor, y: Tensor) -> Tensor:
        return x.add_(y) if self.inplace else x + y


class Concat(nn.Module):
    """Joins images along their channels."""

    def forward(self, *images: Tensor) -> Tensor:
        return torch.cat(images, 1)


class Branches(nn.Module):
    """Runs each branch on the input and joins their outputs."""

    def __init__(self, *branches: nn.Module) -> None:
        super().__init__()
        self.branches = nn.ModuleList(branches)
        self.concat = Concat()

    def forward(self, x: Tensor) -> Tensor:
        return self.concat(*[branch(x) for branch in self.branches])


class Residual(nn.Module):
    """after(body(x) + shortcut(x)); without a shortcut the input itself is added."""

    def __init__(self, body: nn.Module, shortcut: nn.Module | None = None,
                 after: nn.Module | None = None) -> None:
        super().__init__()
        self.body = body
        self.shortcut = shortcut
        self.add = Add()
        self.after = after

    def forward(self, x: Tensor) -> Tensor:
        shortcut = x if self.shortcut is None else self.shortcut(x)
        y = self.add(self.body(x), shortcut)
        return y if self.after is None else self.after(y)


def relu() -> nn.Module:
    return nn.ReLU(inplace=True)


def relu6() -> nn.Module:
    return nn.ReLU6(inplace=True)


def swish() -> nn.Module:
    # Not in place: its backward pass needs the input, and PyTorch would keep a copy.
    return nn.SiLU()


def conv(inputs: int, filters: int, kernel: int | Pair = 1, stride: int = 1, groups: int = 1,
         bias: bool = False, valid: bool = False) -> nn.Conv2d:
    """A convolution with "same" padding, or with none if `valid`."""
    height, width = (kernel, kernel) if isinstance(kernel, int) else kernel
    padding = (0, 0) if valid else ((height - 1) // 2, (width - 1) // 2)
    return nn.Conv2d(inputs, filters, (height, width), stride, padding, groups=groups, bias=bias)


def conv_norm(inputs: int, filters: int, kernel: int | Pair = 1, stride: int = 1, groups: int = 1,
              bias: bool = False, valid: bool = False,
              activation: Callable[[], nn.Module] | None = relu) -> list[nn.Module]:
    """Convolution, batch normalisation and activation."""
    layers = [conv(inputs, filters, kernel, stride, groups, bias, valid), nn.BatchNorm2d(filters)]
    return layers if activation is None else [*layers, activation()]


def classifier(inputs: int, classes: int = 1000) -> list[nn.Module]:
    return [nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(inputs, classes)]


def perceptron(inputs: int, classes: int) -> nn.Module:
    return nn.Sequential(nn.Flatten(), nn.Linear(inputs, 512), relu(), nn.Linear(512, 512), relu(),
                         nn.Linear(512, classes))


def vgg(*convolutions: int) -> nn.Module:
    """`convolutions` is how many 3 x 3 convolutions each of the five blocks has."""
    layers: list[nn.Module] = []
    channels = 3
    for count, filters in zip(convolutions, (64, 128, 256, 512, 512)):
        for _ in range(count):
            layers += [conv(channels, filters, 3, bias=True), relu()]
            channels = filters
        layers.append(nn.MaxPool2d(2))
    return nn.Sequential(*layers, nn.Flatten(), nn.Linear(512 * 7 * 7, 4096), relu(),
                         nn.Linear(4096, 4096), relu(), nn.Linear(4096, 1000))


def resnet18() -> nn.Module:
    """As in torchvision."""
    layers = [*conv_norm(3, 64, 7, 2), nn.MaxPool2d(3, 2, 1)]
    channels = 64
    for filters, first_stride in ((64, 1), (128, 2), (256, 2), (512, 2)):
        for stride in (first_stride, 1):
            body = nn.Sequential(*conv_norm(channels, filters, 3, stride),
                                 *conv_norm(filters, filters, 3, activation=None))
            shortcut = None
            if stride != 1 or channels != filters:
                shortcut = nn.Sequential(*conv_norm(channels, filters, 1, stride, activation=None))
            layers.append(Residual(body, shortcut, relu()))
            channels = filters
    return nn.Sequential(*layers, *classifier(512))


def keras_resnet(*blocks: int) -> nn.Module:
    """Version 1 with bottlenecks; `blocks` are those of the four stages."""
    layers = [*conv_norm(3, 64, 7, 2, bias=True), nn.MaxPool2d(3, 2, 1)]
    channels = 64
    for stage, count in enumerate(blocks):
        filters = 64 * 2**stage
        for block in range(count):
            stride = 2 if stage > 0 and block == 0 else 1
            body = nn.Sequential(
                *conv_norm(channels, filters, 1, stride, bias=True),
                *conv_norm(filters, filters, 3, bias=True),
                *conv_norm(filters, 4 * filters, bias=True, activation=None))
            shortcut = None
            if block == 0:
                shortcut = nn.Sequential(
                    *conv_norm(channels, 4 * filters, 1, stride, bias=True, activation=None))
            layers.append(Residual(body, shortcut, relu()))
            channels = 4 * filters
    return nn.Sequential(*layers, *classifier(channels))


def mobilenet() -> nn.Module:
    """MobileNet v1; its classifier is a 1 x 1 convolution."""
    layers = conv_norm(3, 32, 3, 2, activation=relu6)
    channels = 32
    for filters, stride in ((64, 1), (128, 2), (128, 1), (256, 2), (256, 1), (512, 2),
                            *[(512, 1)] * 5, (1024, 2), (1024, 1)):
        layers += conv_norm(channels, channels, 3, stride, groups=channels, activation=relu6)
        layers += conv_norm(channels, filters, activation=relu6)
        channels = filters
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), conv(1024, 1000, bias=True),
                         nn.Flatten())


class SqueezeExcite(nn.Module):
    """Weights each channel by a function of the channels' means."""

    def __init__(self, channels: int, squeezed: int) -> None:
        super().__init__()
        self.weights = nn.Sequential(nn.AdaptiveAvgPool2d(1), conv(channels, squeezed, bias=True),
                                     swish(), conv(squeezed, channels, bias=True), nn.Sigmoid())

    def forward(self, x: Tensor) -> Tensor:
        return x * self.weights(x)


class InputNormalization(nn.Module):
    """Subtracts a stored mean and divides by a stored deviation."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("mean", torch.tensor([0.485, 0.456, 0.406]).view(1, 3, 1, 1))
        self.register_buffer("deviation", torch.tensor([0.229, 0.224, 0.225]).view(1, 3, 1, 1))

    def forward(self, x: Tensor) -> Tensor:
        return (x - self.mean) / self.deviation


def inverted_residuals(stages: tuple[tuple[int, ...], ...], activation: Callable[[], nn.Module],
                       squeeze: bool) -> nn.Module:
    """Stages of (blocks, expansion, filters, kernel, first stride), with stem and top."""
    layers = conv_norm(3, 32, 3, 2, activation=activation)
    channels = 32
    for blocks, expansion, filters, kernel, first_stride in stages:
        for block in range(blocks):
            stride = first_stride if block == 0 else 1
            wide = expansion * channels
            body = conv_norm(channels, wide, activation=activation) if expansion > 1 else []
            body += conv_norm(wide, wide, kernel, stride, groups=wide, activation=activation)
            if squeeze:
                body.append(SqueezeExcite(wide, channels // 4))
            body += conv_norm(wide, filters, activation=None)
            if stride == 1 and channels == filters:
                layers.append(Residual(nn.Sequential(*body)))
            else:
                layers += body
            channels = filters
    return nn.Sequential(*layers, *conv_norm(channels, 1280, activation=activation),
                         *classifier(1280))


def mobilenet_v2() -> nn.Module:
    stages = ((1, 1, 16, 3, 1), (2, 6, 24, 3, 2), (3, 6, 32, 3, 2), (4, 6, 64, 3, 2),
              (3, 6, 96, 3, 1), (3, 6, 160, 3, 2), (1, 6, 320, 3, 1))
    return inverted_residuals(stages, relu6, squeeze=False)


def efficientnet_b0() -> nn.Module:
    stages = ((1, 1, 16, 3, 1), (2, 6, 24, 3, 2), (2, 6, 40, 5, 2), (3, 6, 80, 3, 2),
              (3, 6, 112, 5, 1), (4, 6, 192, 5, 2), (1, 6, 320, 3, 1))
    return nn.Sequential(InputNormalization(), *inverted_residuals(stages, swish, squeeze=True))


class DenseLayer(nn.Module):
    """Adds 32 channels to its input."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.body = nn.Sequential(nn.BatchNorm2d(channels), relu(), *conv_norm(channels, 128),
                                  conv(128, 32, 3))
        self.concat = Concat()

    def forward(self, x: Tensor) -> Tensor:
        return self.concat(x, self.body(x))


def densenet121() -> nn.Module:
    layers = [*conv_norm(3, 64, 7, 2), nn.MaxPool2d(3, 2, 1)]
    channels = 64
    for stage, count in enumerate((6, 12, 24, 16)):
        if stage > 0:
            layers += [nn.BatchNorm2d(channels), relu(), conv(channels, channels // 2),
                       nn.AvgPool2d(2)]
            channels //= 2
        for _ in range(count):
            layers.append(DenseLayer(channels))
            channels += 32
    return nn.Sequential(*layers, nn.BatchNorm2d(channels), relu(), *classifier(channels))


def inception_v3() -> nn.Module:
    def chain(inputs: int, *convolutions: tuple) -> nn.Module:
        """Each convolution is (filters, kernel[, stride]); one with a stride has no padding."""
        layers: list[nn.Module] = []
        for filters, kernel, *stride in convolutions:
            layers += conv_norm(inputs, filters, kernel, *stride, valid=bool(stride))
            inputs = filters
        return nn.Sequential(*layers)

    def pooled(inputs: int, filters: int) -> nn.Module:
        return nn.Sequential(nn.AvgPool2d(3, 1, 1, count_include_pad=False),
                             *conv_norm(inputs, filters))

    def row_and_column() -> nn.Module:
        return Branches(chain(384, (384, (1, 3))), chain(384, (384, (3, 1))))

    layers = [chain(3, (32, 3, 2), (32, 3, 1), (64, 3)), nn.MaxPool2d(3, 2),
              chain(64, (80, 1), (192, 3, 1)), nn.MaxPool2d(3, 2)]
    # 35 x 35.
    for inputs, projected in ((192, 32), (256, 64), (288, 64)):
        layers.append(Branches(chain(inputs, (64, 1)), chain(inputs, (48, 1), (64, 5)),
                               chain(inputs, (64, 1), (96, 3), (96, 3)),
                               pooled(inputs, projected)))
    layers.append(Branches(chain(288, (384, 3, 2)), chain(288, (64, 1), (96, 3), (96, 3, 2)),
                           nn.MaxPool2d(3, 2)))
    # 17 x 17: 7 x 7 convolutions as rows and columns.
    for n in (128, 160, 160, 192):
        row, column = (n, (1, 7)), (n, (7, 1))
        layers.append(Branches(chain(768, (192, 1)), chain(768, (n, 1), row, (192, (7, 1))),
                               chain(768, (n, 1), column, row, column, (192, (1, 7))),
                               pooled(768, 192)))
    layers.append(Branches(chain(768, (192, 1), (320, 3, 2)),
                           chain(768, (192, 1), (192, (1, 7)), (192, (7, 1)), (192, 3, 2)),
                           nn.MaxPool2d(3, 2)))
    # 8 x 8: the 3 x 3 branches end in a row and a column side by side.
    for inputs in (1280, 2048):
        layers.append(Branches(chain(inputs, (320, 1)),
                               nn.Sequential(chain(inputs, (384, 1)), row_and_column()),
                               nn.Sequential(chain(inputs, (448, 1), (384, 3)), row_and_column()),
                               pooled(inputs, 192)))
    net = nn.Sequential(*layers, *classifier(2048))
    for module in net.modules():
        if isinstance(module, nn.BatchNorm2d):
            module.weight.requires_grad_(False)
    return net


class Attention(nn.Module):
    """Self-attention with full tokens x tokens scores, not fused."""

    def __init__(self, features: int, heads: int, fused_projections: bool, mask: Tensor | None,
                 ) -> None:
        super().__init__()
        outputs = (3 * features,) if fused_projections else (features,) * 3
        self.projections = nn.ModuleList(nn.Linear(features, units) for units in outputs)
        self.output = nn.Linear(features, features)
        self.heads = heads
        self.scale = (features // heads) ** -0.5
        self.register_buffer("mask", mask, persistent=False)  # what a token must not see

    def forward(self, x: Tensor) -> Tensor:
        batch, tokens, features = x.shape
        projected = [projection(x) for projection in self.projections]
        if len(projected) == 1:
            projected = list(projected[0].chunk(3, -1))
        query, key, value = (part.view(batch, tokens, self.heads, -1).transpose(1, 2)
                             for part in projected)
        scores = torch.matmul(query, key.transpose(-2, -1)) * self.scale
        if self.mask is not None:
            scores = scores.masked_fill(self.mask, torch.finfo(scores.dtype).min)
        context = torch.matmul(torch.softmax(scores, -1), value)
        return self.output(context.transpose(1, 2).reshape(batch, tokens, features))


class Bert(nn.Module):
    """Normalisation after each sum; the pooler reads the first token."""

    def __init__(self, blocks: int, features: int, heads: int) -> None:
        super().__init__()
        self.word = nn.Embedding(30522, features)
        self.token_type = nn.Embedding(2, features)
        self.position = nn.Embedding(512, features)
        layers: list[nn.Module] = [nn.LayerNorm(features)]
        for _ in range(blocks):
            layers += [Residual(Attention(features, heads, False, None)), nn.LayerNorm(features)]
            layers += [Residual(mlp(features, nn.GELU())), nn.LayerNorm(features)]
        self.layers = nn.Sequential(*layers)
        self.pooler = nn.Sequential(nn.Linear(features, features), nn.Tanh())

    def forward(self, tokens: Tensor) -> Tensor:
        positions = torch.arange(tokens.shape[1], device=tokens.device)
        x = self.word(tokens) + self.token_type(torch.zeros_like(tokens))
        return self.pooler(self.layers(x + self.position(positions))[:, 0])


class Gpt2(nn.Module):
    """Normalisation before each block; the output layer shares the weight of the embedding."""

    def __init__(self, blocks: int, features: int, heads: int, tokens: int) -> None:
        super().__init__()
        self.word = nn.Embedding(50257, features)
        self.position = nn.Embedding(tokens, features)
        mask = torch.ones(tokens, tokens, dtype=torch.bool).triu(1)
        layers: list[nn.Module] = []
        for _ in range(blocks):
            attention = Attention(features, heads, True, mask)
            layers.append(Residual(nn.Sequential(nn.LayerNorm(features), attention)))
            layers.append(Residual(nn.Sequential(
                nn.LayerNorm(features), *mlp(features, nn.GELU(approximate="tanh")))))
        self.layers = nn.Sequential(*layers, nn.LayerNorm(features))
        self.head = nn.Linear(features, 50257, bias=False)
        nn.init.normal_(self.word.weight, std=0.02)
        self.head.weight = self.word.weight

    def forward(self, tokens: Tensor) -> Tensor:
        positions = torch.arange(tokens.shape[1], device=tokens.device)
        return self.head(self.layers(self.word(tokens) + self.position(positions)))


def mlp(features: int, activation: nn.Module) -> nn.Sequential:
    return nn.Sequential(nn.Linear(features, 4 * features), activation,
                         nn.Linear(4 * features, features))


@dataclass(frozen=True)
class Network:
    """How to make a network, what goes in, and how many parameters the catalogue trains."""

    make: Callable[[], nn.Module]
    parameters: int
    input: tuple[int, ...] = (3, 224, 224)  # of an image; (tokens,) of a text
    values: int = 1000  # classes, or words of the vocabulary

    @property
    def is_text(self) -> bool:
        return len(self.input) == 1


NETWORKS: dict[str, Network] = {
    "bert_base": Network(lambda: Bert(12, 768, 12), 109_482_240, (384,), 30522),
    "bert_large": Network(lambda: Bert(24, 1024, 16), 335_141_888, (384,), 30522),
    "densenet121": Network(densenet121, 7_978_856),
    "efficientnet_b0": Network(efficientnet_b0, 5_288_548),
    "gpt2": Network(lambda: Gpt2(12, 768, 12, 1024), 124_439_808, (1024,), 50257),
    "inception_v3": Network(inception_v3, 23_817_352, (3, 299, 299)),
    "mlp_imagenet": Network(lambda: perceptron(3 * 224 * 224, 1000), 77_846_504),
    "mlp_mnist": Network(lambda: perceptron(784, 10), 669_706, (1, 28, 28), 10),
    "mobilenet": Network(mobilenet, 4_231_976),
    "mobilenet_v2": Network(mobilenet_v2, 3_504_872),
    "resnet101": Network(lambda: keras_resnet(3, 4, 23, 3), 44_601_832),
    "resnet152": Network(lambda: keras_resnet(3, 8, 36, 3), 60_268_520),
    "resnet18": Network(resnet18, 11_689_512),
    "resnet50": Network(lambda: keras_resnet(3, 4, 6, 3), 25_583_592),
    "vgg16": Network(lambda: vgg(2, 2, 3, 3, 3), 138_357_544),
    "vgg19": Network(lambda: vgg(2, 2, 4, 4, 4), 143_667_240),
}


def trainable_tensors(net: nn.Module) -> list[int]:
    """The number of elements of each trained tensor; a shared one counts once."""
    return [p.numel() for p in net.parameters() if p.requires_grad]


def build(name: str) -> nn.Module:
    """The network in training mode, with its parameters counted against the catalogue's."""
    net = NETWORKS[name].make().train()
    count = sum(trainable_tensors(net))
    if count != NETWORKS[name].parameters:
        raise AssertionError(f"{name} has {count:,} trainable parameters, the catalogue's has "
                             f"{NETWORKS[name].parameters:,}")
    return net


def sample(name: str, batch: int, device: str | torch.device) -> tuple[Tensor, Tensor | None]:
    """Random inputs and labels; BERT's pooler has no labels."""
    network = NETWORKS[name]
    if not network.is_text:
        labels = torch.randint(network.values, (batch,), device=device)
        return torch.randn(batch, *network.input, device=device), labels
    tokens = torch.randint(network.values, (batch, *network.input), device=device)
    has_head = name.startswith("gpt")
    return tokens, torch.randint_like(tokens, network.values) if has_head else None


def loss(output: Tensor, labels: Tensor | None) -> Tensor:
    """Cross entropy for each label; the mean of an output without labels."""
    if labels is None:
        return output.float().mean()
    return functional.cross_entropy(output.flatten(0, -2), labels.flatten())


def layer_work(net: nn.Module, name: str) -> Counter[int]:
    """The forward FLOP for one sample of each convolution and dense layer, and how many have it."""
    work: Counter[int] = Counter()

    def count(module: nn.Module, _: tuple[Tensor, ...], output: Tensor) -> None:
        macs = module.weight[0].numel()
        work[(2 * macs + (module.bias is not None)) * output.numel()] += 1

    for module in net.modules():
        if isinstance(module, (nn.Conv2d, nn.Linear)):
            module.register_forward_hook(count)
    with torch.no_grad():
        net.eval()(sample(name, 1, "cpu")[0])
    return work


def compare_with_catalogue(name: str, stepcast: str) -> list[str]:
    """What is different from the layers that the program prints."""
    layers = subprocess.run([stepcast, "workloads", name], check=True, capture_output=True,
                            text=True).stdout
    tensors = Counter(int(size) for line in re.findall(r"tensors: \[(.*?)\]", layers)
                      for size in line.split(","))
    work = Counter(int(flop) for flop in re.findall(
        r"kind: (?:depthwise_convolution|convolution|dense),.*?forward_flop: (\d+)", layers))
    net = build(name)
    differences = []
    for what, ours, theirs in (("tensors", Counter(trainable_tensors(net)), tensors),
                               ("FLOP of layers", layer_work(net, name), work)):
        if ours != theirs:
            differences.append(f"{what}: here {dict(ours - theirs)}, there {dict(theirs - ours)}")
    return differences


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("names", nargs="*", metavar="NAME", help="all by default")
    parser.add_argument("--stepcast", metavar="BINARY", help="compare with its catalogue")
    options = parser.parse_args()
    for name in options.names:
        if name not in NETWORKS:
            parser.error(f"no network {name}; there are: {', '.join(NETWORKS)}")
    failed = False
    for name in options.names or NETWORKS:
        count = sum(trainable_tensors(build(name)))
        differences = compare_with_catalogue(name, options.stepcast) if options.stepcast else []
        failed = failed or bool(differences)
        print(f"{name:16} {count:>12,}", *differences or ["ok"], sep="  ", flush=True)
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
