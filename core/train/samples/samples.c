#include "core/train/samples/samples.h"

#include <string.h>

#include "core/step/checks/check_model.h"
#include "core/step/values/control_block.h"
#include "core/train/samples/sample_view.h"

struct tn_samples {
  tn_run *run;
  tn_executor *executor;
  const tn_program *program;
  int32_t index; /* of it, in the executor */
  tn_control_block control_block;
  tn_sample_set set;
  tn_continuation continuation;
  tn_sample_media media;
};

/* ---- which values are shown ---- */

static tn_status samples_fail_name(const tn_samples *s, const char *name) {
  tn_run *run = s->run;
  tn_text names = tn_text_new(&run->env);
  for (int32_t i = 0; i < s->set.n_values; i++)
    tn_text_addf(&names, "%s%s", i > 0 ? ", " : "", s->set.values[i].name);
  tn_status status = tn_failf(
      &run->env, TN_EINVAL,
      "%s: [run] sample_fields: '%s' is no input, target or output of the model; there are %s",
      tn_settings_where(&run->ini, "run", "sample_fields"), name, names.v != NULL ? names.v : "none");
  tn_text_free(&names);
  return status;
}

static bool samples_has(const tn_sample_set *set, const char *name) {
  for (int32_t i = 0; i < set->n_values; i++)
    if (tn_text_equal(set->values[i].name, name)) return true;
  return false;
}

static tn_status samples_fail_nothing(const tn_samples *s) {
  tn_run *run = s->run;
  char type[TN_TYPE_TEXT];
  tn_text values = tn_text_new(&run->env);
  for (int32_t i = 0; i < s->set.n_values; i++)
    tn_text_addf(&values, "%s%s: %s", i > 0 ? ", " : "", s->set.values[i].name,
                 tn_type_format(&s->set.values[i].type, type));
  tn_status status = tn_failf(
      &run->env, TN_EINVAL,
      "%s: [run] samples = %lld: no value of a sample can be shown (%s), expected a picture [1 or 3, "
      "height, width], a mask, a class, tokens, or at most 16 numbers",
      tn_settings_where(&run->ini, "run", "samples"), (long long)run->settings.run.samples,
      values.v != NULL ? values.v : "");
  tn_text_free(&values);
  return status;
}

static tn_status samples_choose_views(tn_samples *s) {
  tn_words words;
  bool any = false;
  TN_TRY(tn_words_split(&s->set.arena, s->run->settings.run.sample_fields, &words));
  for (int32_t i = 0; i < words.n; i++)
    if (!samples_has(&s->set, words.v[i])) return samples_fail_name(s, words.v[i]);
  for (int32_t i = 0; i < s->set.n_values; i++) {
    tn_sample_value *value = &s->set.values[i];
    if (words.n == 0 || tn_words_contain(&words, value->name))
      value->view = tn_sample_view_find(&s->set, value);
    any = any || value->view != NULL;
  }
  return any ? TN_OK : samples_fail_nothing(s);
}

/* ---- opening ---- */

static tn_status samples_prepare(tn_samples *s, const tn_loader *valid, tn_program_set *set, int32_t slots) {
  TN_TRY(tn_control_block_bind(&set->arena, s->executor, s->index, slots, &set->update, &s->control_block));
  TN_TRY(tn_sample_set_read(s->run, valid, s->program, s->run->settings.run.samples, &s->set));
  TN_TRY(samples_choose_views(s));
  TN_TRY(tn_continuation_find(&s->set, &s->continuation));
  return tn_sample_media_start(&s->set, &s->media);
}

tn_status tn_samples_open(tn_run *run, const tn_loader *valid, tn_program_set *set, tn_executor *executor,
                          int32_t slots, tn_samples **samples) {
  *samples = NULL;
  tn_samples *s = tn_alloc(&run->env, sizeof *s);
  if (s == NULL) return TN_ENOMEM;
  s->run = run;
  s->executor = executor;
  s->program = set->programs[TN_PROGRAM_SAMPLES];
  s->index = set->index[TN_PROGRAM_SAMPLES];
  tn_status status = samples_prepare(s, valid, set, slots);
  if (status == TN_OK)
    *samples = s;
  else
    tn_samples_close(s);
  return status;
}

void tn_samples_close(tn_samples *s) {
  if (s == NULL) return;
  const void *env = &s->run->env;
  if (s->media.v != NULL) tn_sample_media_clear(&s->set, &s->media);
  tn_sample_set_free(&s->set);
  tn_release(env, s);
}

/* ---- a validation ---- */

static const tn_sample_value *samples_find_field(const tn_samples *s, const char *name) {
  const tn_sample_value *value = tn_sample_find(&s->set, name, TN_FIELD_INPUT);
  return value != NULL ? value : tn_sample_find(&s->set, name, TN_FIELD_TARGET);
}

/* Inputs that the host writes come with the control block, but for the weights of samples. */
static void samples_fill_slot(const tn_samples *s) {
  const tn_step_position at = {.plain = true};
  for (int32_t i = 0; i < s->program->n_inputs; i++) {
    const char *name = s->program->inputs[i].name;
    void *to = tn_executor_input(s->executor, s->index, 0, name);
    const tn_sample_value *value = samples_find_field(s, name);
    if (to != NULL && value != NULL && !tn_input_is_of_host(name))
      memcpy(to, value->rows, (size_t)s->set.batch * value->bytes);
  }
  float *weights = tn_executor_input(s->executor, s->index, 0, "sample.weight");
  for (int64_t i = 0; weights != NULL && i < s->set.batch; i++) weights[i] = i < s->set.n ? 1 : 0;
  tn_control_block_write(&s->control_block, 0, 0, &at);
}

static tn_status samples_run_program(void *context) {
  const tn_samples *s = context;
  TN_TRY(tn_executor_slot_wait(s->executor, 0));
  samples_fill_slot(s);
  TN_TRY(tn_executor_run(s->executor, s->index, 0));
  TN_TRY(tn_executor_slot_wait(s->executor, 0));
  for (int32_t i = 0; i < s->set.n_values; i++) {
    const tn_sample_value *value = &s->set.values[i];
    if (value->role == TN_SAMPLE_OUTPUT)
      memcpy(value->rows, tn_executor_output(s->executor, s->index, 0, value->name),
             (size_t)s->set.batch * value->bytes);
  }
  return TN_OK;
}

tn_status tn_samples_run(tn_samples *s, const tn_media **media, int32_t *n) {
  TN_TRY(samples_run_program(s));
  if (s->continuation.input != NULL)
    TN_TRY(tn_continuation_run(&s->set, &s->continuation, samples_run_program, s));
  *n = 0;
  *media = s->media.v;
  if (s->run->rank != 0) return TN_OK;
  TN_TRY(tn_sample_media_make(&s->set, &s->continuation, &s->media));
  *n = s->media.n;
  return TN_OK;
}
