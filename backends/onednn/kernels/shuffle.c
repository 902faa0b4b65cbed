/* backends/onednn/kernels/shuffle.c: channel_shuffle, alone and behind the concat that makes its groups, of
 * which the first may be a slice of another image: plane by plane, or pixel by pixel with channels innermost.
 */
#include <string.h>

#include "backends/onednn/kernels/image_layouts.h"
#include "backends/onednn/kernels/shuffle.h"
#include "backends/shared/cost.h"
#include "backends/shared/define_kernel.h"
#include "backends/shared/integer_math.h"
#include "tenon/attributes.h"

enum { CHUNK = 1 << 14 /* elements */, GROUPS = 16 /* at most */ };

/* A group's channels are those of an operand from `first` on. */
typedef struct shuffle_part {
  int32_t operand;
  int64_t first, channels; /* of the operand, all together */
} shuffle_part;

typedef struct shuffle_kernel {
  const tn_shuffle_loops *loops; /* with channels innermost; NULL: planes */
  int64_t images, pixels, groups, n, size, per_chunk;
  shuffle_part part[GROUPS];
} shuffle_kernel;

/* ---- launch --------------------------------------------------------------------------------------- */

typedef struct shuffle_job {
  const shuffle_kernel *p;
  const tn_launch *l;
} shuffle_job;

static const uint8_t *shuffle_at(const shuffle_job *j, int32_t group, int64_t element) {
  return (const uint8_t *)j->l->in[j->p->part[group].operand].data + element * j->p->size;
}

static void shuffle_planes_chunk(void *arg, int64_t chunk) {
  const shuffle_job *j = arg;
  const shuffle_kernel *p = j->p;
  int64_t channels = p->groups * p->n, end = least(p->images * channels, (chunk + 1) * p->per_chunk);
  size_t bytes = (size_t)(p->pixels * p->size);
  for (int64_t plane = chunk * p->per_chunk; plane < end; plane++) {
    int64_t image = plane / channels, channel = plane % channels;
    int32_t group = (int32_t)(channel % p->groups);
    const shuffle_part *part = &p->part[group];
    int64_t from = (image * part->channels + part->first + channel / p->groups) * p->pixels;
    memcpy((uint8_t *)j->l->out[0].data + (size_t)plane * bytes, shuffle_at(j, group, from), bytes);
  }
}

static void shuffle_pixels_chunk(void *arg, int64_t chunk) {
  const shuffle_job *j = arg;
  const shuffle_kernel *p = j->p;
  tn_shuffle_group group[GROUPS];
  int64_t pixel = chunk * p->per_chunk, n = least(p->per_chunk, p->images * p->pixels - pixel);
  for (int32_t i = 0; i < p->groups; i++)
    group[i] = (tn_shuffle_group){
        (const uint32_t *)(const void *)shuffle_at(j, i, pixel * p->part[i].channels + p->part[i].first),
        p->part[i].channels};
  p->loops->interleave(group, p->groups, p->n, n, (uint32_t *)j->l->out[0].data + pixel * p->groups * p->n);
}

static tn_status onednn_shuffle_launch(tn_launch *l) {
  const shuffle_kernel *p = l->prepared;
  shuffle_job j = {p, l};
  if (p->loops != NULL)
    tn_parallel(l, divide_up(p->images * p->pixels, p->per_chunk), shuffle_pixels_chunk, &j);
  else
    tn_parallel(l, divide_up(p->images * p->groups * p->n, p->per_chunk), shuffle_planes_chunk, &j);
  return TN_OK;
}

/* ---- the match ------------------------------------------------------------------------------------ */

/* channel_shuffle(x) */
static bool shuffle_read_one(const tn_match *m, shuffle_kernel *p) {
  for (int32_t i = 0; i < p->groups; i++) p->part[i] = (shuffle_part){0, i * p->n, m->in[0]->dims[1]};
  return true;
}

/* Whether a concat joins the groups along the channels. */
static bool shuffle_joins_groups(const tn_node *concat, const shuffle_kernel *p) {
  int64_t axis = ((const tn_axis_attributes *)concat->attributes)->axis;
  if (concat->n_in != p->groups || (axis < 0 ? axis + concat->out[0].rank : axis) != 1) return false;
  for (int32_t i = 0; i < concat->n_in; i++)
    if (concat->in[i]->dims[1] != p->n) return false;
  return true;
}

/* channel_shuffle(concat(xs*)) */
static bool shuffle_read_joined(const tn_match *m, shuffle_kernel *p) {
  if (!shuffle_joins_groups(m->nodes[0].node, p)) return false;
  for (int32_t i = 0; i < p->groups; i++) p->part[i] = (shuffle_part){i, 0, p->n};
  return true;
}

/* channel_shuffle(concat(slice(x), b)): the slice takes channels that follow each other. */
static bool shuffle_read_sliced(const tn_match *m, shuffle_kernel *p) {
  const tn_node *slice = m->nodes[0].node;
  const tn_slice_attributes *a = slice->attributes;
  if (!shuffle_joins_groups(m->nodes[1].node, p)) return false;
  for (int32_t i = 0; i < slice->out[0].rank; i++)
    if ((i != 1 && slice->out[0].dims[i] != slice->in[0]->dims[i]) || (a->steps.n > 0 && a->steps.v[i] != 1))
      return false;
  p->part[0] = (shuffle_part){0, a->starts.v[1], slice->in[0]->dims[1]};
  p->part[1] = (shuffle_part){1, 0, p->n};
  return true;
}

/* False where the kernel does not support the match in this way, TN_IMAGE_.... */
static bool shuffle_make(const tn_match *m, const void *backend, int32_t way, shuffle_kernel *p) {
  static bool (*const read[])(const tn_match *, shuffle_kernel *) = {shuffle_read_one, shuffle_read_joined,
                                                                     shuffle_read_sliced};
  const tn_shuffle_attributes *a = m->nodes[m->n_nodes - 1].node->attributes;
  const tn_type *y = m->out[0];
  *p = (shuffle_kernel){
      .images = y->dims[0], .pixels = 1, .groups = a->groups, .size = (int64_t)tn_dtype_size(y->dtype)};
  for (int32_t i = 2; i < y->rank; i++) p->pixels *= y->dims[i];
  if (p->groups > GROUPS || tn_type_count(y) == 0) return false;
  p->n = y->dims[1] / p->groups;
  bool last = way == TN_IMAGE_LAST;
  if (last && (y->rank != 4 || p->size != 4)) return false;
  if (last) p->loops = TN_LOOPS_PICK_AT(tn_loops_shuffle, tn_onednn_isa_of(backend));
  p->per_chunk = at_least_1(CHUNK / (last ? y->dims[1] : p->pixels));
  return read[m->n_nodes - 1](m, p);
}

/* ---- query and prepare ---------------------------------------------------------------------------- */

static tn_status onednn_shuffle_query(tn_query *q) {
  static const int32_t ways[] = {TN_IMAGE_PLAIN, TN_IMAGE_LAST};
  shuffle_kernel p;
  bool any = false;
  for (int32_t i = 0; i < 2; i++) {
    if (!shuffle_make(q->match, q->backend, ways[i], &p)) continue;
    tn_operand_layout rules[GROUPS],
        rule = {ways[i] == TN_IMAGE_PLAIN ? TN_LAYOUT_ROW_MAJOR : TN_LAYOUT_FIXED, 0,
                tn_image_layout(ways[i], q->match->out[0]->rank, 1)};
    for (int32_t k = 0; k < GROUPS; k++) rules[k] = rule;
    tn_offer(
        q, (tn_variant){.id = ways[i],
                        .name = tn_image_way_name(ways[i]),
                        .in = rules,
                        .out = rules,
                        .prepared_bytes = sizeof(shuffle_kernel),
                        .cost_s = tn_cost_of_bytes(q->device, 2 * (double)tn_type_bytes(q->match->out[0]))});
    any = true;
  }
  return any ? TN_OK : tn_fail(q, TN_EUNSUPPORTED, NULL, "the operands are not the groups of the channels");
}

static tn_status onednn_shuffle_prepare(tn_prepare *p, void **made) {
  shuffle_kernel *kernel = tn_new(p, sizeof *kernel);
  if (kernel == NULL) return TN_ENOMEM;
  shuffle_make(p->match, p->backend, p->variant, kernel);
  *made = kernel;
  return TN_OK;
}

TN_DEFINE_KERNEL(onednn, channel_shuffle, "onednn_channel_shuffle", "y = channel_shuffle(x)",
                 "channels of groups interleaved",
                 TN_KERNEL_CALLBACKS_WITH(onednn_shuffle, tn_delete_prepared));
TN_DEFINE_KERNEL(onednn, concat_shuffle, "onednn_concat_shuffle", "c = concat(xs*); y = channel_shuffle(c)",
                 "tensors joined as groups of channels, which are interleaved",
                 TN_KERNEL_CALLBACKS_WITH(onednn_shuffle, tn_delete_prepared));
TN_DEFINE_KERNEL(onednn, slice_concat_shuffle, "onednn_slice_concat_shuffle",
                 "a = slice(x); c = concat(a, b); y = channel_shuffle(c)",
                 "a slice and a tensor as groups of channels, which are interleaved",
                 TN_KERNEL_CALLBACKS_WITH(onednn_shuffle, tn_delete_prepared));
