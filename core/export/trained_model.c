/* core/export/trained_model.c: see trained_model.h. */
#include "core/export/trained_model.h"

#include <string.h>

#include "core/distributed/ranks/devices.h"
#include "core/graph/input_state.h"
#include "core/infer/prediction/load_trained.h"
#include "core/step/graphs/device_transforms.h"
#include "core/train/feed/feeder.h"

/* ---- the graph ---- */

static tn_status trained_build(tn_trained_model *m, int64_t batch, const tn_prepared_inputs *prepared) {
  tn_run *run = m->run;
  tn_model model;
  const tn_model_request request = {.ini = &run->ini,
                                    .registry = run->registry,
                                    .ops = run->ops,
                                    .batch = batch,
                                    .length = tn_settings_longest(&run->settings),
                                    .seed = (uint64_t)run->settings.run.seed,
                                    .freeze = &run->settings.freeze,
                                    .quantize = &run->settings.quantize,
                                    .prepared = prepared != NULL && prepared->n > 0 ? prepared : NULL,
                                    .emit = run->emit,
                                    .user = run->emit_user};
  TN_TRY(tn_model_build(&run->env, &request, &model));
  m->graph = model.graph;
  m->batch = batch;
  model.graph = NULL;
  tn_model_free(&model);
  return TN_OK;
}

/* Whether a size of a state, or of an input behind its batch, is a multiple of the prime. */
static bool trained_confuses(const tn_graph *g, int64_t prime) {
  for (size_t i = 0; i < g->states.n; i++)
    for (int32_t k = 0; k < g->states.v[i].type.rank; k++)
      if (g->states.v[i].type.dims[k] % prime == 0) return true;
  for (size_t i = 0; i < g->inputs.n; i++) {
    const tn_type *type = tn_graph_type(g, g->inputs.v[i]);
    for (int32_t k = 1; k < type->rank; k++)
      if (type->dims[k] % prime == 0) return true;
  }
  return false;
}

static tn_status trained_build_any(tn_trained_model *m, const tn_prepared_inputs *prepared) {
  static const int64_t primes[] = {7919, 7907, 7901, 7883, 7879};
  for (size_t i = 0; i < sizeof primes / sizeof *primes; i++) {
    tn_graph_destroy(m->graph);
    m->graph = NULL;
    TN_TRY(trained_build(m, primes[i], prepared));
    if (!trained_confuses(m->graph, primes[i])) return TN_OK;
  }
  return tn_failf(&m->run->env, TN_EUNSUPPORTED,
                  "%s: the sizes of the model are multiples of each of the primes 7879 to 7919",
                  m->run->ini.path);
}

/* ---- transforms ---- */

/* The loader of validation, whose last transforms are left to the graph. */
static tn_status trained_prepare(tn_trained_model *m, tn_prepared_inputs *inputs) {
  tn_run *run = m->run;
  const tn_data_setting *data = &run->settings.data[TN_SPLIT_VALID];
  tn_loader_options options;
  TN_TRY(tn_feeder_options(run, TN_SPLIT_VALID, NULL, 1, &options));
  options.device_transforms = data->n_transforms;
  options.workers = 0;
  options.batch = 1;
  TN_TRY(tn_loader_create(&run->env, &options, &m->loader));
  TN_TRY(tn_device_transforms_prepare(&m->arena, tn_loader_chain(m->loader), data->where, inputs));
  if (inputs->n > 0) return TN_OK;
  return tn_failf(
      &run->env, TN_EUNSUPPORTED,
      "%s: the last transform of the data has no form as ops, so preprocessing cannot be nodes; expected "
      "preprocessing as metadata",
      data->where);
}

/* ---- parameters ---- */

static tn_status trained_load(tn_trained_model *m, const char *command) {
  tn_run *run = m->run;
  tn_program_request request = {.slots = 1};
  request.batch[TN_PROGRAM_PREDICT] = 1;
  run->learnt = NULL; /* of an earlier call of the run */
  TN_TRY(tn_run_open_device(run, &m->device));
  TN_TRY(tn_programs_open(run, &run->env, m->device, &request, &m->set, &m->executor));
  TN_TRY(tn_load_trained(run, &m->set, m->executor, command));
  return tn_stored_states_list(&m->arena, m->set.map, TN_STATES_OF_MODEL, true, &m->states);
}

tn_status tn_trained_model_read(void *context, const char *path, void *to, size_t bytes) {
  const tn_trained_model *m = context;
  for (int32_t i = 0; i < m->states.n; i++)
    if (strcmp(m->states.v[i].name, path) == 0)
      return tn_executor_read(m->executor, m->states.v[i].state->path, to, bytes);
  return tn_failf(&m->run->env, TN_EINTERNAL, "the program has no state '%s'", path);
}

tn_status tn_trained_model_open(tn_run *run, int64_t batch, bool prepared, const char *command,
                                tn_trained_model *m) {
  tn_prepared_inputs inputs = {.n = 0};
  *m = (tn_trained_model){.run = run, .arena = tn_arena_new(&run->env)};
  if (prepared) TN_TRY(trained_prepare(m, &inputs));
  TN_TRY(batch > 0 ? trained_build(m, batch, &inputs) : trained_build_any(m, &inputs));
  return trained_load(m, command);
}

void tn_trained_model_close(tn_trained_model *m) {
  tn_graph_destroy(m->graph);
  tn_executor_destroy(m->executor);
  tn_programs_free(m->run, &m->set);
  tn_device_destroy(m->device);
  tn_loader_destroy(m->loader);
  tn_arena_free(&m->arena);
}
