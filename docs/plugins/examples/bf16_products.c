/* A precision policy: products of matrices and convolutions take bf16, everything else f32.
 * `[precision] policy = bf16_products`. */
#include <tenon/plugin/precision.h>

static int32_t decide(const void *options, const tn_precision_site *site) {
  (void)options;
  if (site->op_class == TN_CLASS_MATMUL && site->dtype == TN_F32) return TN_BF16;
  return site->dtype;
}

static const tn_precision bf16_products = {.item = TN_ITEM_PLAIN(tn_precision, TN_PRECISION, "bf16_products",
                                                                 "bf16 for matmul and conv2d, f32 elsewhere"),
                                           .decide = decide};

TN_PLUGIN(bf16_products, "1.0", "MIT", &bf16_products.item)
