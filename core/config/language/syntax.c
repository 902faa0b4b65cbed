/* core/config/language/syntax.c: the parser of lines of the model language. */
#include "core/config/language/syntax.h"

#include <string.h>

#include "core/config/language/parser.h"

static bool syntax_no_memory(tn_parser *p) {
  p->status = TN_ENOMEM;
  return false;
}

static bool syntax_add_text(tn_parser *p, const char ***texts, int32_t *n, const char *text) {
  if (text == NULL) return false;
  const char **grown = tn_arena_grow(p->arena, *texts, (size_t)*n, sizeof(*grown));
  if (grown == NULL) return syntax_no_memory(p);
  *texts = grown;
  grown[(*n)++] = text;
  return true;
}

/* The position of the ":" or "=" behind the line's names; NULL if the line has no names. */
static const char *syntax_end_of_names(const char *at) {
  for (;;) {
    at += strspn(at, " \t\n");
    at = tn_scan_name(at, true);
    if (at == NULL) return NULL;
    at += strspn(at, " \t\n");
    if (*at == ':' || (*at == '=' && at[1] != '=')) return at;
    if (*at++ != ',') return NULL;
  }
}

static bool syntax_check_name(tn_parser *p, const char *at, const char *name, bool computes) {
  const char *hole = tn_name_hole(name);
  if (hole != NULL && tn_name_hole(hole + 1) != NULL)
    tn_parser_fail(p, at, "the name '%s' has '{i}' twice, expected at most once", name);
  if (hole != NULL && computes)
    tn_parser_fail(p, at, "the name '%s' has '{i}', expected none in front of '=', where nothing is repeated",
                   name);
  if (tn_parser_reserved(name, name + strlen(name)))
    tn_parser_fail(p, at, "the name '%s' is a word of the language, expected another", name);
  return p->status == TN_OK;
}

/* Parses "a, b:" or "a, b =". */
static bool syntax_parse_names(tn_parser *p, tn_line *line, bool *computes) {
  const char *end = syntax_end_of_names(p->at);
  *computes = end != NULL && *end == '=';
  if (end == NULL) return true;
  do {
    tn_parser_skip(p);
    const char *at = p->at, *name = tn_parser_name(p, true, "a name");
    if (!syntax_add_text(p, &line->names, &line->n_names, name) || !syntax_check_name(p, at, name, *computes))
      return false;
  } while (tn_parser_take(p, ","));
  return tn_parser_take(p, *computes ? "=" : ":");
}

/* Parses a call or "@name", without its repeat count. */
static bool syntax_parse_layer(tn_parser *p, tn_item_call *item) {
  if (tn_parser_take(p, "@")) {
    item->shared = tn_parser_name(p, false, "a name after '@'");
    return item->shared != NULL;
  }
  tn_parser_skip(p);
  const char *from = p->at, *to = tn_scan_word(from);
  if (to == NULL || tn_parser_reserved(from, to)) {
    tn_parser_expected(p, "a layer");
    return false;
  }
  const char *whole = tn_scan_name(from, false); /* "nn.Linear" is no layer, and is told as one name */
  if (whole != NULL) to = whole;
  p->at = to;
  item->layer = tn_parser_copy(p, from, to);
  if (item->layer == NULL) return false;
  return !tn_parser_take(p, "(") || tn_parser_args(p, &item->args, &item->n_args);
}

static bool syntax_parse_item(tn_parser *p, tn_line *line) {
  tn_item_call item = {0};
  if (!syntax_parse_layer(p, &item)) return false;
  if (tn_parser_take(p, "*")) {
    item.repeat = tn_parser_or(p);
    if (item.repeat == NULL) return false;
  }
  tn_item_call *grown = tn_arena_grow(p->arena, line->items, (size_t)line->n_items, sizeof(item));
  if (grown == NULL) return syntax_no_memory(p);
  line->items = grown;
  grown[line->n_items++] = item;
  return true;
}

/* Whether a name is all that stands behind the arrow up to the next comma, `if` or the end. */
static bool syntax_is_name(const char *at) {
  const char *end = tn_scan_name(at, false);
  if (end == NULL) return false;
  end += strspn(end, " \t\n");
  return *end == ',' || *end == '\0' || (strncmp(end, "if", 2) == 0 && tn_scan_word(end) == end + 2);
}

/* Whether a name may be a number as well: "0" or "0.5", not "0.weight". */
static bool syntax_is_number(const char *at) {
  size_t whole = strspn(at, "0123456789"),
         rest = at[whole] == '.' ? 1 + strspn(at + whole + 1, "0123456789") : 0;
  return whole > 0 && at[whole + rest] != '.' && tn_scan_word(at + whole + rest) == NULL;
}

/* Parses a name or an expression behind the arrow. A number may be the name of a line, too. */
static bool syntax_parse_ref(tn_parser *p, tn_line *line) {
  tn_parser_skip(p);
  const char *from = p->at;
  tn_expr *operand = NULL;
  if (syntax_is_name(from) && !syntax_is_number(from))
    (void)tn_parser_name(p, false, "a value");
  else if (*from == '\0' || (operand = tn_parser_or(p)) == NULL)
    tn_parser_expected(p, "the name of a value");
  if (p->status != TN_OK) return false;
  tn_expr **grown = tn_arena_grow(p->arena, line->operands, (size_t)line->n_refs, sizeof(tn_expr *));
  if (grown == NULL) return syntax_no_memory(p);
  line->operands = grown;
  grown[line->n_refs] = operand;
  return syntax_add_text(p, &line->refs, &line->n_refs, tn_parser_copy(p, from, p->at));
}

static bool syntax_parse_refs(tn_parser *p, tn_line *line) {
  do {
    if (!syntax_parse_ref(p, line)) return false;
  } while (tn_parser_take(p, ","));
  return true;
}

/* Operators of Python that are written in another way here; NULL: the text begins with none. */
static const char *syntax_foreign_operator(const char *at) {
  static const char *const pairs[][2] = {
      {"@", "'@' is no operator here, expected matmul(a, b)"},
      {"^", "'^' is no operator here, expected a ** b for a power"},
      {"&", "'&' is no operator here, expected a and b"},
      {"|", "'|' is no operator here, expected a or b"},
      {".", "'.' stands behind a bracket, expected the value in brackets, as in sum(abs(x))"},
  };
  for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++)
    if (tn_text_starts(at, pairs[i][0])) return pairs[i][1];
  return NULL;
}

/* Parses the expression behind "a, b =". */
static bool syntax_parse_value(tn_parser *p, tn_line *line) {
  line->value = tn_parser_expr(p);
  if (line->value == NULL) return false;
  tn_parser_skip(p);
  if (*p->at == '\0') return true;
  const char *foreign = syntax_foreign_operator(p->at);
  if (foreign != NULL)
    tn_parser_fail(p, p->at, "%s", foreign);
  else if (tn_text_starts(p->at, "<-"))
    tn_parser_fail(p, p->at,
                   "'<-' stands in a line with '=', expected the values in brackets, as in `y = relu(x)`, or "
                   "':' in place of '='");
  else
    tn_parser_expected(p, "an operator or the end of the line");
  return false;
}

static bool syntax_parse_line(tn_parser *p, tn_line *line) {
  bool computes;
  if (!syntax_parse_names(p, line, &computes)) return false;
  if (computes) return syntax_parse_value(p, line);
  do {
    if (!syntax_parse_item(p, line)) return false;
  } while (tn_parser_take(p, ","));
  if (tn_parser_take(p, "<-") && !syntax_parse_refs(p, line)) return false;
  if (tn_parser_take_word(p, "if")) {
    line->condition = tn_parser_expr(p);
    if (line->condition == NULL) return false;
  }
  tn_parser_skip(p);
  if (*p->at == '\0') return true;
  if (*p->at == '[' && line->n_refs == 0 && line->condition == NULL)
    tn_parser_fail(p, p->at,
                   "'[' stands behind a layer, expected a line that computes, as in `y = relu(x)[0]`");
  tn_parser_expected(p, line->condition != NULL ? "an operator or the end of the line"
                        : line->n_refs > 0      ? "',', 'if' or the end of the line"
                                                : "'(', '*', ',', '<-', 'if' or the end of the line");
  return false;
}

/* Whether the last character of the row is a comma. */
static bool syntax_ends_in_comma(const char *start, const char *end) {
  while (end > start && strchr(" \t\n", end[-1]) != NULL) end--;
  return end > start && end[-1] == ',';
}

/* The end of the logical line at p->at: rows join inside brackets and after a comma. NULL with a message
 * if a bracket stays open; the parser would report a later token. */
static const char *syntax_end_of_line(tn_parser *p) {
  const char *opened = NULL, *at = p->at;
  int64_t depth = 0;
  for (; *at != '\0'; at++) {
    if (*at == '(' || *at == '[') {
      if (depth++ == 0) opened = at;
    } else if ((*at == ')' || *at == ']') && depth > 0) {
      depth--;
    } else if (*at == '\n' && depth == 0 && !syntax_ends_in_comma(p->at, at)) {
      return at;
    }
  }
  if (depth == 0) return at;
  tn_parser_fail(p, opened, "'%c' is never closed", *opened);
  return NULL;
}

/* Splits one logical line off a parser of several lines. */
static bool syntax_cut_line(tn_parser *all, tn_parser *one) {
  const char *end = syntax_end_of_line(all);
  *one = *all;
  one->text = one->at = end != NULL ? tn_parser_copy(all, all->at, end) : NULL;
  if (one->text == NULL) return false;
  for (const char *c = all->text; c < all->at && all->row_lines != NULL; c++) all->row_lines += *c == '\n';
  one->row_lines = all->row_lines;
  all->text = all->at; /* the rows before are done, so each is counted once */
  all->at = end;
  return true;
}

static bool syntax_next_line(tn_parser *all, tn_line *line) {
  tn_parser one;
  *line = (tn_line){.file = all->file};
  if (!syntax_cut_line(all, &one)) return false;
  line->text = one.text;
  line->line = one.row_lines != NULL ? one.row_lines[0] : one.line;
  bool parsed = syntax_parse_line(&one, line);
  all->status = one.status;
  return parsed;
}

static bool syntax_add_line(tn_parser *p, tn_line **lines, int32_t *n, const tn_line *line) {
  tn_line *grown = tn_arena_grow(p->arena, *lines, (size_t)*n, sizeof(*line));
  if (grown == NULL) return syntax_no_memory(p);
  *lines = grown;
  grown[(*n)++] = *line;
  return true;
}

/* Notes a syntax error in the ini, so that the next line can be read. */
static bool syntax_note(tn_parser *p, tn_ini *ini, tn_line *line) {
  if (ini == NULL) return false;
  line->wrong = true;
  p->status = tn_ini_note(p->handle, ini, p->status);
  return p->status == TN_OK;
}

tn_status tn_syntax_lines(const void *handle, tn_arena *arena, const tn_key *key, tn_ini *ini,
                          tn_line **lines, int32_t *n) {
  tn_parser p = {.handle = handle,
                 .arena = arena,
                 .text = key->value,
                 .at = key->value,
                 .file = key->file,
                 .row_lines = key->value_lines};
  *lines = NULL;
  *n = 0;
  tn_parser_skip(&p);
  while (p.status == TN_OK && *p.at != '\0') {
    tn_line line;
    if (!syntax_next_line(&p, &line) && !syntax_note(&p, ini, &line)) break;
    if (!syntax_add_line(&p, lines, n, &line) || line.text == NULL) break;
    tn_parser_skip(&p);
  }
  return p.status;
}

tn_status tn_syntax_line(const void *handle, tn_arena *arena, const char *text, const char *file,
                         int32_t line, tn_line *out) {
  tn_parser p = {.handle = handle, .arena = arena, .text = text, .at = text, .file = file, .line = line};
  tn_parser_skip(&p);
  if (!syntax_next_line(&p, out)) return p.status;
  tn_parser_skip(&p);
  if (*p.at != '\0') tn_parser_expected(&p, "a single line");
  return p.status;
}

tn_status tn_syntax_expr(const void *handle, tn_arena *arena, const char *text, tn_expr **out) {
  tn_parser p = {.handle = handle, .arena = arena, .text = text, .at = text};
  *out = tn_parser_expr(&p);
  tn_parser_skip(&p);
  if (p.status == TN_OK && *p.at != '\0') tn_parser_expected(&p, "an operator or the end of the expression");
  if (p.status != TN_OK) *out = NULL;
  return p.status == TN_EINVAL ? tn_wrap(handle, p.status, "'%s'", text) : p.status;
}
