/* Streams, events and memory of the simulated device, in each of its orders. */
#include "tests/unit/backends/sim/rig.h"

#include <stdatomic.h>

#include "tests/support/await.h"

static const int32_t orders[] = {TN_SIM_EAGER, TN_SIM_LAZY, TN_SIM_RANDOM};
enum { N_ORDERS = 3 };

static void addresses_of_the_device_are_none_of_the_process(void **state) {
  (void)state;
  rig *r = rig_open((tn_sim_options){0});
  float *x = rig_device(r), *staging = rig_staging(r);
  uint64_t bits = (uint64_t)(uintptr_t)x;
  assert_true(bits >> 47 != 0 && bits >> 47 != 0x1FFFF);
  assert_int_equal(bits % 64, 0);
  assert_int_equal(r->b->copy(&r->env, r->in, TN_COPY_TO_DEVICE, staging, staging, BYTES), TN_EDEVICE);
  SAYS("must be an address of the device");
  assert_int_equal(r->b->copy(&r->env, r->in, TN_COPY_TO_DEVICE, x, x, BYTES), TN_EDEVICE);
  SAYS("must be an address of the host");
  rig_free(r, TN_MEMORY_DEVICE, x);
  rig_free(r, TN_MEMORY_STAGING, staging);
  rig_close(r);
}

static void new_memory_holds_no_zeros(void **state) {
  (void)state;
  rig *r = rig_open((tn_sim_options){0});
  void *x;
  OK(r->b->memory_new(&r->env, r->device, TN_MEMORY_DEVICE, BYTES, &x));
  float value = rig_first(r, x);
  assert_true(value != value);
  rig_free(r, TN_MEMORY_DEVICE, x);
  rig_close(r);
}

static void a_step_of_copies_and_launches_gives_the_same_in_every_order(void **state) {
  (void)state;
  for (int32_t o = 0; o < N_ORDERS; o++) {
    rig *r = rig_open((tn_sim_options){.order = orders[o], .seed = 7, .queue = 4});
    float *x = rig_device(r), *y = rig_device(r), *from = rig_staging(r), *to = rig_staging(r);
    void *staged = rig_event(r), *computed = rig_event(r), *arrived = rig_event(r);
    rig_add twice[2];
    rig_add_make(&twice[0], "add one", x, y, 1);
    rig_add_make(&twice[1], "add ten", y, y, 10);
    for (int32_t step = 0; step < 20; step++) {
      for (int32_t i = 0; i < FLOATS; i++) from[i] = (float)(100 * step);
      OK(r->b->copy(&r->env, r->in, TN_COPY_TO_DEVICE, x, from, BYTES));
      rig_record_await(r, staged, r->in, r->compute);
      OK(rig_add_enqueue(r, &twice[0], r->compute));
      OK(rig_add_enqueue(r, &twice[1], r->compute));
      rig_record_await(r, computed, r->compute, r->out);
      OK(r->b->copy(&r->env, r->out, TN_COPY_TO_HOST, to, y, BYTES));
      OK(r->b->event_record(&r->env, arrived, r->out));
      OK(r->b->event_wait(&r->env, arrived));
      for (int32_t i = 0; i < FLOATS; i++) assert_true(to[i] == (float)(100 * step + 11));
    }
    void *events[] = {staged, computed, arrived};
    for (int32_t i = 0; i < 3; i++) r->b->event_delete(&r->env, events[i]);
    rig_free(r, TN_MEMORY_DEVICE, x);
    rig_free(r, TN_MEMORY_DEVICE, y);
    rig_free(r, TN_MEMORY_STAGING, from);
    rig_free(r, TN_MEMORY_STAGING, to);
    assert_string_equal(rig_text, "");
    rig_close(r);
  }
}

static tn_status raise_flag(tn_launch *l) {
  atomic_store((atomic_int *)l->prepared, 1);
  return TN_OK;
}

static void a_lazy_device_starts_when_the_host_waits_and_an_idle_host_is_enough(void **state) {
  (void)state;
  rig *r = rig_open((tn_sim_options){.order = TN_SIM_LAZY});
  atomic_int ran = 0;
  tn_launch launch = {.prepared = &ran, .name = "raise"};
  OK(r->b->enqueue(&r->env, r->compute, raise_flag, &launch));
  assert_int_equal(atomic_load(&ran), 0);
  OK(r->b->stream_wait(&r->env, r->compute));
  assert_int_equal(atomic_exchange(&ran, 0), 1);
  OK(r->b->enqueue(&r->env, r->compute, raise_flag, &launch));
  AWAIT(atomic_load(&ran) == 1);
  rig_close(r);
}

static void enqueuing_asks_for_no_memory(void **state) {
  (void)state;
  rig *r = rig_open((tn_sim_options){.queue = 8});
  float *x = rig_device(r);
  void *event = rig_event(r);
  rig_add add;
  rig_add_make(&add, "add", x, x, 1);
  OK(rig_add_enqueue(r, &add, r->compute));
  OK(r->b->stream_wait(&r->env, r->compute));
  int before = rig_allocations;
  for (int32_t i = 0; i < 100; i++) {
    OK(rig_add_enqueue(r, &add, r->compute));
    rig_record_await(r, event, r->compute, r->in);
    rig_record_await(r, event, r->in, r->compute);
  }
  assert_int_equal(rig_allocations, before);
  assert_true(rig_first(r, x) == 101);
  r->b->event_delete(&r->env, event);
  rig_free(r, TN_MEMORY_DEVICE, x);
  rig_close(r);
}

static tn_status refuse(tn_launch *l) { return tn_fail(l, TN_EINVAL, NULL, "element 3 is odd"); }

static void a_failure_sticks_to_its_stream_and_to_those_that_await_it(void **state) {
  (void)state;
  for (int32_t o = 0; o < N_ORDERS; o++) {
    rig *r = rig_open((tn_sim_options){.order = orders[o]});
    void *event = rig_event(r);
    tn_launch launch = {.name = "check of input"};
    OK(r->b->enqueue(&r->env, r->compute, refuse, &launch));
    assert_int_equal(r->b->stream_wait(&r->env, r->compute), TN_EDEVICE);
    SAYS("'check of input' on device 0: element 3 is odd");
    assert_int_equal(r->b->enqueue(&r->env, r->compute, refuse, &launch), TN_EDEVICE);
    SAYS("check of input");
    OK(r->b->stream_wait(&r->env, r->in));
    r->b->event_delete(&r->env, event);
    rig_close(r);
    r = rig_open((tn_sim_options){.order = TN_SIM_LAZY});
    event = rig_event(r);
    OK(r->b->enqueue(&r->env, r->compute, refuse, &launch));
    rig_record_await(r, event, r->compute, r->out);
    assert_int_equal(r->b->stream_wait(&r->env, r->out), TN_EDEVICE);
    SAYS("element 3 is odd");
    assert_int_equal(r->b->event_wait(&r->env, event), TN_EDEVICE);
    r->b->event_delete(&r->env, event);
    rig_close(r);
  }
}

typedef struct chunked {
  float *out;
  int32_t nested;
  tn_launch *l;
} chunked;

static void do_nothing(void *arg, int64_t chunk) { (void)arg, (void)chunk; }

static void fill_chunk(void *arg, int64_t chunk) {
  chunked *c = arg;
  c->out[chunk] += (float)(chunk + 1);
  if (c->nested) tn_parallel(c->l, 3, do_nothing, NULL);
}

static tn_status fill_parallel(tn_launch *l) {
  chunked c = {l->out[0].data, 1, l};
  tn_parallel(l, FLOATS, fill_chunk, &c);
  return TN_OK;
}

static void kernels_share_their_chunks_among_any_number_of_threads(void **state) {
  (void)state;
  for (int64_t threads = 1; threads <= 4; threads++) {
    rig *r = rig_open((tn_sim_options){.threads = threads, .order = TN_SIM_EAGER});
    float *x = rig_device(r), host[FLOATS];
    rig_add add;
    rig_add_make(&add, "chunks", x, x, 0);
    for (int32_t i = 0; i < 200; i++) OK(r->b->enqueue(&r->env, r->compute, fill_parallel, &add.launch));
    OK(r->b->copy(&r->env, r->compute, TN_COPY_TO_HOST, host, x, BYTES));
    OK(r->b->stream_wait(&r->env, r->compute));
    for (int32_t i = 0; i < FLOATS; i++) assert_true(host[i] == 200.0f * (float)(i + 1));
    rig_free(r, TN_MEMORY_DEVICE, x);
    rig_close(r);
  }
}

typedef struct turn {
  atomic_int *count;
  int32_t calls;
} turn;

static tn_status third_time(tn_env *env, void *arg) {
  turn *t = arg;
  (void)env;
  if (++t->calls < 3) return TN_SIM_PENDING;
  atomic_fetch_add(t->count, 1);
  return TN_OK;
}

static void a_task_is_asked_until_it_ends_and_holds_up_only_its_own_stream(void **state) {
  (void)state;
  for (int32_t o = 0; o < N_ORDERS; o++) {
    rig *r = rig_open((tn_sim_options){.order = orders[o]});
    atomic_int count = 0;
    turn t = {&count, 0};
    tn_sim_task task = {.name = "meet", .body = third_time};
    for (int32_t i = 0; i < 5; i++) OK(tn_sim_push_task(&r->env, r->streams[3], &task, &t, sizeof t));
    OK(r->b->stream_wait(&r->env, r->streams[3]));
    assert_int_equal(atomic_load(&count), 5);
    assert_int_equal(t.calls, 0);
    rig_close(r);
  }
}

static void memory_has_the_limit_that_was_set(void **state) {
  (void)state;
  rig *r = rig_open((tn_sim_options){.memory = 1000});
  void *x, *y;
  OK(r->b->memory_new(&r->env, r->device, TN_MEMORY_DEVICE, 700, &x));
  assert_int_equal(r->b->memory_new(&r->env, r->device, TN_MEMORY_DEVICE, 301, &y), TN_ENOMEM);
  SAYS("device 0 has 1000 bytes of memory, 700 of them in use; 301 more do not fit");
  assert_null(y);
  OK(r->b->memory_new(&r->env, r->device, TN_MEMORY_STAGING, 5000, &y));
  r->b->memory_delete(&r->env, r->device, TN_MEMORY_STAGING, y, 5000);
  OK(r->b->memory_new(&r->env, r->device, TN_MEMORY_DEVICE, 300, &y));
  r->b->memory_delete(&r->env, r->device, TN_MEMORY_DEVICE, x, 700);
  r->b->memory_delete(&r->env, r->device, TN_MEMORY_DEVICE, y, 300);
  rig_close(r);
}

static void what_is_made_to_fail_fails_and_says_so(void **state) {
  (void)state;
  rig *r = rig_open((tn_sim_options){.fail = "allocation:2, launch:3,kernel:2"});
  float *x = rig_device(r);
  void *y;
  assert_int_equal(r->b->memory_new(&r->env, r->device, TN_MEMORY_STAGING, 64, &y), TN_ENOMEM);
  SAYS("allocation 2, of 64 bytes, was made to fail");
  rig_add add;
  rig_add_make(&add, "add", x, x, 1);
  OK(rig_add_enqueue(r, &add, r->compute));
  OK(r->b->stream_wait(&r->env, r->compute));
  OK(rig_add_enqueue(r, &add, r->in));
  assert_int_equal(rig_add_enqueue(r, &add, r->out), TN_EDEVICE);
  SAYS("launch 3, 'add', was made to fail");
  assert_int_equal(r->b->stream_wait(&r->env, r->in), TN_EDEVICE);
  SAYS("'add' on device 0: was made to fail");
  rig_free(r, TN_MEMORY_DEVICE, x);
  rig_close(r);
  r = rig_open((tn_sim_options){.fail = "device:1"});
  OK(r->b->enqueue(&r->env, r->compute, refuse, &add.launch));
  assert_int_equal(r->b->stream_wait(&r->env, r->compute), TN_EDEVICE);
  assert_int_equal(r->b->stream_wait(&r->env, r->in), TN_EDEVICE);
  SAYS("'add' on device 0: was made to fail");
  rig_close(r);
  r = rig_open((tn_sim_options){.fail = "device:1@1"});
  x = rig_device(r);
  rig_add_make(&add, "add", x, x, 1);
  OK(rig_add_enqueue(r, &add, r->compute)); /* this one is device 0 */
  OK(r->b->stream_wait(&r->env, r->compute));
  rig_free(r, TN_MEMORY_DEVICE, x);
  rig_close(r);
}

static void a_fault_that_is_none_is_refused(void **state) {
  (void)state;
  tn_sim_options options = {.devices = 1, .threads = 1, .queue = 4, .fail = "", .drop = "await", .slow = ""};
  rig *r = rig_open((tn_sim_options){0});
  void *self;
  const char *const wrong[] = {"await", "await:",   "await:0",   "await:2x",  "kernel:1",
                               ":1",    "await:1@", "await:1@x", "await:1@-2"};
  for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
    options.drop = wrong[i];
    assert_int_equal(r->b->open(&r->env, &options, &self), TN_EINVAL);
    SAYS("is not KIND:N");
    assert_null(self);
  }
  const char *const never_slow[] = {"1", "1:", ":3", "1:0.5", "-1:3", "1:3x", "1:1e9", "1:nan", "x:3"};
  options.drop = "";
  for (size_t i = 0; i < sizeof never_slow / sizeof never_slow[0]; i++) {
    options.slow = never_slow[i];
    assert_int_equal(r->b->open(&r->env, &options, &self), TN_EINVAL);
    SAYS("is not DEVICE:FACTOR");
    assert_null(self);
  }
  rig_close(r);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(addresses_of_the_device_are_none_of_the_process),
      cmocka_unit_test(new_memory_holds_no_zeros),
      cmocka_unit_test(a_step_of_copies_and_launches_gives_the_same_in_every_order),
      cmocka_unit_test(a_lazy_device_starts_when_the_host_waits_and_an_idle_host_is_enough),
      cmocka_unit_test(enqueuing_asks_for_no_memory),
      cmocka_unit_test(a_failure_sticks_to_its_stream_and_to_those_that_await_it),
      cmocka_unit_test(kernels_share_their_chunks_among_any_number_of_threads),
      cmocka_unit_test(a_task_is_asked_until_it_ends_and_holds_up_only_its_own_stream),
      cmocka_unit_test(memory_has_the_limit_that_was_set),
      cmocka_unit_test(what_is_made_to_fail_fails_and_says_so),
      cmocka_unit_test(a_fault_that_is_none_is_refused),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
