/* Instructions that look beyond values: loads and stores, indices, random numbers, values per range. */
#include <stdio.h>
#include <string.h>

#include "backends/cuda/pointwise/printer.h"

static int32_t access_mode(const tn_cuda_printer *p, const tn_pw_insn *insn) {
  return p->map_mode[insn->map];
}
static int32_t access_map(const tn_cuda_printer *p, const tn_pw_insn *insn) { return p->map_of[insn->map]; }
static const char *access_lane(const tn_cuda_printer *p, const tn_pw_insn *insn) {
  return tn_cuda_lane_name(p->region->values[insn->out].lane);
}
static bool access_is_random(const tn_pw_insn *insn) {
  return insn->op == TN_PW_UNIFORM || insn->op == TN_PW_NORMAL;
}

/* An operand that is an argument of the epilogue has no memory, and one element at the position. */
static bool access_is_given(const tn_cuda_printer *p, const tn_pw_insn *insn) {
  return insn->op == TN_PW_LOAD && insn->view < p->n_given;
}
static void access_put_given(tn_cuda_printer *p, const tn_pw_insn *insn) {
  tn_cuda_put(p, "  const %s v%d = widen(given%d);\n", access_lane(p, insn), (int)insn->out, (int)insn->view);
}

/* ---- tables of spread ---- */

/* Tables are often equal: the options of one optimizer change at the same places. */
static int32_t access_table_of(const tn_cuda_printer *p, int32_t at) {
  const tn_pw_region *r = p->region;
  const tn_pw_insn *insn = &r->insns[at];
  for (int32_t i = 0; i < at; i++) {
    const tn_pw_insn *other = &r->insns[i];
    if (other->op == TN_PW_SPREAD && other->n_table == insn->n_table &&
        memcmp(&r->tables[other->table], &r->tables[insn->table], 16 * (size_t)insn->n_table) == 0)
      return i;
  }
  return at;
}

static void access_put_array(tn_cuda_printer *p, const char *name, int32_t table, const int64_t *values,
                             int32_t n, const char *space) {
  tn_cuda_put(p, "static %s const i64 %s_%d[%d] = {", space, name, (int)table, (int)n);
  for (int32_t i = 0; i < n; i++)
    tn_cuda_put(p, "%s%s%lld", i > 0 ? "," : "", i % 16 == 0 ? "\n  " : " ", (long long)values[i]);
  tn_cuda_put(p, "};\n");
}

/* The cache of constants serves threads that read one element; it has 64 KiB in all. */
void tn_cuda_put_tables(tn_cuda_printer *p) {
  const tn_pw_region *r = p->region;
  const char *space = r->n_tables > 6000 ? "__device__" : "__constant__";
  for (int32_t i = 0; i < r->n_insns; i++) {
    const tn_pw_insn *insn = &r->insns[i];
    if (insn->op != TN_PW_SPREAD || access_table_of(p, i) != i) continue;
    access_put_array(p, "starts", insn->table, &r->tables[insn->table], insn->n_table, space);
    access_put_array(p, "index", insn->table, &r->tables[insn->table + insn->n_table], insn->n_table, space);
    tn_cuda_put(p, "\n");
  }
}

static int32_t access_table(const tn_cuda_printer *p, const tn_pw_insn *insn) {
  return p->region->insns[access_table_of(p, (int32_t)(insn - p->region->insns))].table;
}

static void access_put_spread_to(tn_cuda_printer *p, const tn_pw_insn *insn, const char *index) {
  int32_t table = access_table(p, insn);
  tn_cuda_put(p, "spread_to(&s%d, starts_%d, index_%d, %d, in%d, %s);\n", (int)insn->out, (int)table,
              (int)table, (int)insn->n_table, (int)insn->view, index);
}

/* A search in the whole table, for an index that no neighbour is near. */
static void access_put_spread_at(tn_cuda_printer *p, const tn_pw_insn *insn, const char *index) {
  int32_t table = access_table(p, insn);
  tn_cuda_put(p, "const %s v%d = widen(in%d[index_%d[range_of(starts_%d, %d, %s)]]);\n", access_lane(p, insn),
              (int)insn->out, (int)insn->view, (int)table, (int)table, (int)insn->n_table, index);
}

/* A search for the block, the same in all its threads; from there a thread goes on. */
static void access_put_spread_of_thread(tn_cuda_printer *p, const tn_pw_insn *insn) {
  tn_cuda_put(p, "  spread<%s> s%d;\n  s%d.range = range_of(starts_%d, %d, (i64)block);\n  ",
              access_lane(p, insn), (int)insn->out, (int)insn->out, (int)access_table(p, insn),
              (int)insn->n_table);
  access_put_spread_to(p, insn, "(i64)p");
}

static void access_put_spread(tn_cuda_printer *p, const tn_pw_insn *insn) {
  int out = insn->out;
  tn_cuda_put(p, "    if ((i64)(p + k) >= s%d.end) ", out);
  access_put_spread_to(p, insn, "(i64)(p + k)");
  tn_cuda_put(p, "    const %s v%d = s%d.value;\n", access_lane(p, insn), out, out);
}

/* ---- random numbers ---- */

/* The arguments behind the index: low bound and width, or mean and deviation. Both are f32 for an f32. */
static void access_put_parameters(tn_cuda_printer *p, const tn_pw_insn *insn) {
  bool uniform = insn->op == TN_PW_UNIFORM, wide = insn->lane == TN_LANE_F64;
  float low = (float)insn->a, width = (float)insn->b - low;
  double second = uniform ? wide ? insn->b - insn->a : (double)width : insn->b;
  tn_cuda_put(p, ", ");
  tn_cuda_put_number(p, insn->lane, tn_pw_bits_of(insn->a, wide ? TN_F64 : TN_F32));
  tn_cuda_put(p, ", ");
  tn_cuda_put_number(p, insn->lane, tn_pw_bits_of(second, wide ? TN_F64 : TN_F32));
}

/* key, iteration, index */
static void access_put_counters(tn_cuda_printer *p, const tn_pw_insn *insn, const char *index) {
  tn_cuda_put(p, "a.w[%d], v%d, (u64)(%s)", (int)tn_cuda_put_word(p, insn->bits), (int)insn->in[0], index);
  if (insn->in[1] != TN_PW_NONE)
    tn_cuda_put(p, " + (u64)v%d * a.w[%d]", (int)insn->in[1],
                (int)tn_cuda_put_word(p, (uint64_t)insn->count));
}

static void access_put_random_at(tn_cuda_printer *p, const tn_pw_insn *insn, const char *index) {
  tn_cuda_put(p, "const %s v%d = random_at<%s>(", access_lane(p, insn), (int)insn->out,
              insn->op == TN_PW_UNIFORM ? "UNIFORM" : "NORMAL");
  access_put_counters(p, insn, index);
  access_put_parameters(p, insn);
  tn_cuda_put(p, ");\n");
}

static void access_put_random_run(tn_cuda_printer *p, const tn_pw_insn *insn, const char *index) {
  int out = insn->out;
  tn_cuda_put(p, "  %s r%d[%d];\n  random_run<%s>(r%d, ", access_lane(p, insn), out, (int)p->made->width,
              insn->op == TN_PW_UNIFORM ? "UNIFORM" : "NORMAL", out);
  access_put_counters(p, insn, index);
  access_put_parameters(p, insn);
  tn_cuda_put(p, ");\n");
}

/* ---- once ---- */

void tn_cuda_put_access_once(tn_cuda_printer *p, const tn_pw_insn *insn) {
  tn_cuda_put(p, "  ");
  if (access_is_given(p, insn))
    access_put_given(p, insn);
  else if (access_is_random(insn))
    access_put_random_at(p, insn, "0");
  else if (insn->op == TN_PW_SPREAD)
    access_put_spread_at(p, insn, "0");
  else if (insn->op == TN_PW_INDEX)
    tn_cuda_put(p, "const i64 v%d = 0;\n", (int)insn->out);
  else
    tn_cuda_put(p, "const %s v%d = widen(*in%d);\n", access_lane(p, insn), (int)insn->out, (int)insn->view);
}

/* ---- for all positions of a thread ---- */

/* The name of the place on the instruction's map: of the thread's first position, or of the position at hand.
 */
static const char *access_place(const tn_cuda_printer *p, const tn_pw_insn *insn, bool of_position,
                                char name[32]) {
  int mode = access_mode(p, insn), map = access_map(p, insn);
  const char *step = of_position && mode != PRINT_ONE ? " + k" : "";
  if (mode == PRINT_SAME)
    snprintf(name, 32, "p%s", step);
  else if (mode == PRINT_EACH)
    snprintf(name, 32, "e%d", map);
  else
    snprintf(name, 32, "m%d%s", map, step);
  return name;
}

static void access_note_pack(tn_cuda_printer *p, const tn_pw_insn *insn) {
  size_t bytes = (size_t)p->made->width * tn_dtype_size(insn->dtype);
  p->made->alignment[insn->view] = (uint8_t)(bytes < 16 ? bytes : 16);
}

static void access_put_pack(tn_cuda_printer *p, const tn_pw_insn *insn, const char *place) {
  int width = p->made->width;
  access_note_pack(p, insn);
  tn_cuda_put(p, "  const pack<%s, %d> x%d = load<%d>(in%d, %s, n, whole);\n",
              tn_cuda_element_name(insn->dtype), width, (int)insn->out, width, (int)insn->view, place);
}

bool tn_cuda_is_fetched(const tn_cuda_printer *p, const tn_pw_insn *insn) {
  return p->front != NULL && insn->op == TN_PW_LOAD && access_mode(p, insn) == PRINT_SAME;
}

void tn_cuda_put_fetched(tn_cuda_printer *p, const tn_pw_insn *insn) {
  tn_cuda_put(p, "  pack<%s, %d> x%d;\n", tn_cuda_element_name(insn->dtype), (int)p->made->width,
              (int)insn->out);
}

void tn_cuda_put_fetch(tn_cuda_printer *p, const tn_pw_insn *insn) {
  const char *name = tn_cuda_element_name(insn->dtype);
  tn_cuda_put(p, "  to->x%d = load<%d>((const %s *)a.w[%d], (at_t)at, n, whole);\n", (int)insn->out,
              (int)p->made->width, name, (int)(TN_CUDA_PW_POINTERS + insn->view));
}

static void access_put_taken(tn_cuda_printer *p, const tn_pw_insn *insn) {
  access_note_pack(p, insn);
  tn_cuda_put(p, "  const pack<%s, %d> &x%d = from.x%d;\n", tn_cuda_element_name(insn->dtype),
              (int)p->made->width, (int)insn->out, (int)insn->out);
}

static void access_put_load_of_thread(tn_cuda_printer *p, const tn_pw_insn *insn, const char *place) {
  if (access_mode(p, insn) == PRINT_ONE)
    tn_cuda_put(p, "  const %s v%d = widen(in%d[%s]);\n", access_lane(p, insn), (int)insn->out,
                (int)insn->view, place);
  else if (tn_cuda_is_fetched(p, insn))
    access_put_taken(p, insn);
  else
    access_put_pack(p, insn, place);
}

void tn_cuda_put_access_of_thread(tn_cuda_printer *p, const tn_pw_insn *insn) {
  char name[32];
  if (access_is_given(p, insn)) access_put_given(p, insn);
  if (access_is_given(p, insn) || insn->op == TN_PW_STORE || access_mode(p, insn) == PRINT_EACH) return;
  if (access_mode(p, insn) != PRINT_SAME) tn_cuda_put_place(p, insn->map, false);
  const char *place = access_place(p, insn, false, name);
  if (insn->op == TN_PW_LOAD)
    access_put_load_of_thread(p, insn, place);
  else if (insn->op == TN_PW_SPREAD && access_mode(p, insn) == PRINT_SAME)
    access_put_spread_of_thread(p, insn);
  else if (access_is_random(insn) && access_mode(p, insn) != PRINT_ONE)
    access_put_random_run(p, insn, place);
  else if (access_is_random(insn)) {
    tn_cuda_put(p, "  ");
    access_put_random_at(p, insn, place);
  }
}

/* ---- for a position ---- */

static void access_put_load(tn_cuda_printer *p, const tn_pw_insn *insn, const char *place) {
  int mode = access_mode(p, insn), out = insn->out;
  if (mode == PRINT_EACH)
    tn_cuda_put(p, "    const %s v%d = widen(in%d[%s]);\n", access_lane(p, insn), out, (int)insn->view,
                place);
  else if (mode != PRINT_ONE)
    tn_cuda_put(p, "    const %s v%d = widen(x%d.v[k]);\n", access_lane(p, insn), out, out);
}

static void access_put_random(tn_cuda_printer *p, const tn_pw_insn *insn, const char *place) {
  int mode = access_mode(p, insn), out = insn->out;
  if (mode == PRINT_EACH) {
    tn_cuda_put(p, "    ");
    access_put_random_at(p, insn, place);
  } else if (mode != PRINT_ONE) {
    tn_cuda_put(p, "    const %s v%d = r%d[k];\n", access_lane(p, insn), out, out);
  }
}

static void access_put_narrow(tn_cuda_printer *p, const tn_pw_insn *insn) {
  tn_cuda_put(p, "    narrow(&y%d.v[k], v%d);\n", (int)insn->view, (int)insn->in[0]);
  if (p->columns > 0)
    tn_cuda_put(p, "    if (column + k >= columns) y%d.v[k] = %s();\n", (int)insn->view,
                tn_cuda_element_name(insn->dtype));
}

void tn_cuda_put_access(tn_cuda_printer *p, const tn_pw_insn *insn) {
  char name[32], index[48];
  if (access_is_given(p, insn)) return;
  if (insn->op == TN_PW_STORE) {
    access_put_narrow(p, insn);
    return;
  }
  if (access_mode(p, insn) == PRINT_EACH) tn_cuda_put_place(p, insn->map, true);
  const char *place = access_place(p, insn, true, name);
  snprintf(index, sizeof index, "(i64)(%s)", place);
  if (insn->op == TN_PW_LOAD)
    access_put_load(p, insn, place);
  else if (access_is_random(insn))
    access_put_random(p, insn, place);
  else if (insn->op == TN_PW_INDEX)
    tn_cuda_put(p, "    const i64 v%d = %s;\n", (int)insn->out, index);
  else if (access_mode(p, insn) == PRINT_SAME)
    access_put_spread(p, insn);
  else {
    tn_cuda_put(p, "    ");
    access_put_spread_at(p, insn, index);
  }
}
