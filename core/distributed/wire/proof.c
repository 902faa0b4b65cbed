/* core/distributed/wire/proof.c: see proof.h. */
#include "core/distributed/wire/proof.h"

#include <errno.h>
#include <sodium.h>
#include <string.h>
#include <sys/random.h>

_Static_assert(TN_PROOF_BYTES == crypto_generichash_BYTES && TN_KEY_BYTES == crypto_generichash_KEYBYTES &&
                   TN_KEY_BYTES == crypto_aead_chacha20poly1305_IETF_KEYBYTES &&
                   TN_TAG_BYTES == crypto_aead_chacha20poly1305_IETF_ABYTES,
               "as libsodium has them");

/* libsodium ends a process for which the system has no random bytes, so they are asked for first. sodium_init
 * selects the instructions of this processor; it may be called again, from any thread. */
tn_status tn_proof_draw(const void *handle, unsigned char nonce[TN_NONCE_BYTES]) {
  ssize_t n;
  do n = getrandom(nonce, TN_NONCE_BYTES, 0);
  while (n < 0 && errno == EINTR);
  if (n != TN_NONCE_BYTES)
    return tn_failf(handle, TN_EUNAVAILABLE, "the system gives no random bytes (getrandom): %s",
                    strerror(errno));
  if (sodium_init() >= 0) return TN_OK;
  return tn_failf(handle, TN_EUNAVAILABLE, "libsodium cannot be used: sodium_init fails");
}

/* Keyed BLAKE2b over a text with its zero, and bytes. */
static void proof_hash(const unsigned char key[TN_KEY_BYTES], const char *text, const void *bytes, size_t n,
                       unsigned char to[TN_PROOF_BYTES]) {
  crypto_generichash_state state;
  crypto_generichash_init(&state, key, TN_KEY_BYTES, TN_PROOF_BYTES);
  crypto_generichash_update(&state, (const unsigned char *)text, strlen(text) + 1);
  crypto_generichash_update(&state, bytes, n);
  crypto_generichash_final(&state, to, TN_PROOF_BYTES);
}

static void proof_key_of_token(const char *token, unsigned char key[TN_KEY_BYTES]) {
  crypto_generichash(key, TN_KEY_BYTES, (const unsigned char *)token, strlen(token), NULL, 0);
}

void tn_proof_key(const char *token, const unsigned char caller[TN_NONCE_BYTES],
                  const unsigned char listener[TN_NONCE_BYTES], unsigned char key[TN_KEY_BYTES]) {
  unsigned char job[TN_KEY_BYTES], nonces[2 * TN_NONCE_BYTES];
  proof_key_of_token(token, job);
  memcpy(nonces, caller, TN_NONCE_BYTES);
  memcpy(nonces + TN_NONCE_BYTES, listener, TN_NONCE_BYTES);
  proof_hash(job, "connection", nonces, sizeof nonces, key);
  sodium_memzero(job, sizeof job);
}

void tn_proof_make(const unsigned char key[TN_KEY_BYTES], const char *role, const void *bytes, size_t n,
                   unsigned char proof[TN_PROOF_BYTES]) {
  proof_hash(key, role, bytes, n, proof);
}

bool tn_proof_check(const unsigned char key[TN_KEY_BYTES], const char *role, const void *bytes, size_t n,
                    const unsigned char proof[TN_PROOF_BYTES]) {
  unsigned char right[TN_PROOF_BYTES];
  proof_hash(key, role, bytes, n, right);
  return sodium_memcmp(right, proof, sizeof right) == 0;
}

void tn_proof_of_job(const char *token, const void *bytes, size_t n, unsigned char proof[TN_PROOF_BYTES]) {
  unsigned char job[TN_KEY_BYTES];
  proof_key_of_token(token, job);
  proof_hash(job, "communicator", bytes, n, proof);
  sodium_memzero(job, sizeof job);
}

/* ---- seals ---- */

tn_seals tn_seals_new(const unsigned char key[TN_KEY_BYTES], bool listens) {
  tn_seals seals = {.in = {.number = 0}};
  proof_hash(key, "frames to process 0", NULL, 0, listens ? seals.in.key : seals.out.key);
  proof_hash(key, "frames of process 0", NULL, 0, listens ? seals.out.key : seals.in.key);
  return seals;
}

/* The cipher takes pointers to a text and to the encrypted text. Both are empty. */
static const unsigned char no_text[1];

static void seal_nonce(const tn_seal *seal,
                       unsigned char nonce[crypto_aead_chacha20poly1305_IETF_NPUBBYTES]) {
  memset(nonce, 0, crypto_aead_chacha20poly1305_IETF_NPUBBYTES);
  for (int i = 0; i < 8; i++) nonce[i] = (unsigned char)(seal->number >> 8 * i);
}

void tn_seal_make(tn_seal *seal, const void *bytes, size_t n, unsigned char tag[TN_TAG_BYTES]) {
  unsigned char nonce[crypto_aead_chacha20poly1305_IETF_NPUBBYTES], text[1];
  seal_nonce(seal, nonce);
  crypto_aead_chacha20poly1305_ietf_encrypt_detached(text, tag, NULL, no_text, 0, bytes, n, NULL, nonce,
                                                     seal->key);
  seal->number++;
}

bool tn_seal_check(tn_seal *seal, const void *bytes, size_t n, const unsigned char tag[TN_TAG_BYTES]) {
  unsigned char nonce[crypto_aead_chacha20poly1305_IETF_NPUBBYTES], text[1];
  seal_nonce(seal, nonce);
  if (crypto_aead_chacha20poly1305_ietf_decrypt_detached(text, NULL, no_text, 0, tag, bytes, n, nonce,
                                                         seal->key) != 0)
    return false;
  seal->number++;
  return true;
}
