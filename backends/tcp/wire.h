/* backends/tcp/wire.h: the records that ranks send each other, and the checks of received ones. Numbers are
 * little-endian, as in all builds of Tenon (plugin.h). Every record has a fixed size, so a receiver never
 * allocates by what a sender says. */
#pragma once

#include "backends/tcp/address.h"
#include "tenon/plugin/communicator.h"

enum { TN_TCP_VERSION = 3, TN_TCP_RANKS = 256, TN_TCP_SECRET = 32, TN_TCP_NONCE = 32, TN_TCP_PROOF = 32 };

/* Two ranks have two connections: one for the elements of collectives, and one for notes, which arrive also
 * while the first is full. */
enum { TN_TCP_NOTES = 0, TN_TCP_ELEMENTS = 1, TN_TCP_LANES = 2 };

/* The identity of a run. Proofs are made with the secret and the token of the job (tn_comm_place.prove). */
typedef struct tn_tcp_identity {
  char magic[8]; /* "tenontcp" */
  uint32_t version;
  int32_t listener; /* rank 0's own descriptor of the socket that listens at the address */
  tn_tcp_address address;
  uint8_t secret[TN_TCP_SECRET];
  uint32_t zero;
} tn_tcp_identity;

/* The first bytes on a connection: a nonce of the connecting rank. */
typedef struct tn_tcp_greeting {
  char magic[8];
  uint32_t version, zero;
  uint8_t nonce[TN_TCP_NONCE];
} tn_tcp_greeting;

/* The answer: a nonce of the accepting rank, and its proof. */
typedef struct tn_tcp_answer {
  tn_tcp_greeting greeting;
  uint8_t proof[TN_TCP_PROOF];
} tn_tcp_answer;

/* The connecting rank sends this after the answer. */
typedef struct tn_tcp_hello {
  char magic[8];
  uint32_t version;
  int32_t rank, ranks, process, lane; /* of the sender, and of the connection */
  tn_tcp_address address;             /* at which the sender listens */
  uint64_t instance;                  /* drawn by the sender: two senders that claim one rank differ */
  uint64_t direct;                    /* option `direct`, which must be equal on all ranks */
  uint8_t proof[TN_TCP_PROOF];        /* over the rest */
} tn_tcp_hello;

/* The reply to a hello. A table follows for the connection of notes to rank 0: one address for each rank. */
enum { TN_TCP_ACCEPTED = 1, TN_TCP_TABLE = 2, TN_TCP_REFUSED = 3 };
typedef struct tn_tcp_reply {
  char magic[8];
  int32_t kind;
  uint32_t zero;
  char text[480];              /* of TN_TCP_REFUSED: why */
  uint8_t proof[TN_TCP_PROOF]; /* over the rest, and the table */
} tn_tcp_reply;

typedef struct tn_tcp_row {
  tn_tcp_address address;
  int32_t process;
} tn_tcp_row;

/* In front of the elements that a rank sends to another one for a collective. */
typedef struct tn_tcp_call {
  char magic[8];
  uint64_t number; /* of the rank's collectives, from 1 */
  int64_t count;
  int32_t kind, reduction, dtype, root;
  char name[48];
} tn_tcp_call;

/* Messages beside collectives. */
enum {
  TN_TCP_LEAVES = 1, /* the sender closes its communicator */
  TN_TCP_FAILED = 2, /* with the text of the failure */
  TN_TCP_ASKS = 3,   /* is the process alive? */
  TN_TCP_TELLS = 4   /* the answer: the process is alive; `called`: the number of collectives that its host
                        has called; `waits` = 1: its worker waits for other ranks in one of them */
};
typedef struct tn_tcp_note {
  char magic[8];
  int32_t kind;
  uint32_t waits;
  uint64_t called;
  char text[488];
} tn_tcp_note;

/* Fills the magic. */
void tn_tcp_mark(char magic[8]);
/* Whether the bytes are a record of this run with members in their ranges. Texts get a zero at their end, and
 * a dot for every byte that is not printable. */
bool tn_tcp_identity_valid(const tn_tcp_identity *identity);
bool tn_tcp_greeting_valid(const tn_tcp_greeting *greeting);
bool tn_tcp_hello_valid(const tn_tcp_hello *hello);
bool tn_tcp_reply_valid(tn_tcp_reply *reply);
bool tn_tcp_row_valid(const tn_tcp_row *row);
bool tn_tcp_call_valid(tn_tcp_call *call);
bool tn_tcp_note_valid(tn_tcp_note *note);

/* ---- proof.c ---- */

/* Both sides of a connection have these. */
typedef struct tn_tcp_nonces {
  uint8_t caller[TN_TCP_NONCE], listener[TN_TCP_NONCE];
} tn_tcp_nonces;

typedef struct tn_tcp_prover {
  const tn_comm_place *place;
  const tn_tcp_identity *identity;
} tn_tcp_prover;

/* Random bytes of the system; false: it gives none, with errno. */
bool tn_tcp_nonce_draw(uint8_t nonce[TN_TCP_NONCE]);
tn_tcp_answer tn_tcp_answer_make(const tn_tcp_prover *prover, const tn_tcp_nonces *nonces);
void tn_tcp_hello_prove(const tn_tcp_prover *prover, const tn_tcp_nonces *nonces, tn_tcp_hello *hello);
/* `rows`: the table behind a reply of TN_TCP_TABLE, of all ranks. */
tn_tcp_reply tn_tcp_reply_make(const tn_tcp_prover *prover, const tn_tcp_nonces *nonces, int32_t kind,
                               const char *why, const tn_tcp_row *rows);

/* Whether the record comes from a rank of the run, on this connection, and is valid; of a reply,
 * tn_tcp_reply_valid says the latter. */
bool tn_tcp_answer_proved(const tn_tcp_prover *prover, const tn_tcp_nonces *nonces,
                          const tn_tcp_answer *answer);
bool tn_tcp_hello_proved(const tn_tcp_prover *prover, const tn_tcp_nonces *nonces, const tn_tcp_hello *hello);
bool tn_tcp_reply_proved(const tn_tcp_prover *prover, const tn_tcp_nonces *nonces, const tn_tcp_reply *reply,
                         const tn_tcp_row *rows);

/* "all_reduce, sum of 8 f32 ('bucket 2')"; returns `text`. */
enum { TN_TCP_CALL_TEXT = 160 };
const char *tn_tcp_call_text(const tn_tcp_call *call, char text[TN_TCP_CALL_TEXT]);
bool tn_tcp_same_call(const tn_tcp_call *a, const tn_tcp_call *b);
