/* core/data/balance.c: lists the samples of each class, and draws from the lists in turn. */
#include "core/data/balance.h"

#include "core/data/shuffle.h"

/* The number of classes: that of the first target that has classes. */
static int64_t balance_count_classes(const tn_description *d) {
  for (int32_t i = 0; i < d->n_fields; i++) {
    const tn_field *field = tn_description_field(d, i);
    if (field->role == TN_FIELD_TARGET && field->classes > 0) return field->classes;
  }
  return 0;
}

static tn_status balance_check_source(tn_env *env, const tn_source *source, const tn_description *d) {
  if (d->count < 0)
    return tn_failf(
        env, TN_EINVAL,
        "balance = yes: it is endless, so it has no list of samples to draw from; leave balance out");
  if (source->class_of == NULL || balance_count_classes(d) == 0)
    return tn_failf(env, TN_EINVAL,
                    "balance = yes: it does not tell the classes of its samples (class_of in "
                    "tenon/plugin/source.h); leave balance out");
  return TN_OK;
}

static tn_status balance_read_classes(tn_env *env, const tn_source *source, void *self,
                                      const tn_description *d, int32_t *class_of) {
  int64_t classes = balance_count_classes(d);
  for (int64_t i = 0; i < d->count; i++) {
    int64_t found = -1;
    TN_TRY(source->class_of(env, self, i, &found));
    if (found < 0 || found >= classes)
      return tn_failf(env, TN_EABI, "class_of gives sample %lld class %lld, expected 0 to %lld", (long long)i,
                      (long long)found, (long long)classes - 1);
    class_of[i] = (int32_t)found;
  }
  return TN_OK;
}

/* Counts the samples of each class, and leaves out the classes without samples. `place` then has the number
 * of each class among the others, and `first` is complete. */
static void balance_count(tn_balance *b, const int32_t *class_of, int64_t count, int64_t *place,
                          int64_t classes) {
  int64_t sum = 0;
  for (int64_t i = 0; i < count; i++) place[class_of[i]]++;
  for (int64_t c = 0; c < classes; c++) {
    int64_t samples = place[c];
    place[c] = b->classes;
    b->first[b->classes] = sum;
    sum += samples;
    b->classes += samples > 0;
  }
  b->first[b->classes] = sum;
}

/* Lists the samples class by class, in the order of their numbers. */
static void balance_list(tn_balance *b, const int32_t *class_of, int64_t count, const int64_t *place,
                         int64_t *filled) {
  for (int64_t i = 0; i < count; i++) {
    int64_t c = place[class_of[i]];
    b->samples[b->first[c] + filled[c]++] = i;
  }
}

static tn_status balance_fill(tn_env *env, const tn_source *source, void *self, const tn_description *d,
                              tn_balance *b) {
  size_t n = (size_t)d->count, classes = (size_t)balance_count_classes(d);
  int32_t *class_of = tn_alloc(env, tn_size_mul(n, sizeof *class_of));
  int64_t *place = tn_alloc(env, tn_size_mul(classes, sizeof *place)),
          *filled = tn_alloc(env, tn_size_mul(classes, sizeof *filled));
  b->first = tn_alloc(env, tn_size_mul(classes + 1, sizeof *b->first));
  b->samples = tn_alloc(env, tn_size_mul(n, sizeof *b->samples));
  tn_status status = class_of && place && filled && b->first && b->samples ? TN_OK : TN_ENOMEM;
  if (status == TN_OK) status = balance_read_classes(env, source, self, d, class_of);
  if (status == TN_OK) {
    balance_count(b, class_of, d->count, place, (int64_t)classes);
    balance_list(b, class_of, d->count, place, filled);
  }
  tn_release(env, class_of);
  tn_release(env, place);
  tn_release(env, filled);
  return status;
}

tn_status tn_balance_make(tn_env *env, const tn_source *source, void *self, const tn_description *description,
                          tn_balance *balance) {
  *balance = (tn_balance){0};
  TN_TRY(balance_check_source(env, source, description));
  return balance_fill(env, source, self, description, balance);
}

void tn_balance_free(const tn_env *env, tn_balance *balance) {
  tn_release(env, balance->first);
  tn_release(env, balance->samples);
}

tn_balanced tn_balance_draw(const tn_balance *b, uint64_t key, int64_t g) {
  int64_t c = g % b->classes, number = g / b->classes, size = b->first[c + 1] - b->first[c];
  uint64_t round = (uint64_t)(number / size);
  uint64_t order = tn_hash_mix(tn_hash_mix(key, (uint64_t)c), round);
  return (tn_balanced){b->samples[b->first[c] + tn_permute(order, size, number % size)], round};
}

void tn_balance_extremes(const tn_balance *b, int64_t *least, int64_t *most) {
  *least = *most = b->first[1];
  for (int64_t c = 1; c < b->classes; c++) {
    int64_t size = b->first[c + 1] - b->first[c];
    if (size < *least) *least = size;
    if (size > *most) *most = size;
  }
}
