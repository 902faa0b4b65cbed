/* plugins/sources/joined/joined_learnt.c: what the parts have learnt, as one object with a member for each.
 */
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "plugins/sources/joined/joined.h"

static tn_status joined_learnt_fail(const void *handle, const char *text) {
  return tn_fail(handle, TN_EINVAL, NULL, "what the sources have learnt is damaged: %s", text);
}

tn_status joined_learnt_of(const joined *j, const char *part, char **text) {
  json_error_t error;
  const char *all = tn_env_learnt(&j->env);
  *text = NULL;
  if (all == NULL) return TN_OK;
  json_t *root = json_loads(all, 0, &error);
  if (root == NULL) return joined_learnt_fail(&j->env, error.text);
  const json_t *own = json_object_get(root, part);
  if (own != NULL) *text = json_dumps(own, JSON_COMPACT);
  tn_status status =
      own == NULL || *text != NULL ? TN_OK : joined_learnt_fail(&j->env, "a member cannot be printed");
  json_decref(root);
  return status;
}

static tn_status joined_learnt_add(tn_env *env, const joined_part *p, json_t *root) {
  const char *text = NULL;
  json_error_t error;
  if (p->source->learnt == NULL) return TN_OK;
  TN_TRY(p->source->learnt(env, p->self, &text));
  if (text == NULL) return TN_OK;
  json_t *own = json_loads(text, 0, &error);
  if (own == NULL) return joined_learnt_fail(env, error.text);
  return json_object_set_new(root, p->name, own) == 0 ? TN_OK : joined_learnt_fail(env, p->name);
}

tn_status joined_learnt(tn_env *env, void *source, const char **text) {
  joined *j = source;
  json_t *root = json_object();
  tn_status status = TN_OK;
  for (int32_t i = 0; status == TN_OK && i < j->n_parts; i++)
    status = joined_learnt_add(env, &j->parts[i], root);
  if (status == TN_OK && json_object_size(root) > 0) {
    free(j->learnt);
    j->learnt = json_dumps(root, JSON_COMPACT);
  }
  json_decref(root);
  *text = j->learnt;
  return status;
}
