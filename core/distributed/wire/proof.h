/* core/distributed/wire/proof.h: how two processes prove to each other that they know the token of a
 * job, without sending it, and how each then knows that bytes come from the other one.
 *
 * Each side draws a nonce. From the token and both nonces follows the key of the connection; a proof is keyed
 * BLAKE2b over the name of a role and bytes, so that the proof of one side does not serve the other. Behind
 * the proofs each direction has a key of its own, and each piece of bytes a tag (Poly1305 of
 * ChaCha20-Poly1305, RFC 8439, without a text to encrypt) whose nonce is the number of the piece: a piece
 * that was changed, repeated, left out or moved has a wrong tag. Nothing is encrypted. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/base/env.h"

enum { TN_NONCE_BYTES = 32, TN_KEY_BYTES = 32, TN_PROOF_BYTES = 32, TN_TAG_BYTES = 16 };

/* Random bytes of the system. TN_EUNAVAILABLE: it gives none. The first call also selects this processor's
 * instructions for the functions below, which are slower without it. */
tn_status tn_proof_draw(const void *handle, unsigned char nonce[TN_NONCE_BYTES]);

/* The key of a connection. */
void tn_proof_key(const char *token, const unsigned char caller[TN_NONCE_BYTES],
                  const unsigned char listener[TN_NONCE_BYTES], unsigned char key[TN_KEY_BYTES]);
void tn_proof_make(const unsigned char key[TN_KEY_BYTES], const char *role, const void *bytes, size_t n,
                   unsigned char proof[TN_PROOF_BYTES]);
/* Takes the same time wherever the proofs differ. */
bool tn_proof_check(const unsigned char key[TN_KEY_BYTES], const char *role, const void *bytes, size_t n,
                    const unsigned char proof[TN_PROOF_BYTES]);
/* For communicators: keyed by the token alone, so their bytes have nonces in them. */
void tn_proof_of_job(const char *token, const void *bytes, size_t n, unsigned char proof[TN_PROOF_BYTES]);

/* One direction of a connection. */
typedef struct tn_seal {
  unsigned char key[TN_KEY_BYTES];
  uint64_t number; /* of the next piece */
} tn_seal;

/* Both directions, as one side sees them. */
typedef struct tn_seals {
  tn_seal in, out;
} tn_seals;

tn_seals tn_seals_new(const unsigned char key[TN_KEY_BYTES], bool listens);
/* The tag of the next piece. */
void tn_seal_make(tn_seal *seal, const void *bytes, size_t n, unsigned char tag[TN_TAG_BYTES]);
/* Whether the bytes are the next piece; the number of the next one advances only then. */
bool tn_seal_check(tn_seal *seal, const void *bytes, size_t n, const unsigned char tag[TN_TAG_BYTES]);
