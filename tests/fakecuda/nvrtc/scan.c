#include "tests/fakecuda/nvrtc/scan.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

typedef struct scan_span {
  const char *from;
  size_t bytes;
} scan_span;

typedef struct scan_kernel {
  char *name; /* with its namespaces, and template arguments */
  bool bounded;
} scan_kernel;

enum { SCAN_DEPTH = 256, SCAN_NAME = 512 };

typedef struct scan_state {
  nvrtc_text *out;
  const char *at;
  /* Braces that are open: the length of `scope` before each; -1 for one that opens no namespace. */
  int32_t opened[SCAN_DEPTH], depth, n_bodies;
  char scope[SCAN_NAME];             /* "a::b::" */
  scan_span first, second, previous; /* tokens of the declaration at hand, and the token before */
  size_t declaration;                /* offset in `out`; first.bytes is 0 where no declaration has begun */
  const char *declaration_text;
  bool is_extern_shared, has_dynamic;
  scan_span next_namespace;
  bool sees_namespace;
  scan_kernel *kernels;   /* to be entered */
  scan_kernel *templates; /* with __launch_bounds__, for name expressions */
  int32_t n_kernels, n_templates;
} scan_state;

static bool scan_is(scan_span token, const char *word) {
  return token.bytes == strlen(word) && memcmp(token.from, word, token.bytes) == 0;
}

static bool scan_is_name(scan_span token) {
  return token.bytes && (isalpha((unsigned char)*token.from) || *token.from == '_');
}

static const char *scan_string_end(const char *at) {
  char quote = *at++;
  for (; *at && *at != quote; at++)
    if (*at == '\\' && at[1]) at++;
  return *at ? at + 1 : at;
}

/* The next token: a name, a number, a literal or one character. Lines of the preprocessor and blanks are
 * passed over. */
static scan_span scan_next(const char **at) {
  const char *p = *at;
  for (;;) {
    while (isspace((unsigned char)*p)) p++;
    if (*p != '#') break;
    while (*p && *p != '\n') p++;
  }
  const char *from = p;
  if (isalnum((unsigned char)*p) || *p == '_') {
    while (isalnum((unsigned char)*p) || *p == '_') p++;
  } else if (*p == '"' || *p == '\'') {
    p = scan_string_end(p);
  } else if (*p) {
    p++;
  }
  *at = p;
  return (scan_span){from, (size_t)(p - from)};
}

/* Passes over a group that begins at `at` with `open`. Returns its text without the brackets. */
static scan_span scan_group(const char **at, char open, char close) {
  const char *p = *at;
  scan_next(&p);
  const char *from = p, *end = p;
  for (int32_t depth = 1; depth && *p;) {
    scan_span token = scan_next(&p);
    if (token.bytes == 1 && *token.from == open) depth++;
    if (token.bytes == 1 && *token.from == close) depth--;
    end = token.from;
  }
  *at = p;
  return (scan_span){from, (size_t)(end - from)};
}

static char scan_peek(const char *at) {
  scan_span token = scan_next(&at);
  return token.bytes == 1 ? *token.from : 0;
}

static bool scan_has_arguments(scan_span token) {
  static const char *const words[] = {"__attribute__", "__align__", "__maxnreg__", "__cluster_dims__",
                                      "alignas"};
  for (size_t i = 0; i < sizeof words / sizeof *words; i++)
    if (scan_is(token, words[i])) return true;
  return false;
}

/* The first argument of a list. */
static scan_span scan_first_argument(scan_span list) {
  int32_t depth = 0;
  const char *end = list.from + list.bytes;
  for (const char *p = list.from; p < end; p++) {
    depth += (*p == '(' || *p == '<' || *p == '[') - (*p == ')' || *p == '>' || *p == ']');
    if (*p == ',' && depth == 0) return (scan_span){list.from, (size_t)(p - list.from)};
  }
  return list;
}

/* A copy on one line, without lines of the preprocessor. */
static void scan_add_line(nvrtc_text *text, scan_span span) {
  const char *p = span.from, *end = span.from + span.bytes;
  while (p < end) {
    scan_span token = scan_next(&p);
    if (!token.bytes || token.from >= end) break;
    bool glued = p < end && !isspace((unsigned char)*p);
    nvrtc_add_bytes(text, token.from, token.bytes);
    if (!glued) nvrtc_add(text, " ");
  }
}

static bool scan_add(scan_kernel **list, int32_t *count, const char *scope, const char *name, bool bounded) {
  nvrtc_text full = {0};
  nvrtc_add(&full, scope);
  nvrtc_add(&full, name);
  for (int32_t i = 0; full.at && i < *count; i++)
    if (strcmp((*list)[i].name, full.at) == 0) {
      (*list)[i].bounded |= bounded;
      nvrtc_text_free(&full);
      return false;
    }
  scan_kernel *grown = full.at ? realloc(*list, sizeof **list * (size_t)(*count + 1)) : NULL;
  if (!grown) {
    nvrtc_text_free(&full);
    return false;
  }
  *list = grown;
  grown[(*count)++] = (scan_kernel){full.at, bounded};
  return true;
}

/* `constexpr int fakecuda_bounds_NAME = (BOUNDS);` goes before the declaration, where the names in it are
 * known. */
static void scan_put_bounds(scan_state *state, scan_span name, scan_span bounds) {
  nvrtc_text line = {0};
  bool is_template = scan_is(state->first, "template");
  if (is_template) {
    const char *at = state->declaration_text;
    scan_next(&at);
    scan_span head = scan_group(&at, '<', '>');
    nvrtc_add(&line, "template <");
    scan_add_line(&line, head);
    nvrtc_add(&line, "> ");
  }
  nvrtc_add(&line, "constexpr int fakecuda_bounds_");
  nvrtc_add_bytes(&line, name.from, name.bytes);
  nvrtc_add(&line, " = (");
  scan_add_line(&line, scan_first_argument(bounds));
  nvrtc_add(&line, "); ");
  if (line.at) nvrtc_insert(state->out, state->declaration, line.at, line.bytes);
  nvrtc_text_free(&line);
}

/* From behind __global__: the name of the kernel, its template arguments where it is an instantiation, its
 * bounds. */
static void scan_kernel_head(scan_state *state) {
  const char *at = state->at;
  scan_span bounds = {0}, name = {0}, arguments = {0};
  for (;;) {
    name = scan_next(&at);
    if (!name.bytes || *name.from == ';' || *name.from == '{') return;
    if (scan_is(name, "__launch_bounds__")) {
      bounds = scan_group(&at, '(', ')');
      continue;
    }
    if (scan_has_arguments(name)) {
      scan_group(&at, '(', ')');
      continue;
    }
    if (!scan_is_name(name)) continue;
    if (scan_peek(at) == '<') arguments = scan_group(&at, '<', '>');
    if (scan_peek(at) == '(') break;
  }
  bool bounded = bounds.bytes > 0;
  char plain[SCAN_NAME];
  if (name.bytes >= sizeof plain) return;
  memcpy(plain, name.from, name.bytes);
  plain[name.bytes] = 0;
  bool is_template = scan_is(state->first, "template") && scan_is(state->second, "<") && !arguments.from;
  nvrtc_text full = {0};
  nvrtc_add(&full, plain);
  if (arguments.from) {
    nvrtc_add(&full, "<");
    scan_add_line(&full, arguments);
    nvrtc_add(&full, ">");
  }
  if (bounded && !arguments.from &&
      scan_add(&state->templates, &state->n_templates, state->scope, plain, true))
    scan_put_bounds(state, name, bounds);
  if (!is_template && full.at) scan_add(&state->kernels, &state->n_kernels, state->scope, full.at, false);
  nvrtc_text_free(&full);
}

static void scan_open(scan_state *state) {
  int32_t length = -1;
  if (state->sees_namespace) {
    length = (int32_t)strlen(state->scope);
    scan_span name = state->next_namespace;
    if (name.bytes && (size_t)length + name.bytes + 3 < sizeof state->scope) {
      memcpy(state->scope + length, name.from, name.bytes);
      strcpy(state->scope + length + name.bytes, "::");
    }
  }
  bool is_linkage = scan_is(state->first, "extern") && state->second.bytes && *state->second.from == '"' &&
                    scan_is(state->previous, "\"C\"");
  if (state->depth < SCAN_DEPTH)
    state->opened[state->depth] = is_linkage ? (int32_t)strlen(state->scope) : length;
  state->n_bodies += length < 0 && !is_linkage;
  state->depth++;
}

static void scan_close(scan_state *state) {
  if (!state->depth) return;
  int32_t length = --state->depth < SCAN_DEPTH ? state->opened[state->depth] : -1;
  if (length < 0) {
    state->n_bodies--;
  } else {
    state->scope[length] = 0;
  }
}

/* `namespace a::b {`: the text between the word and the brace. */
static void scan_namespace(scan_state *state) {
  const char *at = state->at, *end = at;
  scan_span token = scan_next(&at), name = {token.from, 0};
  while (token.bytes && !scan_is(token, "{") && !scan_is(token, ";") && !scan_is(token, "=")) {
    end = token.from + token.bytes;
    token = scan_next(&at);
  }
  if (end > name.from) name.bytes = (size_t)(end - name.from);
  state->next_namespace = name;
  state->sees_namespace = scan_is(token, "{") && !scan_is(state->previous, "using");
}

static void scan_end_declaration(scan_state *state) {
  state->first = state->second = (scan_span){0};
  state->is_extern_shared = state->sees_namespace = false;
}

/* `__shared__` is a storage class here, beside `static` or `extern` where they are written. */
static void scan_put_shared(scan_state *state) {
  if (scan_is(state->previous, "extern")) {
    state->is_extern_shared = state->has_dynamic = true;
    nvrtc_add(state->out, "__thread");
  } else {
    nvrtc_add(state->out, scan_is(state->previous, "static") ? "__thread" : "static __thread");
  }
}

static void scan_token(scan_state *state, scan_span token) {
  bool at_scope = state->n_bodies == 0;
  if (!state->first.bytes) {
    state->first = token;
    state->declaration = state->out->bytes;
    state->declaration_text = token.from;
  } else if (!state->second.bytes) {
    state->second = token;
  }
  if (scan_is(token, "__shared__")) {
    scan_put_shared(state);
    return;
  }
  if (scan_is(token, "namespace")) scan_namespace(state);
  if (scan_is(token, "__global__") && at_scope) scan_kernel_head(state);
  if (scan_is(token, ";") && state->is_extern_shared) nvrtc_add(state->out, " __asm__(\"fakecuda_dynamic\")");
  nvrtc_add_bytes(state->out, token.from, token.bytes);
  if (scan_is(token, "{")) scan_open(state);
  if (scan_is(token, "}")) scan_close(state);
  if (scan_is(token, "{") || scan_is(token, "}") || scan_is(token, ";")) scan_end_declaration(state);
}

/* The bounds of a kernel that an expression names: `a::k<int>` has a::fakecuda_bounds_k<int>. */
static void scan_print_bounds(const scan_state *state, const char *expression, nvrtc_text *out) {
  const char *from = expression;
  while (*from == '&' || *from == ':' || isspace((unsigned char)*from)) from++;
  size_t base = strcspn(from, "<");
  const char *rest = from + base;
  while (base && isspace((unsigned char)from[base - 1])) base--;
  for (int32_t i = 0; i < state->n_templates; i++) {
    const char *name = state->templates[i].name;
    if (strlen(name) != base || strncmp(name, from, base) != 0) continue;
    size_t scope = base;
    while (scope && name[scope - 1] != ':') scope--;
    nvrtc_print(out, "%.*sfakecuda_bounds_%s%s", (int)scope, name, name + scope, rest);
    return;
  }
  nvrtc_add(out, "1024");
}

static void scan_put_literal(nvrtc_text *out, const char *text) {
  nvrtc_add(out, "\"");
  for (; *text; text++) {
    if (*text == '"' || *text == '\\') nvrtc_add(out, "\\");
    nvrtc_add_bytes(out, text, 1);
  }
  nvrtc_add(out, "\"");
}

static void scan_put_entry(const scan_state *state, const char *expression, nvrtc_text *out) {
  nvrtc_print(out, "fake_described(fake_entry<&%s>::describe(", expression);
  scan_put_literal(out, expression);
  nvrtc_add(out, ", ");
  scan_print_bounds(state, expression, out);
  nvrtc_print(out, "), (void (*)())&%s),\n", expression);
}

static void scan_put_table(const scan_state *state, const char *const *expressions, int32_t n_expressions) {
  nvrtc_text *out = state->out;
  nvrtc_add(out, "\n# 1 \"the entries of the kernels\" 3\n");
  if (state->has_dynamic)
    nvrtc_add(out, "extern \"C\" { __attribute__((aligned(128), visibility(\"hidden\"))) "
                   "__thread char fakecuda_dynamic[FAKE_DYNAMIC_BYTES + FAKE_CANARY_BYTES]; }\n");
  nvrtc_print(out,
              "static void fakecuda_locate(fake_here **here, char **dynamic) {\n"
              "  *here = &fakecuda_here;\n  *dynamic = %s;\n}\n",
              state->has_dynamic ? "fakecuda_dynamic" : "nullptr");
  nvrtc_add(out, "static const fake_kernel fakecuda_kernels[] = {\n");
  int32_t n_kernels = state->n_kernels, n_names = 0;
  for (int32_t i = 0; i < state->n_kernels; i++) scan_put_entry(state, state->kernels[i].name, out);
  for (int32_t i = 0; i < n_expressions; i++)
    if (expressions[i][0] != '&') n_kernels++, scan_put_entry(state, expressions[i], out);
  nvrtc_add(out, "{}};\nstatic const fake_name fakecuda_names[] = {\n");
  for (int32_t i = 0; i < n_expressions; i++) {
    if (expressions[i][0] != '&') continue;
    n_names++;
    nvrtc_add(out, "{");
    scan_put_literal(out, expressions[i]);
    nvrtc_print(out, ", (const void *)(%s)},\n", expressions[i]);
  }
  nvrtc_print(
      out,
      "{}};\nextern \"C\" __attribute__((visibility(\"default\"))) const fake_image fakecuda_image = {\n"
      "  FAKE_IMAGE_MAGIC, FAKE_IMAGE_VERSION, %d, %d, fakecuda_kernels, fakecuda_names, fakecuda_locate,\n"
      "  &fakecuda_runtime};\n",
      n_kernels, n_names);
}

static void scan_free(scan_kernel *list, int32_t count) {
  for (int32_t i = 0; i < count; i++) free(list[i].name);
  free(list);
}

void nvrtc_scan(const char *source, const char *const *expressions, int32_t n_expressions, nvrtc_text *out) {
  scan_state state = {.out = out, .at = source};
  for (;;) {
    const char *before = state.at;
    scan_span token = scan_next(&state.at);
    nvrtc_add_bytes(out, before, (size_t)(token.from - before));
    if (!token.bytes) break;
    scan_token(&state, token);
    state.previous = token;
  }
  scan_put_table(&state, expressions, n_expressions);
  scan_free(state.kernels, state.n_kernels);
  scan_free(state.templates, state.n_templates);
}
