/* The race detector reports unordered accesses in every schedule, and no ordered ones. */
#include "tests/unit/backends/sim/rig.h"

static const int32_t orders[] = {TN_SIM_EAGER, TN_SIM_LAZY, TN_SIM_RANDOM};
enum { N_ORDERS = 3 };

/* The first failure that any of the streams has. */
static tn_status all_streams(rig *r) {
  for (int32_t role = 0; role < TN_STREAMS; role++) {
    tn_status status = r->b->stream_wait(&r->env, r->streams[role]);
    if (status != TN_OK) return status;
  }
  return TN_OK;
}

static void two_launches_on_two_streams_need_an_event(void **state) {
  (void)state;
  for (int32_t o = 0; o < N_ORDERS; o++)
    for (int32_t ordered = 0; ordered < 2; ordered++) {
      rig *r = rig_open((tn_sim_options){.order = orders[o], .seed = 3});
      float *x = rig_device(r), *y = rig_device(r);
      void *event = rig_event(r);
      rig_add first, second;
      rig_add_make(&first, "relu of act", x, y, 1);
      rig_add_make(&second, "all_reduce of bucket", y, y, 1);
      OK(rig_add_enqueue(r, &first, r->compute));
      if (ordered) rig_record_await(r, event, r->compute, r->streams[3]);
      tn_status late = rig_add_enqueue(r, &second, r->streams[3]);
      tn_status status = all_streams(r);
      assert_int_equal(late == TN_OK ? status : late, ordered ? TN_OK : TN_EDEVICE);
      if (!ordered) {
        SAYS("'relu of act' (writes it on the compute stream)");
        SAYS("'all_reduce of bucket'");
        SAYS("the communication stream must await an event that the compute stream records after 'relu of "
             "act'");
      }
      r->b->event_delete(&r->env, event);
      rig_free(r, TN_MEMORY_DEVICE, x);
      rig_free(r, TN_MEMORY_DEVICE, y);
      rig_close(r);
    }
}

static void reads_beside_reads_and_other_bytes_are_no_race(void **state) {
  (void)state;
  rig *r = rig_open((tn_sim_options){.order = TN_SIM_RANDOM});
  float *x = rig_device(r), *y = rig_device(r), *z = rig_device(r);
  rig_add one, two;
  rig_add_make(&one, "one", x, y, 1);
  rig_add_make(&two, "two", x, z, 1);
  OK(rig_add_enqueue(r, &one, r->compute));
  OK(rig_add_enqueue(r, &two, r->streams[3]));
  OK(r->b->fill_zero(&r->env, r->in, (char *)x + 0, 0));
  OK(all_streams(r));
  OK(r->b->fill_zero(&r->env, r->in, x, BYTES / 2));
  OK(r->b->fill_zero(&r->env, r->out, (char *)x + BYTES / 2, BYTES / 2));
  OK(all_streams(r));
  rig_free(r, TN_MEMORY_DEVICE, x);
  rig_free(r, TN_MEMORY_DEVICE, y);
  rig_free(r, TN_MEMORY_DEVICE, z);
  rig_close(r);
}

static void order_passes_through_a_third_stream(void **state) {
  (void)state;
  for (int32_t o = 0; o < N_ORDERS; o++) {
    rig *r = rig_open((tn_sim_options){.order = orders[o]});
    float *x = rig_device(r);
    void *a = rig_event(r), *b = rig_event(r);
    rig_add first, second;
    rig_add_make(&first, "first", x, x, 1);
    rig_add_make(&second, "second", x, x, 1);
    OK(rig_add_enqueue(r, &first, r->compute));
    rig_record_await(r, a, r->compute, r->in);
    rig_record_await(r, b, r->in, r->out);
    OK(rig_add_enqueue(r, &second, r->out));
    OK(all_streams(r));
    r->b->event_delete(&r->env, a);
    r->b->event_delete(&r->env, b);
    rig_free(r, TN_MEMORY_DEVICE, x);
    rig_close(r);
  }
}

static void staging_memory_is_filled_again_only_after_a_wait(void **state) {
  (void)state;
  for (int32_t waits = 0; waits < 2; waits++) {
    rig *r = rig_open((tn_sim_options){.order = TN_SIM_LAZY});
    float *x = rig_device(r), *from = rig_staging(r);
    OK(r->b->copy(&r->env, r->in, TN_COPY_TO_DEVICE, x, from, BYTES));
    if (waits) OK(r->b->stream_wait(&r->env, r->in));
    from[3] = 5;
    tn_status status = r->b->stream_wait(&r->env, r->in);
    assert_int_equal(status, waits ? TN_OK : TN_EDEVICE);
    if (!waits) SAYS("the host has written to the memory since it enqueued the copy");
    rig_free(r, TN_MEMORY_DEVICE, x);
    rig_free(r, TN_MEMORY_STAGING, from);
    rig_close(r);
  }
}

/* The copy is done long since, but the host did not know. */
static void luck_does_not_hide_it(void **state) {
  (void)state;
  rig *r = rig_open((tn_sim_options){.order = TN_SIM_EAGER});
  float *x = rig_device(r), *from = rig_staging(r);
  for (int32_t i = 0; i < 3; i++) {
    OK(r->b->copy(&r->env, r->in, TN_COPY_TO_DEVICE, x, from,
                  BYTES)); /* the same again: nothing is written */
    while (atomic_load(&((tn_sim_stream *)r->in)->ring.head) < (uint64_t)i + 1) {
    }
  }
  from[3] = 5;
  OK(r->b->copy(&r->env, r->in, TN_COPY_TO_DEVICE, x, from, BYTES));
  assert_int_equal(r->b->stream_wait(&r->env, r->in), TN_EDEVICE);
  SAYS("'copy to device of 256 bytes' (reads it on the copy-in stream)");
  SAYS("the host must wait for an event that the copy-in stream records after 'copy to device'");
  rig_free(r, TN_MEMORY_DEVICE, x);
  rig_free(r, TN_MEMORY_STAGING, from);
  rig_close(r);
}

static void a_result_read_too_early_is_no_number(void **state) {
  (void)state;
  rig *r = rig_open((tn_sim_options){.order = TN_SIM_LAZY});
  float *x = rig_device(r), *to = rig_staging(r);
  to[0] = 1;
  OK(r->b->copy(&r->env, r->out, TN_COPY_TO_HOST, to, x, BYTES));
  assert_true(to[0] != to[0]);
  OK(r->b->stream_wait(&r->env, r->out));
  assert_true(to[0] == 0);
  rig_free(r, TN_MEMORY_DEVICE, x);
  rig_free(r, TN_MEMORY_STAGING, to);
  rig_close(r);
}

static void memory_given_back_too_early_is_reported(void **state) {
  (void)state;
  rig *r = rig_open((tn_sim_options){.order = TN_SIM_EAGER, .drop = "rest:2"});
  float *x = rig_device(r);
  rig_add add;
  rig_add_make(&add, "add of late", x, x, 1);
  OK(rig_add_enqueue(r, &add, r->compute));
  OK(r->b->stream_wait(&r->env, r->compute)); /* left out */
  while (atomic_load(&((tn_sim_stream *)r->compute)->ring.head) < 2) {
  }
  rig_free(r, TN_MEMORY_DEVICE, x);
  SAYS("given back before the host had waited for 'add of late'");
  assert_int_equal(r->b->stream_wait(&r->env, r->in), TN_EDEVICE);
  rig_close(r);
}

static void memory_that_is_not_there_is_reported(void **state) {
  (void)state;
  rig *r = rig_open((tn_sim_options){.order = TN_SIM_EAGER});
  float *x = rig_device(r), *host = calloc(FLOATS, sizeof *host);
  rig_add add;
  rig_add_make(&add, "stray", x, x + 1, 1);
  OK(rig_add_enqueue(r, &add, r->compute));
  assert_int_equal(r->b->stream_wait(&r->env, r->compute), TN_EDEVICE);
  SAYS("'stray' on device 0: a result of 256 bytes");
  SAYS("lies in no memory of the device");
  rig_add_make(&add, "host pointer", host, x, 1);
  OK(rig_add_enqueue(r, &add, r->in));
  assert_int_equal(r->b->stream_wait(&r->env, r->in), TN_EDEVICE);
  SAYS("'host pointer' on device 0: an operand");
  free(host);
  rig_free(r, TN_MEMORY_DEVICE, x);
  rig_close(r);
}

static void tasks_take_part(void **state) {
  (void)state;
  rig *r = rig_open((tn_sim_options){.order = TN_SIM_EAGER});
  float *x = rig_device(r);
  rig_add add;
  rig_add_make(&add, "add", x, x, 1);
  tn_sim_task task = {.name = "all_reduce", .n_writes = 1, .writes = {{x, BYTES}}};
  OK(rig_add_enqueue(r, &add, r->compute));
  OK(tn_sim_push_task(&r->env, r->streams[3], &task, NULL, 0));
  assert_int_equal(r->b->stream_wait(&r->env, r->streams[3]), TN_EDEVICE);
  SAYS("'all_reduce' (writes it on the communication stream)");
  rig_free(r, TN_MEMORY_DEVICE, x);
  rig_close(r);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(two_launches_on_two_streams_need_an_event),
      cmocka_unit_test(reads_beside_reads_and_other_bytes_are_no_race),
      cmocka_unit_test(order_passes_through_a_third_stream),
      cmocka_unit_test(staging_memory_is_filled_again_only_after_a_wait),
      cmocka_unit_test(luck_does_not_hide_it),
      cmocka_unit_test(a_result_read_too_early_is_no_number),
      cmocka_unit_test(memory_given_back_too_early_is_reported),
      cmocka_unit_test(memory_that_is_not_there_is_reported),
      cmocka_unit_test(tasks_take_part),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
