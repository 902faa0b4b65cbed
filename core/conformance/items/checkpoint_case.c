/* core/conformance/items/checkpoint_case.c: an optimizer behind a checkpoint. After one update the parameter
 * and the states are written to a file in the format of checkpoints. A second update follows, once in the
 * same program and once in a new one, as in a resumed run: the optimizer is called again, and parameter and
 * states are those of the file. The bits must be the same. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/conformance/items/items.h"
#include "core/conformance/trial/on_device.h"
#include "core/formats/safetensors.h"

enum { STREAM_FIRST = 11, STREAM_SECOND = 12, CHECKPOINT_SLOTS = 1 + TN_OPTIMIZER_STATES };

/* One update in a program. Slot 0 is the parameter, and the others are the states. */
typedef struct checkpoint_use {
  tn_env *env;
  tn_item_run run;
  tn_optimizer_roles roles;
  tn_on_device *device;
} checkpoint_use;

/* ---- slots ---- */

static int32_t checkpoint_slots(const checkpoint_use *use) { return 1 + use->roles.n_states; }

static const tn_case_input *checkpoint_input(const checkpoint_use *use, int32_t slot) {
  return &use->run.d.inputs[slot == 0 ? use->roles.param : use->roles.state[slot - 1].input];
}

static size_t checkpoint_bytes(const checkpoint_use *use, int32_t slot) {
  return tn_type_bytes(&checkpoint_input(use, slot)->type);
}

static const void *checkpoint_result(const checkpoint_use *use, int32_t slot) {
  char name[16];
  snprintf(name, sizeof name, "y.%d", slot);
  return tn_executor_output(tn_on_device_executor(use->device), 0, 0, name);
}

/* "parameter.momentum", as checkpoints name the state of a parameter. */
static const char *checkpoint_name(const tn_check *check, const checkpoint_use *use, int32_t slot) {
  return slot == 0 ? "parameter"
                   : tn_arena_printf(&check->suite->arena, "parameter.%s", use->roles.state[slot - 1].name);
}

/* ---- a program ---- */

/* The graph has the names, and goes with the program. */
static tn_status checkpoint_keep_names(const tn_check *check, checkpoint_use *use) {
  for (int32_t i = 0; i < use->roles.n_states; i++) {
    use->roles.state[i].name = tn_arena_strdup(&check->suite->arena, use->roles.state[i].name);
    if (use->roles.state[i].name == NULL) return TN_ENOMEM;
  }
  return TN_OK;
}

/* Emits and compiles one update. draw % TN_OPTIMIZER_UPDATES is 0. */
static tn_status checkpoint_open(const tn_check *check, int64_t draw, checkpoint_use *use) {
  const tn_trial_site *site = &check->suite->site;
  const tn_item_case c = {.c = {.op = check->item, .emit = tn_optimizer_emit},
                          .item = check->entry->item,
                          .registry = site->registry,
                          .roles = &use->roles,
                          .drawn_states = true};
  use->env = site->env;
  TN_TRY(tn_item_run_draw(site, &c, draw, &use->run));
  TN_TRY(checkpoint_keep_names(check, use));
  tn_builder_destroy(use->run.builder);
  use->run.builder = NULL;
  tn_graph *graph = use->run.d.graph;
  use->run.d.graph = NULL;
  return tn_on_device_create(site->env, site->registry, site->device, graph, &use->device);
}

static void checkpoint_close(checkpoint_use *use) {
  tn_on_device_destroy(use->device);
  tn_item_run_close(&use->run);
}

/* Draws gradient and options of an update, and the operands of the first one: states have the numbers that
 * they begin with. */
static tn_status checkpoint_fill(const checkpoint_use *use, uint64_t stream) {
  tn_rng rng = tn_rng_at((uint64_t)use->run.d.draw, stream);
  for (int32_t i = 0; i < use->run.d.n_inputs; i++) {
    const tn_case_input *input = &use->run.d.inputs[i];
    int64_t count = tn_type_count(&input->type);
    double *values = tn_alloc(use->env, (size_t)(count + 1) * sizeof *values);
    if (values == NULL) return TN_ENOMEM;
    tn_draw_values(&rng, input, values);
    for (int32_t s = 0; s < use->roles.n_states; s++)
      for (int64_t k = 0; use->roles.state[s].input == i && k < count; k++)
        values[k] = use->roles.state[s].initial;
    tn_on_device_input(use->device, input->name, values);
    tn_release(use->env, values);
  }
  return TN_OK;
}

/* Results of an update become operands of the next. */
static void checkpoint_carry(const checkpoint_use *use) {
  for (int32_t i = 0; i < checkpoint_slots(use); i++) {
    void *to = tn_on_device_operand(use->device, checkpoint_input(use, i)->name);
    if (to != NULL) memcpy(to, checkpoint_result(use, i), checkpoint_bytes(use, i));
  }
}

/* ---- the file ---- */

static tn_status checkpoint_append(const checkpoint_use *use, tn_safetensors_writer *writer) {
  for (int32_t i = 0; i < checkpoint_slots(use); i++)
    TN_TRY(tn_safetensors_append(writer, checkpoint_result(use, i), checkpoint_bytes(use, i)));
  return TN_OK;
}

static tn_status checkpoint_save(const tn_check *check, const checkpoint_use *use, const char *path) {
  tn_safetensor_named named[CHECKPOINT_SLOTS];
  tn_safetensors_writer *writer = NULL;
  for (int32_t i = 0; i < checkpoint_slots(use); i++) {
    named[i] = (tn_safetensor_named){checkpoint_name(check, use, i), checkpoint_input(use, i)->type};
    if (named[i].name == NULL) return TN_ENOMEM;
  }
  TN_TRY(tn_safetensors_begin(use->env, path, named, checkpoint_slots(use), NULL, 0, &writer));
  tn_status status = checkpoint_append(use, writer);
  if (status == TN_OK) return tn_safetensors_commit(writer);
  tn_safetensors_abandon(writer);
  return status;
}

static tn_status checkpoint_read(const tn_check *check, const checkpoint_use *use, tn_safetensors *file,
                                 int32_t slot) {
  const char *name = checkpoint_name(check, use, slot);
  void *to = tn_on_device_operand(use->device, checkpoint_input(use, slot)->name);
  const tn_safetensor *tensor = name != NULL ? tn_safetensors_find(file, name) : NULL;
  if (name == NULL) return TN_ENOMEM;
  if (tensor == NULL || !tn_type_equal(&tensor->type, &checkpoint_input(use, slot)->type))
    return tn_failf(use->env, TN_EABI,
                    "called again, it makes the state '%s', which it did not make before with this type",
                    name);
  if (to == NULL) return TN_OK; /* the update does not read it */
  return tn_safetensors_read(file, use->env, tensor, to, checkpoint_bytes(use, slot));
}

static tn_status checkpoint_load(const tn_check *check, const checkpoint_use *use, const char *path) {
  tn_safetensors *file = NULL;
  TN_TRY(tn_safetensors_open(use->env, path, &file));
  tn_status status = TN_OK;
  for (int32_t i = 0; i < checkpoint_slots(use) && status == TN_OK; i++)
    status = checkpoint_read(check, use, file, i);
  if (status == TN_OK && tn_safetensors_count(file) > checkpoint_slots(use))
    status = tn_failf(use->env, TN_EABI, "called again, it makes fewer states than before");
  tn_safetensors_close(file);
  return status;
}

/* ---- the comparison ---- */

static tn_status checkpoint_compare(tn_check *check, const checkpoint_use *plain, const checkpoint_use *use) {
  for (int32_t i = 0; i < checkpoint_slots(use) && check->wrong[0] == '\0'; i++) {
    char name[16];
    tn_type type;
    snprintf(name, sizeof name, "y.%d", i);
    double *x = tn_on_device_output(plain->device, name, &type),
           *y = tn_on_device_output(use->device, name, &type);
    tn_status status = x != NULL && y != NULL ? TN_OK : TN_ENOMEM;
    for (int64_t k = 0; status == TN_OK && k < tn_type_count(&type) && check->wrong[0] == '\0'; k++)
      if (memcmp(&x[k], &y[k], sizeof *x) != 0)
        tn_check_fail(check,
                      "draw %lld: element %lld of %s%s after the second update is %.9g, and %.9g where a "
                      "checkpoint was written and read before it; expected the same bits: what lasts from "
                      "update to update is state that tn_build_state makes",
                      (long long)use->run.d.draw, (long long)k, i == 0 ? "the parameter" : "state ",
                      i == 0 ? "" : use->roles.state[i - 1].name, x[k], y[k]);
    tn_release(use->env, x);
    tn_release(use->env, y);
    TN_TRY(status);
  }
  return TN_OK;
}

/* Two updates with the state in memory; the file holds that after the first. */
static tn_status checkpoint_train(const tn_check *check, const checkpoint_use *use, const char *path) {
  TN_TRY(checkpoint_fill(use, STREAM_FIRST));
  TN_TRY(tn_on_device_run(use->device));
  TN_TRY(checkpoint_save(check, use, path));
  TN_TRY(checkpoint_fill(use, STREAM_SECOND));
  checkpoint_carry(use);
  return tn_on_device_run(use->device);
}

static tn_status checkpoint_resume(const tn_check *check, const checkpoint_use *use, const char *path) {
  TN_TRY(checkpoint_fill(use, STREAM_SECOND));
  TN_TRY(checkpoint_load(check, use, path));
  return tn_on_device_run(use->device);
}

static tn_status checkpoint_try_draw(tn_check *check, int64_t draw, const char *path) {
  checkpoint_use plain = {.env = NULL}, resumed = {.env = NULL};
  tn_status status = checkpoint_open(check, draw, &plain);
  if (status == TN_OK && !tn_on_device_is_deterministic(plain.device))
    status = tn_failf(plain.env, TN_EUNSUPPORTED, "a kernel of the update is not deterministic");
  if (status == TN_OK) status = checkpoint_train(check, &plain, path);
  if (status == TN_OK) status = checkpoint_open(check, draw, &resumed);
  if (status == TN_OK) status = checkpoint_resume(check, &resumed, path);
  if (status == TN_OK) status = checkpoint_compare(check, &plain, &resumed);
  checkpoint_close(&plain);
  checkpoint_close(&resumed);
  return status;
}

tn_status tn_optimizer_check_checkpoint(tn_check *check) {
  const char *parent = getenv("TMPDIR");
  char *folder = tn_arena_printf(&check->suite->arena, "%s/tenon-XXXXXX",
                                 parent != NULL && *parent != '\0' ? parent : "/tmp");
  if (folder == NULL) return TN_ENOMEM;
  if (mkdtemp(folder) == NULL)
    return tn_failf(check->suite->env, TN_EUNAVAILABLE,
                    "no folder for a checkpoint can be made there: %s; name another one in TMPDIR", folder);
  const char *path = tn_arena_printf(&check->suite->arena, "%s/optimizer.safetensors", folder);
  tn_status status = path != NULL ? TN_OK : TN_ENOMEM;
  for (int64_t draw = 0; draw < 3 * TN_OPTIMIZER_UPDATES && status == TN_OK && check->wrong[0] == '\0';
       draw += TN_OPTIMIZER_UPDATES) /* these draws have one update */
    status = checkpoint_try_draw(check, draw, path);
  if (path != NULL) unlink(path);
  rmdir(folder);
  return status;
}
