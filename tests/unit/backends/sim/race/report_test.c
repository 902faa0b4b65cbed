/* The messages of a simulated device: errors of the host, and work that fails. */
#include "tests/unit/backends/sim/rig.h"

static void memory_that_is_not_in_use_cannot_be_given_back(void **state) {
  (void)state;
  rig *r = rig_open((tn_sim_options){.order = TN_SIM_EAGER});
  float *x = rig_device(r);
  r->b->memory_delete(&r->env, r->device, TN_MEMORY_DEVICE, x, BYTES / 2);
  SAYS("a block of 128 bytes of device memory");
  SAYS("was given back that is not in use");
  assert_int_equal(r->b->stream_wait(&r->env, r->in), TN_EDEVICE);
  rig_free(r, TN_MEMORY_DEVICE, x);
  rig_text[0] = '\0';
  rig_free(r, TN_MEMORY_DEVICE, x);
  SAYS("was given back that is not in use");
  rig_close(r);
}

static void memory_that_is_never_given_back_is_reported(void **state) {
  (void)state;
  rig *r = rig_open((tn_sim_options){.order = TN_SIM_EAGER});
  rig_device(r), rig_staging(r);
  rig_close(r);
  SAYS("sim: device 0 is closed while 2 blocks of memory are in use");
}

static void a_device_does_not_reach_into_another(void **state) {
  (void)state;
  rig *r = rig_open((tn_sim_options){.order = TN_SIM_EAGER, .devices = 2});
  float *x = rig_device(r);
  void *other, *foreign;
  rig_add add;
  OK(r->b->device_open(&r->env, r->self, 1, &other));
  OK(r->b->memory_new(&r->env, other, TN_MEMORY_DEVICE, BYTES, &foreign));
  rig_add_make(&add, "add of both", foreign, x, 1);
  OK(rig_add_enqueue(r, &add, r->compute));
  assert_int_equal(r->b->stream_wait(&r->env, r->compute), TN_EDEVICE);
  SAYS("'add of both' on device 0: an operand of 256 bytes");
  SAYS("lies in no memory of the device");
  r->b->memory_delete(&r->env, other, TN_MEMORY_DEVICE, foreign, BYTES);
  r->b->device_close(&r->env, other);
  assert_int_equal(r->b->device_open(&r->env, r->self, 2, &other), TN_EUNAVAILABLE);
  SAYS("device 2 asked for; there are 2");
  rig_free(r, TN_MEMORY_DEVICE, x);
  rig_close(r);
}

/* ---- around captured work ---- */

static void *capture_of(rig *r, rig_add *add) {
  void *capture;
  OK(tn_sim_capture_begin(&r->env, r->device, r->compute));
  OK(rig_add_enqueue(r, add, r->compute));
  OK(tn_sim_capture_end(&r->env, r->device, r->compute, &capture));
  return capture;
}

static void a_missing_wait_between_a_replay_and_a_copy_is_found(void **state) {
  (void)state;
  rig *r = rig_open((tn_sim_options){.order = TN_SIM_EAGER});
  float *x = rig_device(r), *y = rig_device(r), *staging = rig_staging(r);
  rig_add add;
  rig_add_make(&add, "add of conv1", x, y, 1);
  void *capture = capture_of(r, &add);
  OK(r->b->capture_launch(&r->env, capture, r->compute));
  OK(r->b->copy(&r->env, r->in, TN_COPY_TO_DEVICE, x, staging, BYTES));
  tn_status a = r->b->stream_wait(&r->env, r->compute), b = r->b->stream_wait(&r->env, r->in);
  assert_true(a == TN_EDEVICE || b == TN_EDEVICE);
  SAYS("missing wait: nothing orders 'add of conv1' (reads it on the compute stream) and 'copy to device of "
       "256 "
       "bytes' (writes it on the copy-in stream)");
  r->b->capture_delete(&r->env, capture);
  rig_free(r, TN_MEMORY_DEVICE, x);
  rig_free(r, TN_MEMORY_DEVICE, y);
  rig_free(r, TN_MEMORY_STAGING, staging);
  rig_close(r);
}

/* The second replay fails; the third does nothing, and nothing waits for ever. */
static void a_failure_inside_a_replay_sticks(void **state) {
  (void)state;
  rig *r = rig_open((tn_sim_options){.order = TN_SIM_RANDOM, .fail = "kernel:2"});
  float *x = rig_device(r);
  rig_add add;
  rig_add_make(&add, "add of conv2", x, x, 1);
  void *capture = capture_of(r, &add);
  OK(r->b->capture_launch(&r->env, capture, r->compute));
  OK(r->b->stream_wait(&r->env, r->compute));
  OK(r->b->capture_launch(&r->env, capture, r->compute));
  assert_int_equal(r->b->stream_wait(&r->env, r->compute), TN_EDEVICE);
  SAYS("'add of conv2' on device 0: was made to fail");
  assert_int_equal(r->b->capture_launch(&r->env, capture, r->compute), TN_EDEVICE);
  assert_true(rig_first(r, x) == 1);
  r->b->capture_delete(&r->env, capture);
  rig_free(r, TN_MEMORY_DEVICE, x);
  rig_close(r);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(memory_that_is_not_in_use_cannot_be_given_back),
      cmocka_unit_test(memory_that_is_never_given_back_is_reported),
      cmocka_unit_test(a_device_does_not_reach_into_another),
      cmocka_unit_test(a_missing_wait_between_a_replay_and_a_copy_is_found),
      cmocka_unit_test(a_failure_inside_a_replay_sticks),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
