/* Groups that are placed on the host, because states in its memory are near, and the copies around them. */
#include "tests/unit/compile/fixture.h"
#include "tests/unit/compile/kernels.h"

static KERNEL(h_pointwise, "h.pointwise", "h", "pointwise+", offer_plain);
static KERNEL(h_copy, "h.copy", "h", "y = copy(x)", offer_plain);

static const char *const host_families[] = {"h"};
static tn_target host;
static fixture F;

/* States of f32 are in memory of the host, but for `d`. */
static int set_up(void **state) {
  static const tn_item *const kernels[] = {KERNELS_PLAIN, &h_pointwise.item, &h_copy.item, NULL};
  const tn_gstate device = {.path = "d", .type = {TN_F32, 1, {2048}}, .what = TN_STATE_BUFFER};
  int32_t region;
  (void)state;
  fixture_open(&F, kernels);
  host = F.target;
  host.families = host_families;
  F.target.fallback = &host;
  assert_int_equal(tn_state_map_region(F.map, "device", TN_F32, &region), TN_OK);
  assert_int_equal(tn_state_map_add(F.map, &device, region, -1), TN_OK);
  assert_int_equal(tn_state_map_region(F.map, "state.f32", TN_F32, &region), TN_OK);
  F.map->regions.v[region].host = true;
  return 0;
}

static int tear_down(void **state) {
  (void)state;
  fixture_close(&F);
  return 0;
}

/* `g` is an output, so the device makes it; `h` serves the host alone. */
static const char update[] = "w: f32[2048] = state(path=w)\n"
                             "x: f32[2048] = input(name=x)\n"
                             "g = sin(x)\n"
                             "h = cos(x)\n"
                             "a = mul(w, g)\n"
                             "n = add(a, h)\n"
                             "unread f32[2048] = state(path=d, what=buffer)\n"
                             "commit w = n\n"
                             "commit d = n\n"
                             "output g = g\n";

static void nodes_around_a_state_of_the_host_are_placed(void **state) {
  (void)state;
  char *text = fixture_text(&F, update, ASSIGNED);
  const char *g = strstr(text, "g: f32"), *h = strstr(text, "h: f32"), *reason = strstr(text, "# falls back");
  assert_true(g != NULL && h != NULL && g < h && h < reason);
  assert_non_null(strstr(reason, "[optimizer] place"));
  tn_release(&F.env, text);
}

/* The host's kernel cannot work in place, so a copy at the end commits `n`. */
static void the_host_waits_for_the_copies_that_it_reads(void **state) {
  (void)state;
  assert_after(PLANNED, &F, update,
               "program p: 5 launches, arena 0 (at least 0), slot 8192, output 8192, kept 0\n"
               "input x: f32[2048] @ slot+0\n"
               "output g: f32[2048] @ output+0\n"
               "0: g @ output+0 = t.pointwise \"tiles\"(x @ slot+0)\n"
               "1: %7 @ offload+0 = offload(g @ output+0)\n"
               "await 1\n"
               "host after 1\n"
               "2: n @ offload+8192 = h.pointwise(x @ slot+0, w @ state.f32+0, %7 @ offload+0)\n"
               "3: %8 @ device+0 = fetch(n @ offload+8192)\n"
               "await 3\n"
               "host\n"
               "4: %9 @ state.f32+0 = h.copy(n @ offload+8192)\n");
}

static void a_state_of_the_host_is_fetched_for_the_device(void **state) {
  (void)state;
  assert_after(PLANNED, &F,
               "w: f32[2048] = state(path=w)\n"
               "unread f32[2048] = state(path=d, what=buffer)\n"
               "commit d = w\n",
               "program p: 1 launches, arena 0 (at least 0), slot 0, output 0, kept 0\n"
               "0: %2 @ device+0 = fetch(w @ state.f32+0)\n"
               "await 0\n");
}

static void a_value_of_the_device_goes_to_a_state_of_the_host(void **state) {
  (void)state;
  assert_after(PLANNED, &F,
               "x: f32[2048] = input(name=x)\n"
               "z = sin(x)\n"
               "unread f32[2048] = state(path=w)\n"
               "commit w = z\n"
               "output z = z\n",
               "program p: 3 launches, arena 0 (at least 0), slot 8192, output 8192, kept 0\n"
               "input x: f32[2048] @ slot+0\n"
               "output z: f32[2048] @ output+0\n"
               "0: z @ output+0 = t.pointwise \"tiles\"(x @ slot+0)\n"
               "1: %3 @ offload+0 = offload(z @ output+0)\n"
               "await 1\n"
               "host after 1\n"
               "2: %4 @ state.f32+0 = h.copy(%3 @ offload+0)\n");
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup_teardown(nodes_around_a_state_of_the_host_are_placed, set_up, tear_down),
      cmocka_unit_test_setup_teardown(the_host_waits_for_the_copies_that_it_reads, set_up, tear_down),
      cmocka_unit_test_setup_teardown(a_state_of_the_host_is_fetched_for_the_device, set_up, tear_down),
      cmocka_unit_test_setup_teardown(a_value_of_the_device_goes_to_a_state_of_the_host, set_up, tear_down),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
