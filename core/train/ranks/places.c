/* core/train/ranks/places.c: see places.h. */
#include "core/train/ranks/places.h"

#include <stdio.h>
#include <string.h>

#include "core/base/text/text.h"
#include "core/exec/flight_recorder.h"
#include "core/records/runs/plan_file.h"

/* ---- the processes ---- */

/* [distributed] processes: auto, or a number that the launcher's must equal. */
static tn_status places_check_processes(tn_run *run, tn_process_place *place) {
  const char *text = run->settings.distributed.processes,
             *where = tn_settings_where(&run->ini, "distributed", "processes");
  int64_t n = 0;
  if (tn_text_equal(text, "auto")) return TN_OK;
  if (!tn_text_to_int(text, &n) || n < 1 || n > TN_MOST_PROCESSES)
    return tn_failf(&run->env, TN_EINVAL,
                    "%s: [distributed] processes = %s, expected auto or a number from 1 to %d", where, text,
                    TN_MOST_PROCESSES);
  if (n == 1) *place = (tn_process_place){.processes = 1, .locals = 1};
  if (n == place->processes) return TN_OK;
  if (place->launcher != NULL)
    return tn_failf(&run->env, TN_EINVAL, "%s: [distributed] processes = %lld, but %s has started %d", where,
                    (long long)n, place->launcher, (int)place->processes);
  return tn_failf(
      &run->env, TN_EINVAL,
      "%s: [distributed] processes = %lld, but no launcher has started this one; start all by `tenon "
      "launch -n %lld %s`",
      where, (long long)n, (long long)n, run->ini.path);
}

tn_status tn_run_find_place(tn_run *run, tn_process_place *place) {
  TN_TRY(tn_process_place_read(&run->env, NULL, NULL, place));
  TN_TRY(places_check_processes(run, place));
  if (place->processes > 1) run->place = place;
  if (place->process > 0) run->record.sink.level = TN_LOG_ERROR;
  return TN_OK;
}

/* `tenon launch` draws a token. Process 0 alone logs warnings. */
static void places_warn_token(tn_run *run, const tn_process_place *place) {
  if (!place->guessable) return;
  tn_logf(&run->env, TN_LOG_WARN,
          "the processes of this job know each other by its name, which others can guess; set the same "
          "secret for all "
          "of them in front of %s: export TENON_TOKEN=$(openssl rand -hex 16)%s",
          place->launcher, strstr(place->launcher, "mpirun") != NULL ? ", and mpirun -x TENON_TOKEN" : "");
}

tn_status tn_run_join(tn_run *run, const tn_process_place *place, tn_link **link) {
  const tn_join_request request = {.place = place,
                                   .ranks = run->locals,
                                   .timeout_s = run->settings.distributed.timeout,
                                   .stop = &run->stop};
  if (run->place == NULL) return TN_OK;
  places_warn_token(run, place);
  TN_TRY(tn_link_open(&run->env, &request, link));
  run->rank = tn_link_first_rank(*link);
  run->ranks = tn_link_ranks(*link);
  return TN_OK;
}

/* ---- the choices of kernels ---- */

tn_status tn_run_tell_choices(tn_run *run, tn_rank_set *ranks, const tn_device *device,
                              const tn_program_set *set, int32_t slots) {
  char *text = NULL;
  TN_TRY(tn_plan_file_print(run, device, set, slots, &text));
  tn_status status = tn_ranks_tell_text(ranks, &run->env, "plan of process 0", &text);
  tn_release(&run->env, text);
  return status;
}

tn_status tn_run_hear_choices(tn_run *run, tn_rank_set *ranks) {
  char *text = NULL;
  tn_status status = tn_ranks_tell_text(ranks, &run->env, "plan of process 0", &text);
  if (status == TN_OK) status = tn_plan_file_take(run, text, strlen(text));
  tn_release(&run->env, text);
  return status;
}

/* ---- the communicator ---- */

/* A communicator that opens is not there yet to be aborted. */
static int32_t places_comm_has_failed(const tn_comm_place *place) { return tn_ranks_have_failed(place->run); }

static void places_comm_prove(const tn_comm_place *place, const void *bytes, uint64_t n, uint8_t proof[32]) {
  const tn_process_place *job = place->job;
  tn_proof_of_job(job->token, bytes, (size_t)n, proof);
}

static tn_comm_place places_comm_place(const tn_comm_opening *o) {
  const tn_process_place *place = o->place;
  return (tn_comm_place){.struct_size = sizeof(tn_comm_place),
                         .rank = o->run->rank,
                         .ranks = tn_ranks_count(o->ranks),
                         .process = place->process,
                         .processes = place->processes,
                         .address = o->link ? tn_link_member(o->link, place->process)->address : "",
                         .timeout_s = o->run->settings.distributed.timeout,
                         .has_failed = places_comm_has_failed,
                         .run = o->ranks,
                         .prove = places_comm_prove,
                         .job = place};
}

/* A value that is wrong may be one of the configuration, and communicators know no file: puts "model.ini:14:
 * [communicator.tcp]" in front of the message. */
static tn_status places_wrap_options(const tn_comm_opening *o, tn_status status) {
  tn_ini *ini = &o->run->ini;
  char section[128];
  snprintf(section, sizeof section, "communicator.%s", o->kind->item.name);
  if (status != TN_EINVAL || tn_ini_section(ini, section) == NULL) return status;
  return tn_wrap(&o->run->env, status, "%s: [%s]", tn_settings_where(ini, section, ""), section);
}

static tn_status places_identify(const tn_comm_opening *o, const tn_comm_place *place, void *identity) {
  const tn_communicator *kind = o->kind;
  tn_env *env = &o->run->env;
  if (place->rank > 0 || kind->identify == NULL) return TN_OK;
  tn_status status = kind->identify(env, o->options, place, identity);
  return places_wrap_options(o, tn_wrap(env, status, "communicator '%s'", kind->item.name));
}

tn_status tn_run_open_comm(const tn_comm_opening *o, _Atomic(tn_comm *) *opened) {
  tn_env *env = &o->run->env;
  const tn_comm_place place = places_comm_place(o);
  void *identity = tn_arena_alloc(&o->run->arena, (size_t)o->kind->identity_bytes + 1);
  if (identity == NULL) return TN_ENOMEM;
  TN_TRY(places_identify(o, &place, identity));
  TN_TRY(tn_ranks_broadcast(o->ranks, env, place.rank, "identity of the communicator", identity,
                            o->kind->identity_bytes));
  tn_flight *flight = o->device->flight = tn_ranks_flight(o->ranks, place.rank);
  tn_flight_exchange(flight);
  tn_flight_wait before = tn_flight_begin_wait(flight, TN_FLIGHT_EXCHANGE, "opening the communicator");
  tn_comm_request request = {.kind = o->kind, .options = o->options, .identity = identity, .place = place};
  tn_comm *comm = NULL;
  tn_status status = tn_flight_conclude(flight, &before, tn_comm_open(env, o->device, &request, &comm));
  atomic_store(opened, comm); /* from now on, another rank that fails may abort it */
  return places_wrap_options(o, status);
}

/* ---- the ranks of this process ---- */

static tn_comm *places_comm(void *context, int32_t local) {
  const tn_rank_comms *comms = context;
  return comms->of(comms->ranks, local);
}

static tn_status places_ask(void *context, tn_env *env, int32_t local) {
  return tn_comm_status(env, places_comm(context, local));
}

static bool places_find_position(void *context, int32_t local, tn_rank_position *position) {
  const tn_rank_comms *comms = context;
  tn_error_record record;
  tn_env env;
  tn_comm_position found;
  tn_error_record_init(&env, &record, &comms->run->env);
  if (!tn_comm_where(&env, places_comm(context, local), &found)) return false;
  *position = (tn_rank_position){.inside = found.inside != 0, .number = found.number};
  memcpy(position->name, found.name, strnlen(found.name, sizeof position->name - 1));
  return true;
}

void tn_rank_comms_abort(void *context) {
  const tn_rank_comms *comms = context;
  for (int32_t r = 0; r < comms->n; r++) tn_comm_abort(places_comm(context, r));
}

tn_rank_watch tn_rank_comms_watch(tn_rank_comms *comms) {
  return (tn_rank_watch){.timeout_s = comms->run->settings.distributed.timeout,
                         .hang_s = comms->run->settings.hang,
                         .status = places_ask,
                         .position = places_find_position,
                         .abort = tn_rank_comms_abort,
                         .context = comms};
}

void tn_run_copy_for_rank(const tn_run *run, int32_t local, tn_run *copy) {
  *copy = *run;
  tn_error_record_init(&copy->env, &copy->record, &run->env);
  copy->record.sink.level = TN_LOG_ERROR;
  copy->arena = tn_arena_new(&copy->env);
  copy->ini.arena = tn_arena_new(&copy->env);
  copy->rank = run->rank + local;
  copy->local = local;
}

void tn_run_free_copy(tn_run *copy) {
  tn_arena_free(&copy->ini.arena);
  tn_arena_free(&copy->arena);
}
