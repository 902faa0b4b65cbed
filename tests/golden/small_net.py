"""The net and the samples of make_averages.py, make_losses.py and make_thaw.py. golden_net.h of tests/integration/cli has the same
formulas."""
import os, shutil, struct, subprocess, tempfile
import torch
import torch.nn.functional as F
from safetensors.torch import load_file
from torch import nn

HERE = os.path.dirname(os.path.abspath(__file__))
SAMPLES, BATCH = 48, 8

images = torch.tensor([[(i * 37 + j * 11 + i * j * 5) % 251 for j in range(6)] for i in range(SAMPLES)], dtype=torch.uint8)
labels = torch.tensor([(i * i + i // 3) % 3 for i in range(SAMPLES)], dtype=torch.uint8)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc1, self.bn, self.fc2 = nn.Linear(6, 6), nn.BatchNorm1d(6), nn.Linear(6, 3)

    def forward(self, x):
        return self.fc2(F.relu(self.bn(self.fc1(x))))


def initial_weights(tenon, name):
    """Those of tests/golden/NAME/net.ini, which `tenon train` with run.epochs=0 writes."""
    folder = tempfile.mkdtemp()
    shutil.copy(os.path.join(HERE, name, "net.ini"), folder)
    with open(os.path.join(folder, "images"), "wb") as f:
        f.write(struct.pack(">4B3I", 0, 0, 8, 3, SAMPLES, 2, 3) + bytes(images.flatten().tolist()))
    with open(os.path.join(folder, "labels"), "wb") as f:
        f.write(struct.pack(">4BI", 0, 0, 8, 1, SAMPLES) + bytes(labels.tolist()))
    subprocess.run([tenon, "train", "net.ini", "--quiet", "--set", "run.epochs=0"], cwd=folder, check=True)
    return load_file(os.path.join(folder, "runs", "net", "checkpoints", "last", "model.safetensors"))
