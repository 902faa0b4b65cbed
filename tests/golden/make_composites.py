#!/usr/bin/env python3
"""Writes the goldens of ops that are composed of other ops: norms. The files are those of make_goldens.py, which
describes them.

    python3 tests/golden/make_composites.py [FOLDER]
"""
import pathlib
import sys

import torch
import torch.nn.functional as F

from make_goldens import draw, write_family


def norms(f, dtype):
    """Norms that are composed of other ops."""
    for shape, trailing in (((4, 6), 1), ((2, 3, 4), 2)):
        row = shape[len(shape) - trailing:]
        x, w = draw(*shape, dtype=dtype), draw(*row, dtype=dtype)
        f.case(f"y = rms_norm(x, w, epsilon=1e-6, trailing={trailing})", lambda x, w: F.rms_norm(x, row, w, 1e-6),
               x=x, w=w)
        f.case(f"y = rms_norm(x, epsilon=0.1, trailing={trailing})", lambda x: F.rms_norm(x, row, None, 0.1), x=x)
    for shape, groups in (((2, 6, 3, 2), 3), ((3, 8), 2), ((2, 4, 5), 4), ((2, 3, 2, 2), 1)):
        x, w, c = draw(*shape, dtype=dtype), draw(shape[1], dtype=dtype), draw(shape[1], dtype=dtype)
        f.case(f"y = group_norm(x, w, c, groups={groups})", lambda x, w, c: F.group_norm(x, groups, w, c),
               x=x, w=w, c=c)
        f.case(f"y = group_norm(x, groups={groups}, epsilon=0.1)", lambda x: F.group_norm(x, groups, eps=0.1), x=x)
    f.case("y = group_norm(x, w, c, groups=3)", lambda x, w, c: F.instance_norm(x, weight=w, bias=c),
           x=draw(2, 3, 4, dtype=dtype), w=draw(3, dtype=dtype), c=draw(3, dtype=dtype))
    for shape, size in (((2, 6, 3), 5), ((1, 4, 2, 2), 4), ((2, 3, 2), 7)):
        x = draw(*shape, dtype=dtype)
        f.case(f"y = local_response_norm(x, size={size})", lambda x: F.local_response_norm(x, size), x=x)
        f.case(f"y = local_response_norm(x, size={size}, alpha=0.5, beta=0.6, k=2)",
               lambda x: F.local_response_norm(x, size, 0.5, 0.6, 2.0), x=x)


def main():
    folder = sys.argv[1] if len(sys.argv) > 1 else pathlib.Path(__file__).parent
    for family in (norms,):
        torch.manual_seed(0)
        write_family(family, folder)


if __name__ == "__main__":
    main()
