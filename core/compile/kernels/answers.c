/* core/compile/kernels/answers.c: keys of matches, and the table of answers. */
#include "core/compile/kernels/answers.h"

#include "core/base/text/text.h"
#include "core/compile/kernels/choice.h"
#include "core/graph/op/attributes.h"

/* More distinct matches than any model has; an application that calls ops with ever new shapes stays bounded.
 */
enum { ANSWERS = 1 << 14 };

tn_status tn_answers_create(tn_env *env, tn_answers **answers) {
  tn_answers *made = tn_alloc(env, sizeof *made);
  *answers = made;
  if (made == NULL) return TN_ENOMEM;
  made->env = env;
  made->arena = tn_arena_new(env);
  made->index = tn_hash_index_new(env);
  return TN_OK;
}

void tn_answers_destroy(tn_answers *answers) {
  if (answers == NULL) return;
  tn_hash_index_free(&answers->index);
  tn_vec_free(answers->env, &answers->list);
  tn_vec_free(answers->env, &answers->declines);
  tn_arena_free(&answers->arena);
  tn_release(answers->env, answers);
}

/* ---- keys ---- */

static uint64_t hash_number(uint64_t hash, int64_t number) {
  return tn_hash_bytes(hash, &number, sizeof number);
}

static uint64_t hash_match_type(uint64_t hash, const tn_type *type) {
  if (type == NULL) return hash_number(hash, -1);
  hash = hash_number(hash, (int64_t)type->dtype * 256 + type->rank);
  return tn_hash_bytes(hash, type->dims, (size_t)type->rank * sizeof *type->dims);
}

static uint64_t hash_match_node(uint64_t hash, const tn_op *op, const tn_match_node *node) {
  hash = tn_hash_text(hash, node->node->op);
  hash = tn_attributes_hash(hash, &op->item, node->node->attributes);
  hash = tn_hash_bytes(hash, node->in, (size_t)node->node->n_in * sizeof *node->in);
  for (int32_t i = 0; i < node->node->n_out; i++) hash = hash_match_type(hash, &node->node->out[i]);
  return hash_number(hash, node->first_out);
}

/* The attributes of a `full` are hashed as those of its op, which the graph's op table has. */
static uint64_t hash_match_operand(uint64_t hash, const tn_match *m, const tn_item *full, int32_t i) {
  const tn_node *constant = m->constant_node[i];
  hash = hash_match_type(hash, m->in[i]);
  hash = hash_number(hash, m->constant[i] + (constant != NULL ? 2 : 0));
  return constant == NULL ? hash : tn_attributes_hash(hash, full, constant->attributes);
}

/* The op `full` of the graph; any node of it will do. */
static const tn_item *find_full_item(const tn_graph *graph, const tn_candidate *c, const tn_match *m) {
  for (int32_t i = 0; i < c->n_in; i++) {
    tn_val v = c->in[i];
    if (m->constant_node[i] == NULL) continue;
    while (!tn_graph_is(graph, v, "full")) v = tn_graph_maker(graph, v)->in[0];
    return &tn_graph_maker(graph, v)->op->item;
  }
  return NULL;
}

static uint64_t hash_match(uint64_t hash, const tn_graph *graph, const tn_candidate *c, const tn_match *m) {
  const tn_item *full = find_full_item(graph, c, m);
  const int32_t counts[] = {m->n_in, m->n_out, m->n_nodes};
  hash = tn_hash_bytes(hash, counts, sizeof counts);
  for (int32_t i = 0; i < m->n_in; i++) hash = hash_match_operand(hash, m, full, i);
  for (int32_t i = 0; i < m->n_nodes; i++)
    hash = hash_match_node(hash, graph->nodes.v[c->nodes[i]].op, &m->nodes[i]);
  return tn_hash_bytes(hash, m->out_number, (size_t)m->n_out * sizeof *m->out_number);
}

/* Two hashes with different starts: of 128 bits, so that equal keys mean equal matches. */
tn_match_key tn_match_key_of(const tn_graph *graph, const tn_candidate *c, const tn_match *m) {
  uint64_t other = hash_number(TN_HASH_START, m->n_nodes + 1);
  return (tn_match_key){hash_match(TN_HASH_START, graph, c, m), hash_match(other, graph, c, m)};
}

static bool is_same_key(tn_match_key a, tn_match_key b) { return a.low == b.low && a.high == b.high; }

/* ---- answers ---- */

static const tn_answer *look_up_answer(const tn_answers *answers, const tn_kernel *kernel, tn_match_key key) {
  size_t probe = 0;
  int64_t i;
  while ((i = tn_hash_index_next(&answers->index, key.low, &probe)) != TN_HASH_INDEX_NONE) {
    const tn_answer *one = &answers->list.v[i];
    if (one->kernel == kernel && is_same_key(one->key, key)) return one;
  }
  return NULL;
}

const tn_answer *tn_answers_find(tn_answers *answers, const tn_kernel *kernel, tn_match_key key) {
  const tn_answer *known = look_up_answer(answers, kernel, key);
  if (known != NULL) answers->remembered++;
  return known;
}

static tn_status copy_answer(tn_answers *answers, const tn_match *match, const tn_answer *from,
                             tn_answer *to) {
  *to = *from;
  tn_choice *variants = tn_arena_alloc(&answers->arena, (size_t)from->n_variants * sizeof *variants);
  if (variants == NULL) return TN_ENOMEM;
  for (int32_t i = 0; i < from->n_variants; i++)
    TN_TRY(tn_choice_copy(&answers->arena, match, &from->variants[i], &variants[i]));
  to->variants = variants;
  if (from->reason == NULL) return TN_OK;
  to->reason = tn_arena_strdup(&answers->arena, from->reason);
  return to->reason != NULL ? TN_OK : TN_ENOMEM;
}

void tn_answers_add(tn_answers *answers, const tn_match *match, const tn_answer *answer) {
  tn_answer kept;
  answers->asked++;
  if (answers->list.n >= ANSWERS) return;
  tn_status status = copy_answer(answers, match, answer, &kept);
  if (status == TN_OK) status = tn_vec_push(answers->env, &answers->list, kept);
  if (status == TN_OK)
    status = tn_hash_index_add(&answers->index, kept.key.low, (uint32_t)(answers->list.n - 1));
  if (status != TN_OK) tn_error_clear(answers->env);
}

/* ---- declines ---- */

tn_status tn_answers_decline(tn_answers *answers, const tn_kernel *kernel, tn_match_key key, int32_t variant,
                             const char *reason, bool warned) {
  tn_prepare_decline one = {kernel, key, variant, tn_arena_strdup(&answers->arena, reason), warned};
  if (one.reason == NULL) return TN_ENOMEM;
  return tn_vec_push(answers->env, &answers->declines, one);
}

tn_status tn_answers_copy_declines(const tn_target *to, const tn_target *from) {
  for (size_t i = 0; to->answers != NULL && from->answers != NULL && i < from->answers->declines.n; i++) {
    const tn_prepare_decline *d = &from->answers->declines.v[i];
    TN_TRY(tn_answers_decline(to->answers, d->kernel, d->key, d->variant, d->reason, d->warned));
  }
  bool both = to->fallback != NULL && from->fallback != NULL;
  return both ? tn_answers_copy_declines(to->fallback, from->fallback) : TN_OK;
}

const char *tn_answers_declined(const tn_answers *answers, const tn_kernel *kernel, tn_match_key key,
                                int32_t variant) {
  for (size_t i = 0; answers != NULL && i < answers->declines.n; i++) {
    const tn_prepare_decline *one = &answers->declines.v[i];
    if (one->kernel == kernel && one->variant == variant && is_same_key(one->key, key)) return one->reason;
  }
  return NULL;
}

bool tn_answers_has_warned(const tn_answers *answers, const char *reason) {
  for (size_t i = 0; i < answers->declines.n; i++)
    if (answers->declines.v[i].warned && tn_text_equal(answers->declines.v[i].reason, reason)) return true;
  return false;
}

bool tn_answers_is_last(const tn_answers *answers, const tn_kernel *kernel, tn_match_key key,
                        int32_t variant) {
  const tn_answer *answer = look_up_answer(answers, kernel, key);
  for (int32_t i = 0; answer != NULL && i < answer->n_variants; i++) {
    int32_t other = answer->variants[i].id;
    if (other != variant && tn_answers_declined(answers, kernel, key, other) == NULL) return false;
  }
  return true;
}

bool tn_answers_is_lost(const tn_answers *answers, size_t decline) {
  const tn_prepare_decline *one = &answers->declines.v[decline];
  for (size_t i = decline + 1; i < answers->declines.n; i++) {
    const tn_prepare_decline *later = &answers->declines.v[i];
    if (later->kernel == one->kernel && is_same_key(later->key, one->key)) return false;
  }
  return tn_answers_is_last(answers, one->kernel, one->key, one->variant);
}

size_t tn_answers_declines(const tn_target *target) {
  size_t n = target->answers != NULL ? target->answers->declines.n : 0;
  return target->fallback != NULL ? n + tn_answers_declines(target->fallback) : n;
}
