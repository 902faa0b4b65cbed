/* core/exec/flight_recorder.c: see flight_recorder.h. An entry is words that are written and read one by one,
 * each by a release and an acquire. Its first word is the number, which is 0 while the others change. A
 * reader that sees a new word therefore also sees that the number is not the one that it wants. */
#include "core/exec/flight_recorder.h"

#include <stdio.h>
#include <string.h>

#include "core/base/system/system.h"

/* The words of an entry. */
enum { WORD_NUMBER, WORD_STEP, WORD_BEGUN, WORD_ENDED, WORD_CALL, WORDS = 16 };

/* The words of a call. */
enum {
  CALL_NAME = 0,
  CALL_PROGRAM = CALL_NAME + TN_FLIGHT_NAME / 8,
  CALL_COUNT = CALL_PROGRAM + TN_FLIGHT_PROGRAM / 8,
  CALL_KIND
};
_Static_assert(CALL_KIND + 1 == TN_FLIGHT_CALL_WORDS && WORD_CALL + TN_FLIGHT_CALL_WORDS <= WORDS,
               "the words of an entry");

tn_status tn_flight_init(const void *handle, tn_flight *flight) {
  memset(flight, 0, sizeof *flight);
  flight->entries = tn_alloc(handle, (size_t)TN_FLIGHT_ENTRIES * WORDS * sizeof *flight->entries);
  return flight->entries != NULL ? TN_OK : TN_ENOMEM;
}

void tn_flight_free(const void *handle, tn_flight *flight) {
  tn_release(handle, (void *)flight->entries);
  flight->entries = NULL;
}

static _Atomic(uint64_t) *flight_entry(const tn_flight *flight, uint64_t number) {
  return &flight->entries[number % TN_FLIGHT_ENTRIES * WORDS];
}

static uint64_t flight_bits(double value) {
  uint64_t bits;
  memcpy(&bits, &value, sizeof bits);
  return bits;
}

static double flight_number(uint64_t bits) {
  double value;
  memcpy(&value, &bits, sizeof value);
  return value;
}

static void flight_store(_Atomic(uint64_t) *word, uint64_t value) {
  atomic_store_explicit(word, value, memory_order_release);
}

static uint64_t flight_load(const _Atomic(uint64_t) *word) {
  return atomic_load_explicit(word, memory_order_acquire);
}

static bool flight_is_off(const tn_flight *flight) {
  return flight == NULL || atomic_load_explicit(&flight->stopped, memory_order_acquire);
}

/* ---- collectives ---- */

/* The bytes of a text in which it ends behind a whole character of UTF-8. */
static size_t flight_cut(const char *text, size_t size) {
  size_t n = strnlen(text, size);
  if (n == size) n--;
  while (n > 0 && ((unsigned char)text[n] & 0xc0) == 0x80) n--;
  return n;
}

tn_flight_call tn_flight_call_of(const char *program, const char *name, int32_t kind, int32_t dtype,
                                 int64_t count) {
  tn_flight_call call = {{0}};
  char text[TN_FLIGHT_NAME] = "", where[TN_FLIGHT_PROGRAM] = "";
  memcpy(text, name, flight_cut(name, sizeof text));
  memcpy(where, program, flight_cut(program, sizeof where));
  memcpy(&call.words[CALL_NAME], text, sizeof text);
  memcpy(&call.words[CALL_PROGRAM], where, sizeof where);
  call.words[CALL_COUNT] = (uint64_t)count;
  call.words[CALL_KIND] = (uint64_t)(uint32_t)kind | (uint64_t)(uint32_t)dtype << 32;
  return call;
}

static void flight_write(tn_flight *flight, const tn_flight_call *call, double now_s) {
  uint64_t number = atomic_load_explicit(&flight->begun, memory_order_relaxed) + 1;
  _Atomic(uint64_t) *entry = flight_entry(flight, number);
  flight_store(&entry[WORD_NUMBER], 0);
  flight_store(&entry[WORD_STEP], (uint64_t)atomic_load_explicit(&flight->step, memory_order_relaxed));
  flight_store(&entry[WORD_BEGUN], flight_bits(now_s));
  flight_store(&entry[WORD_ENDED], 0);
  for (int i = 0; i < TN_FLIGHT_CALL_WORDS; i++) flight_store(&entry[WORD_CALL + i], call->words[i]);
  flight_store(&entry[WORD_NUMBER], number);
  flight_store(&flight->begun, number);
}

void tn_flight_begin_all(tn_flight *flight, const tn_flight_call *const *calls, int32_t n) {
  if (flight_is_off(flight) || n == 0) return;
  double now_s = tn_clock_s();
  for (int32_t i = 0; i < n; i++) flight_write(flight, calls[i], now_s);
}

void tn_flight_begin(tn_flight *flight, const tn_flight_call *call) { tn_flight_begin_all(flight, &call, 1); }

void tn_flight_retract(tn_flight *flight) {
  if (flight_is_off(flight)) return;
  uint64_t number = atomic_load_explicit(&flight->begun, memory_order_relaxed);
  if (number == 0) return;
  flight_store(&flight_entry(flight, number)[WORD_NUMBER], 0);
  flight_store(&flight->begun, number - 1);
}

uint64_t tn_flight_begun(const tn_flight *flight) { return flight != NULL ? flight_load(&flight->begun) : 0; }

void tn_flight_end(tn_flight *flight, uint64_t n) {
  if (flight_is_off(flight)) return;
  uint64_t ended = atomic_load_explicit(&flight->ended, memory_order_relaxed);
  if (n <= ended) return;
  uint64_t now_s = flight_bits(tn_clock_s());
  uint64_t oldest = tn_flight_first(flight);
  for (uint64_t i = ended + 1 > oldest ? ended + 1 : oldest; i <= n; i++)
    flight_store(&flight_entry(flight, i)[WORD_ENDED], now_s);
  flight_store(&flight->ended, n);
}

void tn_flight_step(tn_flight *flight, int64_t step) {
  if (!flight_is_off(flight)) atomic_store_explicit(&flight->step, step, memory_order_release);
}

void tn_flight_exchange(tn_flight *flight) {
  if (flight_is_off(flight)) return;
  flight_store(&flight->exchanges, atomic_load_explicit(&flight->exchanges, memory_order_relaxed) + 1);
}

void tn_flight_new_program(tn_flight *flight) {
  if (flight_is_off(flight)) return;
  flight_store(&flight->known, flight_load(&flight->exchanges) + TN_FLIGHT_NEW);
}

void tn_flight_save(tn_flight *flight, bool saves) {
  if (flight != NULL) atomic_store_explicit(&flight->saves, saves, memory_order_release);
}

bool tn_flight_is_settled(const tn_flight *flight) {
  uint64_t known = flight_load(&flight->known);
  return known > 0 && flight_load(&flight->exchanges) >= known &&
         atomic_load_explicit(&flight->step, memory_order_acquire) > 0;
}

/* ---- waits ---- */

static void flight_set_wait(tn_flight *flight, const tn_flight_wait *wait) {
  atomic_store_explicit(&flight->wait_since_s, wait->since_s, memory_order_release);
  atomic_store_explicit(&flight->wait_what, wait->what, memory_order_release);
  atomic_store_explicit(&flight->wait_kind, wait->kind, memory_order_release);
}

tn_flight_wait tn_flight_waits(const tn_flight *flight) {
  return (tn_flight_wait){.kind = atomic_load_explicit(&flight->wait_kind, memory_order_acquire),
                          .what = atomic_load_explicit(&flight->wait_what, memory_order_acquire),
                          .since_s = atomic_load_explicit(&flight->wait_since_s, memory_order_acquire)};
}

tn_flight_wait tn_flight_begin_wait(tn_flight *flight, int32_t kind, const char *what) {
  if (flight_is_off(flight)) return (tn_flight_wait){.kind = TN_FLIGHT_NOTHING};
  tn_flight_wait before = tn_flight_waits(flight);
  flight_set_wait(flight, &(tn_flight_wait){kind, what, tn_clock_s()});
  return before;
}

void tn_flight_end_wait(tn_flight *flight, const tn_flight_wait *before) {
  if (flight_is_off(flight)) return;
  int32_t kind = atomic_load_explicit(&flight->wait_kind, memory_order_relaxed);
  tn_flight_wait restored = *before;
  double now_s = tn_clock_s();
  if (kind == TN_FLIGHT_COLLECTIVE || kind == TN_FLIGHT_EXCHANGE)
    flight->awaited_s += now_s - atomic_load_explicit(&flight->wait_since_s, memory_order_relaxed);
  if (restored.kind == TN_FLIGHT_NOTHING) restored.since_s = now_s;
  flight_set_wait(flight, &restored);
}

tn_status tn_flight_conclude(tn_flight *flight, const tn_flight_wait *before, tn_status status) {
  if (status == TN_OK)
    tn_flight_end_wait(flight, before);
  else
    tn_flight_stop(flight);
  return status;
}

/* ---- readers ---- */

void tn_flight_stop(tn_flight *flight) {
  if (flight_is_off(flight)) return;
  atomic_store_explicit(&flight->stopped_s, tn_clock_s(), memory_order_release);
  atomic_store_explicit(&flight->stopped, true, memory_order_release);
}

uint64_t tn_flight_first(const tn_flight *flight) {
  uint64_t begun = tn_flight_begun(flight);
  return begun > TN_FLIGHT_ENTRIES ? begun - TN_FLIGHT_ENTRIES + 1 : 1;
}

static void flight_unpack(const uint64_t words[WORDS], tn_flight_entry *entry) {
  const uint64_t *call = words + WORD_CALL;
  *entry = (tn_flight_entry){.number = words[WORD_NUMBER],
                             .step = (int64_t)words[WORD_STEP],
                             .begun_s = flight_number(words[WORD_BEGUN]),
                             .ended_s = flight_number(words[WORD_ENDED]),
                             .kind = (int32_t)(uint32_t)call[CALL_KIND],
                             .dtype = (int32_t)(uint32_t)(call[CALL_KIND] >> 32),
                             .count = (int64_t)call[CALL_COUNT]};
  memcpy(entry->name, &call[CALL_NAME], TN_FLIGHT_NAME);
  memcpy(entry->program, &call[CALL_PROGRAM], TN_FLIGHT_PROGRAM);
}

bool tn_flight_read(const tn_flight *flight, uint64_t number, tn_flight_entry *entry) {
  const _Atomic(uint64_t) *from = flight_entry(flight, number);
  uint64_t words[WORDS];
  if (number == 0) return false;
  for (int i = 0; i < WORDS; i++) words[i] = flight_load(&from[i]);
  if (words[WORD_NUMBER] != number || flight_load(&from[WORD_NUMBER]) != number) return false;
  flight_unpack(words, entry);
  return true;
}
