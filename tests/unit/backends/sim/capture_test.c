/* Captured work: nothing runs while it is recorded, and each replay does all of it. */
#include "tests/unit/backends/sim/rig.h"

static const int32_t orders[] = {TN_SIM_EAGER, TN_SIM_LAZY, TN_SIM_RANDOM};
enum { N_ORDERS = 3 };

static void a_replay_does_what_was_recorded(void **state) {
  (void)state;
  for (int32_t o = 0; o < N_ORDERS; o++) {
    rig *r = rig_open((tn_sim_options){.order = orders[o]});
    float *x = rig_device(r), *y = rig_device(r);
    void *fork = rig_event(r), *join = rig_event(r), *capture;
    rig_add one, side, last;
    rig_add_make(&one, "one", x, x, 1);
    rig_add_make(&side, "side", x, y, 10);
    rig_add_make(&last, "last", y, x, 100);
    OK(tn_sim_capture_begin(&r->env, r->device, r->compute));
    OK(rig_add_enqueue(r, &one, r->compute));
    rig_record_await(r, fork, r->compute, r->streams[3]);
    OK(rig_add_enqueue(r, &side, r->streams[3]));
    rig_record_await(r, join, r->streams[3], r->compute);
    OK(rig_add_enqueue(r, &last, r->compute));
    OK(tn_sim_capture_end(&r->env, r->device, r->compute, &capture));
    assert_true(rig_first(r, x) == 0);
    for (int32_t i = 0; i < 5; i++) OK(r->b->capture_launch(&r->env, capture, r->compute));
    OK(rig_add_enqueue(r, &one, r->compute));
    assert_true(rig_first(r, x) == 5 * 111 + 1);
    assert_string_equal(rig_text, "");
    r->b->capture_delete(&r->env, capture);
    r->b->event_delete(&r->env, fork);
    r->b->event_delete(&r->env, join);
    rig_free(r, TN_MEMORY_DEVICE, x);
    rig_free(r, TN_MEMORY_DEVICE, y);
    rig_close(r);
  }
}

static void a_missing_wait_inside_is_found(void **state) {
  (void)state;
  rig *r = rig_open((tn_sim_options){.order = TN_SIM_EAGER});
  float *x = rig_device(r);
  void *fork = rig_event(r), *join = rig_event(r), *capture;
  rig_add one, side;
  rig_add_make(&one, "one", x, x, 1);
  rig_add_make(&side, "side", x, x, 10);
  OK(tn_sim_capture_begin(&r->env, r->device, r->compute));
  rig_record_await(r, fork, r->compute, r->streams[3]);
  OK(rig_add_enqueue(r, &one, r->compute));
  OK(rig_add_enqueue(r, &side, r->streams[3]));
  rig_record_await(r, join, r->streams[3], r->compute);
  OK(tn_sim_capture_end(&r->env, r->device, r->compute, &capture));
  OK(r->b->capture_launch(&r->env, capture, r->compute));
  assert_int_equal(r->b->stream_wait(&r->env, r->compute), TN_EDEVICE);
  SAYS("missing wait: nothing orders");
  r->b->capture_delete(&r->env, capture);
  r->b->event_delete(&r->env, fork);
  r->b->event_delete(&r->env, join);
  rig_free(r, TN_MEMORY_DEVICE, x);
  rig_close(r);
}

static void what_a_graph_cannot_hold_is_refused(void **state) {
  (void)state;
  rig *r = rig_open((tn_sim_options){.order = TN_SIM_EAGER});
  float *x = rig_device(r);
  void *fork = rig_event(r), *outside = rig_event(r), *capture;
  rig_add add;
  rig_add_make(&add, "add", x, x, 1);
  OK(r->b->event_record(&r->env, outside, r->in));
  OK(tn_sim_capture_begin(&r->env, r->device, r->compute));
  assert_int_equal(r->b->event_await(&r->env, outside, r->compute), TN_EUNSUPPORTED);
  SAYS("cannot await an event from outside");
  assert_int_equal(rig_add_enqueue(r, &add, r->in), TN_EUNSUPPORTED);
  SAYS("awaits no event of the capture");
  assert_int_equal(r->b->stream_wait(&r->env, r->compute), TN_EUNSUPPORTED);
  rig_record_await(r, fork, r->compute, r->in);
  OK(rig_add_enqueue(r, &add, r->in));
  assert_int_equal(tn_sim_capture_end(&r->env, r->device, r->compute, &capture), TN_EUNSUPPORTED);
  SAYS("does not await the end of 'add'");
  assert_null(capture);
  assert_int_equal(r->b->event_wait(&r->env, fork), TN_EDEVICE);
  SAYS("inside captured work");
  OK(r->b->stream_wait(&r->env, r->in));
  r->b->event_delete(&r->env, fork);
  r->b->event_delete(&r->env, outside);
  rig_free(r, TN_MEMORY_DEVICE, x);
  rig_close(r);
}

static void an_empty_capture_does_nothing(void **state) {
  (void)state;
  rig *r = rig_open((tn_sim_options){.order = TN_SIM_RANDOM});
  void *capture;
  OK(tn_sim_capture_begin(&r->env, r->device, r->compute));
  OK(tn_sim_capture_end(&r->env, r->device, r->compute, &capture));
  OK(r->b->capture_launch(&r->env, capture, r->compute));
  OK(r->b->stream_wait(&r->env, r->compute));
  r->b->capture_delete(&r->env, capture);
  rig_close(r);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_replay_does_what_was_recorded),
      cmocka_unit_test(a_missing_wait_inside_is_found),
      cmocka_unit_test(what_a_graph_cannot_hold_is_refused),
      cmocka_unit_test(an_empty_capture_does_nothing),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
