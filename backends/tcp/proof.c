/* backends/tcp/proof.c: see wire.h. */
#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>

#include "backends/tcp/wire.h"

/* Each role proves something else, so that no side can send a proof back. */
enum { PROOF_ANSWER = 1, PROOF_HELLO = 2, PROOF_REPLY = 3 };

/* The bytes under a proof. Those of one role have the same size in a run, or tell it. */
typedef struct proof_text {
  uint8_t secret[TN_TCP_SECRET];
  tn_tcp_nonces nonces;
  int32_t role;
  uint32_t version;
  uint8_t record[sizeof(tn_tcp_reply) + TN_TCP_RANKS * sizeof(tn_tcp_row)];
} proof_text;

static void proof_begin(const tn_tcp_prover *p, int32_t role, const tn_tcp_nonces *nonces, proof_text *text) {
  memset(text, 0, sizeof *text);
  text->nonces = *nonces;
  text->role = role;
  text->version = TN_TCP_VERSION;
  memcpy(text->secret, p->identity->secret, sizeof text->secret);
}

/* `n`: bytes of the record. */
static void proof_end(const tn_tcp_prover *p, const proof_text *text, size_t n, uint8_t proof[TN_TCP_PROOF]) {
  p->place->prove(p->place, text, offsetof(proof_text, record) + n, proof);
}

/* Compares in a time that does not depend on the bytes. */
static bool proof_same(const uint8_t *a, const uint8_t *b) {
  uint32_t differ = 0;
  for (int32_t i = 0; i < TN_TCP_PROOF; i++) differ |= (uint32_t)(a[i] ^ b[i]);
  return differ == 0;
}

static void proof_of_answer(const tn_tcp_prover *p, const tn_tcp_nonces *nonces,
                            uint8_t proof[TN_TCP_PROOF]) {
  proof_text text;
  proof_begin(p, PROOF_ANSWER, nonces, &text);
  proof_end(p, &text, 0, proof);
}

static void proof_of_hello(const tn_tcp_prover *p, const tn_tcp_nonces *nonces, const tn_tcp_hello *hello,
                           uint8_t proof[TN_TCP_PROOF]) {
  proof_text text;
  size_t n = offsetof(tn_tcp_hello, proof);
  proof_begin(p, PROOF_HELLO, nonces, &text);
  memcpy(text.record, hello, n);
  proof_end(p, &text, n, proof);
}

static void proof_of_reply(const tn_tcp_prover *p, const tn_tcp_nonces *nonces, const tn_tcp_reply *reply,
                           const tn_tcp_row *rows, uint8_t proof[TN_TCP_PROOF]) {
  proof_text text;
  size_t n = offsetof(tn_tcp_reply, proof);
  size_t table = reply->kind == TN_TCP_TABLE ? (size_t)p->place->ranks * sizeof *rows : 0;
  proof_begin(p, PROOF_REPLY, nonces, &text);
  memcpy(text.record, reply, n);
  if (table > 0) memcpy(text.record + n, rows, table);
  proof_end(p, &text, n + table, proof);
}

/* ---- records ---- */

bool tn_tcp_nonce_draw(uint8_t nonce[TN_TCP_NONCE]) {
  ssize_t n = getrandom(nonce, TN_TCP_NONCE, 0);
  if (n >= 0 && n < TN_TCP_NONCE) errno = EAGAIN;
  return n == TN_TCP_NONCE;
}

tn_tcp_answer tn_tcp_answer_make(const tn_tcp_prover *p, const tn_tcp_nonces *nonces) {
  tn_tcp_answer answer = {.greeting = {.version = TN_TCP_VERSION}};
  tn_tcp_mark(answer.greeting.magic);
  memcpy(answer.greeting.nonce, nonces->listener, sizeof answer.greeting.nonce);
  proof_of_answer(p, nonces, answer.proof);
  return answer;
}

bool tn_tcp_answer_proved(const tn_tcp_prover *p, const tn_tcp_nonces *nonces, const tn_tcp_answer *answer) {
  uint8_t proof[TN_TCP_PROOF];
  proof_of_answer(p, nonces, proof);
  return tn_tcp_greeting_valid(&answer->greeting) && proof_same(proof, answer->proof);
}

void tn_tcp_hello_prove(const tn_tcp_prover *p, const tn_tcp_nonces *nonces, tn_tcp_hello *hello) {
  proof_of_hello(p, nonces, hello, hello->proof);
}

bool tn_tcp_hello_proved(const tn_tcp_prover *p, const tn_tcp_nonces *nonces, const tn_tcp_hello *hello) {
  uint8_t proof[TN_TCP_PROOF];
  proof_of_hello(p, nonces, hello, proof);
  return proof_same(proof, hello->proof) && tn_tcp_hello_valid(hello);
}

tn_tcp_reply tn_tcp_reply_make(const tn_tcp_prover *p, const tn_tcp_nonces *nonces, int32_t kind,
                               const char *why, const tn_tcp_row *rows) {
  tn_tcp_reply reply = {.kind = kind};
  tn_tcp_mark(reply.magic);
  snprintf(reply.text, sizeof reply.text, "%.*s", (int)sizeof reply.text - 1, why);
  proof_of_reply(p, nonces, &reply, rows, reply.proof);
  return reply;
}

bool tn_tcp_reply_proved(const tn_tcp_prover *p, const tn_tcp_nonces *nonces, const tn_tcp_reply *reply,
                         const tn_tcp_row *rows) {
  uint8_t proof[TN_TCP_PROOF];
  proof_of_reply(p, nonces, reply, rows, proof);
  return proof_same(proof, reply->proof);
}
