/* core/distributed/wire/wire.c: writes and reads frames. */
#include "core/distributed/wire/wire.h"

#include <string.h>

static const uint32_t FRAME_MAGIC = 0x4b4e5254;    /* "TRNK" */
static const uint32_t GREETING_MAGIC = 0x4f4c4854; /* "THLO" */

/* ---- numbers and texts ---- */

static unsigned char *put(unsigned char *to, uint64_t value, int bytes) {
  for (int i = 0; i < bytes; i++) to[i] = (unsigned char)(value >> 8 * i);
  return to + bytes;
}

static const unsigned char *get(const unsigned char *from, void *value, int bytes) {
  uint64_t all = 0;
  for (int i = 0; i < bytes; i++) all |= (uint64_t)from[i] << 8 * i;
  if (bytes == 4)
    *(uint32_t *)value = (uint32_t)all;
  else
    *(uint64_t *)value = all;
  return from + bytes;
}

static unsigned char *put_text(unsigned char *to, const char *text, size_t size) {
  size_t n = strnlen(text, size - 1);
  memcpy(to, text, n);
  memset(to + n, 0, size - n);
  return to + size;
}

/* Control characters would change a terminal that a message is printed on. */
static const unsigned char *get_text(const unsigned char *from, char *text, size_t size) {
  memcpy(text, from, size);
  text[size - 1] = '\0';
  for (char *c = text; *c != '\0'; c++)
    if (((unsigned char)*c < 0x20 && *c != '\n') || *c == 0x7f) *c = '?';
  return from + size;
}

/* ---- frames ---- */

void tn_frame_head_write(const tn_frame_head *head, unsigned char to[TN_FRAME_HEAD]) {
  to = put(to, FRAME_MAGIC, 4);
  to = put(to, head->kind, 4);
  to = put(to, head->number, 8);
  put(to, head->bytes, 8);
}

bool tn_frame_head_read(const unsigned char from[TN_FRAME_HEAD], tn_frame_head *head) {
  uint32_t magic;
  uint64_t bytes;
  from = get(from, &magic, 4);
  from = get(from, &head->kind, 4);
  from = get(from, &head->number, 8);
  get(from, &bytes, 8);
  head->bytes = (uint32_t)bytes;
  return magic == FRAME_MAGIC && head->kind >= TN_FRAME_REFUSED && head->kind < TN_FRAME_KINDS &&
         bytes <= TN_FRAME_MOST;
}

/* ---- greetings ---- */

void tn_greeting_write(const tn_greeting *greeting, unsigned char to[TN_GREETING_BYTES]) {
  to = put(to, GREETING_MAGIC, 4);
  to = put(to, greeting->protocol, 4);
  memcpy(to, greeting->nonce, TN_NONCE_BYTES);
}

bool tn_greeting_read(const unsigned char from[TN_GREETING_BYTES], tn_greeting *greeting) {
  uint32_t magic;
  from = get(from, &magic, 4);
  from = get(from, &greeting->protocol, 4);
  memcpy(greeting->nonce, from, TN_NONCE_BYTES);
  return magic == GREETING_MAGIC;
}

/* ---- a hello ---- */

void tn_hello_write(const tn_hello *hello, unsigned char to[TN_HELLO_BYTES]) {
  memset(to, 0, TN_HELLO_BYTES);
  to = put(to, (uint32_t)hello->process, 4);
  to = put(to, (uint32_t)hello->processes, 4);
  to = put(to, (uint32_t)hello->ranks, 4);
  to = put(to, (uint64_t)hello->pid, 8);
  to = put_text(to, hello->host, TN_HOST_BYTES);
  put_text(to, hello->version, sizeof hello->version);
}

bool tn_hello_read(const unsigned char from[TN_HELLO_BYTES], tn_hello *hello) {
  from = get(from, &hello->process, 4);
  from = get(from, &hello->processes, 4);
  from = get(from, &hello->ranks, 4);
  from = get(from, &hello->pid, 8);
  from = get_text(from, hello->host, TN_HOST_BYTES);
  get_text(from, hello->version, sizeof hello->version);
  return hello->processes >= 1 && hello->processes <= TN_MOST_PROCESSES && hello->process >= 0 &&
         hello->process < hello->processes && hello->ranks >= 1 && hello->ranks <= TN_MOST_PROCESSES;
}

/* ---- members ---- */

void tn_member_write(const tn_member *member, unsigned char to[TN_MEMBER_BYTES]) {
  to = put(to, (uint32_t)member->first_rank, 4);
  to = put(to, (uint32_t)member->ranks, 4);
  to = put(to, (uint64_t)member->pid, 8);
  to = put_text(to, member->host, TN_HOST_BYTES);
  put_text(to, member->address, TN_ADDRESS_BYTES);
}

bool tn_member_read(const unsigned char from[TN_MEMBER_BYTES], tn_member *member) {
  from = get(from, &member->first_rank, 4);
  from = get(from, &member->ranks, 4);
  from = get(from, &member->pid, 8);
  from = get_text(from, member->host, TN_HOST_BYTES);
  get_text(from, member->address, TN_ADDRESS_BYTES);
  return member->first_rank >= 0 && member->ranks >= 1 && member->ranks <= TN_MOST_PROCESSES &&
         member->first_rank <= INT32_MAX - member->ranks;
}

/* ---- failures ---- */

void tn_failure_set_text(tn_wire_failure *failure, const char *text) {
  static const char rest[] = "...";
  size_t n = strlen(text), most = sizeof failure->text - 1;
  bool cut = n > most;
  if (cut) n = most - (sizeof rest - 1);
  while (cut && n > 0 && ((unsigned char)text[n] & 0xc0) == 0x80) n--; /* inside of a character of UTF-8 */
  memcpy(failure->text, text, n);
  failure->text[n] = '\0';
  if (cut) memcpy(failure->text + n, rest, sizeof rest);
}

uint32_t tn_failure_write(const tn_wire_failure *failure, unsigned char to[TN_FAILURE_BYTES]) {
  size_t n = strnlen(failure->text, TN_FAILURE_TEXT - 1);
  to = put(to, (uint32_t)failure->rank, 4);
  to = put(to, (uint32_t)failure->status, 4);
  memcpy(to, failure->text, n);
  return (uint32_t)(8 + n);
}

bool tn_failure_read(const unsigned char *from, uint32_t bytes, tn_wire_failure *failure) {
  if (bytes < 8 || bytes > TN_FAILURE_BYTES - 1) return false;
  from = get(from, &failure->rank, 4);
  from = get(from, &failure->status, 4);
  char text[TN_FAILURE_TEXT] = "";
  memcpy(text, from, bytes - 8);
  get_text((const unsigned char *)text, failure->text, TN_FAILURE_TEXT);
  return failure->rank >= 0 && failure->status > TN_OK && failure->status <= TN_EINTERNAL;
}

/* ---- summaries ---- */

static unsigned char *put_call(unsigned char *to, const tn_summary_call *call) {
  to = put(to, call->number, 8);
  to = put(to, (uint64_t)call->step, 8);
  to = put(to, (uint64_t)call->count, 8);
  to = put(to, (uint32_t)call->kind, 4);
  to = put(to, (uint32_t)call->dtype, 4);
  to = put_text(to, call->name, sizeof call->name);
  return put_text(to, call->program, sizeof call->program);
}

static const unsigned char *get_call(const unsigned char *from, tn_summary_call *call) {
  from = get(from, &call->number, 8);
  from = get(from, &call->step, 8);
  from = get(from, &call->count, 8);
  from = get(from, &call->kind, 4);
  from = get(from, &call->dtype, 4);
  from = get_text(from, call->name, sizeof call->name);
  return get_text(from, call->program, sizeof call->program);
}

void tn_summary_write(const tn_rank_summary *summary, unsigned char to[TN_SUMMARY_BYTES]) {
  to = put(to, (uint32_t)summary->rank, 4);
  to = put(to, (uint32_t)summary->wait, 4);
  to = put(to, summary->begun, 8);
  to = put(to, summary->ended, 8);
  to = put(to, summary->exchanges, 8);
  to = put(to, (uint64_t)summary->step, 8);
  to = put(to, (uint64_t)summary->waited_ms, 8);
  to = put_text(to, summary->what, sizeof summary->what);
  to = put(to, (uint32_t)summary->device, 8);
  to = put(to, summary->inside, 8);
  to = put_text(to, summary->inside_name, sizeof summary->inside_name);
  to = put(to, (uint32_t)summary->n_calls, 8);
  for (int32_t i = 0; i < TN_SUMMARY_CALLS; i++) to = put_call(to, &summary->calls[i]);
}

/* Numbers of calls rise, so that each occurs once. */
static bool summary_is_valid(const tn_rank_summary *summary) {
  if (summary->rank < 0 || summary->wait < 0 || summary->wait >= TN_SUMMARY_WAITS ||
      summary->ended > summary->begun || summary->step < 0 || summary->waited_ms < 0 || summary->device < 0 ||
      summary->n_calls < 0 || summary->n_calls > TN_SUMMARY_CALLS)
    return false;
  for (int32_t i = 0; i < summary->n_calls; i++) {
    const tn_summary_call *call = &summary->calls[i];
    uint64_t before = i > 0 ? call[-1].number : 0;
    if (call->number <= before || call->number > summary->begun || call->count < 0) return false;
  }
  return true;
}

bool tn_summary_read(const unsigned char from[TN_SUMMARY_BYTES], tn_rank_summary *summary) {
  uint64_t n, device;
  from = get(from, &summary->rank, 4);
  from = get(from, &summary->wait, 4);
  from = get(from, &summary->begun, 8);
  from = get(from, &summary->ended, 8);
  from = get(from, &summary->exchanges, 8);
  from = get(from, &summary->step, 8);
  from = get(from, &summary->waited_ms, 8);
  from = get_text(from, summary->what, sizeof summary->what);
  from = get(from, &device, 8);
  summary->device = device <= TN_DEVICE_INSIDE ? (int32_t)device : -1;
  from = get(from, &summary->inside, 8);
  from = get_text(from, summary->inside_name, sizeof summary->inside_name);
  from = get(from, &n, 8);
  summary->n_calls = n <= TN_SUMMARY_CALLS ? (int32_t)n : -1;
  for (int32_t i = 0; i < TN_SUMMARY_CALLS; i++) from = get_call(from, &summary->calls[i]);
  return summary_is_valid(summary);
}
