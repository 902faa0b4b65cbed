/* Parts of the body of a printed kernel, epilogue or prologue. */
#include "backends/cuda/pointwise/printer.h"

void tn_cuda_put_pointers(tn_cuda_printer *p) {
  const tn_match *m = p->region->match;
  for (int32_t i = p->n_given; i < m->n_in; i++)
    if (m->in[i] != NULL)
      tn_cuda_put(p, "  const %s *in%d = (const %s *)a.w[%d];\n", tn_cuda_element_name(m->in[i]->dtype),
                  (int)i, tn_cuda_element_name(m->in[i]->dtype), (int)(TN_CUDA_PW_POINTERS + i));
  for (int32_t i = 0; i < m->n_out; i++)
    tn_cuda_put(p, "  %s *out%d = (%s *)a.w[%d];\n", tn_cuda_element_name(m->out[i]->dtype), (int)i,
                tn_cuda_element_name(m->out[i]->dtype), (int)(TN_CUDA_PW_POINTERS + m->n_in + i));
}

void tn_cuda_put_once(tn_cuda_printer *p) {
  const tn_pw_region *r = p->region;
  for (int32_t i = 0; i < r->end[TN_PW_ONCE]; i++) {
    if (r->insns[i].op >= TN_PW_COMPUTED) {
      tn_cuda_put_access_once(p, &r->insns[i]);
    } else {
      tn_cuda_put(p, "  ");
      tn_cuda_put_compute(p, &r->insns[i]);
    }
  }
}

/* The column of a thread's first position, and the number of columns that hold elements. A thread's positions
 * lie in one row, since the width of a pack divides the length of padded rows. */
static void body_put_column(tn_cuda_printer *p) {
  char divider[96];
  const tn_pw_space *space = &p->region->space;
  tn_cuda_put_divider(p, space->axis[space->n_axes - 1].extent, divider);
  tn_cuda_put(p, "  at_t row = p;\n  const at_t column = split(&row, %s), columns = (at_t)a.w[%d];\n",
              divider, (int)tn_cuda_put_word(p, (uint64_t)p->columns));
}

/* A thread's work at its n positions, the first of which is p; results stay in packs. */
void tn_cuda_put_loop(tn_cuda_printer *p) {
  const tn_pw_region *r = p->region;
  if (p->columns > 0) body_put_column(p);
  for (int32_t i = r->end[TN_PW_ONCE]; i < r->n_insns; i++)
    if (r->insns[i].op >= TN_PW_COMPUTED) tn_cuda_put_access_of_thread(p, &r->insns[i]);
  for (int32_t i = 0; i < r->match->n_out; i++)
    tn_cuda_put(p, "  pack<%s, %d> y%d;\n", tn_cuda_element_name(r->match->out[i]->dtype),
                (int)p->made->width, (int)i);
  tn_cuda_put(p, "#pragma unroll\n  for (i32 k = 0; k < %d; k++) {\n", (int)p->made->width);
  for (int32_t i = r->end[TN_PW_ONCE]; i < r->n_insns; i++) {
    if (r->insns[i].op >= TN_PW_COMPUTED) {
      tn_cuda_put_access(p, &r->insns[i]);
    } else {
      tn_cuda_put(p, "    ");
      tn_cuda_put_compute(p, &r->insns[i]);
    }
  }
  tn_cuda_put(p, "  }\n");
}

void tn_cuda_put_store(tn_cuda_printer *p, int32_t result) {
  const tn_match *m = p->region->match;
  size_t bytes = (size_t)p->made->width * tn_dtype_size(m->out[result]->dtype);
  p->made->alignment[m->n_in + result] = (uint8_t)(bytes < 16 ? bytes : 16);
  tn_cuda_put(p, "  store(out%d, p, n, whole, y%d);\n", (int)result, (int)result);
}
