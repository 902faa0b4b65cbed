/* core/distributed/place/place.c: the variables of the launchers. */
#include "core/distributed/place/place.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/base/text/text.h"

/* Ports that are derived from a job's number: those that are free for users' programs and below the range
 * from which Linux takes the ports of outgoing connections. */
enum { FIRST_PORT = 20000, PORTS = 12000 };

typedef struct place_reader {
  const void *handle;
  tn_variable_fn variable;
  void *context;
  tn_process_place *place;
} place_reader;

static const char *place_getenv(void *context, const char *name) {
  (void)context;
  return getenv(name);
}

/* A variable that is set to nothing counts as not set. */
static const char *place_text(const place_reader *r, const char *name) {
  const char *text = r->variable(r->context, name);
  return text != NULL && *text != '\0' ? text : NULL;
}

/* A whole number in [least, most]; `fallback` where the variable is not set. */
static tn_status place_number(const place_reader *r, const char *name, int64_t least, int64_t most,
                              int32_t fallback, int32_t *value) {
  const char *text = place_text(r, name);
  int64_t number = 0;
  *value = fallback;
  if (text == NULL) return TN_OK;
  if (!tn_text_to_int(text, &number) || number < least || number > most)
    return tn_failf(r->handle, TN_EINVAL,
                    "the environment has %s=%s, expected a whole number from %lld to %lld", name, text,
                    (long long)least, (long long)most);
  *value = (int32_t)number;
  return TN_OK;
}

static void place_copy(char *to, size_t size, const char *from) { snprintf(to, size, "%s", from); }

/* ---- one launcher ---- */

/* The variables in which a launcher writes the four numbers. */
typedef struct launcher_names {
  const char *launcher, *process, *processes, *local, *locals;
} launcher_names;

enum { LAUNCH, TORCHRUN, OPEN_MPI, PMI, SLURM, LAUNCHERS };

static const launcher_names launchers[] = {
    {"tenon launch", "TENON_PROCESS", "TENON_PROCESSES", "TENON_LOCAL_PROCESS", "TENON_LOCAL_PROCESSES"},
    {"torchrun", "RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE"},
    {"Open MPI's mpirun", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_RANK",
     "OMPI_COMM_WORLD_LOCAL_SIZE"},
    {"mpirun", "PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID", "MPI_LOCALNRANKS"},
    {"srun", "SLURM_PROCID", "SLURM_STEP_NUM_TASKS", "SLURM_LOCALID", NULL},
};

/* The script of a batch job and the shell of salloc have Slurm's variables too, even the number of tasks, but
 * no step, or one of the numbers that Slurm keeps for them. */
static bool place_has_slurm_step(const place_reader *r) {
  const char *step = place_text(r, "SLURM_STEP_ID");
  int64_t number = 0;
  return step != NULL && tn_text_to_int(step, &number) && number >= 0 && number < 0xfffffff0;
}

static bool place_same_text(const place_reader *r, const char *a, const char *b) {
  const char *text = place_text(r, a), *other = place_text(r, b);
  return text != NULL && other != NULL && strcmp(text, other) == 0;
}

/* srun may set the variables of PMI as well. The numbers differ where srun has started mpirun's daemons. */
static bool place_pmi_is_slurm(const place_reader *r) {
  return place_has_slurm_step(r) && place_same_text(r, "PMI_RANK", "SLURM_PROCID") &&
         place_same_text(r, "PMI_SIZE", "SLURM_STEP_NUM_TASKS");
}

static bool place_was_started_by(const place_reader *r, int32_t launcher) {
  const launcher_names *l = &launchers[launcher];
  if (place_text(r, l->process) == NULL || place_text(r, l->processes) == NULL) return false;
  if (launcher == TORCHRUN) return place_text(r, "MASTER_ADDR") != NULL;
  if (launcher == PMI) return !place_pmi_is_slurm(r);
  return launcher != SLURM || place_has_slurm_step(r);
}

static tn_status place_read_numbers(place_reader *r, const launcher_names *l) {
  tn_process_place *p = r->place;
  TN_TRY(place_number(r, l->processes, 1, TN_MOST_PROCESSES, 1, &p->processes));
  TN_TRY(place_number(r, l->process, 0, p->processes - 1, 0, &p->process));
  bool told = l->locals != NULL && place_text(r, l->locals) != NULL;
  if (told) TN_TRY(place_number(r, l->locals, 1, p->processes, 1, &p->locals));
  TN_TRY(place_number(r, l->local, 0, (told ? p->locals : p->processes) - 1, 0, &p->local));
  /* without their number, processes of a host still have different devices */
  if (p->locals <= p->local) p->locals = p->local + 1;
  return TN_OK;
}

/* A batch script may have forgotten srun. */
static int32_t place_slurm_tasks(const place_reader *r) {
  const char *tasks = place_text(r, "SLURM_NTASKS");
  int64_t n = 0;
  bool allocated = place_text(r, "SLURM_JOB_ID") != NULL && !place_has_slurm_step(r) && tasks != NULL;
  return allocated && tn_text_to_int(tasks, &n) && n > 0 && n <= TN_MOST_PROCESSES ? (int32_t)n : 0;
}

/* ---- the host of process 0, the port, the token ---- */

static int32_t place_port_of(const char *job) {
  return (int32_t)(FIRST_PORT + tn_hash_text(TN_HASH_START, job) % PORTS);
}

/* The name of a job: token, and source of the port. */
static void place_take_job(tn_process_place *p, const char *kind, const char *job) {
  snprintf(p->token, sizeof p->token, "%s %s", kind, job);
  p->port = place_port_of(p->token);
}

static tn_status place_find_slurm(place_reader *r) {
  tn_process_place *p = r->place;
  const char *nodes = place_text(r, "SLURM_STEP_NODELIST"), *job = place_text(r, "SLURM_JOB_ID"),
             *tasks = place_text(r, "SLURM_STEP_TASKS_PER_NODE");
  char step[64];
  int32_t node = 0;
  TN_TRY(place_number(r, "SLURM_NODEID", 0, TN_MOST_PROCESSES, 0, &node));
  if (nodes != NULL && !tn_slurm_first_node(nodes, p->master, sizeof p->master))
    return tn_failf(r->handle, TN_EINVAL,
                    "the environment has SLURM_STEP_NODELIST=%s, expected a list of nodes", nodes);
  if (tasks != NULL) p->locals = tn_slurm_tasks_of_node(tasks, node);
  if (p->locals <= p->local || p->locals > p->processes)
    return tn_failf(
        r->handle, TN_EINVAL,
        "the environment has SLURM_STEP_TASKS_PER_NODE=%s, expected a list such as 2(x3),1 that has "
        "node %d with more than %d of %d tasks",
        tasks, (int)node, (int)p->local, (int)p->processes);
  snprintf(step, sizeof step, "%s.%s", job != NULL ? job : "", place_text(r, "SLURM_STEP_ID"));
  place_take_job(p, "slurm", step);
  return TN_OK;
}

/* mpirun names its own host and the job. Without a host all processes are of this one. */
static void place_find_openmpi(place_reader *r) {
  const char *job = place_text(r, "PMIX_NAMESPACE"), *uri = place_text(r, "OMPI_MCA_orte_hnp_uri");
  if (job == NULL) job = place_text(r, "OMPI_MCA_ess_base_jobid");
  place_take_job(r->place, "openmpi", job != NULL ? job : "");
  const char *tcp = uri != NULL && r->place->locals < r->place->processes ? strstr(uri, "tcp://") : NULL;
  if (tcp == NULL) return;
  tcp += strlen("tcp://");
  snprintf(r->place->master, sizeof r->place->master, "%.*s", (int)strcspn(tcp, ",:"), tcp);
}

/* Processes of MPICH's Hydra on one host have the same parent. */
static void place_find_pmi(place_reader *r) {
  const char *job = place_text(r, "PMI_JOBID");
  char parent[32] = "";
  if (place_text(r, "MASTER_ADDR") == NULL) snprintf(parent, sizeof parent, "%ld", (long)getppid());
  place_take_job(r->place, "pmi", job != NULL ? job : parent);
}

/* torchrun's own store listens on MASTER_PORT, so the ports behind it are tried. */
static void place_find_torchrun(place_reader *r) {
  const char *job = place_text(r, "TORCHELASTIC_RUN_ID"), *port = place_text(r, "MASTER_PORT");
  char both[96];
  snprintf(both, sizeof both, "%s %s", job != NULL ? job : "", port != NULL ? port : "");
  place_take_job(r->place, "torchrun", both);
}

/* Processes of one host meet on its loopback device; other hosts may know it by another name. */
static tn_status place_find_master(place_reader *r, int32_t launcher) {
  tn_process_place *p = r->place;
  const char *master = place_text(r, "MASTER_ADDR"), *token = place_text(r, "TENON_TOKEN");
  int32_t port = 0;
  place_copy(p->master, sizeof p->master, "127.0.0.1");
  if (launcher == TORCHRUN) place_find_torchrun(r);
  if (launcher == OPEN_MPI) place_find_openmpi(r);
  if (launcher == PMI) place_find_pmi(r);
  if (launcher == SLURM) TN_TRY(place_find_slurm(r));
  TN_TRY(place_number(r, "MASTER_PORT", 1, 65535 - 16, 0, &port));
  if (port > 0) p->port = port + (launcher == TORCHRUN ? 1 : 0);
  if (p->port == 0) p->port = place_port_of("tenon");
  if (token != NULL) place_copy(p->token, sizeof p->token, token);
  p->guessable = token == NULL;
  if (p->locals == p->processes) master = "127.0.0.1";
  if (master != NULL) place_copy(p->master, sizeof p->master, master);
  return TN_OK;
}

/* Several hosts, and nothing says which one process 0 is on. */
static tn_status place_check_hosts(const place_reader *r, const launcher_names *l) {
  const tn_process_place *p = r->place;
  bool told = l->locals != NULL && place_text(r, l->locals) != NULL;
  if (!told || p->locals >= p->processes || strncmp(p->master, "127.", 4) != 0) return TN_OK;
  if (place_text(r, "MASTER_ADDR") != NULL) return TN_OK;
  return tn_failf(
      r->handle, TN_EINVAL,
      "%s has started %d processes, %d of them on this host, and does not say where process 0 is; set "
      "MASTER_ADDR to the name of its host, and MASTER_PORT to a free port there",
      p->launcher, (int)p->processes, (int)p->locals);
}

tn_status tn_process_place_read(const void *handle, tn_variable_fn variable, void *context,
                                tn_process_place *place) {
  place_reader r = {handle, variable != NULL ? variable : place_getenv, context, place};
  *place = (tn_process_place){.processes = 1, .locals = 1};
  int32_t i = 0;
  while (i < LAUNCHERS && !place_was_started_by(&r, i)) i++;
  if (i == LAUNCHERS) place->tasks = place_slurm_tasks(&r);
  if (i == LAUNCHERS) return TN_OK;
  place->launcher = launchers[i].launcher;
  TN_TRY(place_read_numbers(&r, &launchers[i]));
  if (place->processes == 1) return TN_OK;
  TN_TRY(place_find_master(&r, i));
  return place_check_hosts(&r, &launchers[i]);
}
