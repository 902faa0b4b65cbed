/* backends/onednn/backend.c: the extension `onednn` of the family `cpu`. */
#include "backends/onednn/onednn.h"

#ifdef TN_HAVE_DNNL
#include "backends/onednn/library/primitive_list.h"
#endif

static void onednn_close(tn_env *env, void *backend) {
  tn_onednn *b = backend;
  if (b == NULL) return;
  tn_onednn_unbind_threads(b);
  tn_delete(env, b->environments);
#ifdef TN_HAVE_DNNL
  tn_library_close(b->library, env);
#endif
  tn_delete(env, b);
}

static tn_status onednn_open(tn_env *env, const void *options, void **backend) {
  const tn_onednn_options *o = options;
  *backend = NULL;
  if (tn_onednn_check_pin(env, &o->pin) != TN_OK) return TN_EINVAL;
  tn_onednn *b = tn_new(env, sizeof *b);
  if (b == NULL) return TN_ENOMEM;
  b->options = *o;
#ifdef TN_HAVE_DNNL
  tn_status status = tn_library_open(env, &b->library);
  if (status != TN_OK) {
    onednn_close(env, b);
    return status;
  }
  b->library->backend = b;
#endif
  *backend = b;
  return TN_OK;
}

static int32_t onednn_library(tn_env *env, void *backend, int32_t index, tn_backend_library *library) {
  (void)env;
#ifdef TN_HAVE_DNNL
  if (index > 0) return 0;
  library->name = "oneDNN";
  library->version = ((const tn_onednn *)backend)->library->version;
  library->path = ((const tn_onednn *)backend)->library->path;
  return 1;
#else
  (void)backend, (void)index, (void)library;
  return 0;
#endif
}

static const tn_option options[] = {
    TN_OPT(tn_onednn_options, pin, TN_OPT_INTS, "[]", ">= 0",
           "the processors of the threads, in their order"),
    TN_OPT(tn_onednn_options, winograd, TN_OPT_ENUM, "auto", "auto|off",
           "convolutions by Winograd's algorithm where it is faster, at a slightly larger error"),
    TN_OPT(tn_onednn_options, isa, TN_OPT_ENUM, "auto", "auto|plain|avx2|avx512",
           "highest instruction set of Tenon's own kernels; auto: the best of the processor"),
    TN_OPT(
        tn_onednn_options, code, TN_OPT_ENUM, "auto", "auto|off",
        "machine code for pointwise regions, where the processor has AVX2 or AVX-512 and the system grants "
        "memory for it; off: instructions that are interpreted, with the same results"),
    TN_OPT(
        tn_onednn_options, pack_weights, TN_OPT_ENUM, "auto", "auto|off",
        "a second copy of the f32 weights of linear layers in inference, in the order in which products read "
        "them: where a product has 17 to 512 rows, and the weight takes at most a 1024th of the memory"),
    TN_OPT_END};

const tn_backend tn_onednn_backend = {
    .item = TN_ITEM(tn_backend, TN_BACKEND, "onednn", "the fast CPU: oneDNN and vectorized kernels",
                    tn_onednn_options, options),
    .extends = "cpu",
    .open = onednn_open,
    .close = onednn_close,
    .library = onednn_library,
    .preference = 20,
};
