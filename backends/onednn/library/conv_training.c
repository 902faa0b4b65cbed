/* backends/onednn/library/conv_training.c: the kernels of conv2d and its gradients, each alone. */
#include <string.h>

#include "backends/onednn/library/conv.h"
#include "backends/onednn/kernels/kernels.h"

static tn_dnn_conv conv_of(const tn_match *m) {
  const tn_node *n = m->nodes[0].node;
  if (strcmp(n->op, "conv2d_grad_input") == 0)
    return (tn_dnn_conv){TN_DNN_CONV_GRAD_INPUT, n->attributes, .x = m->out[0], .w = m->in[1], .y = m->in[0]};
  if (strcmp(n->op, "conv2d_grad_weight") == 0)
    return (tn_dnn_conv){TN_DNN_CONV_GRAD_WEIGHT, n->attributes, .x = m->in[0], .w = m->out[0],
                         .y = m->in[1]};
  return (tn_dnn_conv){TN_DNN_CONV_FORWARD, n->attributes,  .x = m->in[0],
                       .w = m->in[1],       .y = m->out[0], .bias = m->in[2]};
}

static const char *name_of(int32_t how) {
  static const char *const names[] = {"direct", "winograd", "direct in f32", "winograd in f32"};
  return names[how & (TN_DNN_WINOGRAD | TN_DNN_IN_F32)];
}

/* The library sums the gradient of the weights by threads, so its bits depend on how many there are. */
static void offer(tn_query *q, const tn_dnn_conv *c, int32_t how, const tn_dnn_conv_layouts *l,
                  int64_t workspace) {
  tn_operand_layout x = {TN_LAYOUT_FIXED, 0, l->x}, y = {TN_LAYOUT_FIXED, 0, l->y}, plain = {0};
  tn_operand_layout w = {c->attributes->groups == 1 ? TN_LAYOUT_PREFERRED : TN_LAYOUT_ROW_MAJOR, 0, l->w};
  tn_operand_layout forward[3] = {x, w, plain}, input[2] = {y, w}, weight[2] = {x, y};
  const tn_operand_layout *in[] = {forward, input, weight}, *out[] = {&y, &x, &w};
  tn_variant v = {.struct_size = sizeof v,
                  .id = how,
                  .name = name_of(how),
                  .in = in[c->what],
                  .out = out[c->what],
                  .workspace_bytes = workspace,
                  .prepared_bytes = TN_DNN_KEEP_BYTES,
                  .cost_s = tn_dnn_conv_estimate_s(c, how, q->device->threads),
                  .deterministic = c->what != TN_DNN_CONV_GRAD_WEIGHT,
                  .capturable = 1};
  tn_add_variant(q, &v);
}

static tn_status query_one(tn_query *q, const tn_dnn_conv *c, int32_t how) {
  tn_dnn_recipe recipe;
  tn_dnn_conv_layouts layouts;
  tn_status status = tn_dnn_start(&recipe, &q->env, q->backend, q->device->threads);
  if (status == TN_OK) status = tn_dnn_conv_recipe(&recipe, c, how, &layouts, NULL);
  if (status == TN_OK) offer(q, c, how, &layouts, tn_dnn_workspace(&recipe));
  tn_dnn_finish(&recipe);
  return status;
}

static tn_status query(tn_query *q) {
  tn_dnn_conv c = conv_of(q->match);
  return tn_dnn_conv_ways(q, &c, 0, query_one);
}

static tn_status prepare(tn_prepare *p, void **plan) {
  tn_dnn_conv c = conv_of(p->match);
  tn_dnn_conv_layouts layouts;
  tn_dnn_recipe recipe;
  c.w_lies = c.what == TN_DNN_CONV_GRAD_WEIGHT ? p->out_layout[0] : p->in_layout[1];
  tn_status status = tn_dnn_start(&recipe, &p->env, p->backend, p->device->threads);
  if (status == TN_OK) status = tn_dnn_conv_recipe(&recipe, &c, p->variant, &layouts, NULL);
  if (status == TN_OK) status = tn_dnn_cook(&recipe, plan);
  tn_dnn_finish(&recipe);
  return status;
}

#define CONV(name, text, what)                                                                               \
  const tn_kernel tn_onednn_##name = {.item = TN_ITEM_PLAIN(tn_kernel, TN_KERNEL, "onednn_" #name, what),    \
                                      .family = "onednn",                                                    \
                                      .pattern = text,                                                       \
                                      .query = query,                                                        \
                                      .prepare = prepare,                                                    \
                                      .release = tn_dnn_release,                                             \
                                      .launch = tn_dnn_launch}

CONV(conv2d, "y = conv2d(x, w, bias?)", "convolutions by oneDNN");
CONV(conv2d_grad_input, "dx = conv2d_grad_input(dy, w)", "the gradient of a convolution's input by oneDNN");
CONV(conv2d_grad_weight, "dw = conv2d_grad_weight(x, dy)",
     "the gradient of a convolution's weights by oneDNN");
