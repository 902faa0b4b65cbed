/* core/base/vec.h: growable arrays. TN_VEC(int) xs = {0}; then tn_vec_push and tn_vec_free. */
#pragma once

#include "core/base/env.h"

#define TN_VEC(T)                                                                                            \
  struct {                                                                                                   \
    T *v;                                                                                                    \
    size_t n, cap;                                                                                           \
  }

tn_status tn_vec_reserve_(const void *handle, void **v, size_t *cap, size_t want, size_t item);

/* Ensures a capacity of at least `want` items. */
#define tn_vec_reserve(handle, vec, want)                                                                    \
  tn_vec_reserve_((handle), (void **)&(vec)->v, &(vec)->cap, (want), sizeof(*(vec)->v))

/* Appends a copy of item; TN_OK or TN_ENOMEM. */
#define tn_vec_push(handle, vec, item)                                                                       \
  (tn_vec_reserve((handle), (vec), (vec)->n + 1) == TN_OK ? ((vec)->v[(vec)->n++] = (item), TN_OK)           \
                                                          : TN_ENOMEM)

#define tn_vec_free(handle, vec)                                                                             \
  (tn_release((handle), (vec)->v), (vec)->v = NULL, (vec)->n = 0, (vec)->cap = 0)
