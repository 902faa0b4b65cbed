/* The pass `incremental`: a graph that computes a few tokens at a time gives the rows of the graph that
 * computes the whole window. Both are evaluated by the reference, with states as inputs and commits as
 * outputs. */
#include "tests/unit/run/rig.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/conformance/reference/reference.h"
#include "core/step/graphs/incremental.h"
#include "tenon/random.h"

enum { WINDOW = 6, MOST_STATES = 16 };

#define TOKENS                                                                                               \
  "t: i32[1, 6] = input(name=t)\ntable: f32[5, 4] = state(path=table)\nx: f32[1, 6, 4] = embedding(t, "      \
  "table)\n"

/* ---- evaluation ---- */

/* "x: f32[2] = state(path=P, ...)" becomes "x: f32[2] = input(name=P)", "commit P = v" "output P = v". */
static tn_graph *without_state(const tn_graph *graph) {
  tn_text text = tn_text_new(&R.env), changed = tn_text_new(&R.env);
  rig_expect_ok(tn_graph_print(graph, &text));
  for (char *line = strtok(text.v, "\n"); line != NULL; line = strtok(NULL, "\n")) {
    char *state = strstr(line, "state(path="), *commit = strstr(line, "commit ");
    if (strncmp(line, "unread ", 7) == 0) continue;
    if (commit == line)
      tn_text_addf(&changed, "output %s\n", line + 7);
    else if (state != NULL)
      tn_text_addf(&changed, "%.*sinput(name=%.*s)\n", (int)(state - line), line,
                   (int)strcspn(state + 11, ",)"), state + 11);
    else
      tn_text_addf(&changed, "%s\n", line);
  }
  tn_graph *plain = rig_parse(changed.v);
  tn_text_free(&text);
  tn_text_free(&changed);
  return plain;
}

typedef struct evaluated {
  tn_graph *graph;
  tn_reference *r;
} evaluated;

static evaluated open_graph(const tn_graph *graph) {
  evaluated e = {without_state(graph), NULL};
  rig_expect_ok(tn_reference_create(e.graph, &e.r));
  return e;
}

static void close_graph(evaluated *e) {
  tn_reference_destroy(e->r);
  tn_graph_destroy(e->graph);
}

/* The same numbers for the same state in every graph; caches hold numbers that must not be read. */
static void fill_states(evaluated *e, const tn_graph *states) {
  for (size_t i = 0; i < states->states.n; i++) {
    const tn_gstate *state = &states->states.v[i];
    double *values = tn_reference_input(e->r, state->path);
    tn_rng rng = tn_rng_at(tn_hash_text(TN_HASH_START, state->path), 0);
    if (values == NULL) continue;
    for (int64_t k = 0; k < tn_type_count(&state->type); k++)
      values[k] = strstr(state->path, "cached_") ? NAN : tn_rng_between(&rng, -1, 1);
  }
}

static void keep_commits(evaluated *e, const tn_graph *graph) {
  for (size_t i = 0; i < graph->commits.n; i++) {
    tn_type type;
    const char *path = graph->commits.v[i].path;
    const double *now = tn_reference_output(e->r, path, &type);
    memcpy(tn_reference_input(e->r, path), now, (size_t)tn_type_count(&type) * sizeof *now);
  }
}

static const double tokens[WINDOW] = {3, 1, 4, 1, 0, 2};

/* The rows of the whole window. */
static void evaluate_whole(const tn_graph *graph, double *rows, int64_t *width) {
  evaluated e = open_graph(graph);
  tn_type type;
  fill_states(&e, graph);
  memcpy(tn_reference_input(e.r, "t"), tokens, sizeof tokens);
  rig_expect_ok(tn_reference_run(e.r));
  const double *y = tn_reference_output(e.r, "y", &type);
  assert_int_equal(type.dims[1], WINDOW);
  *width = tn_type_count(&type) / WINDOW;
  assert_in_range(*width, 1, 16);
  memcpy(rows, y, (size_t)tn_type_count(&type) * sizeof *rows);
  close_graph(&e);
}

/* n tokens at a time, with the caches of the calls before. */
static void evaluate_parts(const tn_graph *graph, int64_t n, double *rows, int64_t width) {
  evaluated e = open_graph(graph);
  fill_states(&e, graph);
  for (int64_t at = 0; at + n <= WINDOW; at += n) {
    tn_type type;
    double *position = tn_reference_input(e.r, TN_POSITION_INPUT);
    memcpy(tn_reference_input(e.r, "t"), tokens + at, (size_t)n * sizeof *tokens);
    if (position != NULL) *position = (double)at;
    rig_expect_ok(tn_reference_run(e.r));
    const double *y = tn_reference_output(e.r, "y", &type);
    assert_int_equal(tn_type_count(&type), n * width);
    memcpy(rows + at * width, y, (size_t)(n * width) * sizeof *rows);
    keep_commits(&e, graph);
  }
  close_graph(&e);
}

static void check_model(const char *text) {
  double whole[WINDOW * 16], parts[WINDOW * 16];
  int64_t width, window = 0;
  for (int64_t n = 1; n <= WINDOW; n++) {
    if (WINDOW % n != 0) continue;
    tn_graph *graph = rig_parse(text);
    evaluate_whole(graph, whole, &width);
    rig_expect_ok(tn_incremental_graph(n, &graph, &window));
    rig_expect_ok(tn_graph_verify(graph));
    assert_int_equal(window, WINDOW);
    evaluate_parts(graph, n, parts, width);
    for (int64_t i = 0; i < WINDOW * width; i++)
      if (!(fabs(whole[i] - parts[i]) < 1e-12))
        fail_msg("%lld tokens at a time: element %lld is %g, expected %g, in\n%s", (long long)n, (long long)i,
                 parts[i], whole[i], text);
    tn_graph_destroy(graph);
  }
}

/* ---- tests ---- */

static void ops_on_single_tokens_stay_as_they_are(void **state) {
  (void)state;
  static const char *const models[] = {
      "y = gelu(x)",
      "w: f32[4] = state(path=w)\nb: f32[1, 1, 4] = state(path=b)\ns = mul(x, w)\ny = add(s, b)",
      "w: f32[3, 4] = state(path=w)\nb: f32[3] = state(path=b)\ny = matmul(x, w, b, transpose_b=yes)",
      "w: f32[4, 3] = state(path=w)\nh = transpose(x, order=[0, 2, 1])\ny = matmul(h, w, transpose_a=yes)",
      "w: f32[4] = state(path=w)\ny, m, r = layer_norm(x, w)",
      "w: f32[4] = state(path=w)\ny = rms_norm(x, w)",
      "y = softmax(x, axis=-1)",
      "y = log_softmax(x, axis=2)",
      "d = cast(x, to=f64)\ne = exp(d)\ny = cast(e, to=f32)",
      "m, v = moments(x, axes=[2])\nk = reshape(m, dims=[1, 6, 1])\ny = sub(x, k)",
      "r = reduce_sum(x, axes=[-1], keep=yes)\ny = div(x, r)",
      "a = slice(x, starts=[0, 0, 0], stops=[1, 6, 2])\nb = slice(x, starts=[0, 0, 1], stops=[1, 6, 3])\n"
      "y = concat(a, b, x, axis=-1)",
      "h = reshape(x, dims=[6, 4])\nw: f32[4, 2] = state(path=w)\nz = matmul(h, w)\ny = reshape(z, dims=[1, "
      "6, 2])",
      "h = reshape(x, dims=[1, 6, 1, 4])\nz = broadcast(h, dims=[1, 6, 3, 4])\ny = reduce_sum(z, axes=[2])",
      "h = reshape(x, dims=[1, 1, 6, 4])\nz = reduce_max(h, axes=[0, 1])\ny = reshape(z, dims=[1, 6, 4])",
      "h = reshape(x, dims=[1, 6, 2, 2])\nw: f32[2, 3] = state(path=w)\nz = matmul(h, w)\n"
      "y = reshape(z, dims=[1, 6, 6])",
  };
  for (size_t i = 0; i < sizeof models / sizeof *models; i++) {
    char text[1024];
    snprintf(text, sizeof text, TOKENS "%s\noutput y = y\n", models[i]);
    check_model(text);
  }
}

static void values_of_all_positions_give_the_rows_of_the_tokens(void **state) {
  (void)state;
  static const char *const models[] = {
      "p: f32[6, 4] = state(path=p)\nq = reshape(p, dims=[1, 6, 4])\ny = add(x, q)",
      "p: f32[6, 1] = state(path=p)\ny = mul(p, x)",
      "p: f32[9, 4] = state(path=p)\nq = slice(p, starts=[0, 0], stops=[6, 4])\ny = add(x, q)",
      "p: f32[6, 1, 4] = state(path=p)\nh = transpose(x, order=[1, 0, 2])\nz = mul(h, p)\n"
      "y = transpose(z, order=[1, 0, 2])",
      "p: f32[1, 6, 2] = state(path=p)\ny = concat(x, p, axis=2)",
      "p = iota(dims=[6, 1], axis=0, dtype=f32)\ns = sin(p)\ny = add(x, s)",
      "y = rotary(x, heads=2)",
      "y = rotary(x, heads=1, interleaved=yes)",
  };
  for (size_t i = 0; i < sizeof models / sizeof *models; i++) {
    char text[1024];
    snprintf(text, sizeof text, TOKENS "%s\noutput y = y\n", models[i]);
    check_model(text);
  }
}

#define QKV                                                                                                  \
  "wq: f32[4, 4] = state(path=wq)\nwk: f32[4, 4] = state(path=wk)\nwv: f32[4, 6] = state(path=wv)\n"         \
  "q = matmul(x, wq)\nk = matmul(x, wk)\nv = matmul(x, wv)\n"

static void causal_attention_reads_its_caches(void **state) {
  (void)state;
  check_model(TOKENS QKV "y, l = attention(q, k, v, causal=yes, heads=2)\noutput y = y\n");
  check_model(TOKENS QKV "y, l = attention(q, k, v, causal=yes, heads=1, scale=0.3)\noutput y = y\n");
  check_model(TOKENS QKV "a = reshape(q, dims=[1, 6, 2, 2])\nb = transpose(a, order=[0, 2, 1, 3])\n"
                         "y4, l = attention(b, b, b, causal=yes)\nc = transpose(y4, order=[0, 2, 1, 3])\n"
                         "y = reshape(c, dims=[1, 6, 4])\noutput y = y\n");
  check_model(TOKENS QKV "h, l = attention(q, k, q, causal=yes, heads=2)\n"
                         "y, m = attention(h, x, v, causal=yes, heads=2)\noutput y = y\n");
}

/* As of an encoder whose output is a parameter here. */
static void attention_to_something_without_tokens_needs_no_cache(void **state) {
  (void)state;
  check_model(TOKENS "k: f32[1, 3, 4] = state(path=k)\nv: f32[1, 3, 2] = state(path=v)\n"
                     "y, l = attention(x, k, v, heads=2)\noutput y = y\n");
}

static void more_tokens_than_the_window_are_cut(void **state) {
  (void)state;
  int64_t window;
  tn_graph *graph = rig_parse(TOKENS "output y = x\n");
  rig_expect_ok(tn_incremental_graph(32, &graph, &window));
  assert_int_equal(tn_graph_type(graph, graph->inputs.v[0])->dims[1], WINDOW);
  tn_graph_destroy(graph);
}

static void ops_that_mix_tokens_are_refused(void **state) {
  (void)state;
  static const struct {
    const char *model, *text;
  } wrong[] = {
      {QKV "y, l = attention(q, k, v, heads=2)", "its attention mixes tokens"},
      {QKV "y = general_attention(q, k, v, causal=yes, heads=2)", "its general_attention mixes tokens"},
      {"y = rms_norm(x, trailing=2)", "its rms_norm mixes tokens"},
      {"h = reshape(x, dims=[6, 1, 4])\nz = rotary(h, heads=1)\ny = reshape(z, dims=[1, 6, 4])",
       "its rotary mixes tokens"},
      {"y = softmax(x, axis=1)", "its softmax mixes tokens"},
      {"y = reduce_sum(x, axes=[1], keep=yes)", "its reduce_sum mixes tokens"},
      {"y = reduce_sum(x)", "its reduce_sum mixes tokens"},
      {"y = slice(x, starts=[0, 5, 0], stops=[1, 6, 4])", "its slice mixes tokens"},
      {"y = concat(x, x, axis=1)", "its concat mixes tokens"},
      {"y, m, r = layer_norm(x, trailing=2)", "its layer_norm mixes tokens"},
      {"w: f32[6, 6] = state(path=w)\ny = matmul(w, x)", "its matmul mixes tokens"},
      {"h = transpose(x, order=[0, 2, 1])\nw: f32[6, 6] = state(path=w)\ny = matmul(h, w)",
       "its matmul mixes tokens"},
      {"y = reshape(x, dims=[1, 24])", "its reshape mixes tokens"},
      {"h = transpose(x, order=[0, 2, 1])\np: f32[4, 6] = state(path=p)\nz = add(h, p)\n"
       "y = transpose(z, order=[0, 2, 1])",
       "its add mixes tokens"},
      {"h = transpose(x, order=[1, 0, 2])\nz = mul(h, x)\ny = reduce_sum(z, axes=[0], keep=yes)",
       "its mul mixes tokens"},
      {"y = transpose(x, order=[1, 0, 2])", "the model's y does not have a row for each token"},
      {"y: f32[1, 6, 4] = state(path=p)", "the model's y does not have a row for each token"},
  };
  for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
    char text[1024];
    int64_t window;
    snprintf(text, sizeof text, TOKENS "%s\noutput y = y\n", wrong[i].model);
    tn_graph *graph = rig_parse(text);
    rig_expect_error(tn_incremental_graph(1, &graph, &window), TN_EUNSUPPORTED, wrong[i].text);
    tn_graph_destroy(graph);
  }
}

static void other_inputs_are_refused(void **state) {
  (void)state;
  static const struct {
    const char *model, *text;
  } wrong[] = {
      {"x: f32[1, 6] = input(name=x)\noutput y = x\n", "the model's input is f32[1, 6] with the batch"},
      {"x: i32[1] = input(name=x)\noutput y = x\n", "the model's input is i32[1] with the batch"},
      {"x: i32[1, 6] = input(name=x)\nz: i32[1, 6] = input(name=z)\ny = add(x, z)\noutput y = y\n",
       "the model has 2 inputs"},
  };
  for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
    int64_t window;
    tn_graph *graph = rig_parse(wrong[i].model);
    rig_expect_error(tn_incremental_graph(1, &graph, &window), TN_EUNSUPPORTED, wrong[i].text);
    tn_graph_destroy(graph);
  }
}

int main(void) {
#define CASE(f) cmocka_unit_test_setup_teardown(f, rig_open, rig_close)
  const struct CMUnitTest tests[] = {
      CASE(ops_on_single_tokens_stay_as_they_are),
      CASE(values_of_all_positions_give_the_rows_of_the_tokens),
      CASE(causal_attention_reads_its_caches),
      CASE(attention_to_something_without_tokens_needs_no_cache),
      CASE(more_tokens_than_the_window_are_cut),
      CASE(ops_that_mix_tokens_are_refused),
      CASE(other_inputs_are_refused),
  };
  return cmocka_run_group_tests_name("incremental", tests, NULL, NULL);
}
