/* backends/cuda/pointwise/printer.h: printing of one region, in three parts: the values that are the same for
 * all threads, those that a thread needs once for its positions (packs of operands, places on maps), and the
 * loop over its positions. */
#pragma once

#include <stdbool.h>

#include "backends/cuda/pointwise/printed.h"
#include "backends/shared/pointwise/ir.h"

/* How a thread's positions meet a map: as they are; all at one element; at neighbours, aligned for packs;
 * each at a place of its own. */
enum { PRINT_SAME, PRINT_ONE, PRINT_RUN, PRINT_EACH };

typedef struct tn_cuda_printer {
  const tn_pw_region *region;
  tn_cuda_printed *made;
  size_t n, room; /* bytes of made->text */
  bool no_memory;
  bool wide;                  /* positions need 64 bits */
  int64_t columns;            /* elements of a padded row, behind which results are zero; 0: no padding */
  int32_t n_given;            /* the first operands, which are arguments of an epilogue */
  const tn_cuda_front *front; /* of a prologue; else NULL */
  bool reorders;              /* operands lie row-major, results in another layout */
  int32_t *map_of;            /* for each map, the first that is equal */
  int32_t *map_mode;          /* PRINT_... */
  uint8_t *map_known; /* the place on the map has a name: bit 0 of the thread, bit 1 of the position */
} tn_cuda_printer;

/* text.c */
void tn_cuda_put(tn_cuda_printer *p, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Adds a word of the argument and returns its number. */
int32_t tn_cuda_put_word(tn_cuda_printer *p, uint64_t word);
/* The word with these bits, of a lane, as an expression. */
void tn_cuda_put_number(tn_cuda_printer *p, int32_t lane, uint64_t bits);
const char *tn_cuda_lane_name(int32_t lane);
const char *tn_cuda_element_name(int32_t dtype);

/* maps.c */
void tn_cuda_plan_maps(tn_cuda_printer *p);
/* Adds the words of a divider, which `text` becomes an expression of. */
void tn_cuda_put_divider(tn_cuda_printer *p, int64_t divisor, char text[96]);
/* The functions from position to place. */
void tn_cuda_put_maps(tn_cuda_printer *p);
/* Names the place of the thread, `m`N, or of the position, `e`N. */
void tn_cuda_put_place(tn_cuda_printer *p, int32_t map, bool of_position);

/* access.c: instructions from load on; the part of a thread, and of a position. */
void tn_cuda_put_tables(tn_cuda_printer *p);
void tn_cuda_put_access_once(tn_cuda_printer *p, const tn_pw_insn *insn);
void tn_cuda_put_access_of_thread(tn_cuda_printer *p, const tn_pw_insn *insn);
void tn_cuda_put_access(tn_cuda_printer *p, const tn_pw_insn *insn);
/* Whether a prologue loads the operand in `fetch`: it lies as the results do. */
bool tn_cuda_is_fetched(const tn_cuda_printer *p, const tn_pw_insn *insn);
/* The member for such an operand, and its load. */
void tn_cuda_put_fetched(tn_cuda_printer *p, const tn_pw_insn *insn);
void tn_cuda_put_fetch(tn_cuda_printer *p, const tn_pw_insn *insn);

/* print_prologue.c: the members of `words` before the words, and the functions. */
void tn_cuda_put_prologue_members(tn_cuda_printer *p);
void tn_cuda_put_prologue(tn_cuda_printer *p);

/* body.c: parts of a kernel's body: addresses; values that are the same for all positions; a thread's work,
 * whose results stay in packs; the store of a result */
void tn_cuda_put_pointers(tn_cuda_printer *p);
void tn_cuda_put_once(tn_cuda_printer *p);
void tn_cuda_put_loop(tn_cuda_printer *p);
void tn_cuda_put_store(tn_cuda_printer *p, int32_t result);

/* compute.c: instructions between values, and their work in operations of f32. */
void tn_cuda_put_compute(tn_cuda_printer *p, const tn_pw_insn *insn);
double tn_cuda_work_of(const tn_pw_insn *insn);
