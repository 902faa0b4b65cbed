"""Models in PyTorch that compare_zoo.py compares with those of docs/zoo that no package has."""
import torch
import torch.nn.functional as F
from torch import nn


class Generator(nn.Module):
    def __init__(self, noise=100, width=64, channels=3):
        super().__init__()
        self.main = nn.Sequential(
            nn.ConvTranspose2d(noise, 8 * width, 4, 1, 0, bias=False), nn.BatchNorm2d(8 * width), nn.ReLU(True),
            nn.ConvTranspose2d(8 * width, 4 * width, 4, 2, 1, bias=False), nn.BatchNorm2d(4 * width), nn.ReLU(True),
            nn.ConvTranspose2d(4 * width, 2 * width, 4, 2, 1, bias=False), nn.BatchNorm2d(2 * width), nn.ReLU(True),
            nn.ConvTranspose2d(2 * width, width, 4, 2, 1, bias=False), nn.BatchNorm2d(width), nn.ReLU(True),
            nn.ConvTranspose2d(width, channels, 4, 2, 1, bias=False), nn.Tanh())

    def forward(self, noise):
        return self.main(noise)


class Twice(nn.Module):
    def __init__(self, before, channels):
        super().__init__()
        self.conv1 = nn.Conv2d(before, channels, 3, padding=1, bias=False)
        self.norm1 = nn.BatchNorm2d(channels)
        self.conv2 = nn.Conv2d(channels, channels, 3, padding=1, bias=False)
        self.norm2 = nn.BatchNorm2d(channels)

    def forward(self, x):
        x = F.relu(self.norm1(self.conv1(x)))
        return F.relu(self.norm2(self.conv2(x)))


class Up(nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.up = nn.ConvTranspose2d(2 * channels, channels, 2, 2)
        self.join = Twice(2 * channels, channels)

    def forward(self, x, beside):
        return self.join(torch.cat([beside, self.up(x)], 1))


class UNet(nn.Module):
    def __init__(self, classes=2):
        super().__init__()
        self.down1, self.down2 = Twice(3, 64), Twice(64, 128)
        self.down3, self.down4 = Twice(128, 256), Twice(256, 512)
        self.middle = Twice(512, 1024)
        self.up4, self.up3, self.up2, self.up1 = Up(512), Up(256), Up(128), Up(64)
        self.head = nn.Conv2d(64, classes, 1)

    def forward(self, image):
        down1 = self.down1(image)
        down2 = self.down2(F.max_pool2d(down1, 2))
        down3 = self.down3(F.max_pool2d(down2, 2))
        down4 = self.down4(F.max_pool2d(down3, 2))
        x = self.middle(F.max_pool2d(down4, 2))
        for up, beside in ((self.up4, down4), (self.up3, down3), (self.up2, down2), (self.up1, down1)):
            x = up(x, beside)
        return self.head(x)


class Unit(nn.Module):
    def __init__(self, width, skips, dilation):
        super().__init__()
        self.dilation = dilation
        self.dilated = nn.Conv1d(width, 2 * width, 2, dilation=dilation)
        self.out = nn.Conv1d(width, width, 1)
        self.skip_out = nn.Conv1d(width, skips, 1)

    def forward(self, x, skip):
        a, b = self.dilated(F.pad(x, (self.dilation, 0))).chunk(2, 1)
        gated = torch.tanh(a) * torch.sigmoid(b)
        return x + self.out(gated), skip + self.skip_out(gated)


class WaveNet(nn.Module):
    def __init__(self, levels=256, width=64, skips=128, stacks=2, depth=10):
        super().__init__()
        self.embed = nn.Embedding(levels, width)
        self.units = nn.ModuleList([Unit(width, skips, 2 ** i) for _ in range(stacks) for i in range(depth)])
        self.post = nn.Sequential(nn.Conv1d(skips, skips, 1), nn.ReLU(), nn.Conv1d(skips, levels, 1))

    def forward(self, samples):
        x, skip = self.embed(samples).transpose(1, 2), 0
        for unit in self.units:
            x, skip = unit(x, skip)
        return self.post(F.relu(skip)).transpose(1, 2)


class DLRM(nn.Module):
    def __init__(self, rows=10000, categories=26, numbers=13, width=16):
        super().__init__()
        self.bottom = nn.Sequential(nn.Linear(numbers, 512), nn.ReLU(), nn.Linear(512, 256), nn.ReLU(),
                                    nn.Linear(256, width), nn.ReLU())
        self.tables = nn.Embedding(rows * categories, width)
        self.register_buffer("start", rows * torch.arange(categories), persistent=False)
        pairs = (categories + 1) * categories // 2
        self.top = nn.Sequential(nn.Linear(width + pairs, 512), nn.ReLU(), nn.Linear(512, 256), nn.ReLU(), nn.Linear(256, 1))

    def forward(self, numbers, categories):
        bottom = self.bottom(numbers)
        every = torch.cat([bottom[:, None], self.tables(categories + self.start)], 1)
        row, column = torch.tril_indices(every.shape[1], every.shape[1], -1)
        pairs = (every @ every.transpose(1, 2))[:, row, column]
        return self.top(torch.cat([bottom, pairs], 1))[:, 0]


class Tagger(nn.Module):
    def __init__(self, words=20000, width=100, units=256, tags=17):
        super().__init__()
        self.words = nn.Embedding(words, width)
        self.rnn = nn.LSTM(width, units, num_layers=2, bidirectional=True, batch_first=True)
        self.tags = nn.Linear(2 * units, tags)

    def forward(self, tokens, length):
        packed = nn.utils.rnn.pack_padded_sequence(self.words(tokens), length.cpu().long(), batch_first=True, enforce_sorted=False)
        every, _ = nn.utils.rnn.pad_packed_sequence(self.rnn(packed)[0], batch_first=True, total_length=tokens.shape[1])
        return self.tags(every)


class Tower(nn.Module):
    def __init__(self):
        super().__init__()
        self.features = nn.Sequential(
            nn.Conv2d(1, 64, 10), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(64, 128, 7), nn.ReLU(), nn.MaxPool2d(2),
            nn.Conv2d(128, 128, 4), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(128, 256, 4), nn.ReLU())
        self.fc = nn.Linear(256 * 6 * 6, 512)

    def forward(self, x):
        return self.fc(self.features(x).flatten(1))


class Siamese(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = Tower()

    def forward(self, left, right):
        return torch.sqrt(((self.net(left) - self.net(right)) ** 2).sum(1) + 1e-12)

    def loss(self, distance, same):
        return (same * distance ** 2 + (1 - same) * (1 - distance).clamp(min=0) ** 2).mean()


class CBS(nn.Module):
    def __init__(self, before, channels, kernel=1, stride=1, padding=None):
        super().__init__()
        self.conv = nn.Conv2d(before, channels, kernel, stride, kernel // 2 if padding is None else padding, bias=False)
        self.bn = nn.BatchNorm2d(channels, momentum=0.03, eps=1e-3)

    def forward(self, x):
        return F.silu(self.bn(self.conv(x)))


class Bottleneck(nn.Module):
    def __init__(self, channels, add):
        super().__init__()
        self.add = add
        self.cv1, self.cv2 = CBS(channels, channels), CBS(channels, channels, 3)

    def forward(self, x):
        y = self.cv2(self.cv1(x))
        return x + y if self.add else y


class CSP(nn.Module):
    def __init__(self, before, channels, depth, add=True):
        super().__init__()
        half = channels // 2
        self.cv1, self.cv2, self.cv3 = CBS(before, half), CBS(before, half), CBS(channels, channels)
        self.m = nn.Sequential(*[Bottleneck(half, add) for _ in range(depth)])

    def forward(self, x):
        return self.cv3(torch.cat([self.m(self.cv1(x)), self.cv2(x)], 1))


class Pyramid(nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.cv1, self.cv2 = CBS(channels, channels // 2), CBS(2 * channels, channels)

    def forward(self, x):
        every = [self.cv1(x)]
        for _ in range(3):
            every.append(F.max_pool2d(every[-1], 5, 1, 2))
        return self.cv2(torch.cat(every, 1))


class Yolo(nn.Module):
    def __init__(self, numbers=85):
        super().__init__()
        self.numbers = numbers
        self.c3 = nn.Sequential(CBS(3, 32, 6, 2, 2), CBS(32, 64, 3, 2), CSP(64, 64, 1), CBS(64, 128, 3, 2), CSP(128, 128, 2))
        self.c4 = nn.Sequential(CBS(128, 256, 3, 2), CSP(256, 256, 3))
        self.n5 = nn.Sequential(CBS(256, 512, 3, 2), CSP(512, 512, 1), Pyramid(512), CBS(512, 256))
        self.m4 = nn.Sequential(CSP(512, 256, 1, False), CBS(256, 128))
        self.n3 = CSP(256, 128, 1, False)
        self.u4 = CBS(128, 128, 3, 2)
        self.p4 = CSP(256, 256, 1, False)
        self.u5 = CBS(256, 256, 3, 2)
        self.p5 = CSP(512, 512, 1, False)
        self.head3 = nn.Conv2d(128, 3 * numbers, 1)
        self.head4 = nn.Conv2d(256, 3 * numbers, 1)
        self.head5 = nn.Conv2d(512, 3 * numbers, 1)

    def rows(self, x):
        return x.unflatten(1, (3, self.numbers)).permute(0, 1, 3, 4, 2).flatten(1, 3)

    def forward(self, image):
        c3 = self.c3(image)
        c4 = self.c4(c3)
        n5 = self.n5(c4)
        m4 = self.m4(torch.cat([F.interpolate(n5, scale_factor=2.0), c4], 1))
        n3 = self.n3(torch.cat([F.interpolate(m4, scale_factor=2.0), c3], 1))
        p4 = self.p4(torch.cat([self.u4(n3), m4], 1))
        p5 = self.p5(torch.cat([self.u5(p4), n5], 1))
        return torch.cat([self.rows(self.head3(n3)), self.rows(self.head4(p4)), self.rows(self.head5(p5))], 1)
