/* core/infer/prediction/predict_inputs.c: which of the inputs are arrays, and for which inputs of the model.
 */
#include "core/infer/prediction/predict_inputs.h"

#include <string.h>
#include <sys/stat.h>

#include "core/base/text/text.h"
#include "core/formats/npy.h"
#include "core/step/checks/check_model.h"
#include "tenon/file_names.h"

/* ---- the inputs that the user names ---- */

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
    arrays += tn_predict_rows_reads(p->paths[i]);
  }
  p->arrays = arrays == o->n_inputs;
  if (arrays == 0 || p->arrays) return TN_OK;
  return tn_failf(
      &p->run->env, TN_EINVAL,
      "%s and %s: inputs are either .npy and .safetensors files, an array for each input of the model, or "
      "files that the source of [data] reads",
      p->paths[0], p->paths[1]);
}

/* ---- arrays ---- */

static const tn_binding *predict_find_input(const tn_program *program, const char *name) {
  for (int32_t i = 0; i < program->n_inputs; i++)
    if (tn_text_equal(program->inputs[i].name, name)) return &program->inputs[i];
  return NULL;
}

/* The dimension of an input that varies between batches; -1: none does. */
static int32_t predict_axis(const tn_predict_inputs *p, const char *name) {
  for (int32_t i = 0; i < p->n_padded; i++)
    if (tn_text_equal(p->padded[i].name, name)) return p->padded[i].axis;
  return -1;
}

/* Whether an input needs no array: the host writes it, or counts it with the lengths. */
static bool predict_is_filled(const tn_predict_inputs *p, const char *name) {
  return tn_input_is_of_host(name) || (p->n_padded > 0 && tn_text_equal(name, "length"));
}

tn_status tn_predict_inputs_length(tn_predict_inputs *p, int64_t *length) {
  tn_loader_options options = {0};
  const tn_settings *s = &p->run->settings;
  int64_t size = 0, longest = tn_settings_longest(s);
  *length = 0;
  TN_TRY(tn_fields_padded(p->run, &options));
  p->padded = options.padded;
  p->n_padded = options.n_padded;
  for (int32_t i = 0; i < p->rows.n && p->n_padded > 0; i++) {
    const tn_predict_array *a = &p->rows.arrays[i];
    int32_t axis = predict_axis(p, a->input != NULL ? a->input : p->padded[0].name);
    if (axis < 0 || axis + 1 >= a->type.rank) continue;
    size = a->type.dims[axis + 1] > size ? a->type.dims[axis + 1] : size;
    if (size > longest)
      return tn_failf(&p->run->env, TN_EINVAL,
                      "%s: its rows have length %lld, expected at most %lld, the longest of [model] lengths",
                      a->path, (long long)size, (long long)longest);
  }
  int32_t k = 0;
  while (size > 0 && s->lengths[k] < size) k++;
  if (size > 0) *length = s->lengths[k];
  return TN_OK;
}

/* The inputs of the program that samples have. */
static int32_t predict_count_inputs(const tn_predict_inputs *p, const tn_program *program,
                                    const tn_binding **first) {
  int32_t n = 0;
  for (int32_t i = 0; i < program->n_inputs; i++)
    if (!predict_is_filled(p, program->inputs[i].name) && n++ == 0) *first = &program->inputs[i];
  return n;
}

static tn_status predict_refuse_name(const tn_predict_inputs *p, const tn_program *program, const char *path,
                                     const char *name) {
  tn_text names = tn_text_new(&p->run->env);
  for (int32_t i = 0; i < program->n_inputs; i++)
    if (!tn_input_is_of_host(program->inputs[i].name))
      tn_text_addf(&names, "%s%s", names.n > 0 ? ", " : "", program->inputs[i].name);
  tn_status status = tn_failf(&p->run->env, TN_EINVAL, "%s: the model has no input '%s', expected %s", path,
                              name, names.v != NULL ? names.v : "none");
  tn_text_free(&names);
  return status;
}

/* The model's input that array i is for. */
static tn_status predict_name_array(tn_predict_inputs *p, const tn_program *program, int32_t i,
                                    const char **name) {
  const tn_binding *first = NULL;
  int32_t n = predict_count_inputs(p, program, &first);
  const char *path = p->rows.arrays[i].path;
  *name = p->rows.arrays[i].input;
  if (*name == NULL && n != 1)
    return tn_failf(&p->run->env, TN_EINVAL, "%s: the model has %d inputs; give NAME=%s for each", path,
                    (int)n, path);
  if (*name == NULL) *name = first->name;
  if (predict_find_input(program, *name) == NULL) return predict_refuse_name(p, program, path, *name);
  for (int32_t k = 0; k < i; k++)
    if (tn_text_equal(p->rows.arrays[k].input, *name))
      return tn_failf(&p->run->env, TN_EINVAL, "%s and %s: both are for the model's input '%s', expected one",
                      p->rows.arrays[k].path, path, *name);
  return TN_OK;
}

static tn_status predict_fail_type(tn_predict_inputs *p, const char *path, const tn_type *type,
                                   const tn_binding *input) {
  tn_text wanted = tn_text_new(&p->run->env);
  char has[TN_TYPE_TEXT];
  const char *numpy = type->dtype != input->type.dtype ? tn_npy_name(input->type.dtype) : NULL;
  for (int32_t i = 1; i < input->type.rank; i++)
    tn_text_addf(&wanted, ", %lld", (long long)input->type.dims[i]);
  tn_status status = tn_failf(
      &p->run->env, TN_EINVAL, "%s: holds %s, expected %s[rows%s] for the model's input '%s'%s%s%s", path,
      tn_type_format(type, has), tn_dtype_name(input->type.dtype), wanted.v ? wanted.v : "", input->name,
      numpy != NULL ? "; in NumPy x.astype('" : "", numpy != NULL ? numpy : "", numpy != NULL ? "')" : "");
  tn_text_free(&wanted);
  return status;
}

/* Rows that have the type of the model's input are fed as they are; bytes go through the transforms. */
static tn_status predict_check_array(tn_predict_inputs *p, const tn_program *program,
                                     const tn_predict_array *a) {
  const tn_binding *input = predict_find_input(program, a->input);
  tn_type type = a->type;
  int32_t axis = predict_axis(p, a->input);
  type.dims[0] = input->type.dims[0];
  if (axis >= 0 && axis + 1 < type.rank && axis + 1 < input->type.rank)
    type.dims[axis + 1] = input->type.dims[axis + 1]; /* the rows are padded */
  if (tn_type_equal(&type, &input->type)) return TN_OK;
  bool bytes = type.dtype == TN_U8 && input->type.dtype != TN_U8;
  if (!bytes || p->run->settings.data[TN_SPLIT_VALID].n_transforms == 0)
    return predict_fail_type(p, a->path, &a->type, input);
  p->transforms = true;
  return TN_OK;
}

/* The arrays are read before the programs are compiled, which limits the batch, and named after. */
static tn_status predict_read_arrays(tn_predict_inputs *p) {
  for (int32_t i = 0; p->arrays && i < p->options->n_inputs; i++)
    TN_TRY(tn_predict_rows_add(&p->run->arena, &p->rows, p->names[i], p->paths[i]));
  return TN_OK;
}

/* Each input of the program has an array. */
static tn_status predict_check_complete(const tn_predict_inputs *p, const tn_program *program) {
  for (int32_t i = 0; i < program->n_inputs; i++) {
    const char *name = program->inputs[i].name;
    bool given = predict_is_filled(p, name);
    for (int32_t k = 0; k < p->rows.n; k++) given = given || tn_text_equal(p->rows.arrays[k].input, name);
    if (!given)
      return tn_failf(&p->run->env, TN_EINVAL,
                      "there is no array for the model's input '%s'; give --input %s=FILE.npy", name, name);
  }
  return TN_OK;
}

tn_status tn_predict_inputs_bind(tn_predict_inputs *p, const tn_program *program) {
  for (int32_t i = 0; i < p->rows.n; i++) {
    const char *name = NULL;
    TN_TRY(predict_name_array(p, program, i, &name));
    p->rows.arrays[i].input = p->rows.fields[i].name = name;
    TN_TRY(predict_check_array(p, program, &p->rows.arrays[i]));
  }
  return p->arrays ? predict_check_complete(p, program) : TN_OK;
}

tn_status tn_predict_inputs_read(tn_predict_inputs *p) {
  TN_TRY(predict_split_names(p));
  return predict_read_arrays(p);
}

static bool predict_is_one(const char *path) { return tn_name_is_picture(path) || tn_name_is_sound(path); }

/* A folder and a table have any number of samples. */
int64_t tn_predict_inputs_samples(const tn_predict_inputs *p, int64_t batch) {
  int64_t n = 0;
  if (p->arrays) return tn_predict_rows_count(&p->rows);
  for (int32_t i = 0; i < p->options->n_inputs; i++) n += predict_is_one(p->paths[i]) ? 1 : batch;
  return n;
}
