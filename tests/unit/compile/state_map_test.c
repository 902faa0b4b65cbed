/* Locations of states. */
#include <stdio.h>

#include "tests/unit/compile/fixture.h"
#include "tests/unit/compile/kernels.h"

static const tn_item *const kernels[] = {KERNELS_PLAIN, NULL};
static fixture F;

static int set_up(void **state) {
  (void)state;
  fixture_open(&F, kernels);
  return 0;
}

static int tear_down(void **state) {
  (void)state;
  fixture_close(&F);
  return 0;
}

static tn_gstate state_of(const char *path, int32_t dtype, int64_t n) {
  return (tn_gstate){
      .path = path, .type = {dtype, 1, {n}}, .what = TN_STATE_PARAM, .init = "ones", .where = "a.ini:3"};
}

static tn_status add(const char *path, int32_t dtype, int64_t n, int32_t region, int64_t offset) {
  tn_gstate s = state_of(path, dtype, n);
  return tn_state_map_add(F.map, &s, region, offset);
}

static int32_t region_of(const char *name, int32_t dtype) {
  int32_t region = -1;
  assert_int_equal(tn_state_map_region(F.map, name, dtype, &region), TN_OK);
  return region;
}

static void states_follow_each_other_at_multiples_of_16(void **state) {
  (void)state;
  int32_t r = region_of("param.f32", TN_F32);
  assert_int_equal(add("a", TN_F32, 10, r, -1), TN_OK);
  assert_int_equal(add("b", TN_F32, 16, r, -1), TN_OK);
  assert_int_equal(add("c", TN_F32, 1, r, -1), TN_OK);
  const tn_placement *b = tn_state_map_find(F.map, "b");
  assert_int_equal(b->offset, 16);
  assert_int_equal(b->region, r);
  assert_string_equal(b->init, "ones");
  assert_string_equal(b->where, "a.ini:3");
  assert_int_equal(tn_state_map_find(F.map, "c")->offset, 32);
  assert_int_equal(F.map->regions.v[r].count, 48);
  assert_int_equal(tn_state_map_bytes(F.map), 192);
  assert_null(tn_state_map_find(F.map, "d"));
}

static void a_region_is_a_state_of_rank_one(void **state) {
  (void)state;
  int32_t r = region_of("param.f32", TN_F32);
  assert_int_equal(add("a", TN_F32, 10, r, -1), TN_OK);
  const tn_placement *whole = tn_state_map_find(F.map, "@param.f32");
  assert_int_equal(whole->type.rank, 1);
  assert_int_equal(whole->type.dims[0], 16);
  assert_int_equal(whole->offset, 0);
  assert_int_equal(add("@param.f32", TN_F32, 16, r, -1), TN_OK);
  assert_int_equal(add("@param.f32", TN_F32, 17, r, -1), TN_EINVAL);
  assert_string_equal(
      tn_error_text(&F.env),
      "state @param.f32 is f32[17] here and f32[16] elsewhere; all programs of a run share it");
  assert_int_equal(add("@other", TN_F32, 16, r, -1), TN_EINVAL);
  assert_string_equal(tn_error_text(&F.env), "state @other: there is no region of that name");
  assert_null(tn_state_map_find(F.map, "@other"));
}

static void a_path_is_added_once(void **state) {
  (void)state;
  int32_t r = region_of("param.f32", TN_F32);
  assert_int_equal(add("a", TN_F32, 10, r, -1), TN_OK);
  assert_int_equal(add("a", TN_F32, 10, r, -1), TN_OK);
  assert_int_equal(F.map->states.n, 1);
  assert_int_equal(add("a", TN_F32, 11, r, -1), TN_EINVAL);
}

static void optimizer_state_has_the_offsets_of_its_parameters(void **state) {
  (void)state;
  int32_t r = region_of("momentum.f32", TN_F32);
  assert_int_equal(add("a.momentum", TN_F32, 10, r, 32), TN_OK);
  assert_int_equal(add("b.momentum", TN_F32, 10, r, 0), TN_OK);
  assert_int_equal(tn_state_map_find(F.map, "a.momentum")->offset, 32);
  assert_int_equal(F.map->regions.v[r].count, 48);
  assert_int_equal(add("c.momentum", TN_F32, 17, r, 16), TN_EINVAL);
  assert_string_equal(tn_error_text(&F.env),
                      "states a.momentum and c.momentum lie in the same memory of region momentum.f32");
  assert_int_equal(add("d.momentum", TN_F32, 1, r, 50), TN_EINVAL);
  assert_string_equal(tn_error_text(&F.env), "state d.momentum: offset 50 is not a multiple of 16 elements");
}

static void a_region_holds_one_dtype(void **state) {
  (void)state;
  int32_t r = region_of("param.f32", TN_F32);
  assert_int_equal(region_of("param.f32", TN_F32), r);
  assert_int_equal(tn_state_map_region(F.map, "param.f32", TN_BF16, &r), TN_EINVAL);
  assert_string_equal(tn_error_text(&F.env), "region param.f32 holds f32, not bf16");
  assert_int_equal(add("a", TN_I64, 1, 0, -1), TN_EINVAL);
  assert_string_equal(tn_error_text(&F.env), "state a is i64 and cannot lie in region param.f32 of f32");
}

static void a_state_that_does_not_fit_is_refused(void **state) {
  (void)state;
  int32_t r = region_of("param.u8", TN_U8);
  assert_int_equal(add("a", TN_U8, INT64_MAX - 100, r, -1), TN_OK);
  assert_int_equal(add("b", TN_U8, 1000, r, -1), TN_EINVAL);
  assert_string_equal(tn_error_text(&F.env), "state b does not fit into region param.u8: too many elements");
}

static void other_states_go_to_regions_of_their_dtype(void **state) {
  (void)state;
  assert_int_equal(add("w", TN_F32, 8, region_of("param.f32", TN_F32), -1), TN_OK);
  tn_graph *g =
      fixture_graph(&F, "w: f32[8] = state(path=w)\nall: f32[16] = state(path=\"@param.f32\")\n"
                        "m: f32[3] = state(path=m, what=buffer)\nk: i64[] = state(path=k, what=buffer)\n"
                        "output m = m\n");
  assert_int_equal(tn_state_map_add_rest(F.map, g), TN_OK);
  assert_int_equal(tn_state_map_add_rest(F.map, g), TN_OK);
  assert_int_equal(F.map->regions.n, 3);
  const tn_placement *k = tn_state_map_find(F.map, "k");
  assert_string_equal(F.map->regions.v[k->region].name, "state.i64");
  assert_int_equal(k->what, TN_STATE_BUFFER);
  assert_int_equal(F.map->regions.v[k->region].count, 16);
  tn_graph_destroy(g);
}

static void many_states_are_found_by_path(void **state) {
  (void)state;
  int32_t r = region_of("param.f32", TN_F32);
  char path[32];
  for (int i = 0; i < 1000; i++) {
    snprintf(path, sizeof path, "layer.%d.weight", i);
    assert_int_equal(add(path, TN_F32, 16, r, -1), TN_OK);
  }
  assert_int_equal(tn_state_map_find(F.map, "layer.731.weight")->offset, 731 * 16);
}

/* The region has a multiple of 16 elements for each rank; inside of another one it takes no memory. */
static void a_region_is_divided_among_ranks(void **state) {
  (void)state;
  int32_t part = region_of("w", TN_F32), whole = region_of("w:f32", TN_F32);
  tn_state_map_divide(F.map, part, 3);
  assert_int_equal(add("a", TN_F32, 10, part, -1), TN_OK);
  assert_int_equal(add("b", TN_F32, 40, part, -1), TN_OK);
  const tn_placement *b = tn_state_map_find(F.map, "b"), *w = tn_state_map_find(F.map, "@w");
  assert_int_equal(b->offset, 16);
  assert_int_equal(tn_state_map_shards(F.map, b), 3);
  assert_int_equal(F.map->regions.v[part].count, 96);
  assert_int_equal(w->type.dims[0], 32);
  assert_int_equal(tn_region_bytes(&F.map->regions.v[part]), 128);
  assert_int_equal(tn_state_map_bytes(F.map), 128);
  tn_state_map_follow(F.map, whole, part);
  tn_state_map_extend(F.map, whole, 96);
  assert_int_equal(tn_state_map_bytes(F.map), 128 + 384);
  tn_state_map_put_inside(F.map, part, whole);
  assert_int_equal(tn_state_map_bytes(F.map), 384);
  assert_int_equal(tn_region_bytes(&F.map->regions.v[part]), 128);
}

int main(void) {
  const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
      TEST(states_follow_each_other_at_multiples_of_16),
      TEST(a_region_is_a_state_of_rank_one),
      TEST(a_path_is_added_once),
      TEST(optimizer_state_has_the_offsets_of_its_parameters),
      TEST(a_region_holds_one_dtype),
      TEST(a_state_that_does_not_fit_is_refused),
      TEST(other_states_go_to_regions_of_their_dtype),
      TEST(many_states_are_found_by_path),
      TEST(a_region_is_divided_among_ranks),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
