/* core/onnx/write.c: the lines as text, as a person would write them, and the file of weights. */
#include <string.h>

#include "core/base/element.h"
#include "core/formats/safetensors.h"
#include "core/onnx/import.h"
#include "core/onnx/onnx.h"

/* ---- names that the text needs ---- */

typedef struct write_work {
  onnx_import *m;
  const onnx_section *section; /* that is being written */
  tn_text text;
  tn_name_index lines; /* names of lines with one name */
  TN_VEC(int32_t) uses;
  int32_t width; /* of the last name with its colon */
} write_work;

static tn_status write_use(write_work *w, const char *name, size_t n) {
  const char *word = tn_arena_printf(&w->m->arena, "%.*s", (int)n, name);
  if (word == NULL) return TN_ENOMEM;
  int64_t i = tn_name_index_find(&w->lines, word);
  if (i != TN_NAME_INDEX_NONE) w->uses.v[i]++;
  return TN_OK;
}

/* The names in an expression. */
static tn_status write_scan(write_work *w, const char *at) {
  while (*at != '\0') {
    size_t n = onnx_name_length(at);
    if (n > 0) TN_TRY(write_use(w, at, n));
    at += n > 0 ? n : 1;
  }
  return TN_OK;
}

/* Whether the output is the value of the last line, and so needs no name. */
static bool write_ends(const onnx_section *s) {
  if (s->n_outputs != 1 || s->n_lines == 0) return false;
  const onnx_line *last = &s->lines[s->n_lines - 1];
  return strcmp(last->value != NULL ? last->value : last->names, s->outputs[0]) == 0;
}

static tn_status write_count(write_work *w) {
  const onnx_section *s = w->section;
  tn_name_index_free(&w->lines);
  w->uses.n = 0;
  for (int32_t i = 0; i < s->n_lines; i++) {
    if (s->lines[i].n_names != 1) continue;
    TN_TRY(tn_name_index_add(&w->lines, s->lines[i].names));
    TN_TRY(tn_vec_push(w->m->env, &w->uses, 0));
  }
  for (int32_t i = 0; i < s->n_lines; i++) {
    const onnx_line *line = &s->lines[i];
    if (line->computes) TN_TRY(write_scan(w, line->call));
    for (int32_t k = 0; k < line->n_operands; k++) TN_TRY(write_scan(w, line->operands[k]));
  }
  for (int32_t i = 0; i < s->n_outputs && !write_ends(s); i++)
    TN_TRY(write_use(w, s->outputs[i], strlen(s->outputs[i])));
  return TN_OK;
}

/* ---- lines ---- */

/* The value that a line without an arrow reads: that of the line before, or the first input. */
static const char *write_before(const write_work *w, int32_t i) {
  if (i == 0) return w->section->input;
  const onnx_line *before = &w->section->lines[i - 1];
  if (before->value != NULL) return before->value;
  return before->n_names == 1 ? before->names : NULL;
}

static bool write_follows(const write_work *w, int32_t i) {
  const onnx_line *line = &w->section->lines[i];
  const char *before = write_before(w, i);
  return !line->computes && line->n_operands == 1 && before != NULL && strcmp(line->operands[0], before) == 0;
}

/* A line needs no name if the next line alone reads it, without an arrow, and it has no weights. */
static bool write_needs_name(const write_work *w, int32_t i) {
  const onnx_line *line = &w->section->lines[i];
  if (line->computes || line->has_weights || line->n_names != 1) return true;
  int32_t uses = w->uses.v[tn_name_index_find(&w->lines, line->names)];
  bool followed = i + 1 < w->section->n_lines && write_follows(w, i + 1);
  return uses != (followed ? 1 : 0);
}

static void write_line(write_work *w, int32_t i) {
  const onnx_line *line = &w->section->lines[i];
  if (line->computes) {
    tn_text_addf(&w->text, "    %s = %s\n", line->names, line->call);
    return;
  }
  if (write_needs_name(w, i)) {
    w->width = (int32_t)strlen(line->names) + 2;
    tn_text_addf(&w->text, "    %s: %s", line->names, line->call);
  } else {
    tn_text_addf(&w->text, "    %*s%s", w->width, "", line->call);
  }
  for (int32_t k = 0; k < line->n_operands && !write_follows(w, i); k++)
    tn_text_addf(&w->text, "%s%s", k == 0 ? " <- " : ", ", line->operands[k]);
  tn_text_add(&w->text, "\n");
}

/* ---- sections ---- */

static void write_inputs(write_work *w) {
  const onnx_import *m = w->m;
  for (size_t i = 0; i < m->inputs.n; i++) {
    const onnx_input *input = &m->inputs.v[i];
    tn_text_addf(&w->text, "%s%s: %s[", i == 0 ? "inputs = " : ", ", input->name,
                 tn_dtype_name(input->type.dtype));
    for (int32_t k = 0; k < input->type.rank; k++)
      tn_text_addf(&w->text, "%s%lld", k > 0 ? ", " : "", (long long)input->type.dims[k]);
    tn_text_add(&w->text, "]");
  }
  tn_text_add(&w->text, "\n");
}

static void write_outputs(write_work *w) {
  const onnx_section *s = w->section;
  if (write_ends(s)) return;
  tn_text_add(&w->text, "outputs = ");
  for (int32_t i = 0; i < s->n_outputs; i++) tn_text_addf(&w->text, "%s%s", i > 0 ? ", " : "", s->outputs[i]);
  tn_text_add(&w->text, "\n");
}

/* A text of the file, in a comment. */
static void write_plain(write_work *w, const char *text, size_t most) {
  for (size_t i = 0; text[i] != '\0' && i < most; i++)
    tn_text_addn(&w->text, (unsigned char)text[i] >= ' ' && text[i] != 127 ? &text[i] : " ", 1);
}

/* A value of metadata that stands in one line; NULL: the file has no such key, or other text. */
static const char *write_note(const write_work *w, const char *key) {
  const char *value = tn_onnx_entry_of(w->m->file, key);
  return value != NULL && strpbrk(value, "\n\r#$") == NULL ? value : NULL;
}

/* The objective of a model that was trained here, so that it can be trained again, and its scores are those
 * of classes. */
static void write_objective(write_work *w) {
  const char *loss = write_note(w, TN_ONNX_LOSS), *targets = write_note(w, TN_ONNX_TARGETS);
  if (targets != NULL) tn_text_addf(&w->text, "targets = %s\n", targets);
  if (loss != NULL) tn_text_addf(&w->text, "loss = %s\n", loss);
}

static void write_heading(write_work *w) {
  const tn_onnx_file *f = w->m->file;
  const char *slash = strrchr(f->path, '/');
  tn_text_add(&w->text, "# ");
  write_plain(w, slash != NULL ? slash + 1 : f->path, 200);
  tn_text_addf(&w->text, " of ONNX, opset %lld, by ", (long long)f->opset);
  write_plain(w, f->producer[0] != '\0' ? f->producer : "an unknown exporter", 60);
  tn_text_add(&w->text,
              w->m->whole ? "\n# A batch is one sample, which has all dimensions of the file.\n\n" : "\n\n");
}

static void write_layers(write_work *w) {
  tn_text_add(&w->text, "layers =\n");
  w->width = 0;
  for (int32_t i = 0; i < w->section->n_lines; i++) write_line(w, i);
}

static tn_status write_block(write_work *w, const onnx_section *section) {
  w->section = section;
  TN_TRY(write_count(w));
  tn_text_addf(&w->text, "\n[block %s]\n", section->name);
  if (section->args != NULL) tn_text_addf(&w->text, "args = %s\n", section->args);
  if (section->inputs != NULL) tn_text_addf(&w->text, "inputs = %s\n", section->inputs);
  write_outputs(w);
  write_layers(w);
  return TN_OK;
}

static tn_status write_sections(write_work *w, const onnx_section *sections, int32_t n, const char *weights) {
  w->section = sections;
  TN_TRY(write_count(w));
  write_heading(w);
  tn_text_add(&w->text, "[model]\n");
  write_inputs(w);
  write_outputs(w);
  write_layers(w);
  write_objective(w);
  for (int32_t i = 1; i < n; i++) TN_TRY(write_block(w, &sections[i]));
  if (w->m->weights.n > 0 && weights != NULL) tn_text_addf(&w->text, "\n[weights]\nfile = %s\n", weights);
  return TN_OK;
}

tn_status onnx_write_text(onnx_import *m, const onnx_section *sections, int32_t n, const char *weights,
                          char **text) {
  write_work w = {.m = m, .text = tn_text_new(m->env), .lines = tn_name_index_new(m->env)};
  tn_status status = write_sections(&w, sections, n, weights);
  *text = status == TN_OK ? tn_text_take(&w.text) : NULL;
  tn_text_free(&w.text);
  tn_name_index_free(&w.lines);
  tn_vec_free(m->env, &w.uses);
  return status == TN_OK && *text == NULL ? TN_ENOMEM : status;
}

/* ---- weights ---- */

/* Parameters are f32 in the model. */
static void weight_to_float(const onnx_weight *w, const void *from, float *to) {
  int64_t count = tn_type_count(&w->tensor->type);
  for (int64_t i = 0; i < count; i++) to[i] = (float)tn_element_load(w->tensor->type.dtype, from, i);
}

tn_status onnx_read_weight(onnx_import *m, const onnx_weight *w, float *to) {
  void *from = tn_alloc(m->env, tn_type_bytes(&w->tensor->type) + 1);
  tn_status status = from != NULL ? tn_onnx_tensor_read(m->file, w->tensor, from) : TN_ENOMEM;
  if (status == TN_OK) weight_to_float(w, from, to);
  tn_release(m->env, from);
  return status;
}

static tn_status weight_append(onnx_import *m, const onnx_weight *w, tn_safetensors_writer *writer) {
  size_t bytes = (size_t)tn_type_count(&w->tensor->type) * sizeof(float);
  float *to = tn_alloc(m->env, bytes + 1);
  tn_status status = to != NULL ? onnx_read_weight(m, w, to) : TN_ENOMEM;
  if (status == TN_OK) status = tn_safetensors_append(writer, to, bytes);
  tn_release(m->env, to);
  return status;
}

static tn_status weights_append(onnx_import *m, tn_safetensors_writer *writer) {
  for (size_t i = 0; i < m->weights.n; i++) {
    TN_TRY(tn_check_stop(m->env));
    TN_TRY(weight_append(m, &m->weights.v[i], writer));
  }
  return TN_OK;
}

static void weight_name(const onnx_weight *w, tn_safetensor_named *named) {
  *named = (tn_safetensor_named){.name = w->path, .type = w->tensor->type};
  named->type.dtype = TN_F32;
}

tn_status onnx_write_weights(onnx_import *m, const char *path) {
  tn_safetensor_named *named = tn_arena_alloc(&m->arena, m->weights.n * sizeof *named);
  tn_safetensors_writer *writer;
  if (named == NULL) return TN_ENOMEM;
  for (size_t i = 0; i < m->weights.n; i++) weight_name(&m->weights.v[i], &named[i]);
  const tn_safetensor_note classes = {TN_ONNX_CLASSES, tn_onnx_entry_of(m->file, TN_ONNX_CLASSES)};
  TN_TRY(tn_safetensors_begin(m->env, path, named, (int32_t)m->weights.n, &classes, classes.value != NULL,
                              &writer));
  tn_status status = weights_append(m, writer);
  if (status == TN_OK) return tn_safetensors_commit(writer);
  tn_safetensors_abandon(writer);
  return status;
}
