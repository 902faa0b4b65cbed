/* core/onnx/blocks/args.c: see blocks.h. */
#include <stdlib.h>
#include <string.h>

#include "core/onnx/blocks/blocks.h"

/* ---- numbers of groups ---- */

static bool arg_same(const block_token *x, const block_token *y) {
  return x->length == y->length && memcmp(x->at, y->at, (size_t)x->length) == 0;
}

/* A whole number; -1 for another. */
static int64_t arg_whole(const block_token *token) {
  size_t digits = strspn(token->at, "0123456789");
  return (int32_t)digits == token->length && digits < 16 ? strtoll(token->at, NULL, 10) : -1;
}

/* Whether number i of all groups is factor * number k, or, for a factor of 0, half of it. */
static bool arg_follows(const blocks *b, const block_kind *kind, int32_t i, int32_t k, int32_t factor) {
  for (int32_t g = kind->head; g >= 0; g = b->groups.v[g].next) {
    const block_token *x = block_number_at(b, &b->groups.v[g], i),
                      *y = block_number_at(b, &b->groups.v[g], k);
    int64_t number = arg_whole(x), of = arg_whole(y);
    if (factor == 1 ? !arg_same(x, y) : number < 0 || of < 0) return false;
    if (factor > 1 && number != factor * of) return false;
    if (factor == 0 && number != of / 2) return false;
  }
  return true;
}

static bool arg_is_fixed(const blocks *b, const block_kind *kind, int32_t i) {
  const block_token *own = block_number_at(b, &b->groups.v[kind->group], i);
  for (int32_t g = kind->head; g >= 0; g = b->groups.v[g].next)
    if (!arg_same(own, block_number_at(b, &b->groups.v[g], i))) return false;
  return true;
}

/* The factor that the first group has: 4 for 256 and 64; -1: no factor fits. */
static int32_t arg_guess(const blocks *b, const block_kind *kind, int32_t i, int32_t k) {
  const block_group *g = &b->groups.v[kind->group];
  int64_t x = arg_whole(block_number_at(b, g, i)), y = arg_whole(block_number_at(b, g, k));
  if (arg_same(block_number_at(b, g, i), block_number_at(b, g, k))) return 1;
  if (y > 0 && x > 0 && x % y == 0 && x / y <= 64) return (int32_t)(x / y);
  return y > 1 && x == y / 2 ? 0 : -1;
}

/* An argument that the number follows from. */
static block_number arg_find(const blocks *b, const block_kind *kind, int32_t i) {
  block_number number = {-1, 1};
  for (int32_t a = 0; a < kind->n_args; a++) {
    int32_t factor = arg_guess(b, kind, i, kind->args[a].number);
    if (factor < 0 || (number.arg >= 0 && factor != 1)) continue;
    if (arg_follows(b, kind, i, kind->args[a].number, factor)) number = (block_number){a, factor};
  }
  return number;
}

/* ---- defaults ---- */

/* The text that more than half of the groups have is the default. */
static tn_status arg_find_default(const blocks *b, block_kind *kind, block_arg *arg) {
  const block_token *best = NULL;
  int32_t votes = 0, count = 0;
  for (int32_t g = kind->head; g >= 0; g = b->groups.v[g].next) {
    const block_token *own = block_number_at(b, &b->groups.v[g], arg->number);
    if (votes == 0) best = own;
    votes += arg_same(own, best) ? 1 : -1;
  }
  for (int32_t g = kind->head; g >= 0; g = b->groups.v[g].next)
    count += arg_same(block_number_at(b, &b->groups.v[g], arg->number), best);
  if (2 * count <= kind->count) return TN_OK;
  arg->standard = tn_arena_printf(b->arena, "%.*s", best->length, best->at);
  return arg->standard != NULL ? TN_OK : TN_ENOMEM;
}

/* Arguments without a default come first. */
static void arg_sort(block_kind *kind) {
  block_arg sorted[BLOCK_MOST_ARGS];
  int32_t place[BLOCK_MOST_ARGS], n = 0;
  for (int32_t with = 0; with < 2; with++)
    for (int32_t a = 0; a < kind->n_args; a++)
      if ((kind->args[a].standard != NULL) == with) {
        place[a] = n;
        sorted[n++] = kind->args[a];
      }
  memcpy(kind->args, sorted, (size_t)n * sizeof *sorted);
  for (int32_t i = 0; i < kind->n_numbers; i++)
    if (kind->numbers[i].arg >= 0) kind->numbers[i].arg = place[kind->numbers[i].arg];
}

tn_status block_find_args(blocks *b, block_kind *kind, bool *few) {
  const block_group *g = &b->groups.v[kind->group];
  int32_t end = g->end < b->n_lines ? b->lines[g->end].first_number : (int32_t)b->numbers.n;
  kind->n_numbers = end - b->lines[g->first].first_number;
  kind->numbers = tn_arena_alloc(b->arena, (size_t)kind->n_numbers * sizeof *kind->numbers + 1);
  if (kind->numbers == NULL) return TN_ENOMEM;
  *few = false;
  for (int32_t i = 0; i < kind->n_numbers; i++) {
    kind->numbers[i] = (block_number){-1, 1};
    if (arg_is_fixed(b, kind, i)) continue;
    kind->numbers[i] = arg_find(b, kind, i);
    if (kind->numbers[i].arg >= 0) continue;
    if (kind->n_args == BLOCK_MOST_ARGS) return TN_OK;
    kind->numbers[i] = (block_number){kind->n_args, 1};
    kind->args[kind->n_args++] = (block_arg){.number = i};
  }
  for (int32_t a = 0; a < kind->n_args; a++) TN_TRY(arg_find_default(b, kind, &kind->args[a]));
  arg_sort(kind);
  *few = true;
  return TN_OK;
}
