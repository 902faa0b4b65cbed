"""Ops with indices: a line each, with the draw of operands and options and the function of PyTorch."""
import math

import torch
import torch.nn.functional as F


def indexed(d, vector, updates=False, once=False):
    """x, an index of its rank or a vector, and updates of the dims of what is indexed."""
    shape = d.shape(1, 3, False)
    axis = d.axis(len(shape))
    i = axis % len(shape)
    n = d.int(1, shape[i]) if once else d.size()
    dims = (*shape[:i], n, *shape[i + 1:])
    if vector:
        index = torch.randperm(shape[i])[:n] if once else torch.randint(0, shape[i], (n,))
    else:
        dims = tuple(n if k == i else d.int(1, m) for k, m in enumerate(shape)) if not once else dims
        index = torch.argsort(torch.rand(shape), dim=i).narrow(i, 0, n) if once else torch.randint(0, shape[i], dims)
    operands = [d.values(shape), index.to(d.choice((torch.int32, torch.int64)))]
    return operands + ([d.values(dims)] if updates else []), {"axis": axis}


def scattered(d):
    mode = d.choice(["add", "max", "min", "set"])
    operands, options = indexed(d, False, True, mode == "set")
    return operands, {**options, "mode": mode}


def scatter(x, index, u, axis, mode):
    index = index.long()
    return {"add": lambda: x.scatter_add(axis, index, u), "set": lambda: x.scatter(axis, index, u),
            "max": lambda: x.scatter_reduce(axis, index, u, "amax"),
            "min": lambda: x.scatter_reduce(axis, index, u, "amin")}[mode]()


def broadcast_indices(d):
    shape = d.shape(1, 3, False)
    axis = d.axis(len(shape))
    i = axis % len(shape)
    dims = [d.size() if k == i else d.choice([1, n]) for k, n in enumerate(shape)]
    x = [n if k == i else d.choice([1, n]) for k, n in enumerate(shape)]
    return [d.values(x), d.indices(shape[i], dims)], {"axis": axis}


def table(d):
    n = d.int(1, 6)
    return [d.indices(n, d.shape(0, 2)), d.values((n, d.size()))], {}


def table_gradient(d):
    n, ids = d.int(1, 6), d.shape(0, 2)
    return [d.indices(n, ids), d.values((*ids, d.size(False)))], {"rows": n}


def taken(d):
    x = d.values(d.shape(1, 3, False))
    return [x, d.indices(x.numel(), d.shape(0, 2))], {}


def filled(d):
    operands, options = indexed(d, True)
    return operands, {**options, "value": d.int(-3, 3)}


def labels(d):
    classes = d.int(1, 6)
    return [d.indices(classes, d.shape(0, 2))], {"classes": classes}


def ended(d):
    shape = (d.size(), d.int(1, 6), *d.shape(0, 2))
    return [d.values(shape), torch.randint(0, shape[1] + 1, shape[:1]).to(d.choice((torch.int32, torch.int64)))], {}


def aligned(d, gradient=False):
    n, steps, states = d.int(1, 4), d.int(1, 6), d.int(1, 7)
    operands = [d.values((n, steps, states), -2.5, 2.5), torch.rand(n, states) < 0.5, torch.randint(1, steps + 1, (n,)).to(torch.int32),
                torch.randint(1, states + 1, (n,)).to(torch.int32)]
    return operands + [d.values((n,), -2.5, 2.5)] * gradient, {}


def align(score, skip, steps, states):
    """The forward sums of connectionist temporal classification; -1e30 stands for no path, so that gradients
    are numbers."""
    totals = []
    for x, may, t, s in zip(score, skip, steps.tolist(), states.tolist()):
        x = x[:t, :s]
        least = x.new_full((s,), -1e30)
        paths = torch.where(torch.arange(s) < 2, x[0], least)
        for row in x[1:]:
            one, two = torch.cat((least[:1], paths[:-1])), torch.cat((least[:2], paths[:-2]))[:s]
            paths = torch.stack((paths, one, torch.where(may[:s], two, least))).logsumexp(0) + row
        total = paths[-2:].logsumexp(0)
        totals.append(torch.where(total < -1e29, -math.inf, total))
    return torch.stack(totals)


def align_gradient(score, skip, steps, states, dtotal):
    score = score.detach().requires_grad_()
    return torch.autograd.grad(align(score, skip, steps, states), score, dtotal.detach())[0]


ROWS = {
    "alignment": (aligned, align),
    "alignment_grad": (lambda d: aligned(d, True), align_gradient),
    "gather": (lambda d: indexed(d, d.flag()), lambda x, i, axis: x.gather(axis, i.long()) if i.dim() == x.dim() and x.dim() > 1 else x.index_select(axis, i)),
    "scatter": (scattered, scatter),
    "take": (taken, lambda x, i: torch.take(x, i.long())),
    "take_along_dim": (broadcast_indices, lambda x, i, axis: torch.take_along_dim(x, i.long(), axis)),
    "index_select": (lambda d: indexed(d, True), lambda x, i, axis: x.index_select(axis, i)),
    "index_add": (lambda d: indexed(d, True, True), lambda x, i, u, axis: x.index_add(axis, i, u)),
    "index_copy": (lambda d: indexed(d, True, True, True), lambda x, i, u, axis: x.index_copy(axis, i.long(), u)),
    "index_fill": (filled, lambda x, i, axis, value: x.index_fill(axis, i.long(), value)),
    "last_step": (ended, lambda x, length: x[torch.arange(x.shape[0]), (length.long() - 1).clamp(min=0)]),
    "one_hot": (labels, lambda i, classes: F.one_hot(i.long(), classes)),
    "embedding": (table, lambda ids, t: F.embedding(ids.long(), t)),
    "embedding_grad": (table_gradient, lambda ids, dy, rows: torch.zeros(rows, dy.shape[-1], dtype=dy.dtype).index_add(
        0, ids.long().reshape(-1), dy.reshape(-1, dy.shape[-1]))),
}
