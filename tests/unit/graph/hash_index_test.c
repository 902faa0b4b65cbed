/* Tests of the hash index. */
#include "tests/unit/graph/rig.h"

#include "core/graph/hash_index.h"

static rig R;

static int set_up(void **state) {
  (void)state;
  rig_start(&R, -1);
  return 0;
}

static void an_empty_index_finds_nothing(void **state) {
  (void)state;
  tn_hash_index index = tn_hash_index_new(&R);
  size_t probe = 0;
  assert_int_equal(tn_hash_index_next(&index, 5, &probe), TN_HASH_INDEX_NONE);
  tn_hash_index_free(&index);
}

static void items_of_one_hash_come_in_the_order_of_adding_after_growth(void **state) {
  (void)state;
  tn_hash_index index = tn_hash_index_new(&R);
  /* the last position, so that runs wrap around the end of the table */
  for (uint32_t i = 0; i < 1000; i++)
    assert_int_equal(tn_hash_index_add(&index, i % 3 == 0 ? 0xFFFF : i, i), TN_OK);
  size_t probe = 0;
  for (uint32_t i = 0; i < 1000; i += 3) assert_int_equal(tn_hash_index_next(&index, 0xFFFF, &probe), i);
  assert_int_equal(tn_hash_index_next(&index, 0xFFFF, &probe), TN_HASH_INDEX_NONE);
  for (uint32_t i = 1; i < 1000; i += 3) {
    probe = 0;
    assert_int_equal(tn_hash_index_next(&index, i, &probe), i);
    assert_int_equal(tn_hash_index_next(&index, i, &probe), TN_HASH_INDEX_NONE);
  }
  tn_hash_index_free(&index);
  assert_int_equal(R.blocks, 0);
}

static void running_out_of_memory_leaves_the_index_as_it_was(void **state) {
  (void)state;
  tn_hash_index index = tn_hash_index_new(&R);
  for (uint32_t i = 0; i < 8; i++) assert_int_equal(tn_hash_index_add(&index, i, i), TN_OK);
  R.left = 0;
  assert_int_equal(tn_hash_index_add(&index, 8, 8), TN_ENOMEM);
  R.left = -1;
  size_t probe = 0;
  assert_int_equal(tn_hash_index_next(&index, 7, &probe), 7);
  tn_hash_index_free(&index);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup(an_empty_index_finds_nothing, set_up),
      cmocka_unit_test_setup(items_of_one_hash_come_in_the_order_of_adding_after_growth, set_up),
      cmocka_unit_test_setup(running_out_of_memory_leaves_the_index_as_it_was, set_up),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
