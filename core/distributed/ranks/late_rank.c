/* core/distributed/ranks/late_rank.c: see late_rank.h. */
#include "core/distributed/ranks/late_rank.h"

#include <string.h>

#include "core/exec/flight_recorder.h"
#include "tenon/plugin/communicator.h"

_Static_assert((int)TN_FLIGHT_WAITS == (int)TN_SUMMARY_WAITS && (int)TN_FLIGHT_NAME == (int)TN_SUMMARY_NAME &&
                   (int)TN_FLIGHT_PROGRAM == (int)TN_SUMMARY_PROGRAM,
               "a summary holds what the recorder has");

/* Of the ranks in a list, at most so many ranges are named. */
enum { MOST_RANGES = 8 };

/* ---- texts ---- */

/* The last rank of the range that begins with `first`; ranges of two are two. */
static int32_t late_range_end(int32_t n, bool (*is_in)(const void *, int32_t), const void *list,
                              int32_t first) {
  int32_t last = first;
  while (last + 1 < n && is_in(list, last + 1)) last++;
  return last >= first + 2 ? last : first;
}

/* "rank 3", "ranks 0, 1 and 3 to 6". */
static void late_add_ranks(tn_text *text, const tn_rank_reports *w, bool (*is_in)(const void *, int32_t),
                           const void *list) {
  int32_t ranges[MOST_RANGES][2], n = 0, rest = 0;
  for (int32_t r = 0; r < w->n; r++) {
    if (!is_in(list, r)) continue;
    int32_t last = late_range_end(w->n, is_in, list, r);
    if (n == MOST_RANGES) {
      rest++;
      continue;
    }
    ranges[n][0] = r;
    ranges[n++][1] = r = last;
  }
  tn_text_add(text, n == 1 && ranges[0][0] == ranges[0][1] ? "rank " : "ranks ");
  for (int32_t i = 0; i < n; i++) {
    if (i > 0) tn_text_add(text, i == n - 1 && rest == 0 ? " and " : ", ");
    tn_text_addf(text, "%d", (int)ranges[i][0]);
    if (ranges[i][1] > ranges[i][0]) tn_text_addf(text, " to %d", (int)ranges[i][1]);
  }
  if (rest > 0) tn_text_addf(text, " and %d more", (int)rest);
}

/* "all_reduce of bucket 3, f32, 1048576 elements, step 41" */
static void late_add_call(tn_text *text, const tn_summary_call *call) {
  const char *kind = tn_collective_name(call->kind);
  if (strncmp(call->name, kind, strlen(kind)) != 0) tn_text_addf(text, "%s ", kind);
  tn_text_addf(text, "%s, %s, %lld element%s", call->name, tn_dtype_name(call->dtype), (long long)call->count,
               call->count == 1 ? "" : "s");
  if (call->step > 0) tn_text_addf(text, ", step %lld", (long long)call->step);
}

static const tn_summary_call *late_find_call(const tn_rank_summary *s, uint64_t number) {
  for (int32_t i = 0; i < s->n_calls; i++)
    if (s->calls[i].number == number) return &s->calls[i];
  return NULL;
}

/* "; it has waited for 30 s for the next batch" */
static void late_add_wait(tn_text *text, const tn_rank_summary *s) {
  double seconds = (double)s->waited_ms / 1e3;
  switch (s->wait) {
  case TN_FLIGHT_COLLECTIVE:
    tn_text_addf(text, "; it has waited for %.3g s in collective %llu", seconds,
                 (unsigned long long)(s->ended + 1));
    break;
  case TN_FLIGHT_DEVICE: tn_text_addf(text, "; it has waited for %.3g s for its device", seconds); break;
  case TN_FLIGHT_EXCHANGE:
    tn_text_addf(text, "; it has waited for %.3g s in exchange %llu (%s)", seconds,
                 (unsigned long long)s->exchanges, s->what);
    break;
  case TN_FLIGHT_HOST: tn_text_addf(text, "; it has waited for %.3g s for %s", seconds, s->what); break;
  default: tn_text_add(text, "; its host computes, or launches work");
  }
}

/* ---- waits of one rank for another ---- */

static bool late_awaits_device(const tn_rank_summary *s) {
  return s->wait == TN_FLIGHT_COLLECTIVE || s->wait == TN_FLIGHT_DEVICE;
}

/* Whether rank w waits in the collective that rank r has not begun. */
static bool late_waits_in_collective(const tn_rank_summary *w, const tn_rank_summary *r) {
  return late_awaits_device(w) && w->begun > r->begun && w->ended <= r->begun;
}

static bool late_waits_in_exchange(const tn_rank_summary *w, const tn_rank_summary *r) {
  return w->wait == TN_FLIGHT_EXCHANGE && w->exchanges > r->exchanges;
}

/* The ranks that wait for one. */
typedef struct late_waiters {
  const tn_rank_reports *all;
  int32_t rank;
  bool exchange; /* in an exchange, else in a collective */
} late_waiters;

static bool late_is_waiter(const void *context, int32_t rank) {
  const late_waiters *of = context;
  const tn_rank_summary *w = &of->all->summaries[rank], *r = &of->all->summaries[of->rank];
  if (rank == of->rank || !of->all->known[rank]) return false;
  return of->exchange ? late_waits_in_exchange(w, r) : late_waits_in_collective(w, r);
}

static bool late_is_awaited(const late_waiters *of) {
  for (int32_t w = 0; w < of->all->n; w++)
    if (late_is_waiter(of, w)) return true;
  return false;
}

/* The order in which ranks are named: a rank that waits for no other rank, then the rank that has begun the
 * fewest collectives, or come to the fewest exchanges. */
static bool late_is_before(const tn_rank_summary *a, const tn_rank_summary *b, bool exchange) {
  bool a_waits = late_awaits_device(a) || a->wait == TN_FLIGHT_EXCHANGE,
       b_waits = late_awaits_device(b) || b->wait == TN_FLIGHT_EXCHANGE;
  if (a_waits != b_waits) return b_waits;
  return exchange ? a->exchanges < b->exchanges : a->begun < b->begun;
}

static bool late_choose(const tn_rank_reports *all, bool exchange, late_waiters *found) {
  found->rank = -1;
  for (int32_t r = 0; r < all->n; r++) {
    const late_waiters one = {all, r, exchange};
    if (!all->known[r] || !late_is_awaited(&one)) continue;
    if (found->rank < 0 || late_is_before(&all->summaries[r], &all->summaries[found->rank], exchange))
      *found = one;
  }
  return found->rank >= 0;
}

static double late_longest_wait(const late_waiters *of) {
  int64_t most = 0;
  for (int32_t r = 0; r < of->all->n; r++)
    if (late_is_waiter(of, r) && of->all->summaries[r].waited_ms > most)
      most = of->all->summaries[r].waited_ms;
  return (double)most / 1e3;
}

static const tn_rank_summary *late_first_waiter(const late_waiters *of) {
  int32_t r = 0;
  while (!late_is_waiter(of, r)) r++;
  return &of->all->summaries[r];
}

static const tn_summary_call *late_awaited_call(const late_waiters *of, uint64_t number) {
  for (int32_t r = 0; r < of->all->n; r++) {
    if (!late_is_waiter(of, r)) continue;
    const tn_summary_call *call = late_find_call(&of->all->summaries[r], number);
    if (call != NULL) return call;
  }
  return NULL;
}

static void late_tell(const late_waiters *of, tn_text *text) {
  const tn_rank_summary *s = &of->all->summaries[of->rank];
  of->all->name(of->all->context, of->rank, text);
  if (of->exchange) {
    const tn_rank_summary *waiter = late_first_waiter(of);
    tn_text_addf(text, " has not come to exchange %llu", (unsigned long long)s->exchanges + 1);
    if (waiter->exchanges == s->exchanges + 1) tn_text_addf(text, " (%s)", waiter->what);
  } else {
    const tn_summary_call *call = late_awaited_call(of, s->begun + 1);
    tn_text_addf(text, " has not begun collective %llu", (unsigned long long)s->begun + 1);
    if (call != NULL) {
      tn_text_add(text, " (");
      late_add_call(text, call);
      tn_text_add(text, ")");
    }
  }
  tn_text_add(text, of->exchange ? ", for which " : ", in which ");
  late_add_ranks(text, of->all, late_is_waiter, of);
  tn_text_addf(text, " waited for %.3g s", late_longest_wait(of));
  late_add_wait(text, s);
}

/* ---- devices ---- */

static bool late_is_inside(const void *context, int32_t rank) {
  const tn_rank_reports *all = context;
  return all->known[rank] && all->summaries[rank].device == TN_DEVICE_INSIDE;
}

/* The rank whose device is in no collective while others are; -1: none, or a device's place is unknown. */
static int32_t late_find_outside(const tn_rank_reports *all, int32_t *inside) {
  int32_t found = -1;
  *inside = -1;
  for (int32_t r = 0; r < all->n; r++) {
    const tn_rank_summary *s = &all->summaries[r];
    if (!all->known[r] || s->device == TN_DEVICE_UNKNOWN) return -1;
    if (s->device == TN_DEVICE_INSIDE && *inside < 0) *inside = r;
    if (s->device == TN_DEVICE_OUTSIDE && (found < 0 || late_is_before(s, &all->summaries[found], false)))
      found = r;
  }
  return *inside >= 0 ? found : -1;
}

/* The first number that may be that of the collective which the late rank's device has not come to. A host
 * that does not wait for its device has seen all its work end. */
static uint64_t late_first_number(const tn_rank_reports *all, const tn_rank_summary *late) {
  uint64_t ended = late_awaits_device(late) ? 0 : late->begun;
  for (int32_t r = 0; r < all->n; r++)
    if (all->summaries[r].ended > ended) ended = all->summaries[r].ended;
  return ended + 1;
}

/* The collective that a device is in: by its number, else by its name, unless another one of that name may be
 * meant. */
static const tn_summary_call *late_inside_call(const tn_rank_reports *all, const tn_rank_summary *s,
                                               const tn_rank_summary *late) {
  const tn_summary_call *found = NULL;
  uint64_t first = late_first_number(all, late);
  if (s->inside > 0) return late_find_call(s, s->inside);
  for (int32_t i = 0; i < s->n_calls; i++) {
    const tn_summary_call *call = &s->calls[i];
    if (call->number < first || strcmp(call->name, s->inside_name) != 0) continue;
    if (found != NULL) return NULL;
    found = call;
    if (first > late->begun) break; /* the late rank has begun none of them */
  }
  return found;
}

/* "collective 1207 (all_reduce of bucket 3, f32, 7 elements, step 41)" */
static void late_add_inside(tn_text *text, const tn_rank_reports *all, const tn_rank_summary *s,
                            const tn_rank_summary *late) {
  const tn_summary_call *call = late_inside_call(all, s, late);
  if (call != NULL) {
    tn_text_addf(text, "collective %llu (", (unsigned long long)call->number);
    late_add_call(text, call);
    tn_text_add(text, ")");
  } else if (s->inside > 0) {
    tn_text_addf(text, "collective %llu (%s)", (unsigned long long)s->inside, s->inside_name);
  } else {
    tn_text_addf(text, "the collective '%s'", s->inside_name);
  }
}

static bool late_tell_device(const tn_rank_reports *all, tn_text *text) {
  int32_t inside, rank = late_find_outside(all, &inside);
  if (rank < 0) return false;
  tn_text_add(text, "the device of ");
  all->name(all->context, rank, text);
  tn_text_add(text, " has not come to ");
  late_add_inside(text, all, &all->summaries[inside], &all->summaries[rank]);
  tn_text_add(text, ", in which ");
  late_add_ranks(text, all, late_is_inside, all);
  tn_text_addf(text, " waited");
  late_add_wait(text, &all->summaries[rank]);
  return true;
}

/* ---- calls that differ ---- */

static bool late_calls_differ(const tn_summary_call *a, const tn_summary_call *b) {
  return a->kind != b->kind || a->dtype != b->dtype || a->count != b->count || strcmp(a->name, b->name) != 0;
}

/* A number whose collectives differ on two ranks; the least of those that both have. */
static const tn_summary_call *late_find_difference(const tn_rank_summary *a, const tn_rank_summary *b,
                                                   const tn_summary_call **other) {
  for (int32_t i = 0; i < a->n_calls; i++) {
    *other = late_find_call(b, a->calls[i].number);
    if (*other != NULL && late_calls_differ(&a->calls[i], *other)) return &a->calls[i];
  }
  return NULL;
}

static bool late_tell_difference(const tn_rank_reports *all, int32_t a, int32_t b, tn_text *text) {
  const tn_summary_call *theirs,
      *mine = late_find_difference(&all->summaries[a], &all->summaries[b], &theirs);
  if (mine == NULL) return false;
  tn_text_addf(text, "collective %llu of ", (unsigned long long)mine->number);
  all->name(all->context, a, text);
  tn_text_add(text, " is ");
  late_add_call(text, mine);
  tn_text_add(text, ", that of ");
  all->name(all->context, b, text);
  tn_text_add(text, " is ");
  late_add_call(text, theirs);
  tn_text_add(text, ": all ranks must begin the same collectives in the same order");
  return true;
}

/* Each rank is compared with the first one. */
static bool late_differs(const tn_rank_reports *all, tn_text *text) {
  int32_t first = 0;
  while (first < all->n && !all->known[first]) first++;
  for (int32_t r = first + 1; r < all->n; r++)
    if (all->known[r] && late_tell_difference(all, first, r, text)) return true;
  return false;
}

/* ---- ranks that all wait, or that are not known of ---- */

static bool late_is_unknown(const void *context, int32_t rank) {
  return !((const tn_rank_reports *)context)->known[rank];
}

static bool late_waits_for_device(const void *context, int32_t rank) {
  const tn_rank_reports *all = context;
  return all->known[rank] && late_awaits_device(&all->summaries[rank]);
}

static bool late_waits_for_hosts(const void *context, int32_t rank) {
  const tn_rank_reports *all = context;
  return all->known[rank] && all->summaries[rank].wait == TN_FLIGHT_EXCHANGE;
}

static bool late_has(const tn_rank_reports *all, bool (*is_in)(const void *, int32_t), int32_t *first) {
  for (*first = 0; *first < all->n; ++*first)
    if (is_in(all, *first)) return true;
  return false;
}

/* ", ranks 0 and 1 waited in collective 7 (...)" */
static void late_tell_waits(const tn_rank_reports *all, const char *before, tn_text *text) {
  int32_t first;
  if (late_has(all, late_waits_for_device, &first)) {
    const tn_rank_summary *s = &all->summaries[first];
    const tn_summary_call *call = late_find_call(s, s->ended + 1);
    tn_text_add(text, before);
    late_add_ranks(text, all, late_waits_for_device, all);
    tn_text_addf(text, " waited for %s",
                 s->wait == TN_FLIGHT_DEVICE ? "work of their devices" : "the others");
    if (call == NULL) return;
    tn_text_addf(text, s->wait == TN_FLIGHT_DEVICE ? " from collective %llu on (" : " in collective %llu (",
                 (unsigned long long)call->number);
    late_add_call(text, call);
    tn_text_add(text, ")");
  } else if (late_has(all, late_waits_for_hosts, &first)) {
    const tn_rank_summary *s = &all->summaries[first];
    tn_text_add(text, before);
    late_add_ranks(text, all, late_waits_for_hosts, all);
    tn_text_addf(text, " waited in exchange %llu (%s)", (unsigned long long)s->exchanges, s->what);
  }
}

static bool late_tell_unknown(const tn_rank_reports *all, tn_text *text) {
  int32_t first;
  if (!all->asked || !late_has(all, late_is_unknown, &first)) return false;
  late_add_ranks(text, all, late_is_unknown, all);
  tn_text_add(text, " did not answer");
  late_tell_waits(all, ", ", text);
  return true;
}

void tn_late_rank_find(const tn_rank_reports *all, tn_text *text) {
  late_waiters found;
  if (late_differs(all, text) || late_tell_unknown(all, text) || late_tell_device(all, text)) return;
  if (late_choose(all, false, &found) || late_choose(all, true, &found))
    late_tell(&found, text);
  else
    late_tell_waits(all, "", text);
}
