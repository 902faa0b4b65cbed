/* A region as the prologue of a kernel (device/prologue.cuh). */
#include "backends/cuda/pointwise/printer.h"

/* Calls `put` for each operand that `fetch` loads. */
static void prologue_for_fetched(tn_cuda_printer *p, void (*put)(tn_cuda_printer *, const tn_pw_insn *)) {
  const tn_pw_region *r = p->region;
  for (int32_t i = r->end[TN_PW_ONCE]; i < r->n_insns; i++)
    if (tn_cuda_is_fetched(p, &r->insns[i])) put(p, &r->insns[i]);
}

static int32_t prologue_fetched_bytes(const tn_cuda_printer *p) {
  const tn_pw_region *r = p->region;
  int32_t bytes = 0;
  for (int32_t i = r->end[TN_PW_ONCE]; i < r->n_insns; i++)
    if (tn_cuda_is_fetched(p, &r->insns[i]))
      bytes += p->made->width * (int32_t)tn_dtype_size(r->insns[i].dtype);
  return bytes;
}

/* Bytes of the operands that `compute` loads, at most: they repeat in the region's dims. */
static int32_t prologue_held_bytes(const tn_cuda_printer *p) {
  const tn_pw_region *r = p->region;
  int32_t bytes = 0;
  for (int32_t i = r->end[TN_PW_ONCE]; i < r->n_insns; i++)
    if (r->insns[i].op == TN_PW_LOAD && !tn_cuda_is_fetched(p, &r->insns[i]))
      bytes += p->made->width * (int32_t)tn_dtype_size(r->insns[i].dtype);
  return bytes;
}

void tn_cuda_put_prologue_members(tn_cuda_printer *p) {
  int takes = 0;
  for (int32_t i = 0; i < p->front->n; i++) takes |= p->front->as_y[i] ? 2 : 1;
  p->made->fetched_bytes = prologue_fetched_bytes(p);
  tn_cuda_put(p, "  typedef loads fetched;\n  enum { WIDTH = %d, TAKES = %d, BYTES = %d, HELD = %d };\n",
              (int)p->made->width, takes, (int)p->made->fetched_bytes, (int)prologue_held_bytes(p));
}

static void prologue_put_fetch(tn_cuda_printer *p) {
  tn_cuda_put(p, "struct loads {\n");
  prologue_for_fetched(p, tn_cuda_put_fetched);
  tn_cuda_put(
      p,
      "};\n\nstatic __device__ inline void fetch(const words &a, i64 at, i32 n, bool whole, loads *to) {\n");
  prologue_for_fetched(p, tn_cuda_put_fetch);
  tn_cuda_put(p, "}\n\n");
}

/* The body need not use all of them. */
static void prologue_put_unused(tn_cuda_printer *p) {
  const tn_match *m = p->region->match;
  for (int32_t i = 0; i < m->n_in; i++)
    if (m->in[i] != NULL) tn_cuda_put(p, "  (void)in%d;\n", (int)i);
  for (int32_t i = 0; i < m->n_out; i++) tn_cuda_put(p, "  (void)out%d;\n", (int)i);
  tn_cuda_put(p, "  (void)block;\n  (void)count;\n  (void)n;\n  (void)whole;\n");
}

static bool prologue_is_stored(const tn_cuda_printer *p, int32_t result) {
  return result >= p->front->n || p->front->stored[result];
}

static void prologue_put_results(tn_cuda_printer *p) {
  tn_cuda_put(p, "  if (stores) {\n");
  for (int32_t i = 0; i < p->region->match->n_out; i++)
    if (prologue_is_stored(p, i)) tn_cuda_put_store(p, i);
  tn_cuda_put(p, "  }\n#pragma unroll\n  for (i32 k = 0; k < %d; k++) {\n", (int)p->made->width);
  for (int32_t i = 0; i < p->front->n; i++)
    tn_cuda_put(p, "    %s[k] = y%d.v[k];\n", p->front->as_y[i] ? "second" : "first", (int)i);
  tn_cuda_put(p, "  }\n");
}

void tn_cuda_put_prologue(tn_cuda_printer *p) {
  const char *element = tn_cuda_element_name(p->region->match->out[0]->dtype);
  prologue_put_fetch(p);
  tn_cuda_put(
      p,
      "static __device__ inline void compute(const words &a, const loads &from, i64 at, i32 n, bool whole,\n"
      "                                      bool stores, %s *first, %s *second) {\n",
      element, element);
  tn_cuda_put_pointers(p);
  tn_cuda_put_once(p);
  tn_cuda_put(p, "  const at_t p = (at_t)at, block = p, count = (at_t)a.w[%d];\n", TN_CUDA_PW_COUNT);
  prologue_put_unused(p);
  tn_cuda_put_loop(p);
  prologue_put_results(p);
  tn_cuda_put(p, "}\n\n}\n\n");
}
