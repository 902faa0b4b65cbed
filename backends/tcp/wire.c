/* backends/tcp/wire.c: see wire.h. */
#include "backends/tcp/wire.h"

#include <stdio.h>
#include <string.h>

_Static_assert(sizeof(tn_tcp_address) == 20, "as on every machine");
_Static_assert(sizeof(tn_tcp_identity) == 72, "as on every machine");
_Static_assert(sizeof(tn_tcp_greeting) == 48, "as on every machine");
_Static_assert(sizeof(tn_tcp_answer) == 80, "as on every machine");
_Static_assert(sizeof(tn_tcp_hello) == 96, "as on every machine");
_Static_assert(sizeof(tn_tcp_reply) == 528, "as on every machine");
_Static_assert(sizeof(tn_tcp_row) == 24, "as on every machine");
_Static_assert(sizeof(tn_tcp_call) == 88, "as on every machine");
_Static_assert(sizeof(tn_tcp_note) == 512, "as on every machine");

static const char wire_magic[8] = {'t', 'e', 'n', 'o', 'n', 't', 'c', 'p'};

void tn_tcp_mark(char magic[8]) { memcpy(magic, wire_magic, sizeof wire_magic); }

static bool wire_marked(const char magic[8]) { return memcmp(magic, wire_magic, sizeof wire_magic) == 0; }

/* The text comes from another process and goes into messages. */
static void wire_clean_text(char *text, size_t size) {
  text[size - 1] = '\0';
  for (char *c = text; *c != '\0'; c++)
    if (*c < ' ' || *c > '~') *c = '.';
}

/* ---- checks ---- */

bool tn_tcp_identity_valid(const tn_tcp_identity *id) {
  return wire_marked(id->magic) && id->version == TN_TCP_VERSION && tn_tcp_address_valid(&id->address);
}

bool tn_tcp_greeting_valid(const tn_tcp_greeting *g) {
  return wire_marked(g->magic) && g->version == TN_TCP_VERSION;
}

bool tn_tcp_hello_valid(const tn_tcp_hello *h) {
  return wire_marked(h->magic) && h->version == TN_TCP_VERSION && h->ranks >= 2 && h->ranks <= TN_TCP_RANKS &&
         h->rank >= 1 && h->rank < h->ranks && h->process >= 0 && h->lane >= 0 && h->lane < TN_TCP_LANES &&
         tn_tcp_address_valid(&h->address);
}

bool tn_tcp_reply_valid(tn_tcp_reply *r) {
  wire_clean_text(r->text, sizeof r->text);
  return wire_marked(r->magic) && r->kind >= TN_TCP_ACCEPTED && r->kind <= TN_TCP_REFUSED;
}

bool tn_tcp_row_valid(const tn_tcp_row *row) {
  return tn_tcp_address_valid(&row->address) && row->process >= 0;
}

bool tn_tcp_call_valid(tn_tcp_call *c) {
  wire_clean_text(c->name, sizeof c->name);
  return wire_marked(c->magic) && c->kind >= TN_ALL_REDUCE && c->kind <= TN_ALL_GATHER && c->count >= 0;
}

bool tn_tcp_note_valid(tn_tcp_note *n) {
  wire_clean_text(n->text, sizeof n->text);
  return wire_marked(n->magic) && n->kind >= TN_TCP_LEAVES && n->kind <= TN_TCP_TELLS;
}

/* ---- calls ---- */

static bool wire_reduces(int32_t kind) { return kind == TN_ALL_REDUCE || kind == TN_REDUCE_SCATTER; }

const char *tn_tcp_call_text(const tn_tcp_call *c, char text[TN_TCP_CALL_TEXT]) {
  char how[32] = "";
  if (wire_reduces(c->kind)) snprintf(how, sizeof how, ", %s", tn_reduction_name(c->reduction));
  if (c->kind == TN_BROADCAST) snprintf(how, sizeof how, " from rank %d", (int)c->root);
  snprintf(text, TN_TCP_CALL_TEXT, "%s%s of %lld %s ('%s')", tn_collective_name(c->kind), how,
           (long long)c->count, tn_dtype_name(c->dtype), c->name);
  return text;
}

bool tn_tcp_same_call(const tn_tcp_call *a, const tn_tcp_call *b) {
  return a->number == b->number && a->kind == b->kind && a->dtype == b->dtype && a->count == b->count &&
         (!wire_reduces(a->kind) || a->reduction == b->reduction) &&
         (a->kind != TN_BROADCAST || a->root == b->root);
}
