#include "core/infer/prediction/predict_texts.h"

#include "core/base/file/file.h"
#include "core/model/model.h"
#include "core/infer/prediction/decoder.h"
#include "core/infer/prediction/predict_classes.h"
#include "core/records/learnt/vocabulary.h"
#include "core/run/result.h"
#include "core/tokenizer/calls.h"

enum { DEFAULT_TOP = 5 };
static const size_t LARGEST_TEXT = (size_t)1 << 30;

tn_status tn_predict_texts_wanted(const tn_predict_inputs *p, bool *wanted) {
  tn_run *run = p->run;
  const tn_data_setting *data = &run->settings.data[TN_SPLIT_VALID];
  tn_signature signature;
  *wanted = false;
  if (p->arrays || !data->given || data->source->open_files != NULL) return TN_OK;
  TN_TRY(tn_signature_read(&run->env, &run->arena, &run->ini, &signature));
  const tn_type *type = &signature.inputs[0].type;
  *wanted = signature.n_inputs == 1 && signature.word == NULL && type->rank == 1 &&
            (type->dtype == TN_I32 || type->dtype == TN_I64);
  return TN_OK;
}

/* The last tokens are enough: the model sees no more than its window. */
static tn_status predict_text_scores(const tn_predict_inputs *p, tn_decoder *d, const char *path,
                                     const float **scores) {
  const void *env = &p->run->env;
  tn_token_ids tokens = {0};
  char *text = NULL;
  size_t bytes = 0;
  tn_status status = tn_file_read(env, path, LARGEST_TEXT, &text, &bytes);
  if (status == TN_OK && bytes == 0) status = tn_failf(env, TN_EINVAL, "the file is empty");
  if (status == TN_OK) status = tn_host_tokenizer_encode(env, d->tokenizer, text, bytes, 0, &tokens);
  if (status == TN_OK) {
    int64_t n = (int64_t)tokens.n < d->window ? (int64_t)tokens.n : d->window;
    tn_decoder_restart(d);
    status = tn_decoder_feed(d, tokens.v + tokens.n - (size_t)n, n, scores);
  }
  tn_release(env, text);
  tn_release(env, tokens.v);
  return status == TN_EINVAL ? tn_wrap(env, status, "%s", path) : status;
}

static tn_status predict_text_rows(const tn_predict_inputs *p, tn_decoder *d, tn_finite_rows *finite,
                                   json_t *predictions) {
  json_t *names = tn_vocabulary_names(&p->run->env, d->tokenizer, d->classes);
  int64_t top = p->options->top > 0 ? p->options->top : DEFAULT_TOP;
  const tn_predict_classes classes = {
      .names = names, .classes = d->classes, .top = (int32_t)(top < d->classes ? top : d->classes)};
  tn_status status = names != NULL ? TN_OK : TN_ENOMEM;
  for (int32_t i = 0; status == TN_OK && i < p->options->n_inputs; i++) {
    const float *scores;
    status = predict_text_scores(p, d, p->paths[i], &scores);
    if (status != TN_OK) break;
    tn_finite_rows_count(finite, i, tn_scores_are_numbers(scores, d->classes));
    json_array_append_new(predictions, json_pack("{s:o, s:o}", "input", tn_json_text(p->paths[i]), "top",
                                                 tn_predict_classes_row(&classes, scores)));
  }
  json_decref(names);
  return status;
}

tn_status tn_predict_texts(const tn_predict_inputs *p, tn_finite_rows *finite, json_t **result) {
  tn_decoder d = {.run = p->run};
  if (p->options->show != NULL)
    return tn_failf(&p->run->env, TN_EINVAL, "--show %s: %s is no picture, over which places can be drawn",
                    p->options->show, p->paths[0]);
  if (p->options->output != NULL)
    return tn_failf(&p->run->env, TN_EINVAL,
                    "%s: of a text only the next token is predicted, without --output; the scores behind "
                    "every token are those of a .npy file with numbers of tokens",
                    p->paths[0]);
  json_t *predictions = json_array();
  tn_status status = tn_decoder_open(p->run, "predict", &d);
  if (status == TN_OK)
    status = tn_decoder_need_texts(&d, p->paths[0], "give numbers of tokens as a .npy file");
  if (status == TN_OK) status = predict_text_rows(p, &d, finite, predictions);
  if (status == TN_OK)
    *result = json_pack("{s:i, s:O}", "rows", (int)p->options->n_inputs, "predictions", predictions);
  json_decref(predictions);
  tn_decoder_close(&d);
  return status;
}
