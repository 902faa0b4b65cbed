/* core/infer/prediction/predict_inputs.c: which of the inputs are arrays, and for which inputs of the model.
 */
#include "core/infer/prediction/predict_inputs.h"

#include <string.h>
#include <sys/stat.h>

#include "core/base/text/text.h"
#include "core/step/checks/check_model.h"

/* ---- the inputs that the user names ---- */

static bool predict_is_array(const char *path) {
  size_t n = strlen(path);
  return n > 4 && tn_text_equal(path + n - 4, ".npy");
}

/* The length of NAME in "NAME=PATH"; 0: the text is a path, as is the name of any file that exists. */
static size_t predict_name_length(const char *text) {
  struct stat info;
  size_t n = strspn(text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.");
  return text[n] == '=' && stat(text, &info) != 0 ? n : 0;
}

static tn_status predict_split_names(tn_predict_inputs *p) {
  const tn_predict_options *o = p->options;
  int32_t arrays = 0;
  p->paths = tn_arena_alloc(&p->run->arena, tn_size_mul((size_t)o->n_inputs, sizeof *p->paths));
  p->names = tn_arena_alloc(&p->run->arena, tn_size_mul((size_t)o->n_inputs, sizeof *p->names));
  if (p->paths == NULL || p->names == NULL) return TN_ENOMEM;
  for (int32_t i = 0; i < o->n_inputs; i++) {
    TN_NEED(p->run, o->inputs[i], "an input");
    size_t n = predict_name_length(o->inputs[i]);
    p->paths[i] = o->inputs[i] + (n > 0 ? n + 1 : 0);
    p->names[i] = n > 0 ? tn_arena_printf(&p->run->arena, "%.*s", (int)n, o->inputs[i]) : NULL;
    if (n > 0 && p->names[i] == NULL) return TN_ENOMEM;
    arrays += predict_is_array(p->paths[i]);
  }
  p->arrays = arrays == o->n_inputs;
  if (arrays == 0 || p->arrays) return TN_OK;
  return tn_failf(
      &p->run->env, TN_EINVAL,
      "%s and %s: inputs are either .npy files, one for each input of the model, or files that the "
      "source of [data] reads",
      p->paths[0], p->paths[1]);
}

/* ---- arrays ---- */

static const tn_binding *predict_find_input(const tn_program *program, const char *name) {
  for (int32_t i = 0; i < program->n_inputs; i++)
    if (tn_text_equal(program->inputs[i].name, name)) return &program->inputs[i];
  return NULL;
}

/* The inputs of the program that samples have, without those that the host writes. */
static int32_t predict_count_inputs(const tn_program *program, const tn_binding **first) {
  int32_t n = 0;
  for (int32_t i = 0; i < program->n_inputs; i++)
    if (!tn_input_is_of_host(program->inputs[i].name) && n++ == 0) *first = &program->inputs[i];
  return n;
}

/* The model's input that array i is for. */
static tn_status predict_name_array(tn_predict_inputs *p, const tn_program *program, int32_t i,
                                    const char **name) {
  const tn_binding *first = NULL;
  int32_t n = predict_count_inputs(program, &first);
  *name = p->names[i];
  if (*name != NULL && predict_find_input(program, *name) != NULL) return TN_OK;
  if (*name != NULL)
    return tn_failf(&p->run->env, TN_EINVAL, "%s: the model has no input '%s'", p->options->inputs[i], *name);
  if (n != 1)
    return tn_failf(&p->run->env, TN_EINVAL, "%s: the model has %d inputs; give NAME=%s for each",
                    p->paths[i], (int)n, p->paths[i]);
  *name = first->name;
  return TN_OK;
}

static tn_status predict_fail_type(tn_predict_inputs *p, const char *path, const tn_type *type,
                                   const tn_binding *input) {
  tn_text wanted = tn_text_new(&p->run->env);
  char has[TN_TYPE_TEXT];
  for (int32_t i = 1; i < input->type.rank; i++)
    tn_text_addf(&wanted, ", %lld", (long long)input->type.dims[i]);
  tn_status status = tn_failf(
      &p->run->env, TN_EINVAL, "%s: holds %s, expected %s[rows%s] for the model's input '%s'", path,
      tn_type_format(type, has), tn_dtype_name(input->type.dtype), wanted.v ? wanted.v : "", input->name);
  tn_text_free(&wanted);
  return status;
}

/* Rows that have the type of the model's input are fed as they are; bytes go through the transforms. */
static tn_status predict_check_array(tn_predict_inputs *p, const tn_program *program,
                                     const tn_predict_array *a) {
  const tn_binding *input = predict_find_input(program, a->input);
  tn_type type = a->type;
  type.dims[0] = input->type.dims[0];
  if (tn_type_equal(&type, &input->type)) return TN_OK;
  bool bytes = type.dtype == TN_U8 && input->type.dtype != TN_U8;
  if (!bytes || p->run->settings.data[TN_SPLIT_VALID].n_transforms == 0)
    return predict_fail_type(p, a->path, &a->type, input);
  p->transforms = true;
  return TN_OK;
}

/* The arrays are read before the programs are compiled, which limits the batch, and named after. */
static tn_status predict_read_arrays(tn_predict_inputs *p) {
  for (int32_t i = 0; p->arrays && i < p->options->n_inputs; i++) {
    if (i == TN_PREDICT_INPUTS)
      return tn_failf(&p->run->env, TN_EINVAL, "%d inputs, expected at most %d", (int)p->options->n_inputs,
                      (int)TN_PREDICT_INPUTS);
    TN_TRY(tn_predict_rows_add(&p->run->env, &p->rows, "", p->paths[i]));
  }
  return TN_OK;
}

tn_status tn_predict_inputs_bind(tn_predict_inputs *p, const tn_program *program) {
  const tn_binding *first = NULL;
  for (int32_t i = 0; i < p->rows.n; i++) {
    const char *name = NULL;
    TN_TRY(predict_name_array(p, program, i, &name));
    p->rows.arrays[i].input = p->rows.fields[i].name = name;
    TN_TRY(predict_check_array(p, program, &p->rows.arrays[i]));
  }
  int32_t n = predict_count_inputs(program, &first);
  if (!p->arrays || p->rows.n == n) return TN_OK;
  return tn_failf(&p->run->env, TN_EINVAL, "%d arrays for the %d inputs of the model", (int)p->rows.n,
                  (int)n);
}

tn_status tn_predict_inputs_read(tn_predict_inputs *p) {
  TN_TRY(predict_split_names(p));
  return predict_read_arrays(p);
}

int64_t tn_predict_inputs_samples(const tn_predict_inputs *p, int64_t batch) {
  struct stat info;
  int64_t n = 0;
  if (p->arrays) return tn_predict_rows_count(&p->rows);
  for (int32_t i = 0; i < p->options->n_inputs; i++)
    n += stat(p->paths[i], &info) == 0 && S_ISDIR(info.st_mode) ? batch : 1;
  return n;
}
