/* An op `rival`, y = x, forward and backward. The kernel has two variants, which both copy: those that
 * RIVALS_SLOW names take 3 ms longer, and each launch appends the name of its variant to the file RIVALS_LOG.
 */
#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <tenon/ops.h>
#include <tenon/plugin/kernel.h>

static tn_status decompose(tn_build *b, const void *attributes) {
  (void)attributes;
  tn_build_yield(b, 0, tn_affine(b, tn_build_in(b, 0), 1, 0));
  return TN_OK;
}

static tn_status grad(tn_build *b, const void *attributes) {
  (void)attributes;
  tn_op_begin(b, "rival");
  tn_op_arg(b, tn_build_out_grad(b, 0));
  tn_build_yield(b, 0, tn_op_end(b));
  return TN_OK;
}

static const tn_op rival = {.item = TN_ITEM_PLAIN(tn_op, TN_OP, "rival", "y = x"),
                            .schema = "(x:T) -> (y:T); T in f32 f64",
                            .op_class = TN_CLASS_POINTWISE,
                            .decompose = decompose,
                            .grad = grad};

/* ---- the kernel ---- */

/* Variant 1 is "a", 2 is "b"; by estimate, "a" is the better one. */
static tn_status query(tn_query *q) {
  if (q->match->in[0]->dtype != TN_F32) return tn_fail(q, TN_EUNSUPPORTED, NULL, "f32 only");
  for (int32_t id = 1; id <= 2; id++) {
    tn_variant v = {.struct_size = sizeof v,
                    .id = id,
                    .name = id == 1 ? "a" : "b",
                    .cost_s = id * 1e-9,
                    .deterministic = 1,
                    .capturable = 1};
    tn_add_variant(q, &v);
  }
  return TN_OK;
}

static tn_status prepare(tn_prepare *p, void **prepared) {
  char *name = tn_new(p, 2);
  if (name == NULL) return TN_ENOMEM;
  name[0] = p->variant == 1 ? 'a' : 'b';
  *prepared = name;
  return TN_OK;
}

static void release(tn_env *env, void *prepared) { tn_delete(env, prepared); }

static tn_status launch(tn_launch *l) {
  const char *name = l->prepared, *slow = getenv("RIVALS_SLOW"), *log = getenv("RIVALS_LOG");
  int file = log != NULL ? open(log, O_WRONLY | O_CREAT | O_APPEND, 0600) : -1;
  bool noted = log == NULL || (file >= 0 && write(file, name, 1) == 1);
  if (file >= 0) close(file);
  if (!noted) return tn_fail(l, TN_EIO, NULL, "%s cannot be written", log);
  if (slow != NULL && strchr(slow, *name) != NULL) usleep(3000);
  memcpy(l->out[0].data, l->in[0].data, (size_t)tn_type_count(&l->in[0].type) * sizeof(float));
  return TN_OK;
}

static const tn_kernel rival_cpu = {.item = TN_ITEM_PLAIN(tn_kernel, TN_KERNEL, "rival_cpu", "y = x"),
                                    .family = "cpu",
                                    .pattern = "y = rival(x)",
                                    .query = query,
                                    .prepare = prepare,
                                    .release = release,
                                    .launch = launch};

TN_PLUGIN(rivals, "1", "MIT", &rival.item, &rival_cpu.item)
