/* backends/onednn/library/conv_training.c: the kernels of conv2d, conv3d and their gradients. */
#include "backends/onednn/library/conv.h"
#include "backends/shared/define_kernel.h"

/* The library sums the gradient of the weights by threads, so its bits depend on the number of threads. */
static void conv_training_offer(tn_query *q, const tn_dnnl_conv *c, int32_t how,
                                const tn_dnnl_conv_layouts *l, int64_t workspace) {
  tn_operand_layout x = {TN_LAYOUT_FIXED, 0, l->x}, y = {TN_LAYOUT_FIXED, 0, l->y}, plain = {0};
  tn_operand_layout w = {c->attributes->groups == 1 ? TN_LAYOUT_PREFERRED : TN_LAYOUT_ROW_MAJOR, 0, l->w};
  tn_operand_layout forward[3] = {x, w, plain}, input[2] = {y, w}, weight[2] = {x, y};
  const tn_operand_layout *in[] = {forward, input, weight}, *out[] = {&y, &x, &w};
  tn_variant v = {.struct_size = sizeof v,
                  .id = how,
                  .name = tn_dnnl_conv_name(how),
                  .in = in[c->direction],
                  .out = out[c->direction],
                  .workspace_bytes = workspace,
                  .prepared_bytes = TN_PRIMITIVE_LIST_BYTES,
                  .cost_s = tn_dnnl_conv_cost_s(c, how, q->device),
                  .deterministic = c->direction != TN_CONV_GRAD_WEIGHT,
                  .capturable = 1};
  tn_add_variant(q, &v);
}

static tn_status conv_training_add(tn_query *q, const tn_dnnl_conv *c, int32_t how) {
  tn_primitive_list list;
  tn_dnnl_conv_layouts layouts;
  tn_status status = tn_primitive_list_start(&list, &q->env, q->backend, q->device->threads);
  if (status == TN_OK) status = tn_dnnl_conv_list(&list, c, how, &layouts, NULL);
  if (status == TN_OK) conv_training_offer(q, c, how, &layouts, tn_primitive_list_workspace(&list));
  tn_primitive_list_finish(&list);
  return status;
}

static tn_status conv_training_query(tn_query *q) {
  tn_dnnl_conv c = tn_dnnl_conv_of(q->match);
  return tn_dnnl_conv_variants(q, &c, 0, conv_training_add);
}

static tn_status conv_training_prepare(tn_prepare *p, void **made) {
  tn_dnnl_conv c = tn_dnnl_conv_of(p->match);
  tn_dnnl_conv_layouts layouts;
  tn_primitive_list list;
  c.w_layout = c.direction == TN_CONV_GRAD_WEIGHT ? p->out_layout[0] : p->in_layout[1];
  tn_status status = tn_primitive_list_start(&list, &p->env, p->backend, p->device->threads);
  if (status == TN_OK) status = tn_dnnl_conv_list(&list, &c, p->variant, &layouts, NULL);
  if (status == TN_OK) status = tn_primitive_list_compile(&list, made);
  tn_primitive_list_finish(&list);
  return status;
}

#define CONV_TRAINING(name, pattern, help)                                                                   \
  TN_DEFINE_KERNEL(onednn, name, "onednn_" #name, pattern, help, .query = conv_training_query,               \
                   .prepare = conv_training_prepare, .release = tn_primitive_list_release,                   \
                   .launch = tn_primitive_list_launch)

CONV_TRAINING(conv2d, "y = conv2d(x, w, bias?)", "convolutions by oneDNN");
CONV_TRAINING(conv2d_grad_input, "dx = conv2d_grad_input(dy, w)",
              "the gradient of a convolution's input by oneDNN");
CONV_TRAINING(conv2d_grad_weight, "dw = conv2d_grad_weight(x, dy)",
              "the gradient of a convolution's weights by oneDNN");
CONV_TRAINING(conv3d, "y = conv3d(x, w, bias?)", "convolutions of volumes by oneDNN");
CONV_TRAINING(conv3d_grad_input, "dx = conv3d_grad_input(dy, w)",
              "the gradient of the input of a convolution of volumes by oneDNN");
CONV_TRAINING(conv3d_grad_weight, "dw = conv3d_grad_weight(x, dy)",
              "the gradient of the weights of a convolution of volumes by oneDNN");
