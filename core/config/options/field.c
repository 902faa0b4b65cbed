/* core/config/options/field.c: loading, storing, comparing and printing the fields of an options struct. */
#include <string.h>

#include "core/config/options/option_value.h"

const tn_option_type *tn_option_type_of(const tn_option *option) {
  static const tn_option_type types[] = {
      [TN_OPT_NONE] = {TN_FIELD_NONE, 0, ""},
      [TN_OPT_FLAG] = {TN_FIELD_I32, sizeof(int32_t), "yes or no"},
      [TN_OPT_INT] = {TN_FIELD_I64, sizeof(int64_t), "a whole number"},
      [TN_OPT_FLOAT] = {TN_FIELD_F64, sizeof(double), "a number"},
      [TN_OPT_TEXT] = {TN_FIELD_TEXT, sizeof(const char *), "a text"},
      [TN_OPT_PATH] = {TN_FIELD_TEXT, sizeof(const char *), "a path"},
      [TN_OPT_ENUM] = {TN_FIELD_I32, sizeof(int32_t), "a word"},
      [TN_OPT_INTS] = {TN_FIELD_INTS, sizeof(tn_ints), "a list of whole numbers"},
      [TN_OPT_FLOATS] = {TN_FIELD_FLOATS, sizeof(tn_floats), "a list of numbers"},
      [TN_OPT_SIZE] = {TN_FIELD_I64, sizeof(int64_t), "a size"},
      [TN_OPT_DURATION] = {TN_FIELD_F64, sizeof(double), "a duration"},
      [TN_OPT_DTYPE] = {TN_FIELD_I32, sizeof(int32_t), "an element type"},
      [TN_OPT_INIT] = {TN_FIELD_TEXT, sizeof(const char *), "an initializer"},
      [TN_OPT_CODE] = {TN_FIELD_TEXT, sizeof(const char *), "folders of libraries"},
      [TN_OPT_TRANSFORMS] = {TN_FIELD_TRANSFORMS, sizeof(tn_transforms), "a list of transforms"},
      [TN_OPT_SCHEDULES] = {TN_FIELD_SCHEDULES, sizeof(tn_schedules), "a list of schedules"},
  };
  return &types[option->type < sizeof(types) / sizeof(types[0]) ? option->type : TN_OPT_NONE];
}

/* Fields are copied with memcpy, because the struct of another compiler may be packed. */
void tn_option_store(const tn_option *option, void *data, const tn_option_value *value) {
  char *field = (char *)data + option->offset;
  int32_t word = (int32_t)value->integer;
  switch (tn_option_type_of(option)->field) {
  case TN_FIELD_I32: memcpy(field, &word, sizeof(word)); break;
  case TN_FIELD_I64: memcpy(field, &value->integer, sizeof(value->integer)); break;
  case TN_FIELD_F64: memcpy(field, &value->real, sizeof(value->real)); break;
  case TN_FIELD_TEXT: memcpy(field, &value->text, sizeof(value->text)); break;
  case TN_FIELD_INTS: memcpy(field, &value->ints, sizeof(value->ints)); break;
  case TN_FIELD_FLOATS: memcpy(field, &value->floats, sizeof(value->floats)); break;
  case TN_FIELD_TRANSFORMS: memcpy(field, &value->transforms, sizeof(value->transforms)); break;
  case TN_FIELD_SCHEDULES: memcpy(field, &value->schedules, sizeof(value->schedules)); break;
  default: break;
  }
}

tn_option_value tn_option_load(const tn_option *option, const void *data) {
  const char *field = (const char *)data + option->offset;
  tn_option_value value = {0};
  int32_t word = 0;
  switch (tn_option_type_of(option)->field) {
  case TN_FIELD_I32: memcpy(&word, field, sizeof(word)); break;
  case TN_FIELD_I64: memcpy(&value.integer, field, sizeof(value.integer)); break;
  case TN_FIELD_F64: memcpy(&value.real, field, sizeof(value.real)); break;
  case TN_FIELD_TEXT: memcpy(&value.text, field, sizeof(value.text)); break;
  case TN_FIELD_INTS: memcpy(&value.ints, field, sizeof(value.ints)); break;
  case TN_FIELD_FLOATS: memcpy(&value.floats, field, sizeof(value.floats)); break;
  case TN_FIELD_TRANSFORMS: memcpy(&value.transforms, field, sizeof(value.transforms)); break;
  case TN_FIELD_SCHEDULES: memcpy(&value.schedules, field, sizeof(value.schedules)); break;
  default: break;
  }
  if (tn_option_type_of(option)->field == TN_FIELD_I32) value.integer = word;
  return value;
}

static bool option_same_bytes(const void *a, const void *b, int64_t n, size_t item) {
  return n <= 0 || memcmp(a, b, (size_t)n * item) == 0;
}

bool tn_option_same(const tn_option *option, const void *a, const void *b) {
  tn_option_value x = tn_option_load(option, a), y = tn_option_load(option, b);
  switch (tn_option_type_of(option)->field) {
  case TN_FIELD_I32:
  case TN_FIELD_I64: return x.integer == y.integer;
  case TN_FIELD_F64: return option_same_bytes(&x.real, &y.real, 1, sizeof(x.real));
  case TN_FIELD_TEXT: return tn_text_equal(x.text, y.text);
  case TN_FIELD_INTS:
    return x.ints.n == y.ints.n && option_same_bytes(x.ints.v, y.ints.v, x.ints.n, sizeof(int64_t));
  case TN_FIELD_FLOATS:
    return x.floats.n == y.floats.n && option_same_bytes(x.floats.v, y.floats.v, x.floats.n, sizeof(double));
  default: return true;
  }
}

/* Prints the size in the largest binary unit that divides it. */
static void option_print_size(tn_text *text, int64_t bytes) {
  static const char *const units[] = {"", "KiB", "MiB", "GiB", "TiB"};
  int32_t unit = 0;
  while (unit < 4 && bytes != 0 && bytes % 1024 == 0) {
    bytes /= 1024;
    unit++;
  }
  tn_text_addf(text, "%lld%s", (long long)bytes, units[unit]);
}

static bool option_is_plain(const char *text) {
  static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.-+/*?@%:";
  return *text != '\0' && text[strspn(text, plain)] == '\0';
}

/* Quotes the text if it contains characters that end a value in "name=value, ...". */
static void option_print_text(tn_text *text, const char *value) {
  if (option_is_plain(value)) {
    tn_text_add(text, value);
    return;
  }
  tn_text_add(text, "\"");
  for (; *value != '\0'; value++) {
    if (*value == '\n')
      tn_text_add(text, "\\n");
    else
      tn_text_addf(text, "%s%c", *value == '"' || *value == '\\' ? "\\" : "", *value);
  }
  tn_text_add(text, "\"");
}

static void option_print_list(tn_text *text, const tn_option *option, const tn_option_value *value) {
  bool integer = option->type == TN_OPT_INTS;
  int64_t n = integer ? value->ints.n : value->floats.n;
  tn_text_add(text, "[");
  for (int64_t i = 0; i < n; i++) {
    if (i > 0) tn_text_add(text, ", ");
    if (integer)
      tn_text_addf(text, "%lld", (long long)value->ints.v[i]);
    else
      tn_text_add_float(text, value->floats.v[i]);
  }
  tn_text_add(text, "]");
}

static void option_print_word(tn_text *text, const tn_option *option, int64_t position) {
  size_t n = 0;
  const char *word = tn_alternatives_at(option->range, (int32_t)position, &n);
  tn_text_addn(text, word != NULL ? word : "?", word != NULL ? n : 1);
}

void tn_options_print_one(tn_text *text, const tn_option *option, const void *data) {
  tn_option_value value = tn_option_load(option, data);
  switch (option->type) {
  case TN_OPT_FLAG: tn_text_add(text, value.integer ? "yes" : "no"); break;
  case TN_OPT_INT: tn_text_addf(text, "%lld", (long long)value.integer); break;
  case TN_OPT_FLOAT: tn_text_add_float(text, value.real); break;
  case TN_OPT_TEXT:
  case TN_OPT_PATH:
  case TN_OPT_CODE: option_print_text(text, value.text != NULL ? value.text : ""); break;
  case TN_OPT_ENUM: option_print_word(text, option, value.integer); break;
  case TN_OPT_INTS:
  case TN_OPT_FLOATS: option_print_list(text, option, &value); break;
  case TN_OPT_SIZE: option_print_size(text, value.integer); break;
  case TN_OPT_DURATION:
    tn_text_add_float(text, value.real);
    tn_text_add(text, "s");
    break;
  case TN_OPT_DTYPE: tn_text_add(text, tn_dtype_name((int32_t)value.integer)); break;
  case TN_OPT_INIT: tn_text_add(text, value.text != NULL ? value.text : ""); break;
  default: break;
  }
}
