/* core/exec/device/pin_threads.c: reads [run] pin, checks it against the processors of the process, and binds
 * the launching thread. */
#include "core/exec/device/pin_threads.h"

#include "core/base/system/system.h"

static tn_status pin_fail(const void *handle, const char *format, ...) TN_PRINTF(2, 3);
static tn_status pin_fail(const void *handle, const char *format, ...) {
  va_list args;
  va_start(args, format);
  tn_status status = tn_failv(handle, TN_EINVAL, "pin", format, args);
  va_end(args);
  return status;
}

tn_status tn_pin_read(const void *handle, tn_arena *arena, const char *text, tn_pin *pin) {
  tn_processors list;
  *pin = (tn_pin){tn_text_equal(text, "yes") ? TN_PIN_YES : TN_PIN_NO, {0, NULL}};
  if (pin->how == TN_PIN_YES || tn_text_equal(text, "no")) return TN_OK;
  if (!tn_processors_parse(&list, text))
    return pin_fail(handle, "'%s': expected no, yes, or a list of processors below %d such as 0-3,8", text,
                    TN_MOST_PROCESSORS);
  pin->how = TN_PIN_LIST;
  pin->list = (tn_ints){list.n, tn_arena_copy(arena, list.v, (size_t)list.n * sizeof *list.v)};
  return pin->list.v != NULL ? TN_OK : TN_ENOMEM;
}

/* All processors of the process, ordered so that threads fill different cores first. */
static tn_status pin_all(const void *handle, tn_arena *arena, int64_t *threads, tn_ints *processors) {
  tn_processors all;
  if (!tn_processors_allowed(&all))
    return pin_fail(handle, "the system does not report the processors of this process; list them");
  tn_processors_spread(&all, NULL);
  if (*threads == 0) *threads = tn_cpu_count();
  *processors = (tn_ints){all.n, tn_arena_copy(arena, all.v, (size_t)all.n * sizeof *all.v)};
  return processors->v != NULL ? TN_OK : TN_ENOMEM;
}

tn_status tn_pin_resolve(const void *handle, tn_arena *arena, const tn_pin *pin, int64_t *threads,
                         tn_ints *processors) {
  *processors = (tn_ints){0, NULL};
  if (pin->how == TN_PIN_NO) return TN_OK;
  if (pin->how == TN_PIN_YES) {
    TN_TRY(pin_all(handle, arena, threads, processors));
  } else {
    *processors = pin->list;
    if (*threads == 0) *threads = pin->list.n;
  }
  return tn_pin_check(handle, processors, *threads);
}

/* ---- checks ---- */

static bool pin_contains(const int64_t *v, int64_t n, int64_t processor) {
  for (int64_t i = 0; i < n; i++)
    if (v[i] == processor) return true;
  return false;
}

static tn_status pin_fail_processor(const void *handle, int64_t processor, const tn_processors *allowed) {
  tn_text list = tn_text_new(handle);
  tn_processors_print(&list, allowed);
  pin_fail(handle, "this process may not run on processor %lld, expected some of %s", (long long)processor,
           list.failed || list.v == NULL ? "another list" : list.v);
  tn_text_free(&list);
  return TN_EINVAL;
}

tn_status tn_pin_check(const void *handle, const tn_ints *p, int64_t threads) {
  tn_processors allowed;
  bool known = tn_processors_allowed(&allowed);
  for (int64_t i = 0; i < p->n; i++) {
    if (known && !pin_contains(allowed.v, allowed.n, p->v[i]))
      return pin_fail_processor(handle, p->v[i], &allowed);
    if (pin_contains(p->v, i, p->v[i]))
      return pin_fail(handle, "processor %lld is listed twice, expected a different one for each thread",
                      (long long)p->v[i]);
  }
  if (p->n == 0 || p->n >= threads) return TN_OK;
  return pin_fail(handle,
                  "%lld threads, but %lld processor%s for them; name more, or set [run] threads = %lld",
                  (long long)threads, (long long)p->n, p->n == 1 ? "" : "s", (long long)p->n);
}

/* ---- the launching thread ---- */

/* A failure to bind is ignored: the processor may have been taken from the process meanwhile. */
void tn_pin_enter(tn_pinned *pinned, const tn_device *device) {
  cpu_set_t one;
  pinned->bound = device->pin.n > 0 && sched_getaffinity(0, sizeof pinned->before, &pinned->before) == 0;
  if (!pinned->bound) return;
  CPU_ZERO(&one);
  CPU_SET((size_t)device->pin.v[0], &one);
  pinned->bound = sched_setaffinity(0, sizeof one, &one) == 0;
}

void tn_pin_leave(const tn_pinned *pinned) {
  if (pinned->bound) sched_setaffinity(0, sizeof pinned->before, &pinned->before);
}
