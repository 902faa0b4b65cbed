/* backends/cuda/kernels/pointwise.c: pointwise regions, printed as CUDA C (pointwise/printed.h), over storage
 * order where operands have one layout, else row-major or with channels last. A region on row-major images
 * of few channels, such as the cast in front of a first convolution, may write them with channels last. */
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "backends/cuda/modules/modules.h"
#include "backends/cuda/padded_rows.h"
#include "backends/cuda/pointwise/printed.h"
#include "backends/cuda/rates.h"
#include "backends/shared/cost.h"
#include "backends/shared/define_kernel.h"

/* ---- query ---- */

typedef struct pointwise_offer {
  int32_t id, rule;
  const char *name;
  const tn_layout *layout;
  bool reorders; /* operands are row-major */
} pointwise_offer;

enum { POINTWISE_REORDERS = 4, POINTWISE_FEW_CHANNELS = 8 };

/* Operands and results of the region's dims lie so; others row-major. */
static void cuda_pointwise_rules(const tn_match *m, const pointwise_offer *o, tn_operand_layout *rules) {
  for (int32_t i = 0; i < m->n_in + m->n_out; i++) {
    const tn_type *type = i < m->n_in ? m->in[i] : m->out[i - m->n_in];
    rules[i] = (tn_operand_layout){0};
    if (i < m->n_in && o->reorders) continue;
    if (type == NULL || tn_type_count(type) == 1 || !tn_type_same_dims(type, m->out[0])) continue;
    rules[i].rule = o->rule;
    if (o->layout != NULL) rules[i].layout = *o->layout;
  }
}

static void cuda_pointwise_add(tn_query *q, const pointwise_offer *o, const tn_cuda_printed *printed,
                               const tn_operand_layout *rules) {
  tn_cuda_kind kind = o->reorders ? TN_CUDA_ROWS : TN_CUDA_STREAM;
  tn_offer(q, (tn_variant){.id = o->id,
                           .name = o->name,
                           .in = rules,
                           .out = rules + q->match->n_in,
                           .prepared_bytes = (int64_t)sizeof(tn_cuda_printed),
                           .n_inplace = o->reorders ? 0 : printed->n_inplace,
                           .inplace = (const int32_t(*)[2])printed->inplace,
                           .cost_s = tn_cuda_estimate_s(q->device, kind, tn_match_bytes(q->match),
                                                        printed->flops, q->device->vector_flops_per_s)});
}

static tn_status cuda_pointwise_offer(tn_query *q, const pointwise_offer *o, tn_operand_layout *rules) {
  tn_cuda_printed *printed = tn_new(q, sizeof *printed);
  if (printed == NULL) return TN_ENOMEM;
  tn_status status = o->reorders ? tn_cuda_print_reordering(q, q->match, o->layout, printed)
                                 : tn_cuda_print(q, q->match, o->layout, printed);
  cuda_pointwise_rules(q->match, o, rules);
  if (status == TN_OK) cuda_pointwise_add(q, o, printed, rules);
  tn_cuda_drop_printed(q, printed);
  tn_delete(q, printed);
  return status;
}

/* Images whose channels lie side by side. */
static bool cuda_pointwise_has_channels(const tn_type *type) {
  return type->rank == 4 && type->dims[1] > 1 && type->dims[2] * type->dims[3] > 1;
}

/* The padding takes a few words more, for which a large region may have no room: then it is row-major alone.
 */
static tn_status cuda_pointwise_offer_padded(tn_query *q, tn_operand_layout *rules) {
  const tn_operand_layout rows = tn_cuda_padded_rows(q->match->out[0]);
  const pointwise_offer padded = {3, TN_LAYOUT_FIXED, "padded rows", &rows.layout};
  tn_status status = cuda_pointwise_offer(q, &padded, rules);
  return status == TN_EUNSUPPORTED ? TN_OK : status;
}

static tn_status cuda_pointwise_offers(tn_query *q, tn_operand_layout *rules) {
  static const tn_layout channels_last = {.set = 1, .order = {0, 2, 3, 1}};
  static const pointwise_offer any = {0, TN_LAYOUT_ANY, "storage order", NULL},
                               plain = {1, TN_LAYOUT_ROW_MAJOR, "row-major", NULL},
                               last = {2, TN_LAYOUT_FIXED, "channels last", &channels_last},
                               moved = {POINTWISE_REORDERS, TN_LAYOUT_FIXED, "to channels last",
                                        &channels_last, true};
  const tn_type *y = q->match->out[0];
  bool is_image = cuda_pointwise_has_channels(y), any_layout = tn_cuda_takes_any_layout(q->match);
  TN_TRY(cuda_pointwise_offer(q, any_layout ? &any : &plain, rules));
  if (is_image && !any_layout) TN_TRY(cuda_pointwise_offer(q, &last, rules));
  if (is_image && any_layout && y->dims[1] <= POINTWISE_FEW_CHANNELS)
    TN_TRY(cuda_pointwise_offer(q, &moved, rules));
  if (!any_layout && tn_cuda_offers_padded_rows(y) && tn_cuda_takes_padded_rows(q->match))
    TN_TRY(cuda_pointwise_offer_padded(q, rules));
  return TN_OK;
}

static tn_status cuda_pointwise_query(tn_query *q) {
  const tn_match *m = q->match;
  if (m->n_out < 1) return tn_fail(q, TN_EUNSUPPORTED, NULL, "the region has no result");
  tn_operand_layout *rules = tn_new(q, ((size_t)m->n_in + (size_t)m->n_out) * sizeof *rules);
  if (rules == NULL) return TN_ENOMEM;
  tn_status status = cuda_pointwise_offers(q, rules);
  tn_delete(q, rules);
  return status;
}

/* ---- prepare, release ---- */

typedef struct pointwise_kernel {
  tn_cuda_function function;
  tn_cuda_grid grid;
  int32_t processors; /* of the device, where a block has much to do before its first position; else 0 */
  int32_t n_words, n_pointers;
  uint8_t alignment[TN_CUDA_PW_WORDS];
  uint64_t words[TN_CUDA_PW_WORDS];
} pointwise_kernel;

static void cuda_pointwise_keep(pointwise_kernel *keep, const tn_device_properties *d,
                                const tn_cuda_printed *printed) {
  int64_t threads = (printed->count + printed->width - 1) / printed->width;
  keep->grid = tn_cuda_grid_of(threads, TN_CUDA_PW_THREADS, INT32_MAX);
  keep->processors = printed->few_blocks ? d->processors : 0;
  keep->n_words = printed->n_words;
  keep->n_pointers = printed->n_pointers;
  memcpy(keep->words, printed->words, (size_t)printed->n_words * sizeof *keep->words);
  memcpy(keep->alignment, printed->alignment, sizeof keep->alignment);
}

static tn_status cuda_pointwise_request(tn_prepare *p, pointwise_kernel *keep, tn_cuda_printed *printed) {
  char title[64];
  const tn_layout *layout = p->out_layout != NULL ? &p->out_layout[0] : NULL;
  tn_status status = p->variant == POINTWISE_REORDERS ? tn_cuda_print_reordering(p, p->match, layout, printed)
                                                      : tn_cuda_print(p, p->match, layout, printed);
  if (status == TN_OK) {
    cuda_pointwise_keep(keep, p->device, printed);
    snprintf(title, sizeof title, "a pointwise region of %d ops", (int)p->match->n_nodes);
    status = tn_cuda_request_text(p, &keep->function, title, printed->text, "region");
    if (keep->processors > 0) keep->function.counted_threads = TN_CUDA_PW_THREADS;
  }
  tn_cuda_drop_printed(p, printed);
  return status;
}

static tn_status cuda_pointwise_prepare(tn_prepare *p, void **made) {
  tn_cuda_printed *printed = tn_new(p, sizeof *printed);
  pointwise_kernel *keep = tn_new(p, sizeof *keep);
  tn_status status = printed != NULL && keep != NULL ? cuda_pointwise_request(p, keep, printed) : TN_ENOMEM;
  tn_delete(p, printed);
  if (status == TN_OK)
    *made = keep;
  else
    tn_delete(p, keep);
  return status;
}

/* ---- launch ---- */

/* Packs need their alignment, which a view of a tensor may lack. */
static bool cuda_pointwise_point(const pointwise_kernel *k, const tn_launch *l, uint64_t *words) {
  bool aligned = true;
  for (int32_t i = 0; i < k->n_pointers; i++) {
    uintptr_t address = (uintptr_t)(i < l->n_in ? l->in[i].data : l->out[i - l->n_in].data);
    words[TN_CUDA_PW_POINTERS + i] = address;
    aligned = aligned && address % k->alignment[i] == 0;
  }
  return aligned;
}

/* As many blocks as run at once where a block has much to do before its first position. */
static tn_cuda_grid cuda_pointwise_grid(const pointwise_kernel *k) {
  tn_cuda_grid grid = k->grid;
  int64_t most = (int64_t)k->processors * k->function.blocks_at_once;
  if (most > 0 && most < grid.blocks[0]) grid.blocks[0] = (uint32_t)most;
  return grid;
}

static tn_status cuda_pointwise_launch(tn_launch *l) {
  const pointwise_kernel *k = l->prepared;
  const tn_cuda_grid grid = cuda_pointwise_grid(k);
  uint64_t words[TN_CUDA_PW_WORDS];
  memcpy(words, k->words, (size_t)k->n_words * sizeof *words);
  words[TN_CUDA_PW_ALIGNED] = cuda_pointwise_point(k, l, words);
  return tn_cuda_launch(l, &k->function, &grid, words, (size_t)k->n_words * sizeof *words);
}

TN_DEFINE_KERNEL(cuda, pointwise, "cuda_pointwise", "pointwise+", "pointwise regions, printed as CUDA C",
                 TN_KERNEL_CALLBACKS_WITH(cuda_pointwise, tn_cuda_release_function));
TN_DEFINE_KERNEL(cuda, random_uniform, "cuda_random_uniform", "y = random_uniform(iteration, block?)",
                 "uniform random numbers",
                 TN_KERNEL_CALLBACKS_WITH(cuda_pointwise, tn_cuda_release_function));
TN_DEFINE_KERNEL(cuda, random_normal, "cuda_random_normal", "y = random_normal(iteration, block?)",
                 "normally distributed random numbers",
                 TN_KERNEL_CALLBACKS_WITH(cuda_pointwise, tn_cuda_release_function));
