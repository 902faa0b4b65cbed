/* tools/reference/markdown.c: texts and tables of the reference. */
#include <string.h>

#include "tools/reference/reference.h"

/* Lines of at most 118 characters, broken at blanks. */
static void markdown_write_paragraph(FILE *to, const char *text) {
  for (size_t column = 0; *text; text += strspn(text, " ")) {
    size_t n = strcspn(text, " ");
    bool broken = column > 0 && column + 1 + n > 118;
    fprintf(to, "%s%.*s", broken ? "\n" : column > 0 ? " " : "", (int)n, text);
    column = broken || column == 0 ? n : column + 1 + n;
    text += n;
  }
  fputc('\n', to);
}

void reference_write_head(FILE *to, const char *title, const char *intro) {
  fprintf(to, "# %s\n\n" REFERENCE_MARK " `tools/dev reference` renews the page. -->\n\n", title);
  markdown_write_paragraph(to, intro);
}

/* Between back quotes only `|` is escaped, which ends the cell of a table there, too. */
void reference_write_text(FILE *to, const char *text) {
  bool quoted = false;
  for (; *text; text++) {
    quoted ^= *text == '`';
    if (*text == '|' || (!quoted && strchr("*<\\", *text))) fputc('\\', to);
    fputc(*text, to);
  }
}

/* "`a`, `b`, `c`" of "a|b|c". */
static void markdown_write_choices(FILE *to, const char *range) {
  for (const char *at = range; *at;) {
    size_t n = strcspn(at, "|");
    fprintf(to, "%s`%.*s`", at > range ? ", " : "", (int)n, at);
    at += n + (at[n] == '|');
  }
}

static const char *markdown_type_words(const char *type) {
  static const char *const words[][2] = {
      {"flag", "yes, no"},          {"int", "integer"},
      {"float", "number"},          {"ints", "integers"},
      {"floats", "numbers"},        {"size", "bytes (`64MiB`)"},
      {"duration", "time (`90s`)"}, {"init", "[initializer](initializers.md)"},
      {"code", "folders of code"},  {"transforms", "[transforms](transforms.md)"}};
  for (size_t i = 0; i < sizeof words / sizeof *words; i++)
    if (strcmp(type, words[i][0]) == 0) return words[i][1];
  return type;
}

static void markdown_write_default(FILE *to, const json_t *option) {
  const char *fallback = cli_text(option, "default");
  if (fallback == NULL)
    fprintf(to, "required");
  else if (*fallback != '\0') {
    fputc('`', to);
    for (; *fallback; fallback++) fprintf(to, "%s%c", *fallback == '|' ? "\\" : "", *fallback);
    fputc('`', to);
  }
}

static void markdown_write_option(FILE *to, const json_t *option) {
  const char *type = cli_text(option, "type"), *range = cli_text(option, "range");
  bool is_enum = strcmp(type, "enum") == 0, worded = strcmp(type, "path") == 0 && range != NULL;
  fprintf(to, "| `%s` | ", cli_text(option, "name"));
  if (is_enum || worded) markdown_write_choices(to, range);
  if (!is_enum) fprintf(to, "%s%s", worded ? ", " : "", markdown_type_words(type));
  fprintf(to, " | ");
  markdown_write_default(to, option);
  fprintf(to, " | %s | ", is_enum || worded || range == NULL ? "" : range);
  reference_write_text(to, cli_text(option, "doc"));
  fprintf(to, "%s |\n", json_is_true(json_object_get(option, "scheduled")) ? "; may have a schedule" : "");
}

void reference_write_options(FILE *to, const json_t *options, const char *what) {
  const json_t *option;
  size_t i;
  if (json_array_size(options) == 0) return;
  fprintf(to, "\n| %s | type | default | range | |\n|---|---|---|---|---|\n", what);
  json_array_foreach(options, i, option) markdown_write_option(to, option);
}

void reference_section_title(const json_t *section, char title[64], const char **rest) {
  const char *doc = cli_text(section, "doc"), *end = strstr(doc, "]: ");
  bool named = doc[0] == '[' && end != NULL;
  *rest = named ? end + 3 : doc;
  if (named)
    snprintf(title, 64, "%.*s", (int)(end + 1 - doc), doc);
  else
    snprintf(title, 64, "[%s]", cli_text(section, "section"));
}
