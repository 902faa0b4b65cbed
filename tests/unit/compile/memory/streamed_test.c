/* Streamed states: fetched ahead of the groups that read them, within a window of the largest twice. */
#include "tests/unit/compile/fixture.h"
#include "tests/unit/compile/kernels.h"

static KERNEL(h_copy, "h.copy", "h", "y = copy(x)", offer_plain);

static const char *const host_families[] = {"h"};
static tn_target host;
static fixture F;

/* States of f32 are in a streamed region, but for `d`. */
static int set_up(void **state) {
  static const tn_item *const kernels[] = {KERNELS_PLAIN, &h_copy.item, NULL};
  const tn_gstate device = {.path = "d", .type = {TN_F32, 2, {32, 32}}, .what = TN_STATE_BUFFER};
  int32_t region;
  (void)state;
  fixture_open(&F, kernels);
  host = F.target;
  host.families = host_families;
  F.target.fallback = &host;
  assert_int_equal(tn_state_map_region(F.map, "device", TN_F32, &region), TN_OK);
  assert_int_equal(tn_state_map_add(F.map, &device, region, -1), TN_OK);
  assert_int_equal(tn_state_map_region(F.map, "state.f32", TN_F32, &region), TN_OK);
  F.map->regions.v[region].streamed = true;
  return 0;
}

static int tear_down(void **state) {
  (void)state;
  fixture_close(&F);
  return 0;
}

#define STATE(name) #name ": f32[32, 32] = state(path=" #name ")\n"
#define STATES      STATE(a) STATE(b) STATE(c) "x: f32[4, 32] = input(name=x)\n"

/* The position of a launch in the text; later ones have larger ones. */
static const char *launch_of(const char *text, const char *what) {
  const char *found = strstr(text, what);
  if (found == NULL) fail_msg("no %s in\n%s", what, text);
  return found;
}

/* A chain of three: two are on their way at once, the third when the first has been read. */
static void weights_come_within_the_window(void **state) {
  (void)state;
  char *text = fixture_text(&F, STATES "p = matmul(x, a)\nq = matmul(p, b)\nr = matmul(q, c)\noutput r = r\n",
                            PLANNED);
  const char *a = launch_of(text, "fetch(a @ state.f32+0)"),
             *b = launch_of(text, "fetch(b @ state.f32+4096)"),
             *c = launch_of(text, "fetch(c @ state.f32+8192)"), *first = launch_of(text, "(x @ slot");
  assert_true(a < b && b < first && first < c && c < launch_of(text, "(p @ arena"));
  tn_release(&F.env, text);
}

/* A later reader fetches a state again if more than its bytes came in between. */
static void a_state_that_is_read_late_is_fetched_twice(void **state) {
  (void)state;
  char *text = fixture_text(&F,
                            STATES "p = matmul(x, a)\nq = matmul(p, b)\nr = matmul(q, c)\n"
                                   "s = matmul(r, a)\nt = matmul(s, a)\noutput t = t\n",
                            PLANNED);
  const char *again = launch_of(launch_of(text, "fetch(a @") + 1, "fetch(a @");
  assert_true(launch_of(text, "fetch(b @") < again && launch_of(text, "(p @ arena") < again);
  assert_null(strstr(again + 1, "fetch("));
  tn_release(&F.env, text);
}

/* Readers without a launch: an output, and a commit of a state of the device. */
static void ends_read_copies(void **state) {
  (void)state;
  char *text = fixture_text(&F,
                            STATE(a) STATE(b) "unread f32[32, 32] = state(path=d, what=buffer)\n"
                                              "output a = a\n"
                                              "commit d = b\n",
                            PLANNED);
  assert_non_null(launch_of(text, "@ output+0 = fetch(a @"));
  assert_non_null(launch_of(text, "@ device+0 = fetch(b @"));
  tn_release(&F.env, text);
}

/* Every allocation of the compiler fails once. */
static void compiling_without_memory_fails_cleanly(void **state) {
  static const char graph[] = STATES "p = matmul(x, a)\nq = matmul(p, b)\noutput c = c\noutput q = q\n";
  tn_status status = TN_ENOMEM;
  (void)state;
  tn_program_destroy(fixture_program(&F, graph)); /* the states are in the map from now on */
  for (int64_t i = 0; status == TN_ENOMEM; i++) {
    tn_graph *g = fixture_graph(&F, graph);
    tn_program *p = NULL;
    F.left = i;
    status = tn_compile(&F.env, "p", F.registry, &F.target, g, F.map, NULL, &p);
    F.left = -1;
    tn_graph_destroy(g);
    tn_program_destroy(p);
  }
  assert_int_equal(status, TN_OK);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup_teardown(weights_come_within_the_window, set_up, tear_down),
      cmocka_unit_test_setup_teardown(a_state_that_is_read_late_is_fetched_twice, set_up, tear_down),
      cmocka_unit_test_setup_teardown(ends_read_copies, set_up, tear_down),
      cmocka_unit_test_setup_teardown(compiling_without_memory_fails_cleanly, set_up, tear_down),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
