/* backends/onednn/library/primitive_list.h: the kernels of oneDNN. A kernel is a list of a few primitives,
 * such as a reorder of the weights and a convolution, whose arguments are operands, results and parts of the
 * workspace. Query builds the list for its workspace, prepare builds the same list and compiles it. */
#pragma once

#include <stdbool.h>

#include "backends/onednn/library/api.h"
#include "backends/onednn/onednn.h"

typedef struct tn_library {
  dnnl_engine_t engine;
  dnnl_stream_t stream;
  char version[40];   /* of the library that is loaded: "2.6.3" */
  const char *path;   /* its file; NULL: the dynamic linker does not know it */
  tn_onednn *backend; /* to which it belongs */
} tn_library;

tn_status tn_library_open(tn_env *env, tn_library **library);
void tn_library_close(tn_library *library, tn_env *env);
/* The library of a backend, or NULL where the backend is not open. */
static inline const tn_library *tn_library_of(const void *backend) {
  return backend != NULL ? ((const tn_onednn *)backend)->library : NULL;
}

/* TN_OK, or a failure that names the call: TN_EUNSUPPORTED where the library lacks an implementation,
 * TN_ENOMEM, or TN_EINTERNAL. */
tn_status tn_dnnl_check(tn_env *env, dnnl_status_t status, const char *call);
/* Returns a failure from the calling function. */
#define TN_DNNL_TRY(env, call)                                                                               \
  do {                                                                                                       \
    tn_status dnnl_status_ = tn_dnnl_check(env, call, #call);                                                \
    if (dnnl_status_ != TN_OK) return dnnl_status_;                                                          \
  } while (0)

/* ---- lists of primitives ------------------------------------------------------------------------- */

enum { TN_PRIMITIVE_STEPS = 8, TN_PRIMITIVE_ARGS = 12, TN_PRIMITIVE_DESCS = 16 };
/* The location of an argument during a launch. */
enum { TN_ARG_IN = 0, TN_ARG_OUT = 1, TN_ARG_WORKSPACE = 2, TN_ARG_FOLDED = 3 /* the folded memory */ };
typedef struct tn_primitive_arg {
  int32_t arg, location; /* DNNL_ARG_...; TN_ARG_... */
  int64_t at;            /* number of the operand or result, or an offset in bytes */
  tn_dnnl_desc desc;
} tn_primitive_arg;

typedef struct tn_primitive_step {
  dnnl_primitive_desc_t primitive; /* owned */
  bool is_reorder;
  int32_t n_args;
  tn_primitive_arg args[TN_PRIMITIVE_ARGS];
} tn_primitive_step;

typedef struct tn_primitive_list {
  tn_env *env;
  const tn_library *library;
  int32_t threads, n_steps, n_descs;
  int32_t threads_before; /* of the calling thread; 0: they were not set */
  tn_primitive_step steps[TN_PRIMITIVE_STEPS];
  dnnl_memory_desc_t descs[TN_PRIMITIVE_DESCS]; /* of its arguments */
  int64_t workspace_bytes;                      /* of arguments, rounded up to 64 */
  int64_t scratch_bytes;                        /* the most of any step, behind the arguments */
} tn_primitive_list;

/* A list lives on the stack and is not copied. Every list that is started is finished, on failure too, and of
 * two the later one first; that invalidates its descriptions. Primitives are chosen for `threads` threads.
 * TN_EUNSUPPORTED where the library is not open. */
tn_status tn_primitive_list_start(tn_primitive_list *list, tn_env *env, const void *backend, int32_t threads);
void tn_primitive_list_finish(tn_primitive_list *list);
/* Adds a step and takes ownership of its primitive, on failure too. TN_EUNSUPPORTED where the library has
 * only its reference implementation, which is slower than that of the backend cpu. */
tn_status tn_primitive_list_add(tn_primitive_list *list, dnnl_primitive_desc_t primitive,
                                tn_primitive_step **step);
void tn_primitive_step_put(tn_primitive_step *step, int32_t arg, int32_t location, int64_t at,
                           tn_dnnl_desc desc);
/* The offset of new bytes in the workspace for an argument. */
int64_t tn_primitive_list_allocate(tn_primitive_list *list, tn_dnnl_desc desc);
/* Adds a reorder; a launch skips it where both arguments have the same address. */
tn_status tn_primitive_list_add_reorder(tn_primitive_list *list, const tn_primitive_arg *from,
                                        const tn_primitive_arg *to);
int64_t tn_primitive_list_workspace(const tn_primitive_list *list);

/* Attributes with the scratch in the workspace; the caller destroys them. */
tn_status tn_dnnl_attributes(tn_env *env, dnnl_primitive_attr_t *attributes);

/* ---- descriptions of memory ---------------------------------------------------------------------- */

/* A tensor in a layout. TN_EUNSUPPORTED for dtypes and layouts that the library lacks. */
tn_status tn_dnnl_memory(tn_primitive_list *list, const tn_type *type, const tn_layout *layout,
                         tn_dnnl_desc *desc);
/* A tensor whose layout the primitive chooses. */
tn_status tn_dnnl_memory_any(tn_primitive_list *list, const tn_type *type, tn_dnnl_desc *desc);
/* The layout that a primitive chose. TN_EUNSUPPORTED where Tenon has no such layout. */
tn_status tn_dnnl_layout(tn_primitive_list *list, const tn_type *type, tn_dnnl_desc desc, tn_layout *layout);

/* ---- compiled lists ------------------------------------------------------------------------------ */

/* The prepared kernel: prepare ends with tn_primitive_list_compile; these are its release and launch. */
tn_status tn_primitive_list_compile(const tn_primitive_list *list, void **made);
void tn_primitive_list_release(tn_env *env, void *made);
tn_status tn_primitive_list_launch(tn_launch *l);
/* The launch of one list, for kernels that hold several. */
tn_status tn_primitive_list_execute(const void *prepared, tn_launch *l);
/* The memory of a compiled list, at most, without the library's own. */
enum { TN_PRIMITIVE_LIST_BYTES = 32768 };
