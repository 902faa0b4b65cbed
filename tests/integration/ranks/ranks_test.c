/* One training on 1 to 4 ranks: as threads on sim, as processes on cpu, and on the doubles of CUDA and NCCL
 * as 1 process with n devices, n with one, and 2 with 2; captured and not; in fp32, bf16 and fp16 with a
 * skipped step. The suite has a part of all combinations. TENON_ALL_RANKS=FILE.md runs all, and writes their
 * figures to the file (tools/dev ranks). */
#include "tests/integration/distributed/nets.h"

#include "models.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/wait.h>

/* ---- the combinations ---- */

enum { LENET_NET, RESNET18, A_TRANSFORMER, LOUD_LENET, NETS, SMALL_RESNET = NETS };
enum { FP32, BF16, FP16, POLICIES };
enum { MOST_RANKS = 4 };

/* Where a pre-activation is within rounding of zero, ReLU may pass it on one rank and not on several, and the
 * losses part by more than rounding: in ResNet-18 that comes soon. The loud sample comes every five steps.
 *
 * Bounds of nets_update.weights beside one rank, by policy. After the first update this is the relative error
 * of the gradient (Adam amplifies that of small gradients): at most 0.6 of the bound, and with half of the
 * gradients of one rank, the least of the planted faults (page_faults), 0.24 or more. Later steps amplify it
 * in half precision. The suite compares doubles with one rank of the host, whose kernels are others. */
typedef struct net {
  const char *title, *ini;
  int steps;
  double first[POLICIES], end[POLICIES];
} net;

static const net nets[NETS + 1] = {
    {"LeNet", nets_lenet, 20, {1e-5, 0.01, 0.002}, {5e-6, 0.36, 0.15}},
    {"ResNet-18", resnet18_ini, 5, {4e-5, 0.22, 0.12}, {3e-5, 0.55, 0.32}},
    {"Transformer", nets_transformer, 20, {1e-5, 0.2, 0.06}, {1e-5, 0.2, 0.06}},
    {"LeNet, one rank overflows", loud_ini, 6, {0, 0, 0.002}, {0, 0, 0.1}},
    {"ResNet of three blocks", nets_resnet, 5, {3e-5, 0, 0}, {3e-5, 0, 0}}};

/* A single tensor of NETS_LARGE elements may differ by so many times the bound of all weights. */
static const double tensor_factor = 2;

/* The gradients of the first step overflow on all ranks in fp16; then the scale is 65536. Bounds are
 * relative, beside one rank: of losses, and of the statistics of batch norms after the first update. */
typedef struct policy {
  const char *name, *settings;
  double losses, statistics;
} policy;

static const policy policies[POLICIES] = {
    {"fp32", "", 1e-5, 5e-6},
    {"bf16", "--set precision.policy=bf16", 2e-2, 5e-3},
    {"fp16",
     "--set precision.policy=fp16 --set precision.init_scale=1073741824 "
     "--set precision.backoff_factor=6.103515625e-05",
     2e-2, 1e-3}};
static const char loud_settings[] = "--set precision.policy=fp16";

/* Runs of the same family and number of ranks have the same bits. */
enum { HOST, GPU, FAMILIES };
enum { SIM, TCP, MPI, NCCL };

typedef struct way {
  const char *title;
  int family, kind;
  int processes; /* 0: as many as ranks */
  bool captured;
} way;

static const way ways[] = {
    {"`sim`, threads", HOST, SIM, 1, true},
    {"`sim`, threads, not captured", HOST, SIM, 1, false},
    {"`cpu`, processes, `tcp`", HOST, TCP, 0, false},
    {"`cpu`, processes, `mpi`", HOST, MPI, 0, false},
    {"1 process with n devices, `nccl`", GPU, NCCL, 1, true},
    {"1 process with n devices, `nccl`, not captured", GPU, NCCL, 1, false},
    {"n processes with 1 device, `nccl`", GPU, NCCL, 0, true},
    {"n processes with 1 device, `nccl`, not captured", GPU, NCCL, 0, false},
    {"2 processes with 2 devices, `nccl`", GPU, NCCL, 2, true},
    {"2 processes with 2 devices, `nccl`, not captured", GPU, NCCL, 2, false},
};
enum { WAYS = sizeof ways / sizeof *ways, THREADS_WAY = 0, DEVICES_WAY = 4 };

/* Bits of `ways`. */
enum {
  W_SIM = 1,
  W_SIM_PLAIN = 2,
  W_TCP = 4,
  W_MPI = 8,
  W_1xN = 16,
  W_1xN_PLAIN = 32,
  W_Nx1 = 64,
  W_Nx1_PLAIN = 128,
  W_2x2 = 256,
  W_2x2_PLAIN = 512
};

static bool way_is_here(const way *w, int ranks) {
  if (w->kind == MPI) return MPIRUN[0] != '\0';
  if (w->kind == NCCL && DOUBLES[0] == '\0') return false;
  return w->processes <= 1 || ranks == 4;
}

/* ---- a run ---- */

static int steps; /* of the net */

static const char *settings_of(int n, int p) {
  return n == LOUD_LENET ? loud_settings : policies[p].settings;
}

static void train_by_mpirun(int ranks, const char *folder, const char *settings) {
  char command[2048];
  snprintf(command, sizeof command,
           "timeout 900 " MPIRUN " -n %d " TENON " train model.ini --output %s --set backend.use=cpu "
           "--set distributed.communicator=mpi %s >out.txt 2>&1",
           ranks, folder, settings);
  int status = system(command);
  if (status != 0) fail_msg("status %#x: %s", (unsigned)status, file_read("out.txt", NULL));
}

/* No violation of the contracts of CUDA or NCCL, and no leak. */
static void check_doubles(void) {
  if (!file_exists("doubles.log")) return;
  const char *log = file_read("doubles.log", NULL);
  if (*log != '\0') fail_msg("the doubles say: %s", log);
}

static void train(const way *w, int ranks, const char *folder, const char *settings) {
  char all[1024];
  int processes = w->processes != 0 ? w->processes : ranks;
  int n = snprintf(all, sizeof all,
                   "%s --set data.train.batch=12 --set data.valid.batch=12 --set data.valid.epoch=12 --set "
                   "run.max_steps=%d "
                   "--set run.threads=1 --set distributed.timeout=1h --set backend.capture=%s ",
                   settings, steps, w->captured ? "yes" : "no");
  if (w->kind == SIM)
    snprintf(all + n, sizeof all - (size_t)n,
             "--set backend.use=sim --set backend.sim.devices=%d --set distributed.devices=%d", ranks, ranks);
  if (w->kind == TCP) snprintf(all + n, sizeof all - (size_t)n, "--set backend.use=cpu");
  if (w->kind == NCCL)
    snprintf(all + n, sizeof all - (size_t)n,
             "--set backend.use=cuda --set backend.fallback=error --set run.deterministic=yes --set "
             "backend.cuda.libraries=" DOUBLES " --set communicator.nccl.libraries=" DOUBLES
             " --set distributed.devices=%d",
             ranks / processes);
  if (w->kind == MPI)
    train_by_mpirun(ranks, folder, all);
  else if (processes == 1)
    program_json(0, "train model.ini --output %s %s", folder, all);
  else
    program_json(0, "launch -n %d model.ini --output %s %s", processes, folder, all);
  check_doubles();
}

/* ---- its results ---- */

typedef struct series {
  double losses[64]; /* of steps and validations */
  int n, steps, skipped;
  uint64_t skips; /* a bit for each step */
} series;

static void read_line(series *s, const json_t *line) {
  const char *event = program_text(line, "event");
  bool step = strcmp(event, "step") == 0;
  const json_t *valid = json_object_get(line, "valid"), *part = step ? json_object_get(line, "train") : valid;
  if (part == NULL || s->n == 64) return;
  s->losses[s->n++] = program_number(part, "loss");
  assert_true(isfinite(s->losses[s->n - 1]));
  if (!step) return;
  const json_t *skipped = json_object_get(line, "skipped");
  if (skipped != NULL && json_number_value(skipped) > 0) {
    s->skips |= UINT64_C(1) << s->steps;
    s->skipped++;
  }
  s->steps++;
}

static series read_series(const char *folder) {
  char path[96];
  series s = {.n = 0};
  snprintf(path, sizeof path, "%s/run/metrics.jsonl", folder);
  char *rest = file_read(path, NULL);
  for (char *line; (line = strsep(&rest, "\n")) != NULL && *line != '\0';) {
    json_t *json = json_loads(line, 0, NULL);
    assert_non_null(json);
    read_line(&s, json);
    json_decref(json);
  }
  assert_int_equal(s.steps, steps);
  assert_true(s.n > s.steps);
  return s;
}

static void same_skips(const series *a, const series *b) {
  assert_int_equal(a->n, b->n);
  if (a->skips != b->skips)
    fail_msg("skipped steps are %#llx and %#llx", (unsigned long long)a->skips, (unsigned long long)b->skips);
}

static double losses_difference(const series *a, const series *b) {
  double most = 0;
  same_skips(a, b);
  for (int i = 0; i < a->n; i++) {
    double d = fabs(a->losses[i] - b->losses[i]) / fabs(b->losses[i]);
    if (d > most || isnan(d)) most = d;
  }
  return most;
}

static void same_bits(const char *a, const char *b) {
  series x = read_series(a), y = read_series(b);
  same_skips(&x, &y);
  for (int i = 0; i < x.n; i++)
    if (x.losses[i] != y.losses[i]) fail_msg("loss %d is %.9g and %.9g", i, x.losses[i], y.losses[i]);
  checkpoints_equal(a, b);
}

/* ---- a group: runs with the same bits, beside one rank ---- */

typedef struct figures {
  double losses;
  nets_update first, end; /* after the first update, and after all steps */
  int runs;               /* with the same bits */
} figures;

/* The steps to the first update: in fp16 the first step is skipped. */
static int first_steps(int n, int p) { return p == FP16 && n != LOUD_LENET ? 2 : 1; }

/* Trains to the first update, into a folder of its own. */
static void train_first(const way *w, int ranks, int n, int p, const char *folder) {
  int all = steps;
  steps = first_steps(n, p);
  train(w, ranks, folder, settings_of(n, p));
  steps = all;
}

static figures beside_one(int n, int p, const char *folder) {
  series one = read_series("one"), several = read_series(folder);
  figures f = {.losses = losses_difference(&several, &one),
               .first = nets_compare_updates("update", "one_update", "start"),
               .end = nets_compare_updates(folder, "one", "start")};
  int skipped = n == LOUD_LENET || p == FP16;
  assert_int_equal(several.skipped, skipped);
  if (n == LOUD_LENET) assert_true(several.skips == 2);
  return f;
}

/* `chosen`: bits of ways. The results of the first way are beside those of one rank, in folder `one`. */
static figures compare_ways(int n, int p, int family, int ranks, unsigned chosen) {
  figures f = {.runs = 0};
  for (int i = 0; i < WAYS; i++) {
    if (ways[i].family != family || (chosen >> i & 1) == 0 || !way_is_here(&ways[i], ranks)) continue;
    const char *folder = f.runs == 0 ? "first" : "other";
    train(&ways[i], ranks, folder, settings_of(n, p));
    if (f.runs == 0) {
      train_first(&ways[i], ranks, n, p, "update");
      f = beside_one(n, p, folder);
    } else {
      same_bits("other", "first");
    }
    f.runs++;
    assert_int_equal(system("rm -rf other update"), 0);
  }
  assert_int_equal(system("rm -rf first"), 0);
  print_message("%s, %s, %s, %d ranks: %d runs with equal bits; beside one rank: losses %.2g; first update: "
                "weights %.2g, %s %.2g, statistics %.2g; at the end: weights %.2g\n",
                nets[n].title, policies[p].name, family == HOST ? "host" : "doubles", ranks, f.runs, f.losses,
                f.first.weights, f.first.where, f.first.tensor, f.first.statistics, f.end.weights);
  return f;
}

static void train_one(int n, int p, int family, int n_steps) {
  const way *w = &ways[family == HOST ? THREADS_WAY : DEVICES_WAY];
  char none[256];
  file_write("model.ini", nets[n].ini);
  assert_int_equal(system("rm -rf one one_update start"), 0);
  steps = 0;
  snprintf(none, sizeof none, "%s --set run.epochs=0", settings_of(n, p));
  train(w, 1, "start", none);
  steps = n_steps;
  train(w, 1, "one", settings_of(n, p));
  train_first(w, 1, n, p, "one_update");
}

static void within(const char *what, double value, double bound) {
  if (!(value <= bound)) fail_msg("%s: %g is more than %g", what, value, bound);
}

static void within_bounds(const figures *f, int n, int p) {
  const net *of = &nets[n];
  within("losses", f->losses, policies[p].losses);
  within("weights after the first update", f->first.weights, of->first[p]);
  within(f->first.where, f->first.tensor, tensor_factor * of->first[p]);
  within("statistics after the first update", f->first.statistics, policies[p].statistics);
  within("weights at the end", f->end.weights, of->end[p]);
}

/* ---- the part in the suite ---- */

typedef struct choice {
  int net, policy, ranks;
  unsigned ways;
  int steps;
} choice;

static void compare_choices(int family, const choice *choices, size_t n) {
  for (size_t i = 0; i < n; i++) {
    const choice *c = &choices[i];
    train_one(c->net, c->policy, HOST, c->steps); /* which is fast, and as near */
    figures f = compare_ways(c->net, c->policy, family, c->ranks, c->ways);
    within_bounds(&f, c->net, c->policy);
  }
}

static const choice on_host[] = {{LENET_NET, BF16, 2, W_SIM | W_TCP, 4},
                                 {RESNET18, FP16, 4, W_SIM | W_MPI, 3},
                                 {RESNET18, BF16, 3, W_SIM_PLAIN | W_MPI, 3},
                                 {RESNET18, FP32, 2, W_SIM | W_TCP, 2},
                                 {A_TRANSFORMER, FP16, 2, W_SIM | W_MPI, 4},
                                 {A_TRANSFORMER, FP32, 3, W_SIM | W_TCP, 4},
                                 {A_TRANSFORMER, BF16, 4, W_SIM | W_MPI, 4},
                                 {LOUD_LENET, FP16, 3, W_SIM | W_SIM_PLAIN | W_TCP | W_MPI, 4}};

static void threads_and_processes_have_the_same_bits(void **state) {
  (void)state;
  compare_choices(HOST, on_host, sizeof on_host / sizeof *on_host);
}

/* The sum has a value that is not finite in the parts of the state that some ranks keep, and not in others.
 */
static void one_rank_with_an_overflow_skips_the_step_on_all(void **state) {
  static const char *const more[] = {"--set data.train.loud=-1", "",
                                     "--set distributed.shard=optimizer --set distributed.bucket=4KiB"},
                           *const folders[] = {"quiet", "whole", "divided"};
  (void)state;
  steps = 4;
  file_write("model.ini", loud_ini);
  for (int i = 0; i < 3; i++) {
    char settings[256];
    snprintf(settings, sizeof settings, "%s %s", loud_settings, more[i]);
    train(&ways[THREADS_WAY], 3, folders[i], settings);
    assert_true(read_series(folders[i]).skips == (i == 0 ? 0 : 2));
  }
  same_bits("divided", "whole");
}

static const choice on_doubles[] = {{LOUD_LENET, FP16, 3, W_1xN | W_Nx1_PLAIN, 2},
                                    {SMALL_RESNET, FP32, 2, W_1xN_PLAIN | W_Nx1, 3},
                                    {A_TRANSFORMER, BF16, 4, W_Nx1 | W_2x2_PLAIN, 1}};

static void processes_and_devices_have_the_same_bits(void **state) {
  (void)state;
  if (DOUBLES[0] == '\0') skip();
  compare_choices(GPU, on_doubles, sizeof on_doubles / sizeof *on_doubles);
}

/* ---- processes to which a scheduler shows one device each ---- */

static int shown;
static char port[16], token[64];

static void show_device(void) {
  char text[16];
  snprintf(text, sizeof text, "%d", shown);
  setenv("RANK", text, 1);
  setenv("LOCAL_RANK", text, 1);
  setenv("CUDA_VISIBLE_DEVICES", text, 1);
  setenv("WORLD_SIZE", "2", 1);
  setenv("LOCAL_WORLD_SIZE", "2", 1);
  setenv("MASTER_ADDR", "localhost", 1);
  setenv("MASTER_PORT", port, 1);
  setenv("TENON_TOKEN", token, 1);
}

static void start_with_device(int device, const char *folder) {
  shown = device;
  program_start("train model.ini --quiet --output %s --set backend.use=cuda --set backend.fallback=error "
                "--set run.deterministic=yes --set backend.cuda.libraries=" DOUBLES
                " --set communicator.nccl.libraries=" DOUBLES
                " --set data.train.batch=12 --set data.valid.batch=12 --set data.valid.epoch=12 "
                "--set run.threads=1 --set run.max_steps=%d --set distributed.timeout=1h",
                folder, steps);
}

static void a_process_takes_the_device_that_it_is_shown(void **state) {
  (void)state;
  if (DOUBLES[0] == '\0') skip();
  steps = 2;
  file_write("model.ini", nets_lenet);
  train(&ways[DEVICES_WAY], 2, "devices", "");
  snprintf(port, sizeof port, "%d", program_ports());
  snprintf(token, sizeof token, "%s", program_token());
  program_prepare(show_device);
  start_with_device(1, "shown");
  pid_t second = program_swap(0);
  start_with_device(0, "shown");
  program_expect(program_finish(), 0);
  program_swap(second);
  program_expect(program_finish(), 0);
  check_doubles();
  same_bits("shown", "devices");
}

/* ---- all, as a page ---- */

static const char page_head[] =
    "# One training on 1 to 4 ranks\n\n"
    "`tools/dev ranks` trains some steps with a batch of 12 samples on 1 to 4 ranks in all of these ways, "
    "and writes "
    "this page:\n\n"
    "- on the host: threads of `sim`, captured and not; processes of `cpu` with `tcp`, and with `mpi`\n"
    "- on the doubles of CUDA and NCCL, without a GPU: 1 process with n devices, n processes with 1, for 4 "
    "ranks also "
    "2 with 2;\n  each captured and not\n\n"
    "Runs of one line and precision have the same losses and checkpoints, bit by bit; \"runs\" is how many "
    "these "
    "are.\n\n"
    "The figures are differences beside one rank: the greatest of the losses of all steps and validations, "
    "relative; "
    "and those of the\nweights after the first update and after all steps, as "
    "|weights - weights of one rank| / |weights of one rank - weights at the start|\nwith L2 norms over the "
    "whole model. "
    "After the first update this is the relative error of the gradient. Later steps amplify it\nin half "
    "precision. "
    "The largest element of a tensor is no measure there: a tensor that began with zeros, as the bias of a "
    "`batch_norm`\ndoes, consists of rounding after few steps.\n\n"
    "The bounds are 1e-5 for losses in fp32 and 2e-2 in half precision, and these for weights (first update "
    "/ end). A "
    "tensor of 256\nelements or more may differ by twice the bound of the first update; statistics of "
    "`batch_norm` by "
    "5e-6, 5e-3 and 1e-3.\n\n"
    "In fp16 the first step is skipped: its scale is 2^30, then 65536. Where one rank overflows, a sample of "
    "the second "
    "batch is 1000\ntimes as large as others, so only the gradients of the last rank overflow; all ranks "
    "skip the "
    "step.\n\n"
    "ResNet-18 is that of docs/examples/cifar10_resnet18.ini for images of 32x32, with an eighth of the "
    "channels and "
    "`sync = yes`.\n";

/* Planted in the sums of the communicator `sim`, on 2 and 4 ranks in all three precisions; statistics by
 * `sync = no`. */
static const char page_faults[] =
    "\nFaults that were planted on 2 and 4 ranks of `sim`, in all three precisions, give at least these "
    "figures after the first update:\n\n"
    "| fault | LeNet | ResNet-18 | Transformer |\n|---|---|---|---|\n"
    "| the gradients of a rank are lost | 0.48 | 0.55 | 0.63 |\n"
    "| half of the gradients of a rank is lost | 0.24 | 0.27 | 0.45 |\n"
    "| the first bucket lacks the gradients of a rank (tensor) | 0.45 | 0.44 | 0.66 |\n"
    "| the mean of the ranks in place of the sum | 0.50 | 0.50 | 2e-5 in fp32, 0 in halves: Adam divides by "
    "it |\n"
    "| statistics of each rank's own samples | - | 0.58 | - |\n";

static FILE *all_page; /* opened in the folder where the test starts */

static void write_row(FILE *page, int n, int family, int ranks, const figures f[POLICIES]) {
  fprintf(page, "| %s | %d |", family == HOST ? "host" : "doubles", ranks);
  for (int p = n == LOUD_LENET ? FP16 : FP32; p < POLICIES; p++)
    fprintf(page, " %.1e | %.1e | %.1e | %d |", f[p].losses, f[p].first.weights, f[p].end.weights, f[p].runs);
  fprintf(page, "\n");
  fflush(page);
}

static void write_head(FILE *page, int n) {
  fprintf(page, "\n## %s: %d steps\n\n| backends | ranks |", nets[n].title, nets[n].steps);
  int first = n == LOUD_LENET ? FP16 : FP32;
  for (int p = first; p < POLICIES; p++)
    fprintf(page, " %s: losses | first update | end | runs |", policies[p].name);
  fprintf(page, "\n|---|---|");
  for (int p = first; p < POLICIES; p++) fprintf(page, "---|---|---|---|");
  fprintf(page, "\n");
}

static void write_bounds(FILE *page) {
  fprintf(page, "\n| bounds | fp32 | bf16 | fp16 |\n|---|---|---|---|\n");
  for (int n = 0; n < NETS; n++) {
    fprintf(page, "| %s |", nets[n].title);
    for (int p = FP32; p < POLICIES; p++)
      if (nets[n].first[p] > 0)
        fprintf(page, " %g / %g |", nets[n].first[p], nets[n].end[p]);
      else
        fprintf(page, " - |");
    fprintf(page, "\n");
  }
}

/* All runs of a net in a family: a line for each number of ranks. */
static void compare_net(FILE *page, int n, int family) {
  figures f[MOST_RANKS + 1][POLICIES];
  for (int p = n == LOUD_LENET ? FP16 : FP32; p < POLICIES; p++) {
    train_one(n, p, family, nets[n].steps);
    for (int ranks = 1; ranks <= MOST_RANKS; ranks++) {
      f[ranks][p] = compare_ways(n, p, family, ranks, ~0U);
      within_bounds(&f[ranks][p], n, p);
    }
  }
  for (int ranks = 1; ranks <= MOST_RANKS; ranks++) write_row(page, n, family, ranks, f[ranks]);
}

static void write_choices(FILE *page, const choice *choices, size_t n) {
  for (size_t i = 0; i < n; i++) {
    const choice *c = &choices[i];
    const char *between = "";
    fprintf(page, "| %s | %s | %d | %d | ", nets[c->net].title, policies[c->policy].name, c->ranks, c->steps);
    for (int w = 0; w < WAYS; w++) {
      if ((c->ways >> w & 1) == 0) continue;
      fprintf(page, "%s%s", between, ways[w].title);
      between = "; ";
    }
    fprintf(page, " |\n");
  }
}

static void write_suite(FILE *page) {
  fprintf(
      page,
      "\n## Part of the suite\n\n| network | precision | ranks | steps | ways |\n|---|---|---|---|---|\n");
  write_choices(page, on_host, sizeof on_host / sizeof *on_host);
  write_choices(page, on_doubles, sizeof on_doubles / sizeof *on_doubles);
  fprintf(page,
          "\nThe suites `distributed: equal`, `mpi: train` and `nccl train` have more of 2 and 4 ranks.\n");
}

static void all_ways_have_the_same_bits(void **state) {
  (void)state;
  FILE *page = all_page;
  if (page == NULL) fail_msg("%s cannot be written", getenv("TENON_ALL_RANKS"));
  fputs(page_head, page);
  write_bounds(page);
  fputs(page_faults, page);
  for (int n = 0; n < NETS; n++) {
    write_head(page, n);
    for (int family = HOST; family < (DOUBLES[0] != '\0' ? FAMILIES : GPU); family++)
      compare_net(page, n, family);
  }
  write_suite(page);
  assert_int_equal(fclose(page), 0);
}

/* ---- set-up ---- */

static int set_up(void **state) {
  static const char *const settings[][2] = {{"OMPI_ALLOW_RUN_AS_ROOT", "1"},
                                            {"OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1"},
                                            {"OMPI_MCA_rmaps_base_oversubscribe", "1"},
                                            {"OMPI_MCA_hwloc_base_binding_policy", "none"},
                                            {"FAKECUDA_LOG", "doubles.log"},
                                            {"FAKENCCL_LOG", "doubles.log"}};
  for (size_t i = 0; i < sizeof settings / sizeof *settings; i++) setenv(settings[i][0], settings[i][1], 1);
  return program_open(state);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, set_up, program_close)

int main(void) {
  const struct CMUnitTest some[] = {CASE(threads_and_processes_have_the_same_bits),
                                    CASE(one_rank_with_an_overflow_skips_the_step_on_all),
                                    CASE(processes_and_devices_have_the_same_bits),
                                    CASE(a_process_takes_the_device_that_it_is_shown)},
                          all[] = {CASE(all_ways_have_the_same_bits)};
  const char *path = getenv("TENON_ALL_RANKS");
  if (path == NULL) return cmocka_run_group_tests(some, NULL, NULL);
  all_page = fopen(path, "w");
  return cmocka_run_group_tests(all, NULL, NULL);
}
