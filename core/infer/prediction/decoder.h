/* core/infer/prediction/decoder.h: the scores behind a text, token by token, by programs that keep keys and
 * values of earlier tokens (graphs/incremental.h). */
#pragma once

#include <jansson.h>

#include "core/base/vec.h"
#include "core/step/programs/programs.h"
#include "tenon/tokenizer.h"

typedef TN_VEC(int32_t) tn_token_list;

typedef struct tn_decoder {
  tn_run *run;
  tn_device *device;
  tn_program_set set;
  tn_executor *executor;
  const char *input;       /* the model's input of tokens, */
  const char *output;      /* and its output of scores */
  int32_t dtype;           /* of it: i32 or i64 */
  int64_t window, chunk;   /* tokens in the caches at most, and in a run of PREFILL */
  int64_t classes;         /* tokens of the vocabulary */
  int64_t position;        /* tokens in the caches */
  tn_token_list history;   /* all tokens that were fed */
  tn_tokenizer *tokenizer; /* NULL: the tokens have no texts */
  int32_t begin, end;      /* tokens around a text; -1: none */
  int64_t unfit;           /* tokens of the vocabulary of the weights, which does not fit; 0: it does */
} tn_decoder;

/* Compiles the programs and loads weights; `command` is for messages. The caller calls tn_decoder_close, also
 * after a failure. TN_EUNSUPPORTED: the model does not treat tokens one after the other. */
tn_status tn_decoder_open(tn_run *run, const char *command, tn_decoder *d);
void tn_decoder_close(tn_decoder *d);
/* TN_EINVAL where the tokens have no texts, with the reason. `where` is in front of the message, `advice`
 * behind it. */
tn_status tn_decoder_need_texts(const tn_decoder *d, const char *where, const char *advice);

/* Begins another text. */
void tn_decoder_restart(tn_decoder *d);

/* Appends n >= 1 tokens to the text, and gives the scores of the next one: `classes` of them, valid until the
 * next call. Where the text becomes longer than the window, the decoder forgets all but its last half.
 * TN_EINVAL: a token is not in the vocabulary. */
tn_status tn_decoder_feed(tn_decoder *d, const int32_t *tokens, int64_t n, const float **scores);
