/* backends/onednn/library/primitive_list.h: what kernels by oneDNN share. A kernel is a recipe: a few
 * primitives one after the other (say, a reorder of the weights and a convolution), whose arguments are
 * operands, results and parts of the workspace. The same function writes the recipe down when the kernel is
 * asked, to know its workspace, and when it is prepared, to be cooked into primitives. */
#ifndef TN_BACKENDS_ONEDNN_LIBRARY_PRIMITIVE_LIST_H
#define TN_BACKENDS_ONEDNN_LIBRARY_PRIMITIVE_LIST_H

#include <stdbool.h>

#include "backends/onednn/library/api.h"
#include "backends/onednn/onednn.h"

typedef struct tn_dnn {
  dnnl_engine_t engine;
  dnnl_stream_t stream;
  char version[40];    /* of the library that is loaded: "oneDNN 2.6.3" */
  const void *backend; /* whose team primitives run on; NULL: nobody's in particular */
} tn_dnn;

tn_status tn_dnn_open(tn_env *env, tn_dnn **dnn);
void tn_dnn_close(tn_dnn *dnn, tn_env *env);
/* The library behind a backend's object; NULL where it is not open. */
static inline const tn_dnn *tn_dnn_of(const void *backend) {
  return backend != NULL ? ((const tn_onednn *)backend)->dnn : NULL;
}

/* TN_OK, or a failure that names the call: TN_EUNSUPPORTED for what the library has not, TN_ENOMEM, or
 * TN_EINTERNAL. */
tn_status tn_dnn_check(tn_env *env, dnnl_status_t status, const char *call);
/* Fails out of the calling function. */
#define TN_DNN_TRY(env, call)                                                                                \
  do {                                                                                                       \
    tn_status dnn_status_ = tn_dnn_check(env, call, #call);                                                  \
    if (dnn_status_ != TN_OK) return dnn_status_;                                                            \
  } while (0)

/* ---- recipes ------------------------------------------------------------------------------------- */

enum { TN_DNN_STEPS = 8, TN_DNN_ARGS = 12, TN_DNN_DESCS = 16 };
/* Where an argument lies during a launch. */
enum { TN_DNN_IN = 0, TN_DNN_OUT = 1, TN_DNN_WORKSPACE = 2, TN_DNN_KEPT = 3 /* the folded memory */ };
typedef struct tn_dnn_arg {
  int32_t arg, where; /* DNNL_ARG_...; TN_DNN_... */
  int64_t at;         /* number of the operand or result, or an offset in bytes */
  tn_dnn_desc desc;
} tn_dnn_arg;

typedef struct tn_dnn_step {
  dnnl_primitive_desc_t primitive; /* owned */
  bool is_reorder;
  int32_t n_args;
  tn_dnn_arg args[TN_DNN_ARGS];
} tn_dnn_step;

typedef struct tn_dnn_recipe {
  tn_env *env;
  const tn_dnn *dnn;
  int32_t threads, n_steps, n_descs;
  tn_dnn_step steps[TN_DNN_STEPS];
  dnnl_memory_desc_t descs[TN_DNN_DESCS]; /* made for it */
  int64_t workspace_bytes;                /* of what stays between steps, rounded up to 64 */
  int64_t scratch_bytes;                  /* of the step that needs most; scratch lies behind the rest */
} tn_dnn_recipe;

/* A recipe on the stack, which is not copied: start it, add to it, and finish it in any case, after which
 * none of its descriptions is valid. Primitives are planned for so many threads. TN_EUNSUPPORTED where the
 * library is not open. */
tn_status tn_dnn_start(tn_dnn_recipe *recipe, tn_env *env, const void *backend, int32_t threads);
void tn_dnn_finish(tn_dnn_recipe *recipe);
/* Adds a step and takes its primitive, on failure too. TN_EUNSUPPORTED where all that the library has is its
 * reference implementation, which is slower than the cpu's. */
tn_status tn_dnn_add(tn_dnn_recipe *recipe, dnnl_primitive_desc_t primitive, tn_dnn_step **step);
void tn_dnn_put(tn_dnn_step *step, int32_t arg, int32_t where, int64_t at, tn_dnn_desc desc);
/* Room in the workspace that no other step uses: its offset. */
int64_t tn_dnn_room(tn_dnn_recipe *recipe, tn_dnn_desc desc);
/* Adds a reorder, which a launch leaves out where both arguments have one address. */
tn_status tn_dnn_add_reorder(tn_dnn_recipe *recipe, const tn_dnn_arg *from, const tn_dnn_arg *to);
int64_t tn_dnn_workspace(const tn_dnn_recipe *recipe);

/* Attributes with the scratch in the workspace; the caller destroys them. */
tn_status tn_dnn_attributes(tn_env *env, dnnl_primitive_attr_t *attributes);

/* ---- descriptions of memory ---------------------------------------------------------------------- */

/* A dtype of the library; dnnl_data_type_undef for those that it has not. */
dnnl_data_type_t tn_dnn_dtype(int32_t dtype);
/* A tensor as it lies. TN_EUNSUPPORTED for dtypes and layouts that the library has not. */
tn_status tn_dnn_memory(tn_dnn_recipe *recipe, const tn_type *type, const tn_layout *layout,
                        tn_dnn_desc *desc);
/* A tensor whose layout is the primitive's to choose. */
tn_status tn_dnn_memory_any(tn_dnn_recipe *recipe, const tn_type *type, tn_dnn_desc *desc);
/* What a primitive chose, as a layout. TN_EUNSUPPORTED where only the library understands it. */
tn_status tn_dnn_layout_of(tn_dnn_recipe *recipe, const tn_type *type, tn_dnn_desc desc, tn_layout *layout);

/* ---- cooked -------------------------------------------------------------------------------------- */

/* A kernel's plan: prepare ends with tn_dnn_cook, and these are its release and launch. */
tn_status tn_dnn_cook(const tn_dnn_recipe *recipe, void **plan);
void tn_dnn_release(tn_env *env, void *plan);
tn_status tn_dnn_launch(tn_launch *l);
/* The same for a plan that holds more than one. */
tn_status tn_dnn_execute(const void *cooked, tn_launch *l);
/* What cooking takes of the host's memory, at most; the library's own is its business. */
enum { TN_DNN_KEEP_BYTES = 32768 };

#endif
