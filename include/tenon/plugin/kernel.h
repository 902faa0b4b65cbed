/* tenon/plugin/kernel.h: a kernel, that is, an implementation of a pattern of ops on the devices of
 * one family. Anyone may add a kernel for any family and any pattern.
 *
 * A pattern is graph text, one node a statement, `;` between them:
 *
 *     y = matmul(a, b, bias?)
 *     c = conv2d(x, w, b?); s, q = moments(c) -> c, s, q
 *     pointwise+
 *
 * Names bind values; free names are the kernel's operands in order of appearance. What stands after
 * `->` leaves the kernel (default: the results of the last statement). Any other inner value with a
 * user outside refuses the match. `?` marks operands that may be absent, `xs*` stands for all remaining
 * operands of a node (`y = concat(xs*)`), `_` for an absent operand or a result that stays inside.
 * `CLASS+` is a region: as many connected nodes of the class as possible with one iteration space; its
 * operands and results are what crosses its border.
 *
 * Life cycle: query (compiling thread, no device needed) -> the host picks a variant -> prepare
 * (compiling thread, once per use) -> fold (the launching thread, before a launch whose constant operands
 * have changed; variants with folded_bytes only) -> launch (the launching thread, every step; enqueue only:
 * no allocation, no lock, no wait) -> release (any thread, once). */
#ifndef TENON_PLUGIN_KERNEL_H
#define TENON_PLUGIN_KERNEL_H

#include "tenon/plugin/op.h"

TN_BEGIN_C

/* A node inside a match. Operand and result numbers: 0 .. n_in-1 are the match's operands, then come
 * the results of its nodes in order; -1 is absent. */
typedef struct tn_match_node {
  const tn_node *node;
  const int32_t *in; /* node.n_in numbers */
  int32_t first_out; /* number of result 0 */
} tn_match_node;

typedef struct tn_match {
  uint32_t struct_size;
  int32_t n_in, n_out, n_nodes;
  const tn_type *const *in; /* NULL where the pattern's `?` is absent */
  const tn_type *const *out;
  const int32_t *out_number;  /* which numbers leave, n_out of them */
  const tn_match_node *nodes; /* pattern order; regions: an order in which operands come first */
  /* n_in flags: the operand is state that runs of the program leave as it is, such as the weights of a model
   * that does not train. */
  const uint8_t *constant;
} tn_match;

/* What of a device decides about kernels; filled by the backend, or read from a file when the device
 * is not there. */
typedef struct tn_device_properties {
  uint32_t struct_size;
  int32_t host_addressable; /* kernels may dereference data on the host */
  int32_t threads;          /* of `parallel`; 1 where kernels run elsewhere */
  int32_t arch;             /* family's own numbering, 90 for sm_90; 0: none */
  int64_t memory_bytes;
  char name[64];
} tn_device_properties;

/* How a kernel wants an operand to lie. */
enum {
  TN_LAYOUT_ROW_MAJOR = 0,
  TN_LAYOUT_ANY = 1,     /* elementwise over storage: all operands marked ANY share one layout */
  TN_LAYOUT_SAME_AS = 2, /* as operand or result `same_as` */
  TN_LAYOUT_FIXED = 3,   /* `layout` */
  /* As the operand lies, or as the result is wanted, for the host to decide; in `layout` it saves the kernel
   * a copy (unset: none does). Where the host can, weights stay in such a layout from step to step. */
  TN_LAYOUT_PREFERRED = 4
};
typedef struct tn_operand_layout {
  int32_t rule, same_as; /* same_as: operands first, then results */
  tn_layout layout;
} tn_operand_layout;

/* One way in which a kernel can do a match. Borrowed by the host for the call of tn_add_variant. Variants
 * may differ in layouts only: the host takes the one that costs least where the operands lie, with the
 * reorders that it would need. */
struct tn_variant {
  uint32_t struct_size;
  int32_t id;                        /* the kernel's own number, given back to prepare */
  const char *name;                  /* "im2col", "winograd 4x3" */
  const tn_operand_layout *in, *out; /* NULL: all row-major */
  int64_t workspace_bytes;           /* scratch during the launch; contents undefined before */
  int64_t prepared_bytes;            /* prepare's own memory, at most */
  /* n_inplace pairs {operand, result}: the result may share the operand's memory. */
  int32_t n_inplace;
  const int32_t (*inplace)[2];
  double cost_s;         /* estimated seconds; 0: the host's estimate from flops and bytes */
  int32_t deterministic; /* same bits for any number of threads and every run */
  int32_t capturable;
  /* Device memory that stays between launches and that `fold` fills from constant operands: packed weights,
   * a batch_norm folded into them. */
  int64_t folded_bytes;
};

struct tn_query {
  tn_env env;
  uint32_t struct_size;
  const tn_match *match;
  const tn_device_properties *device;
  void *backend; /* what the open of the kernel's own family made; NULL: that backend is not open */
};
/* Offers a variant; call it once per variant. */
static inline void tn_add_variant(tn_query *q, const tn_variant *v) { q->env.api->variant(q, v); }

/* Prepare's handle. Nothing here lives longer than the call. */
typedef struct tn_prepare {
  tn_env env;
  uint32_t struct_size;
  const tn_match *match;
  const tn_device_properties *device;
  const tn_layout *in_layout, *out_layout; /* as decided */
  int32_t variant;                         /* tn_variant.id */
  void *native;                            /* the device's handle, as the backend documents it */
  void *backend;                           /* as in tn_query */
} tn_prepare;

/* An operand or result of a launch. */
typedef struct tn_view {
  tn_type type;
  tn_layout layout;
  void *data; /* device address; NULL: absent */
} tn_view;

struct tn_launch {
  tn_env env;
  uint32_t struct_size;
  int32_t n_in, n_out;
  tn_view *in, *out;
  void *plan;              /* what prepare made */
  void *workspace;         /* workspace_bytes, aligned to 64 */
  int64_t workspace_bytes; /* as the variant said */
  void *stream;            /* the backend's own stream object */
  const char *name;        /* "conv2d of layer1.0.conv1", for traces and messages; never NULL */
  void *folded;            /* folded_bytes, aligned to 64: fold writes it, launch reads it */
  int64_t folded_bytes;    /* as the variant said */
};

/* Runs body(arg, 0 .. chunks-1) on the device's team and returns when all are done; the only
 * threading a kernel on the host has. The number of chunks must not depend on the number of threads,
 * and each chunk must write its own part, so that results do not either. */
static inline void tn_parallel(tn_launch *l, int64_t chunks, void (*body)(void *arg, int64_t chunk),
                               void *arg) {
  l->env.api->parallel(l, chunks, body, arg);
}

typedef struct tn_kernel {
  tn_item item;
  const char *family; /* "cpu": devices of this family and of those that accept its kernels */
  const char *pattern;
  /* Offers variants, or fails with TN_EUNSUPPORTED and the reason that `tenon plan` shows. */
  tn_status (*query)(tn_query *q);
  /* Optional: makes *plan. */
  tn_status (*prepare)(tn_prepare *p, void **plan);
  void (*release)(tn_env *env, void *plan); /* optional */
  tn_status (*launch)(tn_launch *l);
  /* For variants with folded_bytes: enqueues what fills l->folded from the constant operands. Other operands
   * and the results hold nothing yet. */
  tn_status (*fold)(tn_launch *l);
} tn_kernel;

TN_END_C
#endif
