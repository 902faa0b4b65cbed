/* tools/reference/op_function.c: the C function of an op. */
#include "tools/reference/op_function.h"

#include <string.h>

/* ---- names ---- */

/* Names that no argument may have: the builder, keywords of C and C++, macros of compilers. */
static const char op_function_words[] =
    " build alignas alignof and asm auto bitand bitor bool break case catch char class compl const constexpr "
    "continue decltype default delete do double else enum explicit export extern false float for friend goto "
    "if inline int linux long mutable namespace new noexcept not nullptr operator or private protected "
    "public "
    "register restrict return short signed sizeof static struct switch template this throw true try typedef "
    "typeid typename union unix unsigned using virtual void volatile wchar_t while xor ";

static bool op_function_is_list(const op_argument *argument) {
  return argument->role == OP_VALUES || argument->role == OP_INTS || argument->role == OP_FLOATS;
}

/* Whether an earlier argument or the number of an earlier list has the name. */
static bool op_function_has(const op_function *function, const char *name) {
  for (int i = 0; i < function->n; i++) {
    const op_argument *a = &function->arguments[i];
    if (strcmp(a->name, name) == 0) return true;
    if (op_function_is_list(a) && strncmp(name, "n_", 2) == 0 && strcmp(a->name, name + 2) == 0) return true;
  }
  return false;
}

static bool op_function_is_free(const op_function *function, const char *name, bool list) {
  char word[OP_MOST_NAME + 2], number[OP_MOST_NAME + 2];
  snprintf(word, sizeof word, " %s ", name);
  snprintf(number, sizeof number, "n_%s", name);
  return strstr(op_function_words, word) == NULL && !op_function_has(function, name) &&
         !(list && op_function_has(function, number));
}

/* Adds an argument; its name gets a _ behind it as long as that is not free. */
static void op_function_add(op_function *function, op_role role, const json_t *option, const char *name,
                            size_t length) {
  if (function->n == OP_MOST_ARGUMENTS) return;
  op_argument *a = &function->arguments[function->n];
  *a = (op_argument){.role = role, .option = option};
  if (length > OP_MOST_NAME - 8) length = OP_MOST_NAME - 8;
  memcpy(a->name, name, length);
  while (!op_function_is_free(function, a->name, op_function_is_list(a)) && length < OP_MOST_NAME - 1)
    a->name[length++] = '_';
  function->n++;
}

/* ---- reading ---- */

/* "x:T, bias?:T, rest*:T" up to the bracket that closes the operands. */
static void op_function_read_operands(op_function *function, const char *schema) {
  const char *at = schema + strcspn(schema, "(");
  while (*at != '\0' && *at != ')') {
    at += strspn(at, "( ,");
    size_t n = strcspn(at, ":?*,) ");
    if (n > 0) op_function_add(function, at[n] == '*' ? OP_VALUES : OP_VALUE, NULL, at, n);
    at += strcspn(at, ",)");
  }
}

static op_role op_function_role(const char *type) {
  static const struct {
    const char *type;
    op_role role;
  } roles[] = {{"flag", OP_CHOICE},   {"enum", OP_CHOICE}, {"dtype", OP_CHOICE},
               {"int", OP_NUMBER},    {"size", OP_NUMBER}, {"float", OP_REAL},
               {"duration", OP_REAL}, {"ints", OP_INTS},   {"floats", OP_FLOATS}};
  for (size_t i = 0; i < sizeof roles / sizeof *roles; i++)
    if (strcmp(type, roles[i].type) == 0) return roles[i].role;
  return OP_TEXT;
}

static bool op_function_has_option(const json_t *options, const char *name, const char *type) {
  const json_t *option;
  size_t i;
  json_array_foreach(options, i, option) if (strcmp(cli_text(option, "name"), name) ==
                                             0) return strcmp(cli_text(option, "type"), type) == 0;
  return false;
}

void op_function_read(const json_t *item, op_function *function) {
  const json_t *options = json_object_get(item, "options"), *option;
  size_t i;
  bool typed =
      op_function_has_option(options, "dims", "ints") && op_function_has_option(options, "dtype", "dtype");
  *function = (op_function){.op = cli_text(item, "name")};
  op_function_read_operands(function, cli_text(item, "schema"));
  json_array_foreach(options, i, option) {
    const char *name = cli_text(option, "name");
    if (typed && strcmp(name, "dtype") == 0) continue;
    if (typed && strcmp(name, "dims") == 0)
      op_function_add(function, OP_TYPE, option, "type", strlen("type"));
    else
      op_function_add(function, op_function_role(cli_text(option, "type")), option, name, strlen(name));
  }
}

/* ---- writing ---- */

static int op_function_print_argument(char *text, size_t size, const op_argument *a) {
  static const char *const types[] = {
      [OP_VALUE] = "tn_val ",     [OP_VALUES] = "const tn_val *", [OP_TYPE] = "const tn_type *",
      [OP_NUMBER] = "int64_t ",   [OP_CHOICE] = "int32_t ",       [OP_REAL] = "double ",
      [OP_TEXT] = "const char *", [OP_INTS] = "const int64_t *",  [OP_FLOATS] = "const double *"};
  if (op_function_is_list(a))
    return snprintf(text, size, "int64_t n_%s, %s%s", a->name, types[a->role], a->name);
  return snprintf(text, size, "%s%s", types[a->role], a->name);
}

void op_function_write_head(FILE *to, const op_function *function, const char *before, int width) {
  char text[2 * OP_MOST_NAME + 64];
  int indent = fprintf(to, "%stn_val tn_%s(", before, function->op);
  int column = indent + fprintf(to, "tn_build *build");
  for (int i = 0; i < function->n; i++) {
    int n = op_function_print_argument(text, sizeof text, &function->arguments[i]);
    bool broken = width > 0 && column + 2 + n + 3 > width; /* behind it ") {" */
    if (broken)
      fprintf(to, ",\n%*s%s", indent, "", text);
    else
      fprintf(to, ", %s", text);
    column = broken ? indent + n : column + 2 + n;
  }
  fprintf(to, ")");
}

/* An argument that may be left to its default: a text that is NULL, a list of nothing at NULL. */
static void op_function_write_condition(FILE *to, const op_argument *a) {
  fprintf(to, "  ");
  if (a->option == NULL || cli_text(a->option, "default") == NULL) return;
  if (a->role == OP_TEXT) fprintf(to, "if (%s != NULL) ", a->name);
  if (a->role == OP_INTS || a->role == OP_FLOATS)
    fprintf(to, "if (n_%s != 0 || %s != NULL) ", a->name, a->name);
}

static void op_function_write_argument(FILE *to, const op_argument *a) {
  const char *name = a->name, *option = a->option != NULL ? cli_text(a->option, "name") : NULL;
  op_function_write_condition(to, a);
  switch (a->role) {
  case OP_VALUE: fprintf(to, "tn_op_arg(build, %s);\n", name); break;
  case OP_VALUES:
    fprintf(to, "for (int64_t i = 0; i < n_%s; i++) tn_op_arg(build, %s[i]);\n", name, name);
    break;
  case OP_TYPE:
    fprintf(to, "tn_op_set_ints(build, \"dims\", %s->rank, %s->dims);\n", name, name);
    fprintf(to, "  tn_op_set_int(build, \"dtype\", %s->dtype);\n", name);
    break;
  case OP_NUMBER:
  case OP_CHOICE: fprintf(to, "tn_op_set_int(build, \"%s\", %s);\n", option, name); break;
  case OP_REAL: fprintf(to, "tn_op_set_float(build, \"%s\", %s);\n", option, name); break;
  case OP_TEXT: fprintf(to, "tn_op_set_text(build, \"%s\", %s);\n", option, name); break;
  case OP_INTS: fprintf(to, "tn_op_set_ints(build, \"%s\", n_%s, %s);\n", option, name, name); break;
  case OP_FLOATS: fprintf(to, "tn_op_set_floats(build, \"%s\", n_%s, %s);\n", option, name, name); break;
  }
}

void op_function_write_body(FILE *to, const op_function *function) {
  fprintf(to, "  tn_op_begin(build, \"%s\");\n", function->op);
  for (int i = 0; i < function->n; i++) op_function_write_argument(to, &function->arguments[i]);
  fprintf(to, "  return tn_op_end(build);\n");
}
