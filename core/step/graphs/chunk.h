/* core/step/graphs/chunk.h: private to pass `chunk`: the part of a graph that computes with logits, and how
 * it is divided into chunks of rows. docs/decisions/0108-chunked-logits.md has the reasons. */
#pragma once

#include "core/graph/graph.h"
#include "core/graph/uses.h"

/* How a value of the region is divided. */
typedef enum tn_chunk_form {
  TN_CHUNK_CONSTANT, /* the same in all chunks */
  TN_CHUNK_ROWS,     /* its first dimensions are those of the logits in front of the classes */
  TN_CHUNK_FLAT,     /* its first dimension is all of these as one */
  TN_CHUNK_SUM,      /* the sum over all rows: each chunk makes a part */
  TN_CHUNK_SPREAD    /* an operand that is broadcast to the rows first */
} tn_chunk_form;

/* The nodes between the product that makes the logits and all values without a number for each class. */
typedef struct tn_chunk_region {
  tn_arena *arena;
  const tn_graph *g;
  tn_uses uses;
  const bool *live; /* per node */
  tn_val logits;
  int32_t n_lead; /* dimensions of the logits in front of the classes */
  int64_t lead[TN_MAX_RANK], chunk[TN_MAX_RANK];
  int64_t rows, classes, steps;
  bool *inside, *behind; /* per node: of the region; it depends on a node of the region */
  uint8_t *form;         /* per value of the region: a tn_chunk_form */
  bool in_loss;          /* a node of the region is a loss of classes */
  int64_t sum_bytes;     /* of all sums, in f32 */
  char why[256];         /* the region cannot be divided; "": it can */
} tn_chunk_region;

/* chunk_region.c: the region of the logits that loss node `loss` reads; TN_OK with `why` where it cannot be
 * divided.
 */
tn_status tn_chunk_region_find(tn_arena *arena, const tn_graph *g, uint32_t loss, tn_chunk_region *region);
/* Divides the rows into chunks of at most `rows`; false: into no less than one. */
bool tn_chunk_divide(tn_chunk_region *region, int64_t rows);

/* chunk_rules.c */
/* Whether a value has a number for each row and class. */
bool tn_chunk_is_large(const tn_chunk_region *region, const tn_type *type);
/* Numbers that an op makes without operands: chunks make their own, and others read the node itself. */
bool tn_chunk_is_made_twice(const tn_gnode *node);
/* Whether a loss of classes begins with this node. */
bool tn_chunk_is_loss(const tn_gnode *node);
/* The form of operand k of a node of the region. */
tn_chunk_form tn_chunk_operand_form(const tn_chunk_region *region, const tn_gnode *node, int32_t k);
/* Writes the forms of the results of a node; false: the node cannot be divided, and `why` says so. */
bool tn_chunk_rule(tn_chunk_region *region, const tn_gnode *node);
/* The first dimensions of a value of a form. */
const int64_t *tn_chunk_lead(const tn_chunk_region *region, tn_chunk_form form, int32_t *n);

/* chunk_emit.c */
/* Whether a live node outside of the region, an output or a commit reads the value. */
bool tn_chunk_leaves(const tn_chunk_region *region, const bool *live, tn_val v);
/* Emits the loop into r->b, and maps the values of the region that others read. */
tn_status tn_chunk_emit(const tn_chunk_region *region, tn_rewrite *r);
