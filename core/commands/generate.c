/* core/commands/generate.c: tn_run_generate: text that a language model writes behind a prompt. */
#include <math.h>
#include <string.h>

#include "core/base/system/system.h"
#include "core/infer/prediction/decoder.h"
#include "core/infer/prediction/sampler.h"
#include "core/step/values/finite_rows.h"
#include "core/run/result.h"
#include "core/tokenizer/calls.h"

enum { DEFAULT_TOKENS = 200 };

typedef struct tn_generate_command {
  tn_run *run;
  const tn_generate_options *options;
  tn_decoder decoder;
  tn_sampler sampler;
  tn_finite_rows finite; /* of the scores that tokens are drawn from */
  tn_token_ids prompt;
  tn_token_stream *stream; /* holds the bytes of a character back until it is whole */
  tn_text text;            /* generated */
  json_t *tokens;
  double opened_s, prompt_s, end_s; /* when the model was ready, the prompt read, and the last token drawn */
  bool stopped;
} tn_generate_command;

static tn_status generate_check_options(tn_run *run, const tn_generate_options *o) {
  if (!isfinite(o->temperature) || o->temperature < 0)
    return tn_failf(&run->env, TN_EINVAL, "temperature %g, expected 0 or more", o->temperature);
  if (!(o->top_p >= 0 && o->top_p <= 1))
    return tn_failf(&run->env, TN_EINVAL, "top_p %g, expected (0, 1], or 0 for all tokens", o->top_p);
  if (o->top_k < 0 || o->count < 0 || o->n_tokens < 0)
    return tn_failf(&run->env, TN_EINVAL, "top_k %d, count %lld, n_tokens %lld, expected 0 or more",
                    (int)o->top_k, (long long)o->count, (long long)o->n_tokens);
  return TN_OK;
}

static tn_status generate_take_token(tn_generate_command *g, int32_t token) {
  TN_TRY(tn_vec_reserve_(&g->run->env, (void **)&g->prompt.v, &g->prompt.room, g->prompt.n + 1,
                         sizeof *g->prompt.v));
  g->prompt.v[g->prompt.n++] = token;
  return TN_OK;
}

static tn_status generate_take_tokens(tn_generate_command *g) {
  for (int64_t i = 0; i < g->options->n_tokens; i++) TN_TRY(generate_take_token(g, g->options->tokens[i]));
  return TN_OK;
}

/* Models that were trained with a token in front of every text have it here, too. */
static tn_status generate_encode(tn_generate_command *g, const char *text, size_t bytes) {
  int32_t begin = g->decoder.begin;
  TN_TRY(tn_host_tokenizer_encode(&g->run->env, g->decoder.tokenizer, text, bytes, 0, &g->prompt));
  if (begin < 0) return TN_OK;
  TN_TRY(generate_take_token(g, begin));
  memmove(g->prompt.v + 1, g->prompt.v, (g->prompt.n - 1) * sizeof *g->prompt.v);
  g->prompt.v[0] = begin;
  return TN_OK;
}

/* The text begins with a new line where the user gives none. */
static tn_status generate_read_prompt(tn_generate_command *g) {
  const tn_generate_options *o = g->options;
  const void *env = &g->run->env;
  if (o->n_tokens > 0) return generate_take_tokens(g);
  TN_TRY(tn_decoder_need_texts(&g->decoder, g->run->ini.path,
                               "give the prompt as numbers of tokens (--prompt-tokens)"));
  bool given = o->prompt != NULL && o->prompt_bytes > 0;
  tn_status status = generate_encode(g, given ? o->prompt : "\n", given ? o->prompt_bytes : 1);
  if (!given && (status == TN_EINVAL || (status == TN_OK && g->prompt.n == 0)))
    return tn_failf(env, TN_EINVAL, "the model has no token for a new line: give a prompt");
  if (status == TN_OK && g->prompt.n == 0)
    return tn_failf(env, TN_EINVAL, "the prompt has no tokens: give a longer one");
  return status == TN_OK ? tn_host_token_stream_open(env, g->decoder.tokenizer, 0, &g->stream) : status;
}

static void generate_write(tn_generate_command *g, const char *written, size_t bytes) {
  if (bytes == 0) return;
  tn_text_addn(&g->text, written, bytes);
  if (g->options->write != NULL && g->options->write(g->options->user, written, bytes) != 0)
    g->stopped = true;
}

/* The token as text, or as a number behind a space. A class of the model that is no token has no text. */
static tn_status generate_write_token(tn_generate_command *g, int32_t token) {
  char number[16];
  const char *written = number;
  size_t bytes;
  json_array_append_new(g->tokens, json_integer(token));
  if (g->stream == NULL)
    bytes = (size_t)snprintf(number, sizeof number, " %d", token);
  else if (tn_host_tokenizer_token(g->decoder.tokenizer, token, &bytes) == NULL)
    return TN_OK;
  else
    TN_TRY(tn_host_token_stream_next(&g->run->env, g->stream, token, &written, &bytes));
  generate_write(g, written, bytes);
  return TN_OK;
}

/* The rest that was held back. */
static tn_status generate_end(tn_generate_command *g) {
  const char *written;
  size_t bytes;
  if (g->stream == NULL) return TN_OK;
  TN_TRY(tn_host_token_stream_end(&g->run->env, g->stream, &written, &bytes));
  generate_write(g, written, bytes);
  return TN_OK;
}

/* The text ends before a token whose scores are not finite. */
static tn_status generate_tokens(tn_generate_command *g) {
  const float *scores;
  int32_t token;
  int64_t count = g->options->count > 0 ? g->options->count : DEFAULT_TOKENS;
  g->opened_s = tn_clock_s();
  TN_TRY(tn_decoder_feed(&g->decoder, g->prompt.v, (int64_t)g->prompt.n, &scores));
  g->prompt_s = g->end_s = tn_clock_s();
  for (int64_t i = 0; i < count && !g->stopped; i++) {
    if (i > 0) TN_TRY(tn_decoder_feed(&g->decoder, &token, 1, &scores));
    if (!tn_finite_rows_count(&g->finite, i, tn_sampler_draw(&g->sampler, scores, &token))) break;
    if (token == g->decoder.end) break;
    TN_TRY(generate_write_token(g, token));
    g->end_s = tn_clock_s();
    if (atomic_load(&g->run->stop) != 0) g->stopped = true;
  }
  TN_TRY(generate_end(g));
  return g->text.failed ? TN_ENOMEM : TN_OK;
}

static tn_status generate_run(tn_generate_command *g) {
  const tn_generate_options *o = g->options;
  TN_TRY(generate_check_options(g->run, o));
  TN_TRY(tn_decoder_open(g->run, "generate", &g->decoder));
  TN_TRY(generate_read_prompt(g));
  g->sampler = (tn_sampler){.temperature = o->temperature,
                            .top_p = o->top_p > 0 ? o->top_p : 1,
                            .top_k = o->top_k,
                            .rng = tn_rng_at(o->seed, 0)};
  TN_TRY(tn_sampler_open(&g->run->env, g->decoder.classes, &g->sampler));
  return generate_tokens(g);
}

/* The time of a token is that behind the prompt: the first one comes from the prompt's scores. */
static json_t *generate_result(const tn_generate_command *g) {
  size_t n = json_array_size(g->tokens);
  double decode_s = g->end_s - g->prompt_s;
  json_t *text = json_stringn(g->text.v != NULL ? g->text.v : "", g->text.n);
  json_t *result = json_pack("{s:I, s:O, s:o, s:f, s:f, s:b}", "prompt_tokens", (json_int_t)g->prompt.n,
                             "tokens", g->tokens, "text", text != NULL ? text : json_null(), "prompt_s",
                             g->prompt_s - g->opened_s, "decode_s", decode_s, "stopped", (int)g->stopped);
  bool timed = n > 1 && decode_s > 0;
  if (g->finite.bad > 0) json_object_set_new(result, "not_finite", json_integer(g->finite.bad));
  json_object_set_new(result, "tokens_per_s", timed ? json_real((double)(n - 1) / decode_s) : json_null());
  return result;
}

static tn_status generate_judge(const tn_generate_command *g) {
  char name[64];
  snprintf(name, sizeof name, "token %lld of prompt and text",
           (long long)g->prompt.n + (long long)g->finite.first + 1);
  return tn_finite_rows_judge(&g->run->env, &g->finite, name);
}

tn_status tn_run_generate(tn_run *run, const tn_generate_options *given, char **json) {
  TN_ENTER(run);
  TN_NEED(run, json, "json");
  *json = NULL;
  TN_NEED(run, given, "options");
  if (given->n_tokens > 0) TN_NEED(run, given->tokens, "options->tokens");
  tn_generate_command g = {.run = run,
                           .options = given,
                           .decoder = {.run = run},
                           .text = tn_text_new(&run->env),
                           .tokens = json_array()};
  tn_status status = generate_run(&g);
  if (status == TN_OK) status = tn_json_take(run, generate_result(&g), json);
  if (status == TN_OK) status = generate_judge(&g);
  json_decref(g.tokens);
  tn_text_free(&g.text);
  tn_host_token_stream_close(&run->env, g.stream);
  tn_release(&run->env, g.prompt.v);
  tn_sampler_close(&run->env, &g.sampler);
  tn_decoder_close(&g.decoder);
  return status;
}
