/* tenon/plugin/kernel.h: a kernel: an implementation of a pattern of ops on the devices of one family. A
 * plugin may add kernels for any family and any pattern.
 *
 * A pattern is graph text, one node a statement, `;` between them:
 *
 *     y = matmul(a, b, bias?)
 *     c = conv2d(x, w, b?); m, v = moments(c) -> c, m, v
 *     &y = relu(x); c = conv2d(y, w, b?)
 *     pointwise+
 *     s, q = moments(x); pointwise+
 *     pointwise+; s, d = norm_grad_sums(dy, x, mean, rstd)
 *
 * Names bind values. Free names are the kernel's operands in order of appearance. The names after `->` are
 * its results (default: the results of the last statement); a match is refused where another inner value has
 * a use outside it. `?` marks operands that may be absent, `xs*` stands for all remaining operands of a node,
 * as in `y = concat(xs*)`, and `_` for an absent operand or a result that is used inside only. `&` in front
 * of a statement marks a node that the kernel recomputes and does not take: the node may have users outside,
 * for which it stays in the graph, and is left out only where every user recomputes it. It reads operands and
 * other marked nodes, and the kernel counts its work in cost_s. `CLASS+` is a region: a maximal connected set
 * of nodes of the class with one iteration space; the values that cross its border are its operands and
 * results.
 *
 * `CLASS+` behind statements is the epilogue of the last one: a region that reads its results and has their
 * dims. The results of the match are all values with a use outside, those of the statements among them. The
 * host asks for such a match where a kernel accepts the statements by themselves, and no kernel of a better
 * family takes the last statement or the region.
 *
 * Behind one statement, operands are in the order of their first use, nodes in topological order, and an
 * operand of the statement is an operand of the match, never a value of the region. Behind several, that
 * kernel has a pattern with the same words up to its `->`; the match begins with the operands and nodes of
 * that pattern, in its order, and those of the region follow.
 *
 * `CLASS+` in front of one statement is its prologue: a region that makes at least one of its operands and
 * may read others; the statement may have an epilogue as well. The host asks for such a match where it has
 * chosen a kernel for the region and one for the statement, with its epilogue if it has one, and no family is
 * better than that of the joined kernel. The joined launch must cost no more than the two. The nodes of the
 * match are those of the prologue, the statement, those of the epilogue. The results are all values with a
 * use outside: where another kernel reads what the prologue makes, the kernel writes it, or declines.
 *
 * Life cycle: query (compiling thread, no device needed) -> the host selects a variant -> prepare (compiling
 * thread, once for each use) -> fold (launching thread, before a launch whose constant operands have changed;
 * variants with folded_bytes only) -> launch (launching thread, every step, or once where no operand depends
 * on the step; it enqueues: no allocation, no lock, no wait) -> release (any thread, once). */
#ifndef TENON_PLUGIN_KERNEL_H
#define TENON_PLUGIN_KERNEL_H

#include "tenon/plugin/op.h"

TN_BEGIN_C

/* A node of a match. Values have numbers: 0 .. n_in-1 are the operands of the match, then come the results of
 * its nodes in order; -1 is an absent operand. Frozen: the array has the stride sizeof(tn_match_node). */
typedef struct tn_match_node {
  const tn_node *node;
  const int32_t *in; /* node->n_in numbers */
  int32_t first_out; /* number of the node's result 0 */
} tn_match_node;

/* The nodes that a pattern has matched. Valid until the program that uses the kernel is freed. */
typedef struct tn_match {
  uint32_t struct_size;
  int32_t n_in, n_out, n_nodes;
  const tn_type *const *in; /* NULL where the pattern's `?` is absent */
  const tn_type *const *out;
  const int32_t *out_number;  /* numbers of the results, n_out of them */
  const tn_match_node *nodes; /* in the order of the pattern; with a region, in topological order */
  /* n_in flags: the operand is state that the program does not write, such as the weights of an inference
   * program. */
  const uint8_t *constant;
  /* n_in nodes: the `full` whose number is every element of the operand, directly or through views and
   * broadcasts; NULL: another operand. A kernel may read the number (tn_full_attributes) in query. */
  const tn_node *const *constant_node;
} tn_match;

/* Properties of a device that kernel selection depends on. The backend fills them; the host has set
 * struct_size and zeroed the rest. In `query` and `prepare` the rates of all dtypes and launch_s are above 0:
 * the host replaces a 0 by an order of magnitude. */
typedef struct tn_device_properties {
  uint32_t struct_size;
  int32_t host_addressable; /* 1: device addresses are host addresses */
  int32_t threads;          /* of `parallel`; 1 where kernels do not run on the host */
  int32_t arch;             /* the family's numbering, 90 for sm_90; 0: none */
  int64_t memory_bytes;     /* 0: the memory is the host's, and the host fills in this and free_bytes */
  char name[64];
  int64_t free_bytes;        /* of memory_bytes, unused when the properties were read; 0: unknown */
  int64_t cache_bytes;       /* the largest cache between memory and arithmetic; 0: unknown */
  double bytes_per_s;        /* of device memory, reads and writes together; 0: unknown */
  double vector_flops_per_s; /* of f32 arithmetic without matrix units; 0: unknown */
  /* By dtype of the operands: products of matrices, on matrix units where there are any; 0: unknown. */
  double matrix_flops_per_s[16];
  double launch_s;    /* from the end of an empty launch to the end of the next on the stream; 0: unknown */
  int32_t processors; /* streaming multiprocessors, or cores in use; 0: unknown */
  /* A JSON object with what else the backend's kernels read in `query`, valid until close; NULL: none. */
  const char *details;
  double link_bytes_per_s; /* between staging memory of the host and the device, in one direction, while the
                              other is busy too; 0: unknown */
} tn_device_properties;

/* Estimated seconds of a launch that overlaps `flops` operations at a rate with the traffic of `bytes`. */
static inline double tn_estimate_s(const tn_device_properties *d, double bytes, double flops,
                                   double flops_per_s) {
  double memory_s = bytes / d->bytes_per_s, arithmetic_s = flops / flops_per_s;
  return d->launch_s + (memory_s > arithmetic_s ? memory_s : arithmetic_s);
}

/* Layout rules of an operand or result. */
enum {
  TN_LAYOUT_ROW_MAJOR = 0,
  TN_LAYOUT_ANY = 1,     /* elementwise over storage: all operands with this rule have one common layout */
  TN_LAYOUT_SAME_AS = 2, /* the layout of operand or result `same_as` */
  TN_LAYOUT_FIXED = 3,   /* `layout`; the host inserts reorders */
  /* Any layout, chosen by the host. `layout` is one that saves the kernel a reorder of its own; unset: every
   * layout costs the same. The host keeps weights in that layout between steps where it can. */
  TN_LAYOUT_PREFERRED = 4
};
typedef struct tn_operand_layout {
  int32_t rule, same_as; /* same_as: operands first, then results */
  tn_layout layout;
} tn_operand_layout;

/* One way to compute a match. tn_add_variant copies it. Variants of a kernel may differ in layouts only; the
 * host selects the one with the least cost, reorders of its operands included. */
struct tn_variant {
  uint32_t struct_size;
  int32_t id;                        /* the kernel's number for it, passed to prepare */
  const char *name;                  /* "im2col", "winograd 4x3" */
  const tn_operand_layout *in, *out; /* n_in and n_out rules; NULL: all row-major */
  int64_t workspace_bytes; /* device memory for the duration of a launch; contents undefined before it */
  int64_t prepared_bytes;  /* host memory that prepare allocates, at most; for reports */
  /* n_inplace pairs {operand, result}: the result may have the operand's address. */
  int32_t n_inplace;
  const int32_t (*inplace)[2];
  /* Estimated seconds of a launch and its enqueueing, from the rates of the device; 0: the host estimates
   * from the operations and bytes of the ops, and a larger match wins over its parts. */
  double cost_s;
  int32_t deterministic; /* 1: the same bits in every run, for any number of threads */
  int32_t capturable;    /* 1: the backend can capture its launch */
  /* Device memory that lives as long as the prepared kernel and that `fold` fills from constant operands:
   * packed weights, a batch_norm folded into them. */
  int64_t folded_bytes;
  /* 1: the variance of `moments` comes from sums of x and of x squared, as a device's fused statistics do.
   * The conformance suite then allows an error of the variance that grows with (mean / standard deviation)^2
   * (see tn_moments in op_functions.h). */
  int32_t plain_sums;
};

/* Handle of query. Valid during the call. */
struct tn_query {
  tn_env env;
  uint32_t struct_size;
  const tn_match *match;
  const tn_device_properties *device;
  void *backend; /* object of the backend of the kernel's family, of open or open_described; NULL: none */
};
/* Offers one variant. */
static inline void tn_add_variant(tn_query *q, const tn_variant *v) { q->env.api->variant(q, v); }

/* Handle of prepare. Valid during the call. */
typedef struct tn_prepare {
  tn_env env;
  uint32_t struct_size;
  const tn_match *match;
  const tn_device_properties *device;
  const tn_layout *in_layout, *out_layout; /* the layouts that the host has decided */
  int32_t variant;                         /* tn_variant.id */
  void *native;                            /* of tn_backend.native; NULL: none */
  void *backend;                           /* as in tn_query */
  int32_t use;                             /* the host's number for this use, for tn_backend.finish_prepare */
} tn_prepare;

/* An operand or result of a launch. Frozen: launches have arrays of them. */
typedef struct tn_view {
  tn_type type;
  tn_layout layout;
  void *data; /* device address; NULL: absent */
} tn_view;

/* Handle of launch and fold. The host keeps it, with its arrays, from prepare to release; addresses may
 * change between launches. */
struct tn_launch {
  tn_env env;
  uint32_t struct_size;
  int32_t n_in, n_out;
  tn_view *in, *out;
  void *prepared;          /* the prepared kernel, of prepare */
  void *workspace;         /* workspace_bytes of device memory, aligned to 64 */
  int64_t workspace_bytes; /* of the variant */
  void *stream;            /* the backend's stream object */
  const char *name;        /* "conv2d of layer1.0.conv1", for traces and messages; never NULL */
  void *folded;            /* folded_bytes of device memory, aligned to 64: fold writes it, launch reads it */
  int64_t folded_bytes;    /* of the variant */
  double cost_s;           /* the predicted or measured time of the launch; 0: unknown */
};

/* Calls body(arg, chunk) for chunk 0 .. chunks-1 on the device's team of threads and returns when all are
 * done. Kernels on the host use no other threads. The number of chunks must not depend on the number of
 * threads, and each chunk writes its own part of the results, so that results have the same bits for any
 * number of threads. */
static inline void tn_parallel(tn_launch *l, int64_t chunks, void (*body)(void *arg, int64_t chunk),
                               void *arg) {
  l->env.api->parallel(l, chunks, body, arg);
}

typedef struct tn_kernel {
  tn_item item;
  const char *family; /* its devices, and those of backends that accept it, run the kernel */
  const char *pattern;
  /* Offers variants. TN_EUNSUPPORTED with a reason, which `tenon plan` shows: the kernel declines the match.
   * The host remembers the answer for equal matches while the device is open, so it depends on the members of
   * q alone: a match with other names of layers is the same match. */
  tn_status (*query)(tn_query *q);
  /* Optional: makes the prepared kernel; release frees it. TN_EUNSUPPORTED with a reason: the variant
   * declines the match after all; the host leaves it out, selects again, and ends the run only if no kernel
   * is left. */
  tn_status (*prepare)(tn_prepare *p, void **prepared);
  void (*release)(tn_env *env, void *prepared); /* optional */
  /* Enqueues the computation. */
  tn_status (*launch)(tn_launch *l);
  /* Required for variants with folded_bytes: enqueues the computation of l->folded from the constant
   * operands. Contents of other operands and of results are undefined. */
  tn_status (*fold)(tn_launch *l);
} tn_kernel;

TN_END_C
#endif
