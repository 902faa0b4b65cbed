/* plugins/observers/mlflow.c: a run in the file store of MLflow, which `mlflow ui` and its client read:
 * FOLDER/EXPERIMENT/RUN/ with meta.yaml, and a file for each parameter, tag and metric. A line of a metric is
 * "milliseconds value step". The parameters are the keys of config.ini. A resumed run goes on in the same
 * place, and cuts the lines that it will write again. */
#include <errno.h>
#include <math.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "plugins/observers/run_file.h"
#include "plugins/observers/whole_file.h"

enum { MLFLOW_METRICS = 128, MLFLOW_PATH = 4096, MLFLOW_NAME = 256, MLFLOW_ID = 40 };

/* Numbers of the file store: RunStatus of mlflow's service.proto. */
enum { MLFLOW_RUNNING = 1, MLFLOW_FINISHED = 3, MLFLOW_FAILED = 4, MLFLOW_KILLED = 5 };

typedef struct mlflow_options {
  const char *folder, *experiment;
  int64_t every;
} mlflow_options;
static const tn_option mlflow_rows[] = {
    TN_OPT(mlflow_options, folder, TN_OPT_PATH, "", NULL,
           "the file store; empty: mlruns in the current folder, as MLflow has it"),
    TN_OPT(mlflow_options, experiment, TN_OPT_TEXT, "tenon", NULL, "name of the experiment"),
    TN_OPT(mlflow_options, every, TN_OPT_INT, "10", ">= 1", "steps between values of the training steps"),
    TN_OPT_END};

typedef struct mlflow_metric {
  char name[MLFLOW_NAME]; /* "train/loss" */
  run_file file;
} mlflow_metric;

typedef struct mlflow {
  int64_t every, first_step, began_ms;
  int writes, epoch_ended;
  char run[MLFLOW_PATH - MLFLOW_NAME]; /* the run's folder in the store */
  char name[MLFLOW_NAME], id[MLFLOW_ID], experiment[MLFLOW_ID];
  mlflow_metric *metrics;
  int n;
} mlflow;

static int64_t mlflow_now_ms(void) {
  struct timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

/* FNV-1a, 64 bit. */
static uint64_t mlflow_hash(uint64_t hash, const char *text) {
  for (; *text != '\0'; text++) hash = (hash ^ (unsigned char)*text) * 1099511628211u;
  return hash;
}

/* ---- files ---- */

static tn_status mlflow_make_folder(tn_env *env, const char *path) {
  char part[MLFLOW_PATH];
  snprintf(part, sizeof part, "%s", path);
  if (whole_file_make_folder(part)) return TN_OK;
  return tn_fail(env, TN_EIO, NULL, "%s: cannot be made: %s; see [observer.mlflow] folder", part,
                 strerror(errno));
}

static tn_status mlflow_write(tn_env *env, const char *path, const char *text) {
  if (whole_file_write(path, text, strlen(text))) return TN_OK;
  return tn_fail(env, TN_EIO, NULL, "%s: cannot be written: %s", path, strerror(errno));
}

/* A text in double quotes, as YAML and JSON have it. */
static void mlflow_quote(const char *text, char *quoted, size_t size) {
  size_t n = 0;
  quoted[n++] = '"';
  for (; *text != '\0' && n + 4 < size; text++) {
    if (*text == '"' || *text == '\\') quoted[n++] = '\\';
    quoted[n++] = (unsigned char)*text < 0x20 ? ' ' : *text;
  }
  quoted[n++] = '"';
  quoted[n] = '\0';
}

/* ---- meta.yaml ---- */

static tn_status mlflow_write_experiment(tn_env *env, const mlflow *m, const char *folder, const char *name) {
  char path[MLFLOW_PATH], text[4 * MLFLOW_PATH], title[MLFLOW_NAME], artifacts[MLFLOW_PATH + 64];
  struct stat info;
  snprintf(path, sizeof path, "%.*s/%s/meta.yaml", MLFLOW_PATH - 64, folder, m->experiment);
  if (stat(path, &info) == 0) return TN_OK;
  mlflow_quote(name, title, sizeof title);
  snprintf(text, sizeof text, "file://%.*s/%s", MLFLOW_PATH - 64, folder, m->experiment);
  mlflow_quote(text, artifacts, sizeof artifacts);
  snprintf(text, sizeof text,
           "artifact_location: %s\ncreation_time: %lld\nexperiment_id: '%s'\nlast_update_time: %lld\n"
           "lifecycle_stage: active\nname: %s\n",
           artifacts, (long long)m->began_ms, m->experiment, (long long)m->began_ms, title);
  return mlflow_write(env, path, text);
}

static const char *mlflow_user(void) {
  const struct passwd *user = getpwuid(getuid());
  return user != NULL ? user->pw_name : "unknown";
}

static tn_status mlflow_write_run(tn_env *env, const mlflow *m, int status) {
  char path[MLFLOW_PATH], text[4 * MLFLOW_PATH], title[MLFLOW_NAME + 8], artifacts[MLFLOW_PATH + 64],
      user[MLFLOW_NAME], ended[32] = "null";
  snprintf(path, sizeof path, "%s/meta.yaml", m->run);
  mlflow_quote(m->name, title, sizeof title);
  mlflow_quote(mlflow_user(), user, sizeof user);
  snprintf(text, sizeof text, "file://%s/artifacts", m->run);
  mlflow_quote(text, artifacts, sizeof artifacts);
  if (status != MLFLOW_RUNNING) snprintf(ended, sizeof ended, "%lld", (long long)mlflow_now_ms());
  snprintf(
      text, sizeof text,
      "artifact_uri: %s\nend_time: %s\nentry_point_name: ''\nexperiment_id: '%s'\nlifecycle_stage: active\n"
      "run_id: %s\nrun_name: %s\nrun_uuid: %s\nsource_name: ''\nsource_type: 4\nsource_version: ''\n"
      "start_time: %lld\nstatus: %d\ntags: []\nuser_id: %s\n",
      artifacts, ended, m->experiment, m->id, title, m->id, (long long)m->began_ms, status, user);
  return mlflow_write(env, path, text);
}

/* ---- parameters and tags ---- */

/* Names of the store: letters, digits, '_', '-', '.', blanks and '/'. */
static void mlflow_clean_name(char *name) {
  for (; *name != '\0'; name++)
    if (strchr("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-. /", *name) == NULL)
      *name = '_';
}

static tn_status mlflow_write_text(tn_env *env, const mlflow *m, const char *kind, const char *name,
                                   const char *value) {
  char path[MLFLOW_PATH + MLFLOW_NAME], clean[MLFLOW_NAME];
  snprintf(clean, sizeof clean, "%s", name);
  mlflow_clean_name(clean);
  snprintf(path, sizeof path, "%s/%s/%s", m->run, kind, clean);
  return mlflow_write(env, path, value);
}

/* The keys of config.ini with a value of one line: the run has printed it, as "key = value" below
 * "[section]". */
static tn_status mlflow_write_parameters(tn_env *env, const mlflow *m, const char *folder) {
  char path[MLFLOW_PATH], line[MLFLOW_PATH], section[MLFLOW_NAME / 2] = "";
  tn_status status = TN_OK;
  snprintf(path, sizeof path, "%.*s/config.ini", MLFLOW_PATH - 16, folder);
  FILE *file = fopen(path, "re");
  while (status == TN_OK && file != NULL && fgets(line, sizeof line, file) != NULL) {
    char name[MLFLOW_NAME], *equals = strstr(line, " = ");
    line[strcspn(line, "\n")] = '\0';
    if (line[0] == '[') snprintf(section, sizeof section, "%.*s", (int)strcspn(line + 1, "]"), line + 1);
    if (line[0] == '[' || line[0] == ' ' || equals == NULL) continue;
    snprintf(name, sizeof name, "%s.%.*s", section, (int)(equals - line), line);
    status = mlflow_write_text(env, m, "params", name, equals + 3);
  }
  if (file != NULL) fclose(file);
  return status;
}

static tn_status mlflow_write_tags(tn_env *env, const mlflow *m, const tn_run_info *run) {
  const char *const tags[][2] = {{"mlflow.runName", m->name},     {"mlflow.user", mlflow_user()},
                                 {"mlflow.source.name", "tenon"}, {"mlflow.source.type", "LOCAL"},
                                 {"tenon.folder", run->folder},   {"tenon.backend", run->backend},
                                 {"tenon.device", run->device},   {"tenon.precision", run->precision}};
  for (size_t i = 0; i < sizeof tags / sizeof *tags; i++)
    TN_TRY(mlflow_write_text(env, m, "tags", tags[i][0], tags[i][1]));
  return TN_OK;
}

/* ---- metrics ---- */

/* Values of an epoch come again where the checkpoint was before its end. */
static int mlflow_is_stale(const mlflow *m, const char *name, const char *line) {
  long long ms, step;
  double value;
  if (sscanf(line, "%lld %lf %lld", &ms, &value, &step) != 3) return 1;
  int of_epoch = strncmp(name, "valid/", 6) == 0 || strncmp(name, "epoch", 5) == 0;
  return step > m->first_step || (step == m->first_step && of_epoch && !m->epoch_ended);
}

/* Cuts the file of an earlier process behind the step of the checkpoint. */
static tn_status mlflow_cut(tn_env *env, const mlflow *m, mlflow_metric *metric) {
  char line[256];
  off_t end = 0;
  FILE *file = fopen(metric->file.path, "re");
  while (file != NULL && fgets(line, sizeof line, file) != NULL && strchr(line, '\n') != NULL &&
         !mlflow_is_stale(m, metric->name, line))
    end += (off_t)strlen(line);
  if (file != NULL) fclose(file);
  if (ftruncate(metric->file.fd, end) == 0) return TN_OK;
  return tn_fail(env, TN_EIO, NULL, "%s: cannot be cut at the step of the checkpoint: %s", metric->file.path,
                 strerror(errno));
}

/* The file of a metric, opened when its first value comes. NULL in *found: there are too many metrics. */
static tn_status mlflow_find(tn_env *env, mlflow *m, const char *group, const char *name,
                             mlflow_metric **found) {
  char full[MLFLOW_NAME], folder[MLFLOW_PATH];
  snprintf(full, sizeof full, "%s%s%s", group, *group ? "/" : "", name);
  mlflow_clean_name(full);
  for (int i = 0; i < m->n; i++)
    if (strcmp(m->metrics[i].name, full) == 0) {
      *found = &m->metrics[i];
      return TN_OK;
    }
  *found = NULL;
  if (m->n == MLFLOW_METRICS) return TN_OK;
  mlflow_metric *metric = &m->metrics[m->n];
  memcpy(metric->name, full, sizeof full);
  snprintf(folder, sizeof folder, "%s/metrics%s%s", m->run, *group ? "/" : "", group);
  TN_TRY(mlflow_make_folder(env, folder));
  tn_status status =
      run_file_open(&metric->file, env, folder, strrchr(full, '/') ? strrchr(full, '/') + 1 : full);
  m->n++; /* the file is closed with the others */
  if (status == TN_OK) status = mlflow_cut(env, m, metric);
  *found = metric;
  return status;
}

/* A value that is not finite is one of Python's texts. */
static tn_status mlflow_add(tn_env *env, mlflow *m, const tn_event *e, const char *group, const char *name,
                            double value) {
  mlflow_metric *metric;
  TN_TRY(mlflow_find(env, m, group, name, &metric));
  if (metric == NULL) return TN_OK;
  TN_TRY(run_file_print(&metric->file, env, "%lld %.9g %lld\n", (long long)mlflow_now_ms(), value,
                        (long long)e->step));
  return run_file_write(&metric->file, env);
}

/* "gradient_norm/fc1" in a folder of its own. */
static tn_status mlflow_on_watch(tn_env *env, mlflow *m, const tn_event *e) {
  char group[MLFLOW_NAME];
  for (int32_t i = 0; i < e->n_watched; i++) {
    const char *name = e->watched[i].name;
    size_t n = strcspn(name, "/");
    snprintf(group, sizeof group, "%.*s", (int)n, name);
    TN_TRY(mlflow_add(env, m, e, group, name + n + (name[n] == '/'), e->watched[i].value));
  }
  return TN_OK;
}

static tn_status mlflow_add_all(tn_env *env, mlflow *m, const tn_event *e, const char *group,
                                const tn_metric *metrics, int32_t n) {
  for (int32_t i = 0; i < n; i++) TN_TRY(mlflow_add(env, m, e, group, metrics[i].name, metrics[i].value));
  return TN_OK;
}

static tn_status mlflow_on_step(tn_env *env, mlflow *m, const tn_event *e) {
  TN_TRY(mlflow_add_all(env, m, e, "train", e->train, e->n_train));
  TN_TRY(mlflow_add(env, m, e, "", "lr", e->lr));
  return e->samples_per_s > 0 ? mlflow_add(env, m, e, "", "samples_per_s", e->samples_per_s) : TN_OK;
}

static tn_status mlflow_on_epoch(tn_env *env, mlflow *m, const tn_event *e) {
  TN_TRY(mlflow_add(env, m, e, "", "epoch", (double)e->epoch + 1));
  return mlflow_add_all(env, m, e, "valid", e->valid, e->n_valid);
}

/* ---- media ---- */

/* Artifacts of the run, which the user interface shows as pictures and texts. */
static void mlflow_artifacts(const mlflow *m, char *folder, size_t size) {
  snprintf(folder, size, "%s/artifacts", m->run);
}

static tn_status mlflow_on_samples(tn_env *env, const mlflow *m, const tn_event *e) {
  char folder[MLFLOW_PATH];
  mlflow_artifacts(m, folder, sizeof folder);
  media_write(env, folder, e);
  return TN_OK;
}

/* ---- the observer ---- */

static void mlflow_close(tn_env *env, void *self) {
  mlflow *m = self;
  for (int i = 0; i < m->n; i++) run_file_close(&m->metrics[i].file, env);
  tn_delete(env, m->metrics);
  tn_delete(env, m);
}

/* The same run folder has the same place in the store, and the same name of an experiment the same number. */
static tn_status mlflow_name_run(tn_env *env, mlflow *m, const mlflow_options *o, const tn_run_info *run,
                                 char *store) {
  char place[MLFLOW_PATH];
  const char *folder = *o->folder != '\0' ? o->folder : "mlruns";
  TN_TRY(mlflow_make_folder(env, folder));
  if (realpath(folder, store) == NULL || realpath(run->folder, place) == NULL)
    return tn_fail(env, TN_EIO, NULL, "%s: cannot be found: %s", folder, strerror(errno));
  if (strlen(store) > sizeof m->run - 128)
    return tn_fail(env, TN_EINVAL, NULL, "%s: the path is too long; name another [observer.mlflow] folder",
                   store);
  uint64_t a = mlflow_hash(14695981039346656037u, place), b = mlflow_hash(a, run->name);
  snprintf(m->id, sizeof m->id, "%016llx%016llx", (unsigned long long)a, (unsigned long long)b);
  snprintf(m->experiment, sizeof m->experiment, "%018llu",
           (unsigned long long)(mlflow_hash(14695981039346656037u, o->experiment) % 1000000000000000000u));
  const char *name = strrchr(place, '/');
  snprintf(m->name, sizeof m->name, "%s", name != NULL ? name + 1 : run->name);
  snprintf(m->run, sizeof m->run, "%s/%s/%s", store, m->experiment, m->id);
  return TN_OK;
}

static tn_status mlflow_begin(tn_env *env, mlflow *m, const mlflow_options *o, const tn_run_info *run) {
  static const char *const folders[] = {"metrics", "params", "tags", "artifacts"};
  char store[MLFLOW_PATH], path[MLFLOW_PATH];
  TN_TRY(mlflow_name_run(env, m, o, run, store));
  for (size_t i = 0; i < sizeof folders / sizeof *folders; i++) {
    snprintf(path, sizeof path, "%s/%s", m->run, folders[i]);
    TN_TRY(mlflow_make_folder(env, path));
  }
  mlflow_artifacts(m, path, sizeof path);
  media_cut(path, run);
  TN_TRY(mlflow_write_experiment(env, m, store, o->experiment));
  TN_TRY(mlflow_write_run(env, m, MLFLOW_RUNNING));
  TN_TRY(mlflow_write_parameters(env, m, run->folder));
  return mlflow_write_tags(env, m, run);
}

static tn_status mlflow_open(tn_env *env, const void *given, const tn_run_info *run, void **self) {
  const mlflow_options *o = given;
  mlflow *m = tn_new(env, sizeof *m);
  *self = NULL;
  if (m == NULL) return TN_ENOMEM;
  m->every = o->every;
  m->first_step = run->first_step;
  m->epoch_ended = run->epoch_ended;
  m->began_ms = mlflow_now_ms();
  m->writes = *run->folder != '\0';
  m->metrics = tn_new(env, sizeof *m->metrics * MLFLOW_METRICS);
  tn_status status = m->metrics == NULL ? TN_ENOMEM : m->writes ? mlflow_begin(env, m, o, run) : TN_OK;
  if (status == TN_OK)
    *self = m;
  else
    mlflow_close(env, m);
  return status;
}

/* The store knows three ends. */
static int mlflow_end(const char *reason) {
  if (strcmp(reason, "stopped") == 0) return MLFLOW_KILLED;
  return strcmp(reason, "failed") == 0 || strcmp(reason, "non-finite") == 0 ? MLFLOW_FAILED : MLFLOW_FINISHED;
}

static tn_status mlflow_on_event(tn_env *env, void *self, const tn_event *e) {
  mlflow *m = self;
  if (!m->writes) return TN_OK;
  if (e->kind == TN_EVENT_STEP && e->step % m->every == 0) return mlflow_on_step(env, m, e);
  if (e->kind == TN_EVENT_WATCH) return mlflow_on_watch(env, m, e);
  if (e->kind == TN_EVENT_SAMPLES) return mlflow_on_samples(env, m, e);
  if (e->kind == TN_EVENT_EPOCH_END) return mlflow_on_epoch(env, m, e);
  return e->kind == TN_EVENT_RUN_END ? mlflow_write_run(env, m, mlflow_end(e->text)) : TN_OK;
}

const tn_observer observer_mlflow = {
    .item = TN_ITEM(tn_observer, TN_OBSERVER, "mlflow",
                    "the run in a file store of MLflow: parameters, metrics, status", mlflow_options,
                    mlflow_rows),
    .open = mlflow_open,
    .event = mlflow_on_event,
    .close = mlflow_close};
