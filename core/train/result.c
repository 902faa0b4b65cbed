/* core/train/result.c: results of runs as JSON text. */
#include "core/train/result.h"

#include <math.h>
#include <stdlib.h>

json_t *tn_json_metrics(const tn_metric *metrics, int32_t n) {
  json_t *object = json_object();
  for (int32_t i = 0; i < n; i++) /* JSON has no NaN */
    json_object_set_new(object, metrics[i].name,
                        isfinite(metrics[i].value) ? json_real(metrics[i].value) : json_null());
  return object;
}

tn_status tn_json_take(tn_run *run, json_t *json, char **text) {
  char *dump = json ? json_dumps(json, JSON_PRESERVE_ORDER | JSON_REAL_PRECISION(9)) : NULL;
  json_decref(json);
  *text = dump ? tn_strdup(&run->env, dump) : NULL;
  free(dump);
  return *text ? TN_OK : tn_failf(&run->env, TN_ENOMEM, "no memory for the result");
}
