/* tools/reference/header.c: `tenon reference --header PLUGIN`: the ops of a plugin as C functions. */
#include <ctype.h>
#include <string.h>

#include "tools/reference/op_function.h"
#include "tools/reference/reference.h"

enum { HEADER_WIDTH = 110 };

static bool header_has(const json_t *item, const char *plugin) {
  return strcmp(cli_text(item, "kind"), "op") == 0 && strcmp(cli_text(item, "plugin"), plugin) == 0;
}

/* ---- comments ---- */

/* One word of a comment, in which no mark ends the comment or begins another. */
static void header_write_word(FILE *to, const char *word, size_t n) {
  for (size_t i = 0; i < n; i++) {
    fputc(word[i], to);
    if (i + 1 < n && ((word[i] == '*' && word[i + 1] == '/') || (word[i] == '/' && word[i + 1] == '*')))
      fputc(' ', to);
  }
}

/* Adds words to a line that has reached `column`; 0: the line has its indent alone, to which further lines
 * are indented as well. Returns the new column. */
static int header_write_words(FILE *to, const char *text, int column, int indent) {
  for (text += strspn(text, " \n"); *text; text += strspn(text, " \n")) {
    int n = (int)strcspn(text, " \n"), end = (int)strlen(" */");
    bool broken = column > 0 && column + 1 + n + end > HEADER_WIDTH;
    if (broken) fprintf(to, "\n *%*s", 1 + indent, "");
    if (column > 0 && !broken) fputc(' ', to);
    header_write_word(to, text, (size_t)n);
    column = column > 0 && !broken ? column + 1 + n : 3 + indent + n;
    text += n;
  }
  return column;
}

/* "reduction (0 sum, 1 min):" of a choice, else "epsilon:". */
static int header_write_option_name(FILE *to, const json_t *option) {
  const char *words = cli_text(option, "range");
  char text[512];
  int used = snprintf(text, sizeof text, "%s", cli_text(option, "name"));
  bool choice = words != NULL && strcmp(cli_text(option, "type"), "enum") == 0;
  for (int i = 0; choice && *words && used < (int)sizeof text; i++) {
    int n = (int)strcspn(words, "|");
    used += snprintf(text + used, sizeof text - (size_t)used, "%s%d %.*s", i > 0 ? ", " : " (", i, n, words);
    words += n + (words[n] == '|');
  }
  if (used < (int)sizeof text) snprintf(text + used, sizeof text - (size_t)used, choice ? "):" : ":");
  return header_write_words(to, text, 0, 2);
}

static void header_write_option(FILE *to, const json_t *option) {
  const char *range = cli_text(option, "range"), *fallback = cli_text(option, "default");
  bool ranged = range != NULL && strcmp(cli_text(option, "type"), "enum") != 0,
       given = fallback != NULL && *fallback != '\0';
  json_t *text = json_sprintf("%s%s%s%s%s", cli_text(option, "doc"), ranged ? "; " : "", ranged ? range : "",
                              given ? "; default " : "", given ? fallback : "");
  fprintf(to, "\n *   ");
  int column = header_write_option_name(to, option);
  header_write_words(to, text != NULL ? json_string_value(text) : "", column, 4);
  json_decref(text);
}

static void header_write_comment(FILE *to, const json_t *item) {
  const char *notes = cli_text(item, "notes");
  const json_t *option;
  size_t i;
  int column = fprintf(to, "\n/* %s:", cli_text(item, "name")) - 1;
  header_write_words(to, cli_text(item, "doc"), column, 0);
  if (notes != NULL) {
    fprintf(to, "\n * ");
    header_write_words(to, notes, 0, 0);
  }
  fprintf(to, "\n *   ");
  header_write_words(to, cli_text(item, "schema"), 0, 2);
  json_array_foreach(json_object_get(item, "options"), i, option) header_write_option(to, option);
  fprintf(to, " */\n");
}

/* ---- the file ---- */

static void header_write_function(FILE *to, const json_t *item) {
  op_function function;
  op_function_read(item, &function);
  header_write_comment(to, item);
  op_function_write_head(to, &function, "static inline ", HEADER_WIDTH);
  fprintf(to, " {\n");
  op_function_write_body(to, &function);
  fprintf(to, "}\n");
}

static void header_write_guard(FILE *to, const char *plugin) {
  fprintf(to, "TENON_OPS_OF_");
  for (; *plugin; plugin++)
    fputc(isalnum((unsigned char)*plugin) ? toupper((unsigned char)*plugin) : '_', to);
  fprintf(to, "_H\n");
}

static const char header_intro[] =
    "/* The ops of %s as functions, for code that builds a graph (build.h). Written by\n"
    " * `tenon reference --header %s` from the descriptors of the ops.\n"
    " *\n"
    " * A function returns the op's first result; further ones come from tn_op_result(build, first, index). "
    "Its\n"
    " * arguments are the operands in the order of the schema, then the options in the order of their table. "
    "An\n"
    " * operand with `?` is 0 where it is absent. A choice is given by the number of its word. A list is "
    "given as\n"
    " * its length and a pointer, which is read during the call; 0 and NULL stand for the default, and so "
    "does a\n"
    " * text that is NULL, if there is a default. The options dims and dtype are given as one tn_type. Types "
    "that\n"
    " * do not fit stick in the builder as TN_EINVAL. */\n";

int reference_write_header(FILE *to, const cli_args *args, const json_t *items) {
  const char *plugin = args->header;
  const json_t *item;
  size_t i;
  bool any = false;
  json_array_foreach(items, i, item) any = any || header_has(item, plugin);
  if (!any)
    return cli_refuse(
        args, CLI_DATA,
        "no plugin '%s' with ops is loaded; core has Tenon's own, and --plugin FILE loads another", plugin);
  fprintf(to, header_intro, plugin, plugin);
  fprintf(to, "#ifndef ");
  header_write_guard(to, plugin);
  fprintf(to, "#define ");
  header_write_guard(to, plugin);
  fprintf(to, "\n#include \"tenon/build.h\"\n\n/* clang-format off */\n\nTN_BEGIN_C\n");
  json_array_foreach(items, i, item) if (header_has(item, plugin)) header_write_function(to, item);
  fprintf(to, "\nTN_END_C\n#endif\n");
  return CLI_OK;
}
