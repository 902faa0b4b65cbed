/* The planned peak equals the measured peak to the byte, and so does the sum of the rows of the table of
 * memory, on both kinds of device and with every option that affects memory. */
#include "configs.h"
#include "program.h"

static const char lenet[] = "[run]\nname = net\nmax_steps = 3\n"
                            "[data]\nsource = digits\nepoch = 24\nbatch = 4\nworkers = 1\n"
                            "transforms = to_float, normalize(mean=0.13, std=0.31)\n"
                            "[data.valid]\nepoch = 8\nbatch = 8\n" LENET;
static const char transformer[] =
    "[run]\nname = net\nmax_steps = 3\n"
    "[data]\nsource = random\ntokens = 16\nclasses = 30\nsamples = 24\nbatch = 4\n"
    "[model]\ninputs = tokens: i32[16]\ntargets = next: i32[16]\nlayers =\n"
    "    wte:  embedding(30, 16)\n    h:    block(16, heads=2) * 2\n    ln_f: layer_norm\n"
    "    head: linear(30, bias=no)\n"
    "loss = cross_entropy\n"
    "[block block]\nargs = width, heads\nlayers =\n"
    "    ln_1: layer_norm\n    qkv:  linear(3*width)\n    q, k, v: split(3, axis=-1)\n"
    "    y:    attention(heads, causal=yes) <- q, k, v\n    proj: linear(width)\n    a:    add <- in, proj\n"
    "    ln_2: layer_norm\n    up:   linear(4*width)\n          gelu(tanh)\n    down: linear(width)\n"
    "          add <- a, down\n"
    "[optimizer]\ntype = adamw\nlr = 1e-3\nclip = 1.0\n";

static const char *const ways[] = {
    "backend.use=cpu",
    "backend.use=sim",
    "backend.use=sim --set backend.capture=no --set data.workers=3",
    "backend.use=onednn,cpu",
    "backend.use=onednn,cpu --set precision.policy=bf16",
    "backend.use=cpu --set optimizer.accumulate=2",
    "backend.use=cpu --set optimizer.ema=0.9",
    "backend.use=sim --set optimizer.accumulate=2",
    "backend.use=cpu --set precision.policy=fp16",
    "backend.use=sim --set precision.policy=fp16",
    "backend.use=sim --set precision.policy=bf16 --set optimizer.accumulate=2",
    "backend.use=sim --set backend.sim.devices=2 --set distributed.devices=2 --set "
    "distributed.communicator=sim",
    "backend.use=sim,cpu --set backend.sim.lacks=matmul --set backend.fallback=allow",
};

/* The rows of the table of memory sum to the executor's bytes. */
static void the_rows_sum_to(const json_t *run, long long bytes, const char *way) {
  const json_t *rows = program_member(run, "memory_table.rows"), *row;
  long long sum = 0;
  size_t i;
  json_array_foreach(rows, i, row) {
    const char *name = program_text(row, "name");
    if (strcmp(name, "library memory") != 0 && strcmp(name, "graph") != 0)
      sum += json_integer_value(json_object_get(row, "bytes"));
  }
  if (sum != bytes || (long long)program_number(run, "memory_table.executor_bytes") != bytes)
    fail_msg("with %s: %lld bytes measured, %lld in the rows", way, bytes, sum);
}

static void the_peak_is_as_planned(const char *text) {
  file_write("net.ini", text);
  for (size_t i = 0; i < sizeof ways / sizeof *ways; i++) {
    const json_t *run = program_json(0, "train net.ini --output out --set %s", ways[i]);
    long long planned = (long long)program_number(run, "planned_peak_bytes"),
              measured = (long long)program_number(run, "measured_peak_bytes");
    if (planned != measured || planned <= 0)
      fail_msg("with %s: %lld bytes planned, %lld measured", ways[i], planned, measured);
    the_rows_sum_to(run, measured, ways[i]);
  }
}

static void planned_peak_of_lenet_is_measured(void **state) {
  (void)state;
  the_peak_is_as_planned(lenet);
}

static void planned_peak_of_a_transformer_is_measured(void **state) {
  (void)state;
  the_peak_is_as_planned(transformer);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup_teardown(planned_peak_of_lenet_is_measured, program_open, program_close),
      cmocka_unit_test_setup_teardown(planned_peak_of_a_transformer_is_measured, program_open, program_close),
  };
  return cmocka_run_group_tests_name("memory: the planned peak", tests, NULL, NULL);
}
