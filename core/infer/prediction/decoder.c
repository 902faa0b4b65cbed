#include "core/infer/prediction/decoder.h"

#include "core/distributed/ranks/devices.h"
#include "core/step/graphs/incremental.h"
#include "core/infer/prediction/load_trained.h"
#include "core/infer/prediction/predict_classes.h"
#include "core/records/learnt/vocabulary.h"
#include "core/step/checks/check_model.h"
#include "core/tokenizer/calls.h"

enum { PREFILL_TOKENS = 32 };

/* ---- opening ---- */

/* (1, tokens) integers, and (1, tokens, classes) scores. */
static tn_status decoder_check_types(tn_decoder *d, const tn_binding *input, const tn_binding *output) {
  char in[TN_TYPE_TEXT] = "nothing", out[TN_TYPE_TEXT] = "nothing";
  bool ids =
      input != NULL && input->type.rank == 2 && (input->type.dtype == TN_I32 || input->type.dtype == TN_I64);
  if (ids && output != NULL && output->type.rank == 3 && output->type.dtype == TN_F32) return TN_OK;
  if (input != NULL) tn_type_format(&input->type, in);
  if (output != NULL) tn_type_format(&output->type, out);
  return tn_failf(&d->run->env, TN_EINVAL,
                  "%s: is no model of a language: for one token it takes %s and gives %s, expected i32[1, 1] "
                  "and f32[1, 1, VOCABULARY]",
                  d->run->ini.path, in, out);
}

static tn_status decoder_read_types(tn_decoder *d) {
  const tn_program *decode = d->set.programs[TN_PROGRAM_DECODE];
  const tn_binding *input = NULL, *output = tn_program_main_output(decode);
  for (int32_t i = 0; i < decode->n_inputs; i++)
    if (!tn_input_is_of_host(decode->inputs[i].name)) input = &decode->inputs[i];
  TN_TRY(decoder_check_types(d, input, output));
  d->input = input->name;
  d->output = output->name;
  d->dtype = input->type.dtype;
  d->classes = output->type.dims[2];
  d->window = d->set.window;
  d->chunk = PREFILL_TOKENS < d->window ? PREFILL_TOKENS : d->window;
  return TN_OK;
}

/* Weights of earlier versions and of other programs have the names of the classes alone. */
static tn_status decoder_open_vocabulary(tn_decoder *d) {
  tn_predict_classes classes;
  const void *env = &d->run->env;
  const tn_type row = {TN_F32, 1, {d->classes}};
  tn_vocabulary_ends(d->run->learnt, &d->begin, &d->end);
  TN_TRY(tn_vocabulary_of_note(env, d->run->learnt, d->classes, &d->tokenizer, &d->unfit));
  if (d->tokenizer != NULL || d->unfit > 0) return TN_OK;
  tn_predict_classes_start(d->run, &row, 1, &classes);
  d->unfit = classes.unfit;
  tn_status status = tn_vocabulary_of_names(env, classes.names, d->classes, &d->tokenizer);
  tn_predict_classes_finish(&classes);
  return status;
}

tn_status tn_decoder_open(tn_run *run, const char *command, tn_decoder *d) {
  *d = (tn_decoder){.run = run};
  tn_program_request request = {.slots = 1};
  request.batch[TN_PROGRAM_PREFILL] = PREFILL_TOKENS;
  request.batch[TN_PROGRAM_DECODE] = 1;
  TN_TRY(tn_run_open_device(run, &d->device));
  TN_TRY(tn_programs_open(run, &run->env, d->device, &request, &d->set, &d->executor));
  TN_TRY(decoder_read_types(d));
  TN_TRY(tn_load_trained(run, &d->set, d->executor, command));
  return decoder_open_vocabulary(d);
}

tn_status tn_decoder_need_texts(const tn_decoder *d, const char *where, const char *advice) {
  const tn_env *env = &d->run->env;
  const char *file = d->run->weights_file != NULL ? d->run->weights_file : "the weights";
  if (d->tokenizer != NULL) return TN_OK;
  if (d->unfit > 0)
    return tn_failf(env, TN_EINVAL,
                    "%s: the model gives scores of %lld tokens, but the vocabulary of %s has %lld; make them "
                    "equal, or %s",
                    where, (long long)d->classes, file, (long long)d->unfit, advice);
  return tn_failf(env, TN_EINVAL, "%s: %s has no vocabulary for the %lld tokens of the model; %s", where,
                  file, (long long)d->classes, advice);
}

void tn_decoder_close(tn_decoder *d) {
  tn_host_tokenizer_close(&d->run->env, d->tokenizer);
  tn_vec_free(&d->run->env, &d->history);
  tn_executor_destroy(d->executor);
  tn_programs_free(d->run, &d->set);
  tn_device_destroy(d->device);
}

/* ---- feeding ---- */

void tn_decoder_restart(tn_decoder *d) {
  d->position = 0;
  d->history.n = 0;
}

static void decoder_write_tokens(tn_decoder *d, void *to, const int32_t *tokens, int64_t n, int64_t room) {
  for (int64_t i = 0; i < room; i++) {
    int32_t token = i < n ? tokens[i] : 0; /* behind the text: their rows are written again later */
    if (d->dtype == TN_I64)
      ((int64_t *)to)[i] = token;
    else
      ((int32_t *)to)[i] = token;
  }
}

/* Runs a program on the next n tokens, of which it takes `room`. */
static tn_status decoder_run(tn_decoder *d, int32_t which, const int32_t *tokens, int64_t n, int64_t room,
                             const float **scores) {
  int32_t index = d->set.index[which];
  TN_TRY(tn_executor_slot_wait(d->executor, 0));
  int64_t *position = tn_executor_input(d->executor, index, 0, TN_POSITION_INPUT);
  decoder_write_tokens(d, tn_executor_input(d->executor, index, 0, d->input), tokens, n, room);
  if (position != NULL) *position = d->position;
  TN_TRY(tn_executor_run(d->executor, index, 0));
  TN_TRY(tn_executor_slot_wait(d->executor, 0));
  *scores = (const float *)tn_executor_output(d->executor, index, 0, d->output) + (n - 1) * d->classes;
  d->position += n;
  return TN_OK;
}

/* Tokens that the caches have room for. */
static tn_status decoder_take(tn_decoder *d, const int32_t *tokens, int64_t n, const float **scores) {
  for (int64_t taken; n > 0; tokens += taken, n -= taken) {
    bool several = n > 1 && d->position + d->chunk <= d->window;
    taken = !several ? 1 : n < d->chunk ? n : d->chunk;
    TN_TRY(decoder_run(d, several ? TN_PROGRAM_PREFILL : TN_PROGRAM_DECODE, tokens, taken,
                       several ? d->chunk : 1, scores));
  }
  return TN_OK;
}

static tn_status decoder_check_tokens(const tn_decoder *d, const int32_t *tokens, int64_t n) {
  for (int64_t i = 0; i < n; i++)
    if (tokens[i] < 0 || tokens[i] >= d->classes)
      return tn_failf(&d->run->env, TN_EINVAL, "token %d, expected 0 .. %lld", tokens[i],
                      (long long)d->classes - 1);
  return TN_OK;
}

tn_status tn_decoder_feed(tn_decoder *d, const int32_t *tokens, int64_t n, const float **scores) {
  TN_TRY(decoder_check_tokens(d, tokens, n));
  for (int64_t i = 0; i < n; i++) TN_TRY(tn_vec_push(&d->run->env, &d->history, tokens[i]));
  if (d->position + n <= d->window) return decoder_take(d, tokens, n, scores);
  int64_t all = (int64_t)d->history.n, keep = d->window / 2 > 0 ? d->window / 2 : 1;
  if (keep > all) keep = all;
  d->position = 0;
  return decoder_take(d, d->history.v + all - keep, keep, scores);
}
