"""Models of ONNX with inputs and results, for tests/integration/cli/import_test.c: make_onnx.py FOLDER [PART...]. Networks come from both
exporters of PyTorch (2.15, with onnxscript), single operators from the helper of onnx, and their results from PyTorch and
from the reference evaluator of onnx (1.23); those of bodies and of com.microsoft from onnxruntime (1.32)."""
import logging
import sys
import warnings
from pathlib import Path

import numpy as np
import onnx
import torch
from onnx import TensorProto, helper, numpy_helper
from onnx.reference import ReferenceEvaluator
from torch import nn

warnings.filterwarnings("ignore")
logging.disable(logging.WARNING)
folder = Path(sys.argv[1])


def save(name, x, y):
    np.save(folder / f"{name}.x.npy", x)
    np.save(folder / f"{name}.y.npy", np.asarray(y, np.float32))


def randomize(module):
    for part in module.modules():
        if isinstance(part, nn.BatchNorm2d):
            part.running_mean.normal_(0, 0.1)
            part.running_var.uniform_(0.5, 2)


class Block(nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.conv1, self.bn1 = nn.Conv2d(channels, channels, 3, padding=1, bias=False), nn.BatchNorm2d(channels)
        self.conv2 = nn.Conv2d(channels, channels, 3, padding=2, dilation=2, groups=2)

    def forward(self, x):
        y = nn.functional.relu6(self.bn1(self.conv1(x)))
        return nn.functional.leaky_relu(self.conv2(y) + x, 0.2)


class Convnet(nn.Module):
    def __init__(self):
        super().__init__()
        self.stem = nn.Sequential(nn.Conv2d(3, 8, 5, stride=2, padding=2), nn.BatchNorm2d(8), nn.SiLU())
        self.pool = nn.MaxPool2d(3, stride=2, ceil_mode=True)
        self.blocks = nn.Sequential(Block(8), Block(8))
        self.up = nn.ConvTranspose2d(8, 4, 2, stride=2)
        self.drop, self.fc = nn.Dropout(0.1), nn.Linear(12, 5)

    def forward(self, x):
        y = self.blocks(self.pool(self.stem(x)))
        y = torch.cat([y, nn.functional.avg_pool2d(self.up(y), 2)], 1)
        return self.fc(self.drop(torch.flatten(nn.functional.adaptive_avg_pool2d(y, 1), 1)))


class Attention(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads, self.qkv, self.out = heads, nn.Linear(width, 3 * width), nn.Linear(width, width, bias=False)

    def forward(self, x):
        n, t, c = x.shape
        q, k, v = (p.view(n, t, self.heads, c // self.heads).transpose(1, 2) for p in self.qkv(x).chunk(3, dim=-1))
        score = (q @ k.transpose(-2, -1)) / (c // self.heads) ** 0.5
        seen = torch.tril(torch.ones(t, t, dtype=torch.bool))
        score = score.masked_fill(~seen, float("-inf"))
        return self.out((score.softmax(-1) @ v).transpose(1, 2).reshape(n, t, c))


class Transformer(nn.Module):
    def __init__(self):
        super().__init__()
        self.table, self.place = nn.Embedding(20, 12), nn.Parameter(torch.randn(1, 6, 12))
        self.norm1, self.attn, self.norm2 = nn.LayerNorm(12), Attention(12, 3), nn.LayerNorm(12, eps=1e-6)
        self.up, self.down, self.head = nn.Linear(12, 24), nn.Linear(24, 12), nn.Linear(12, 20, bias=False)

    def forward(self, ids):
        x = self.table(ids) + self.place
        x = x + self.attn(self.norm1(x))
        x = x + self.down(nn.functional.gelu(self.up(self.norm2(x))))
        return self.head(x[:, -1])


def networks():
    torch.manual_seed(1)
    convnet, image = Convnet().eval(), torch.randn(3, 3, 16, 16)
    randomize(convnet)
    options = dict(dynamo=False, input_names=["image"], dynamic_axes={"image": {0: "n"}})
    torch.onnx.export(convnet, image, folder / "convnet.onnx", do_constant_folding=False,
                      training=torch.onnx.TrainingMode.PRESERVE, **options)
    torch.onnx.export(convnet, image, folder / "convnet_folded.onnx", **options)
    torch.onnx.export(convnet, (image,), folder / "convnet_dynamo.onnx", dynamo=True, input_names=["image"], external_data=False,
                      dynamic_shapes=({0: torch.export.Dim("n")},), verbose=False)
    torch.onnx.export(convnet, image[:1], folder / "convnet_one.onnx", dynamo=False, input_names=["image"])
    for name in ("convnet", "convnet_folded", "convnet_dynamo", "convnet_one"):
        save(name, image.numpy(), convnet(image).detach())
    transformer, ids = Transformer().eval(), torch.randint(0, 20, (2, 6))
    torch.onnx.export(transformer, ids, folder / "transformer.onnx", dynamo=False, input_names=["ids"], dynamic_axes={"ids": {0: "n"}})
    save("transformer", ids.numpy(), transformer(ids).detach())


class Ops:
    """A graph of which every operator gives a part of one output. The batch has as many samples as channels, because the
    evaluator's LRN computes only as many channels as there are samples."""

    def __init__(self):
        self.nodes, self.tensors, self.parts = [], [], []

    def tensor(self, value):
        name = f"t{len(self.tensors)}"
        self.tensors.append(numpy_helper.from_array(np.asarray(value), name))
        return name

    def node(self, op, inputs, outputs=1, **attributes):
        names = [f"{op.lower()}_{len(self.nodes)}_{k}" for k in range(outputs)]
        self.nodes.append(helper.make_node(op, inputs, names, **attributes))
        return names if outputs > 1 else names[0]

    def give(self, value, cast=False):
        if cast:
            value = self.node("Cast", [value], to=TensorProto.FLOAT)
        self.parts.append(self.node("Flatten", [value], axis=1))

    def of(self, op, x, *more, cast=False, **attributes):
        self.give(self.node(op, [x, *more], **attributes), cast)

    def model(self, type_, shape):
        y = self.node("Concat", self.parts, axis=1)
        graph = helper.make_graph(self.nodes, "ops", [helper.make_tensor_value_info("x", type_, ["n", *shape])],
                                  [helper.make_tensor_value_info(y, TensorProto.FLOAT, ["n", None])], self.tensors)
        return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=10)


def pointwise(g):
    for op in ("Abs", "Ceil", "Cos", "Erf", "Exp", "Floor", "Neg", "Relu", "Round", "Sigmoid", "Sign", "Sin", "Softplus",
               "Softsign", "Tanh", "HardSwish", "Mish", "Selu", "Identity", "Reciprocal"):
        g.of(op, "x")
    for op, attributes in (("Elu", {"alpha": 0.7}), ("Celu", {"alpha": 1.5}), ("Gelu", {"approximate": "tanh"}), ("Gelu", {}),
                           ("LeakyRelu", {"alpha": 0.2}), ("ThresholdedRelu", {"alpha": 0.5}), ("HardSigmoid", {}),
                           ("Shrink", {"lambd": 0.4, "bias": 0.1})):
        g.of(op, "x", **attributes)
    up = g.node("Sqrt", [g.node("Abs", ["x"])])
    g.give(g.node("Log", [g.node("Add", [up, g.tensor(np.float32(1.5))])]))
    row = g.tensor(np.linspace(-1, 2, 8, dtype=np.float32))
    for op in ("Add", "Sub", "Mul", "Div", "Max", "Min"):
        g.of(op, "x", row)
    g.of("Sub", g.tensor(np.float32(2)), "x")
    g.of("Pow", "x", g.tensor(np.float32(3)))
    g.of("Pow", "x", g.tensor(np.float32(2)))
    g.of("Clip", "x", g.tensor(np.float32(-0.5)), g.tensor(np.float32(0.8)))
    g.of("PRelu", "x", g.tensor(np.full((4, 1, 1), 0.3, np.float32)))
    g.of("Mod", "x", row, fmod=1)
    for op in ("Greater", "LessOrEqual", "Equal"):
        g.of(op, "x", row, cast=True)
    mask = g.node("And", [g.node("Less", ["x", row]), g.node("Not", [g.node("Greater", ["x", g.tensor(np.float32(0))])])])
    g.of("Where", mask, "x", g.tensor(np.float32(7)))
    g.give(g.node("Sum", ["x", up, row]))
    g.give(g.node("Mean", ["x", up]))


def movement(g):
    whole = lambda *v: g.tensor(np.array(v, np.int64))
    g.of("Slice", "x", whole(1, -6), whole(3, 2**62), whole(1, 3), whole(1, 2))
    for part in g.node("Split", ["x", whole(3, 1, 4)], 3, axis=3):
        g.give(part)
    for part in g.node("Split", ["x"], 2, axis=1, num_outputs=2):
        g.give(part)
    g.of("Transpose", "x", perm=[0, 3, 1, 2])
    g.of("Pad", "x", whole(0, 0, 1, 2, 0, 0, 0, 1), g.tensor(np.float32(0.5)))
    g.of("Pad", "x", whole(1, 1), "", whole(3), mode="reflect")
    g.of("Reshape", "x", whole(0, -1, 4))
    g.of("Unsqueeze", "x", whole(2, -1))
    g.of("Tile", "x", whole(1, 2, 1, 1))
    g.of("Gather", "x", whole(2, 0), axis=1)
    g.of("Gather", "x", g.tensor(np.int64(-1)), axis=3)
    g.of("Expand", g.node("ReduceMean", ["x", whole(2)], keepdims=1), whole(1, 1, 3, 1))
    g.of("DepthToSpace", "x", blocksize=2)
    g.of("DepthToSpace", "x", blocksize=2, mode="CRD")
    g.of("Trilu", "x", whole(1)[:], upper=0)
    g.of("Resize", "x", "", "", whole(4, 4, 6, 16), mode="nearest", coordinate_transformation_mode="asymmetric", nearest_mode="floor")
    for mode, at in (("linear", "half_pixel"), ("linear", "align_corners"), ("cubic", "half_pixel")):
        g.of("Resize", "x", "", g.tensor(np.array([1, 1, 2, 2], np.float32)), mode=mode, coordinate_transformation_mode=at)
    shape = g.node("Shape", ["x"])
    halves = g.node("Concat", [g.node("Slice", [shape, whole(0), whole(2)]), whole(2, -1)], axis=0)
    g.of("Reshape", "x", halves)


def reductions(g):
    axes = g.tensor(np.array([2, 3], np.int64))
    positive = g.node("Abs", ["x"])
    for op in ("ReduceSum", "ReduceMean", "ReduceMax", "ReduceMin", "ReduceProd", "ReduceSumSquare", "ReduceL1", "ReduceL2", "ReduceLogSumExp"):
        g.of(op, "x", axes, keepdims=1)
    g.give(g.node("ReduceLogSum", [positive, axes], keepdims=0))
    g.of("Softmax", "x", axis=1)
    g.of("LogSoftmax", "x")
    for op in ("ArgMax", "ArgMin"):
        g.of(op, "x", axis=2, keepdims=0, cast=True)
    g.of("CumSum", "x", g.tensor(np.int64(3)), reverse=1)
    values, index = g.node("TopK", ["x", g.tensor(np.array([2], np.int64))], 2, axis=3)
    g.give(values)
    g.give(index, cast=True)
    g.of("GlobalAveragePool", "x")
    g.of("GlobalMaxPool", "x")
    g.of("LRN", "x", size=3, alpha=0.1)
    g.of("LRN", "x", size=2, alpha=0.5)
    g.of("LayerNormalization", "x", g.tensor(np.linspace(0.5, 1.5, 8, dtype=np.float32)), axis=-1)
    scale, shift = g.tensor(np.linspace(0.5, 2, 4, dtype=np.float32)), g.tensor(np.linspace(-1, 1, 4, dtype=np.float32))
    g.of("InstanceNormalization", "x", scale, shift, epsilon=1e-3)


def products(g):
    rng = np.random.default_rng(3)
    f = lambda *dims: g.tensor(rng.standard_normal(dims).astype(np.float32))
    rows = g.node("Flatten", ["x"], axis=1)
    g.of("Gemm", rows, f(96, 3), f(3))
    g.of("Gemm", rows, f(3, 96), f(3), transB=1)
    g.of("Gemm", rows, f(96, 3), f(1, 3), alpha=0.5, beta=2.0)
    g.give(g.node("Add", [g.node("MatMul", ["x", f(8, 2)]), f(2)]))
    g.of("MatMul", "x", g.node("Transpose", ["x"], perm=[0, 1, 3, 2]))
    g.of("Einsum", "x", "x", equation="nchw,nchv->ncwv")
    g.of("Conv", "x", f(2, 4, 3, 3), f(2), pads=[1, 0, 0, 1])
    g.of("Conv", "x", f(2, 4, 3, 2), auto_pad="SAME_LOWER", strides=[2, 2])
    g.of("ConvTranspose", "x", f(4, 2, 3, 3), strides=[2, 2], output_padding=[1, 1], pads=[1, 1, 1, 1])
    g.of("MaxPool", "x", kernel_shape=[3, 3], pads=[0, 0, 1, 1], strides=[2, 2])
    g.of("AveragePool", "x", kernel_shape=[2, 2], pads=[1, 1, 1, 1], count_include_pad=0)
    g.of("BatchNormalization", "x", f(4), f(4), f(4), g.tensor(np.abs(rng.standard_normal(4)).astype(np.float32)))


def operators():
    x = np.random.default_rng(2).standard_normal((4, 4, 3, 8)).astype(np.float32)
    for family in (pointwise, movement, reductions, products):
        g = Ops()
        family(g)
        model = g.model(TensorProto.FLOAT, [4, 3, 8])
        onnx.save(model, folder / f"{family.__name__}.onnx")
        save(family.__name__, x, ReferenceEvaluator(model).run(None, {"x": x})[0])


def weights():
    """Weights in another file, of 16 bits, and in typed fields."""
    rng = np.random.default_rng(4)
    w, half = rng.standard_normal((6, 3)).astype(np.float32), rng.standard_normal((3, 2)).astype(np.float16)
    nodes = [helper.make_node("MatMul", ["x", "first.weight"], ["a"]), helper.make_node("Add", ["a", "first.bias"], ["b"]),
             helper.make_node("Cast", ["b"], ["c"], to=TensorProto.FLOAT16), helper.make_node("MatMul", ["c", "last.weight"], ["d"]),
             helper.make_node("Cast", ["d"], ["y"], to=TensorProto.FLOAT)]
    tensors = [numpy_helper.from_array(w, "first.weight"), helper.make_tensor("first.bias", TensorProto.FLOAT, [3], [0.5, -1, 2]),
               numpy_helper.from_array(half, "last.weight")]
    graph = helper.make_graph(nodes, "weights", [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n", 6])],
                              [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["n", 2])], tensors)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    x = rng.standard_normal((5, 6)).astype(np.float32)
    save("outside", x, (x @ w + np.float32([0.5, -1, 2])) @ half.astype(np.float32))
    onnx.save(model, folder / "outside.onnx", save_as_external_data=True, location="outside.bin", size_threshold=0)


def refused():
    """Operators without a counterpart, and sizes that are not known."""
    nodes = [helper.make_node("NonZero", ["x"], ["a"]), helper.make_node("Relu", ["x"], ["b"]),
             helper.make_node("Frobnicate", ["b"], ["c"], domain="acme"), helper.make_node("Frobnicate", ["c"], ["d"], domain="acme"),
             helper.make_node("StringSplit", ["d"], ["y", "z"])]
    for name, width in (("lacks", 6), ("sizes", "m")):
        graph = helper.make_graph(nodes if name == "lacks" else nodes[1:2], name,
                                  [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n", width])],
                                  [helper.make_tensor_value_info("y" if name == "lacks" else "b", TensorProto.FLOAT, ["n", None])])
        onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)]), folder / f"{name}.onnx")


class Recurrent(nn.Module):
    def __init__(self):
        super().__init__()
        self.lstm, self.gru = nn.LSTM(6, 5, num_layers=2, bidirectional=True, batch_first=True), nn.GRU(10, 4, batch_first=True)
        self.fc = nn.Linear(4, 3)

    def forward(self, x):
        y, _ = self.lstm(x)
        return self.fc(self.gru(y)[0][:, -1])


def recurrent():
    torch.manual_seed(5)
    model, x = Recurrent().eval(), torch.randn(3, 7, 6)
    torch.onnx.export(model, x, folder / "recurrent.onnx", dynamo=False, input_names=["x"], dynamic_axes={"x": {0: "n"}})
    save("recurrent", x.numpy(), model(x).detach())


def quantized():
    """A weight of bytes with a scale for each row, and rounding between the layers."""
    rng = np.random.default_rng(6)
    g = Ops()
    weight = numpy_helper.from_array(rng.integers(-128, 128, (8, 5)).astype(np.int8), "fc.weight_quantized")
    g.tensors.append(weight)
    scale, step, zero = g.tensor(np.linspace(0.01, 0.02, 5, dtype=np.float32)), g.tensor(np.float32(0.03)), g.tensor(np.uint8(120))
    w = g.node("DequantizeLinear", ["fc.weight_quantized", scale, g.tensor(np.array([0, 3, -2, 1, 0], np.int8))], axis=1)
    x = g.node("DequantizeLinear", [g.node("QuantizeLinear", ["x", step, zero]), step, zero])
    g.give(g.node("MatMul", [x, w]))
    model, x = g.model(TensorProto.FLOAT, [8]), rng.standard_normal((4, 8)).astype(np.float32)
    onnx.save(model, folder / "quantized.onnx")
    save("quantized", x, ReferenceEvaluator(model).run(None, {"x": x})[0])


def whole():
    """No dimension is a batch, and a shape is an input."""
    rng = np.random.default_rng(7)
    nodes = [helper.make_node("Transpose", ["x"], ["turned"]), helper.make_node("MatMul", ["turned", "x"], ["square"]),
             helper.make_node("Mul", ["square", "factor"], ["scaled"]), helper.make_node("Reshape", ["scaled", "dims"], ["y"])]
    info = helper.make_tensor_value_info
    graph = helper.make_graph(nodes, "whole", [info("x", TensorProto.FLOAT, [3, 4]), info("factor", TensorProto.FLOAT, []),
                                               info("dims", TensorProto.INT64, [2])], [info("y", TensorProto.FLOAT, [2, 8])])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=10)
    x, factor, dims = rng.standard_normal((3, 4)).astype(np.float32), np.float32(0.5), np.array([2, 8])
    onnx.save(model, folder / "whole.onnx")
    y = ReferenceEvaluator(model).run(None, {"x": x, "factor": np.asarray(factor), "dims": dims})[0]
    save("whole", x[None], y[None])
    np.save(folder / "whole.factor.npy", np.array([factor]))
    np.save(folder / "whole.dims.npy", dims)


def flow():
    """A branch that is known, one that is chosen, a loop of three turns, a scan, and a function of the file."""
    import onnxruntime
    info, node, rng = helper.make_tensor_value_info, helper.make_node, np.random.default_rng(8)
    constant = lambda name, value: numpy_helper.from_array(np.asarray(value), name)
    branch = lambda op: helper.make_graph([node(op, ["x"], [op + "_y"])], op, [], [info(op + "_y", TensorProto.FLOAT, ["n", 4])])
    turn = helper.make_graph([node("Cast", ["turn"], ["number"], to=TensorProto.FLOAT), node("Mul", ["state", "half"], ["less"]),
                              node("Add", ["less", "number"], ["next"]), node("Identity", ["go"], ["goes"]), node("Neg", ["next"], ["seen"])], "turn",
                             [info("turn", TensorProto.INT64, []), info("go", TensorProto.BOOL, []), info("state", TensorProto.FLOAT, ["n", 4])],
                             [info("goes", TensorProto.BOOL, []), info("next", TensorProto.FLOAT, ["n", 4]), info("seen", TensorProto.FLOAT, ["n", 4])])
    step = helper.make_graph([node("Add", ["sum", "part"], ["more"]), node("Identity", ["more"], ["each"])], "step",
                             [info("sum", TensorProto.FLOAT, ["n"]), info("part", TensorProto.FLOAT, ["n"])],
                             [info("more", TensorProto.FLOAT, ["n"]), info("each", TensorProto.FLOAT, ["n"])])
    function = helper.make_function("acme", "Twice", ["a"], ["b"], [node("Add", ["a", "a"], ["c"]), node("LeakyRelu", ["c"], ["b"])],
                                    [helper.make_opsetid("", 20)])
    alpha = helper.make_attribute_ref("alpha", onnx.AttributeProto.FLOAT)
    alpha.ref_attr_name = "slope"
    function.node[1].attribute.append(alpha)
    function.attribute.append("slope")
    nodes = [node("If", ["yes"], ["chosen"], then_branch=branch("Abs"), else_branch=branch("Neg")),
             node("ReduceMax", ["x"], ["most"], keepdims=0), node("Greater", ["most", "far"], ["large"]),
             node("If", ["large"], ["either"], then_branch=branch("Exp"), else_branch=branch("Sin")),
             node("Loop", ["three", "yes", "either"], ["last", "turns"], body=turn),
             node("Transpose", ["turns"], ["beside"], perm=[1, 0, 2]), node("Flatten", ["beside"], ["flat"]),
             node("ReduceSum", ["x", "one"], ["start"], keepdims=0),
             node("Transpose", ["chosen"], ["steps"]), node("Scan", ["start", "steps"], ["total", "columns"], body=step, num_scan_inputs=1),
             node("Transpose", ["columns"], ["sums"]),
             node("Twice", ["last"], ["twice"], domain="acme", slope=0.3),
             node("Concat", ["flat", "sums", "twice"], ["y"], axis=1)]
    graph = helper.make_graph(nodes, "flow", [info("x", TensorProto.FLOAT, ["n", 4])], [info("y", TensorProto.FLOAT, ["n", 20])],
                              [constant("yes", True), constant("three", 3), constant("half", np.float32(0.5)), constant("far", np.float32(9)),
                               constant("one", np.array([1]))])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20), helper.make_opsetid("acme", 1)], functions=[function], ir_version=10)
    x = rng.standard_normal((3, 4)).astype(np.float32)
    onnx.save(model, folder / "flow.onnx")
    save("flow", x, onnxruntime.InferenceSession(folder / "flow.onnx").run(None, {"x": x})[0])


def fused():
    """Operators that onnxruntime's optimizer writes, with its results."""
    import onnxruntime
    rng, g = np.random.default_rng(9), Ops()
    f = lambda *dims: g.tensor(rng.standard_normal(dims).astype(np.float32))
    own = lambda op, inputs, outputs=1, **a: g.node(op, inputs, outputs, domain="com.microsoft", **a)
    scale, shift = f(16), f(16)
    for y in (own("BiasGelu", ["x", shift]), own("FastGelu", ["x"]), own("QuickGelu", ["x"], alpha=1.5),
              own("SkipLayerNormalization", ["x", "x", scale, shift, shift], epsilon=1e-5),
              own("SkipSimplifiedLayerNormalization", ["x", "x", scale], epsilon=1e-5),
              own("FusedMatMul", ["x", "x"], transB=1, alpha=0.25),
              own("Attention", ["x", f(16, 48), f(48)], num_heads=4, unidirectional=1),
              own("MultiHeadAttention", ["x", "x", "x", f(48)], num_heads=2),
              own("MatMulNBits", ["x", g.tensor(rng.integers(0, 256, (5, 1, 8)).astype(np.uint8)), f(5)], K=16, N=5, bits=4, block_size=16)):
        g.give(y)
    picture = g.node("Reshape", ["x", g.tensor(np.array([-1, 1, 6, 16]))])
    g.give(own("FusedConv", [picture, f(2, 1, 3, 3), f(2)], activation="LeakyRelu", activation_params=[0.2], pads=[1, 1, 1, 1]))
    model = g.model(TensorProto.FLOAT, [6, 16])
    model.opset_import.append(helper.make_opsetid("com.microsoft", 1))
    onnx.save(model, folder / "fused.onnx")
    x = rng.standard_normal((3, 6, 16)).astype(np.float32)
    save("fused", x, onnxruntime.InferenceSession(folder / "fused.onnx").run(None, {"x": x})[0])


def exported():
    """What exporters of PyTorch make of as_strided, F.pad and group_norm."""
    g = Ops()
    known = lambda values: g.node("Constant", [], value=numpy_helper.from_array(np.asarray(values)))
    samples = g.node("Squeeze", [g.node("Shape", ["x"], start=0, end=1)])
    starts = g.node("Unsqueeze", [g.node("Mul", [g.node("Range", [known(0), samples, known(1)]), known(6)]), known([1, 2])])
    index = g.node("Add", [starts, known(np.arange(6).reshape(1, 3, 2))])
    g.give(g.node("Gather", [g.node("Reshape", ["x", known([-1])]), index], axis=0))
    pairs = g.node("Slice", [known([[1, 2], [0, 1], [0, 0]]), known([-1]), known([-2**63 + 1]), known([0]), known([-1])])
    g.give(g.node("Pad", ["x", g.node("Reshape", [g.node("Transpose", [pairs], perm=[1, 0]), known([-1])])]))
    groups = g.node("InstanceNormalization", [g.node("Reshape", ["x", known([0, 1, -1])]), known(np.ones(1, np.float32)), known(np.zeros(1, np.float32))])
    g.give(groups)
    model = g.model(TensorProto.FLOAT, [2, 3])
    onnx.save(model, folder / "exported.onnx")
    x = np.random.default_rng(11).standard_normal((3, 2, 3)).astype(np.float32)
    save("exported", x, ReferenceEvaluator(model).run(None, {"x": x})[0])


def tied():
    """A table of embeddings that scores words, as a transposed copy, and a layer that is used twice."""
    rng = np.random.default_rng(11)
    f = lambda *shape: rng.standard_normal(shape).astype(np.float32)
    table, weight, bias = f(9, 4), f(4, 4), f(4)
    node = helper.make_node
    nodes = [node("Gather", ["wte.weight", "ids"], ["/wte/Gather"], "/wte/Gather"),
             node("MatMul", ["/wte/Gather", "fc.weight"], ["/fc/MatMul"], "/fc/MatMul"), node("Add", ["/fc/MatMul", "fc.bias"], ["h1"], "/fc/Add"),
             node("Tanh", ["h1"], ["h2"], "/Tanh"),
             node("MatMul", ["h2", "fc.weight"], ["/fc/MatMul_1"], "/fc/MatMul_1"), node("Add", ["/fc/MatMul_1", "fc.bias"], ["h3"], "/fc/Add_1"),
             node("MatMul", ["h3", "val_1"], ["scores"], "/head/MatMul"),
             node("Transpose", ["wte.weight"], ["turned"], "/last/Transpose", perm=[1, 0]), node("MatMul", ["h3", "turned"], ["more"], "/last/MatMul"),
             node("Concat", ["scores", "more"], ["y"], "/Concat", axis=2)]
    tensors = [numpy_helper.from_array(v, n) for n, v in {"wte.weight": table, "fc.weight": weight, "fc.bias": bias, "val_1": table.T.copy()}.items()]
    info = helper.make_tensor_value_info
    graph = helper.make_graph(nodes, "tied", [info("ids", TensorProto.INT64, ["n", 5])], [info("y", TensorProto.FLOAT, ["n", 5, 18])], tensors)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=10)
    onnx.save(model, folder / "tied.onnx")
    ids = rng.integers(0, 9, (3, 5))
    np.save(folder / "tied.x.npy", ids)
    np.save(folder / "tied.y.npy", ReferenceEvaluator(model).run(None, {"ids": ids})[0])


def growing():
    """Layers that read the results of all layers before them, as DenseNet's do."""
    rng = np.random.default_rng(13)
    nodes, tensors, parts = [], [], ["x"]
    for i in range(1, 6):
        scope, weight = f"/layer{i}", f"layer{i}.conv.weight"
        tensors.append(numpy_helper.from_array(rng.standard_normal((2, 1 + 2 * i, 1, 1)).astype(np.float32) / 2, weight))
        nodes += [helper.make_node("Concat", parts, [f"{scope}/Concat"], f"{scope}/Concat", axis=1),
                  helper.make_node("Conv", [f"{scope}/Concat", weight], [f"{scope}/conv/Conv"], f"{scope}/conv/Conv"),
                  helper.make_node("Relu", [f"{scope}/conv/Conv"], [f"{scope}/Relu"], f"{scope}/Relu")]
        parts = [*parts, f"{scope}/Relu"]
    nodes.append(helper.make_node("Concat", parts, ["y"], "/Concat", axis=1))
    info = helper.make_tensor_value_info
    graph = helper.make_graph(nodes, "growing", [info("x", TensorProto.FLOAT, ["n", 3, 4, 4])], [info("y", TensorProto.FLOAT, ["n", 13, 4, 4])], tensors)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=10)
    onnx.save(model, folder / "growing.onnx")
    x = rng.standard_normal((3, 3, 4, 4)).astype(np.float32)
    save("growing", x, ReferenceEvaluator(model).run(None, {"x": x})[0])


def windows():
    """Two parts in the other order along two axes, and a mask that constants give, as shifted windows have them."""
    node, array = helper.make_node, numpy_helper.from_array
    whole = lambda name, *values: array(np.array(values, np.int64), name)
    nodes = [node("Slice", ["x", "two", "end", "rows"], ["low"]), node("Slice", ["x", "zero", "two", "rows"], ["high"]),
             node("Concat", ["low", "high"], ["turned"], axis=1),
             node("Slice", ["turned", "two", "end", "columns"], ["left"]), node("Slice", ["turned", "zero", "two", "columns"], ["right"]),
             node("Concat", ["left", "right"], ["rolled"], axis=2),
             node("ConstantOfShape", ["size"], ["zeros"]), node("ScatterND", ["zeros", "places", "val_7"], ["upper"]),
             node("Concat", ["upper", "val_8"], ["regions"], axis=1),
             node("Unsqueeze", ["regions", "zero"], ["across"]), node("Unsqueeze", ["regions", "last"], ["along"]),
             node("Sub", ["across", "along"], ["apart"]), node("Equal", ["apart", "none"], ["same"]),
             node("Where", ["same", "none", "far"], ["mask"]), node("Add", ["rolled", "mask"], ["y"])]
    tensors = [whole("zero", 0), whole("two", 2), whole("end", 99), whole("rows", 1), whole("columns", 2), whole("last", -1), whole("size", 6, 4),
               array(np.array([[4], [5]], np.int64), "places"), array(np.full((2, 4), -1, np.float32), "val_7"), array(np.full((6, 2), 2, np.float32), "val_8"),
               array(np.float32(0), "none"), array(np.float32(-100), "far")]
    info = helper.make_tensor_value_info
    graph = helper.make_graph(nodes, "windows", [info("x", TensorProto.FLOAT, ["n", 6, 6, 6])], [info("y", TensorProto.FLOAT, ["n", 6, 6, 6])], tensors)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=10, producer_name="pytorch")
    onnx.save(model, folder / "windows.onnx")
    x = np.random.default_rng(14).standard_normal((3, 6, 6, 6)).astype(np.float32)
    save("windows", x, ReferenceEvaluator(model).run(None, {"x": x})[0])


def beyond():
    """A Concat along an axis that its operands lack."""
    info = helper.make_tensor_value_info
    graph = helper.make_graph([helper.make_node("Concat", ["x", "x"], ["y"], axis=5)], "beyond",
                              [info("x", TensorProto.FLOAT, ["n", 4])], [info("y", TensorProto.FLOAT, ["n", 8])])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=10), folder / "beyond.onnx")


PARTS = (beyond, networks, operators, weights, refused, recurrent, quantized, whole, flow, fused, exported, tied, growing, windows)
for part in PARTS:
    if not sys.argv[2:] or part.__name__ in sys.argv[2:]:
        part()
