/* From a match to a module (printed.h). */
#include <stdio.h>
#include <string.h>

#include "backends/cuda/padded_rows.h"
#include "backends/cuda/pointwise/printer.h"
#include "tenon/plugin/storage.h"

enum {
  PRINT_MOST_WIDTH = 8,
  PRINT_PACK_REGISTERS = 64,
  PRINT_MUCH_WORK = 200 /* operations: the powers of an optimizer's bias correction, not a quotient */
};

/* ---- the order of the elements ---- */

bool tn_cuda_takes_any_layout(const tn_match *m) {
  static const char *const positions[] = {"iota", "spread", "random_uniform", "random_normal"};
  for (int32_t i = 0; i < m->n_nodes; i++)
    for (size_t k = 0; k < sizeof positions / sizeof *positions; k++)
      if (strcmp(m->nodes[i].node->op, positions[k]) == 0) return false;
  return m->n_out > 0 && tn_pw_is_elementwise(m) && !tn_pw_is_single(m->out[0]);
}

bool tn_cuda_takes_padded_rows(const tn_match *m) {
  const tn_type *type = m->out[0];
  for (int32_t i = 0; i < m->n_in; i++) {
    const tn_type *in = m->in[i];
    if (in == NULL || in->rank == 0 || tn_type_same_dims(in, type)) continue;
    if (in->dims[in->rank - 1] != 1) return false;
  }
  return tn_cuda_columns(type) > 0;
}

/* The positions of the storage, in any order. */
static void print_choose_storage(const tn_type *type, const tn_storage *s, tn_pw_space *space) {
  *space = (tn_pw_space){.type = *type, .n_axes = 1, .count = s->count, .axis = {{0, s->count, 1}}};
}

static void print_choose_axes(const tn_type *type, const tn_layout *layout, tn_pw_space *space) {
  *space = (tn_pw_space){.type = *type, .n_axes = type->rank};
  for (int32_t i = 0; i < type->rank; i++)
    space->axis[i] = (tn_pw_axis){layout->order[i], type->dims[layout->order[i]], 1};
}

/* Padded rows are walked with their padding, where the results are zero. Operands that differ along a row
 * have nothing there. */
static tn_status print_choose_padded(const tn_cuda_printer *p, const void *handle, const tn_match *m,
                                     const tn_layout *layout, tn_pw_space *space) {
  const tn_type *type = m->out[0];
  bool alone = p->n_given == 0 && p->front == NULL;
  if (!alone || !tn_cuda_is_padded_rows(type, layout) || !tn_cuda_takes_padded_rows(m))
    return tn_fail(handle, TN_EUNSUPPORTED, "layout",
                   "the layout has padding, which this kernel would not keep zero");
  print_choose_axes(type, layout, space);
  space->axis[type->rank - 1].extent = tn_cuda_padded_columns(type);
  tn_pw_space_count(space);
  return TN_OK;
}

static tn_status print_choose_space(const tn_cuda_printer *p, const void *handle, const tn_match *m,
                                    const tn_layout *layout, tn_pw_space *space) {
  const tn_type *type = m->out[0];
  tn_layout plain = tn_layout_row_major(type->rank);
  if (layout == NULL || !layout->set) layout = &plain;
  tn_storage s = tn_storage_of(type, layout);
  if (s.padded) return print_choose_padded(p, handle, m, layout, space);
  if (tn_cuda_takes_any_layout(m) && !p->reorders) return print_choose_storage(type, &s, space), TN_OK;
  if (layout->n_blocks > 0)
    return tn_fail(handle, TN_EUNSUPPORTED, "layout",
                   "regions with repeated operands are not done in blocks");
  print_choose_axes(type, layout, space);
  space->row_major_operands = p->reorders;
  tn_pw_space_count(space);
  return TN_OK;
}

/* ---- positions of a thread ---- */

/* Bytes of an instruction's elements that a thread reads or writes side by side; 0: not so. */
static int32_t print_pack_bytes(const tn_pw_region *r, const tn_pw_insn *insn) {
  bool loads = insn->op == TN_PW_LOAD && tn_pw_access_of(&r->maps[insn->map]) == TN_PW_SAME;
  return loads || insn->op == TN_PW_STORE ? (int32_t)tn_dtype_size(insn->dtype) : 0;
}

static bool print_has_random(const tn_pw_region *r) {
  for (int32_t i = r->end[TN_PW_ONCE]; i < r->n_insns; i++)
    if (r->insns[i].op == TN_PW_UNIFORM || r->insns[i].op == TN_PW_NORMAL) return true;
  return false;
}

/* Whether no operand changes from dimension to dimension inside of a thread's positions. */
static bool print_fits_maps(const tn_pw_region *r, int32_t width) {
  for (int32_t i = 0; i < r->n_maps; i++)
    if (r->maps[i].rank > 1 && r->maps[i].dims[r->maps[i].rank - 1] % width != 0) return false;
  return true;
}

/* 16 bytes of the narrowest elements, as far as the packs of all operands fit in registers; less, where
 * operands then repeat in steps of that width. Random numbers come by four. */
static int32_t print_choose_width(const tn_pw_region *r) {
  int32_t narrow = 16, all = 0, least = print_has_random(r) ? 4 : 2;
  for (int32_t i = r->end[TN_PW_ONCE]; i < r->n_insns; i++) {
    int32_t bytes = print_pack_bytes(r, &r->insns[i]);
    all += bytes;
    if (bytes > 0 && bytes < narrow) narrow = bytes;
  }
  int32_t width = 16 / narrow < PRINT_MOST_WIDTH ? 16 / narrow : PRINT_MOST_WIDTH;
  while (width > 2 && width * all > 4 * PRINT_PACK_REGISTERS) width /= 2;
  if (width < least) width = least;
  for (int32_t w = width; w >= least; w /= 2)
    if (print_fits_maps(r, w)) return w;
  return width;
}

/* ---- the text ---- */

static void print_head(tn_cuda_printer *p) {
  tn_cuda_put(
      p,
      "#include \"backends/cuda/device/prelude.cuh\"\n#include \"backends/cuda/device/pointwise.cuh\"\n\n"
      "%stypedef %s at_t;\n\n",
      p->front != NULL ? "namespace front {\n\n" : "", p->wide ? "i64" : "u32");
}

/* The number of words is known at the end; it has room for the four digits of a number that is not declined.
 */
static size_t print_words(tn_cuda_printer *p) {
  tn_cuda_put(p, "%sstruct words {\n", p->front != NULL ? "struct loads;\n" : "");
  if (p->front != NULL) tn_cuda_put_prologue_members(p);
  tn_cuda_put(p, "  u64 w[");
  size_t at = p->n;
  tn_cuda_put(p, "    ];\n};\n\n");
  return at;
}

/* Prints a line for each value that is the same for all positions and that they use; %1$s is its lane, %2$d
 * its number. */
static void print_for_shared(tn_cuda_printer *p, const char *format) {
  const tn_pw_region *r = p->region;
  for (int32_t i = 0; i < r->end[TN_PW_ONCE]; i++) {
    const tn_pw_value *v = &r->values[r->insns[i].out];
    if (v->last_use == TN_PW_LATER) tn_cuda_put(p, format, tn_cuda_lane_name(v->lane), (int)r->insns[i].out);
  }
}

/* One thread of a block does the long computations; the others wait for it. */
static void print_once_for_block(tn_cuda_printer *p) {
  print_for_shared(p, "  __shared__ %1$s shared_%2$d;\n");
  tn_cuda_put(p, "  if (threadIdx.x == 0) {\n");
  tn_cuda_put_once(p);
  print_for_shared(p, "  shared_%2$d = (%1$s)v%2$d;\n");
  tn_cuda_put(p, "  }\n  __syncthreads();\n");
  print_for_shared(p, "  const %1$s v%2$d = shared_%2$d;\n");
}

static void print_positions_of_thread(tn_cuda_printer *p) {
  int width = p->made->width;
  tn_cuda_put(p,
              "  const at_t p = block + threadIdx.x * %d;\n  if (p >= count) continue;\n"
              "  const i32 n = count - p < %d ? (i32)(count - p) : %d;\n  const bool whole = n == %d && "
              "a.w[%d] != 0;\n",
              width, width, width, width, TN_CUDA_PW_ALIGNED);
}

static void print_thread(tn_cuda_printer *p) {
  tn_cuda_put_loop(p);
  for (int32_t i = 0; i < p->region->match->n_out; i++) tn_cuda_put_store(p, i);
}

static void print_kernel(tn_cuda_printer *p) {
  tn_cuda_put(p, "extern \"C\" __global__ void __launch_bounds__(%d) region(const words a) {\n",
              TN_CUDA_PW_THREADS);
  tn_cuda_put_pointers(p);
  p->made->few_blocks ? print_once_for_block(p) : tn_cuda_put_once(p);
  tn_cuda_put(p,
              "  const at_t count = (at_t)a.w[%d];\n  for (at_t block = (at_t)blockIdx.x * %d; block < count;"
              " block += (at_t)gridDim.x * %d) {\n",
              TN_CUDA_PW_COUNT, TN_CUDA_PW_THREADS * (int)p->made->width,
              TN_CUDA_PW_THREADS * (int)p->made->width);
  print_positions_of_thread(p);
  print_thread(p);
  tn_cuda_put(p, "  }\n}\n");
}

/* The work at one position: packs of one element, which are aligned. */
static void print_epilogue(tn_cuda_printer *p) {
  tn_cuda_put(p, "static __device__ inline void after(const words &a, i64 at");
  for (int32_t i = 0; i < p->n_given; i++)
    tn_cuda_put(p, ", %s given%d", tn_cuda_element_name(p->region->match->in[i]->dtype), (int)i);
  tn_cuda_put(p, ") {\n");
  tn_cuda_put_pointers(p);
  tn_cuda_put_once(p);
  tn_cuda_put(p,
              "  const at_t p = (at_t)at, block = p, count = (at_t)a.w[%d];\n  const i32 n = 1;\n"
              "  const bool whole = true;\n  (void)block;\n  (void)count;\n",
              TN_CUDA_PW_COUNT);
  print_thread(p);
  tn_cuda_put(p, "}\n\n");
}

static void print_text(tn_cuda_printer *p, const char *tail) {
  print_head(p);
  size_t at = print_words(p);
  tn_cuda_put_tables(p);
  tn_cuda_put_maps(p);
  if (p->front != NULL)
    tn_cuda_put_prologue(p);
  else
    p->n_given > 0 ? print_epilogue(p) : print_kernel(p);
  tn_cuda_put(p, "%s", tail);
  if (p->no_memory) return;
  char digits[16];
  snprintf(digits, sizeof digits, "%4d", (int)p->made->n_words);
  memcpy(p->made->text + at, digits, 4);
}

/* ---- the region ---- */

static double print_work(const tn_pw_region *r, int32_t from, int32_t to) {
  double work = 0;
  for (int32_t i = from; i < to; i++) work += tn_cuda_work_of(&r->insns[i]);
  return work;
}

static void print_start(tn_cuda_printer *p) {
  const tn_match *m = p->region->match;
  tn_cuda_printed *made = p->made;
  made->count = p->region->space.count;
  made->width = p->front != NULL ? p->front->width : p->n_given > 0 ? 1 : print_choose_width(p->region);
  made->n_pointers = m->n_in + m->n_out;
  made->flops = print_work(p->region, p->region->end[TN_PW_ONCE], p->region->n_insns) * (double)made->count;
  made->few_blocks = print_work(p->region, 0, p->region->end[TN_PW_ONCE]) > PRINT_MUCH_WORK;
  p->wide = made->count > INT32_MAX - TN_CUDA_PW_THREADS * PRINT_MOST_WIDTH;
  memset(made->alignment, 1, sizeof made->alignment);
  tn_cuda_put_word(p, (uint64_t)made->count);
  for (int32_t i = 0; i < 1 + made->n_pointers; i++) tn_cuda_put_word(p, 0);
}

static tn_status print_copy_pairs(const tn_pw_region *r, tn_cuda_printed *made) {
  made->inplace = tn_new(r->handle, ((size_t)r->n_inplace + 1) * sizeof *made->inplace);
  if (made->inplace == NULL) return TN_ENOMEM;
  made->n_inplace = r->n_inplace;
  memcpy(made->inplace, r->inplace, (size_t)r->n_inplace * sizeof *made->inplace);
  return TN_OK;
}

static tn_status print_finish(const tn_cuda_printer *p) {
  const tn_pw_region *r = p->region;
  if (p->no_memory) return TN_ENOMEM;
  if (p->made->n_words > TN_CUDA_PW_WORDS)
    return tn_fail(r->handle, TN_EUNSUPPORTED, NULL,
                   "the region of %d nodes needs %d words of arguments, at most %d", (int)r->match->n_nodes,
                   (int)p->made->n_words, (int)TN_CUDA_PW_WORDS);
  return print_copy_pairs(r, p->made);
}

/* Regions that only a kernel of their own can print. */
static tn_status print_check(const tn_pw_region *r, const tn_cuda_printer *p) {
  const tn_match *m = r->match;
  if (m->n_in + m->n_out > TN_CUDA_PW_WORDS - TN_CUDA_PW_POINTERS)
    return tn_fail(r->handle, TN_EUNSUPPORTED, NULL, "the region has more than %d operands and results",
                   (int)(TN_CUDA_PW_WORDS - TN_CUDA_PW_POINTERS));
  if ((p->n_given > 0 || p->front != NULL) && print_has_random(r))
    return tn_fail(r->handle, TN_EUNSUPPORTED, NULL,
                   "random numbers are made four at a time, by a region that has a launch of its own");
  if (p->front != NULL && print_work(r, 0, r->end[TN_PW_ONCE]) > PRINT_MUCH_WORK)
    return tn_fail(r->handle, TN_EUNSUPPORTED, NULL,
                   "the values that are the same for all elements take long");
  return TN_OK;
}

static tn_status print_region(tn_pw_region *r, tn_cuda_printer *p, const char *tail) {
  size_t maps = (size_t)r->n_maps + 1;
  tn_pw_schedule(r);
  TN_TRY(print_check(r, p));
  tn_pw_place(r, false);
  int32_t *memory = tn_new(r->handle, maps * (2 * sizeof(int32_t) + 1));
  if (memory == NULL) return TN_ENOMEM;
  p->region = r;
  p->map_of = memory;
  p->map_mode = memory + maps;
  p->map_known = (uint8_t *)(memory + 2 * maps);
  print_start(p);
  tn_cuda_plan_maps(p);
  print_text(p, tail);
  tn_delete(r->handle, memory);
  return print_finish(p);
}

static tn_status print_match(const void *handle, const tn_match *m, const tn_layout *layout,
                             tn_cuda_printer *p, const char *tail) {
  tn_pw_region r;
  tn_pw_space space;
  memset(p->made, 0, sizeof *p->made);
  if (m->n_out < 1) return tn_fail(handle, TN_EUNSUPPORTED, NULL, "the region has no result");
  tn_status status = print_choose_space(p, handle, m, layout, &space);
  p->columns = tn_type_count(m->out[0]) < space.count ? tn_cuda_columns(m->out[0]) : 0;
  if (status != TN_OK) return status;
  status = tn_pw_build(handle, m, &space, &r);
  if (status == TN_OK) status = print_region(&r, p, tail);
  tn_pw_drop(&r);
  return status;
}

tn_status tn_cuda_print(const void *handle, const tn_match *m, const tn_layout *layout,
                        tn_cuda_printed *made) {
  tn_cuda_printer p = {.made = made};
  return print_match(handle, m, layout, &p, "");
}

tn_status tn_cuda_print_reordering(const void *handle, const tn_match *m, const tn_layout *layout,
                                   tn_cuda_printed *made) {
  tn_cuda_printer p = {.made = made, .reorders = true};
  return print_match(handle, m, layout, &p, "");
}

tn_status tn_cuda_print_epilogue(const void *handle, const tn_match *m, int32_t n_given, const char *tail,
                                 tn_cuda_printed *made) {
  tn_cuda_printer p = {.made = made, .n_given = n_given};
  return print_match(handle, m, NULL, &p, tail);
}

tn_status tn_cuda_print_prologue(const void *handle, const tn_match *m, const tn_layout *layout,
                                 const tn_cuda_front *front, const char *tail, tn_cuda_printed *made) {
  tn_cuda_printer p = {.made = made, .front = front};
  return print_match(handle, m, layout, &p, tail);
}

void tn_cuda_drop_printed(const void *handle, tn_cuda_printed *made) {
  tn_delete(handle, made->text);
  tn_delete(handle, made->inplace);
}
