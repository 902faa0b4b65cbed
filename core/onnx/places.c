/* core/onnx/places.c: whole numbers that each sample has in its own part of a list: element [sample, rest] is
 * places[rest] + stride sample. Exporters index the elements of all samples in this way (as_strided of
 * PyTorch). */
#include <string.h>

#include "core/onnx/import.h"

typedef struct places_work {
  const onnx_use *n;
  const onnx_value *from; /* the operand with places */
  onnx_value *to;
  double *places;
} places_work;

static int64_t places_count(const onnx_value *value) { return tn_type_count(&value->type) / ONNX_BATCH; }

static bool places_of_samples(const tn_type *type) {
  return type->rank > 0 && type->dims[0] == ONNX_BATCH && type->dtype != TN_F32 &&
         tn_type_count(type) / ONNX_BATCH <= ONNX_MOST_KNOWN;
}

/* Where element `at` of a sample of the result is in an operand without, or with, samples. */
static int64_t places_at(const tn_type *to, int64_t at, const tn_type *type) {
  int64_t place = 0, stride = 1;
  for (int32_t d = to->rank - 1, own = type->rank - 1; own >= 0 && d > 0; d--, own--) {
    place += type->dims[own] == 1 ? 0 : at % to->dims[d] * stride;
    at /= to->dims[d];
    stride *= type->dims[own];
  }
  return place;
}

static void places_set(places_work *w, double stride) {
  w->to->places = w->places;
  w->to->stride = stride;
}

static void places_range(places_work *w) {
  int64_t count;
  const double *start = onnx_peek(w->n, 0, &count), *by = onnx_peek(w->n, 2, &count);
  if (start == NULL || by == NULL || start[0] != 0 || by[0] != 1) return;
  w->places[0] = 0;
  places_set(w, 1);
}

static void places_move(places_work *w) {
  if (w->from == NULL || places_count(w->from) != places_count(w->to)) return;
  memcpy(w->places, w->from->places, (size_t)places_count(w->to) * sizeof *w->places);
  places_set(w, w->from->stride);
}

/* The other operand is known, and the same for all samples. */
static void places_compute(places_work *w) {
  int32_t other = onnx_operand(w->n, 0) == w->from ? 1 : 0;
  int64_t count;
  const double *known = onnx_peek(w->n, other, &count);
  bool product = strcmp(w->n->node->op, "Mul") == 0;
  if (w->from == NULL || known == NULL || (product && count != 1)) return;
  const tn_type type = *onnx_type(w->n, other);
  if (type.rank > w->to->type.rank || (type.rank == w->to->type.rank && type.rank > 0 && type.dims[0] != 1))
    return;
  for (int64_t i = 0; i < places_count(w->to); i++) {
    double place = w->from->places[places_at(&w->to->type, i, &w->from->type)],
           with = known[places_at(&w->to->type, i, &type)];
    w->places[i] = product ? place * with : place + with;
  }
  places_set(w, product ? w->from->stride * known[0] : w->from->stride);
}

static const struct {
  const char *op;
  void (*keep)(places_work *w);
} places_rows[] = {
    {"Range", places_range},    {"Cast", places_move},    {"Identity", places_move}, {"Reshape", places_move},
    {"Unsqueeze", places_move}, {"Squeeze", places_move}, {"Mul", places_compute},   {"Add", places_compute},
};

void onnx_keep_places(const onnx_use *n) {
  places_work w = {.n = n, .to = n->node->n_out > 0 ? onnx_find(n->m, n->node->out[0]) : NULL};
  if (n->m->whole || w.to == NULL || !places_of_samples(&w.to->type)) return;
  for (int32_t i = 0; i < n->node->n_in && i < 2 && w.from == NULL; i++) {
    const onnx_value *x = onnx_operand(n, i);
    if (x != NULL && x->places != NULL && x->type.dims[0] == ONNX_BATCH) w.from = x;
  }
  for (size_t i = 0; i < sizeof places_rows / sizeof *places_rows; i++) {
    if (strcmp(places_rows[i].op, n->node->op) != 0) continue;
    w.places = tn_arena_alloc(&n->m->arena, (size_t)places_count(w.to) * sizeof *w.places + 1);
    if (w.places != NULL) places_rows[i].keep(&w);
  }
}

bool onnx_is_whole_list(const onnx_use *n, int32_t list, int32_t index) {
  const onnx_value *x = onnx_operand(n, list), *at = onnx_operand(n, index);
  if (x == NULL || at == NULL || at->places == NULL || x->type.rank != 1) return false;
  int64_t count = places_count(at);
  bool whole = at->stride == (double)count && x->type.dims[0] == count * ONNX_BATCH;
  for (int64_t i = 0; i < count && whole; i++) whole = at->places[i] == (double)i;
  return whole;
}
