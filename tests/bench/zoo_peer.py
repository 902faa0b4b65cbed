#!/usr/bin/env python3
"""Measures a model of tests/golden/compare_zoo.py in another framework; prints a JSON line with the milliseconds of a step.

  zoo_peer.py NAME --mode infer|train --batch N --variant eager|channels_last|compile|onnxruntime|openvino [--threads N] [--steps N]

A training step is forward, the mean of the first output's squares, backward and SGD with momentum.
"""
import argparse
import io
import json
import pathlib
import sys
import time

import torch

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "golden"))
import compare_zoo


def repeat(x, batch):
    """The first sample of each input, `batch` times."""
    return {name: value[:1].repeat(batch, *[1] * (value.dim() - 1)) for name, value in x.items()}


class Whole(torch.nn.Module):
    """The model as a function of tensors alone, for an export."""

    def __init__(self, model, row, names):
        super().__init__()
        self.model, self.row, self.names = model, row, names

    def forward(self, *inputs):
        return tuple(self.row.run(self.model, dict(zip(self.names, inputs))).values())


def exported(whole, inputs):
    file = io.BytesIO()
    torch.onnx.export(whole, tuple(inputs.values()), file, dynamo=False, input_names=list(inputs))
    return file.getvalue()


def inference(options, row, model, inputs):
    """A function that computes the batch once."""
    whole = Whole(model.eval(), row, list(inputs))
    arrays = {name: value.numpy() for name, value in inputs.items()}
    if options.variant == "onnxruntime":
        import onnxruntime
        settings = onnxruntime.SessionOptions()
        settings.intra_op_num_threads = options.threads
        session = onnxruntime.InferenceSession(exported(whole, inputs), settings, providers=["CPUExecutionProvider"])
        return lambda: session.run(None, arrays)
    if options.variant == "openvino":
        import openvino
        core = openvino.Core()
        # The table is of f32: OpenVINO would multiply in bf16 where the processor can.
        settings = {"INFERENCE_NUM_THREADS": options.threads, "INFERENCE_PRECISION_HINT": "f32"}
        request = core.compile_model(core.read_model(exported(whole, inputs)), "CPU", settings).create_infer_request()
        return lambda: request.infer(arrays)
    if options.variant == "compile":
        whole = torch.compile(whole)

    def run():
        with torch.inference_mode():
            return whole(*inputs.values())
    return run


def training(options, row, model, inputs):
    whole = Whole(model.train(), row, list(inputs))
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-4, momentum=0.9)
    forward = torch.compile(whole) if options.variant == "compile" else whole

    def run():
        optimizer.zero_grad()
        forward(*inputs.values())[0].square().mean().backward()
        optimizer.step()
    return run


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("name")
    parser.add_argument("--mode", choices=("infer", "train"), default="infer")
    parser.add_argument("--batch", type=int, default=1)
    parser.add_argument("--variant", default="eager")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--steps", type=int, default=10)
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    torch.manual_seed(0)
    row = compare_zoo.ROWS[options.name]
    model, inputs = row.build(), repeat(row.inputs(), options.batch)
    if options.variant == "channels_last":
        model = model.to(memory_format=torch.channels_last)
        inputs = {k: v.contiguous(memory_format=torch.channels_last) if v.dim() == 4 else v for k, v in inputs.items()}
    run = (training if options.mode == "train" else inference)(options, row, model, inputs)
    for _ in range(2):
        run()
    start = time.perf_counter()
    for _ in range(options.steps):
        run()
    print(json.dumps({"peer": options.variant, "ms": (time.perf_counter() - start) * 1000 / options.steps}))


main()
