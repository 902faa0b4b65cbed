/* core/run/settings/read_links.c: [distributed] link, host_link, bucket and hang. */
#include <stdlib.h>

#include "core/run/section_tables.h"

/* Bytes a second in one direction, and the latency of a hop with what a collective's kernels or the network
 * stack add to it, of the order that NCCL's own model of its protocol `Simple` has. */
static const struct {
  const char *name;
  tn_link_rate rate;
} known_links[] = {{"nvlink", {450e9, 3e-6}},
                   {"pcie", {25e9, 6e-6}},
                   {"infiniband", {50e9, 5e-6}},
                   {"ethernet", {12.5e9, 15e-6}}};
enum { KNOWN_LINKS = sizeof known_links / sizeof *known_links };

/* "450:3": GB/s and microseconds. */
static bool links_parse_rate(const char *text, tn_link_rate *rate) {
  char *end = NULL;
  double gigabytes = strtod(text, &end);
  if (end == text || *end != ':') return false;
  const char *second = end + 1;
  double micros = strtod(second, &end);
  *rate = (tn_link_rate){gigabytes * 1e9, micros * 1e-6};
  return end != second && *end == '\0' && gigabytes >= 1e-6 && gigabytes <= 1e6 && micros >= 0 &&
         micros <= 1e6;
}

static tn_status links_read_one(tn_env *env, tn_ini *ini, const char *key, const char *text,
                                tn_link_rate *rate) {
  *rate = known_links[0].rate;
  if (text == NULL) return TN_OK; /* [distributed] could not be read */
  for (int32_t i = 0; i < KNOWN_LINKS; i++)
    if (tn_text_equal(text, known_links[i].name)) {
      *rate = known_links[i].rate;
      return TN_OK;
    }
  if (links_parse_rate(text, rate)) return TN_OK;
  return tn_failf(env, TN_EINVAL,
                  "%s: [distributed] %s = %s, expected nvlink, pcie, infiniband, ethernet, or gigabytes a "
                  "second and microseconds of latency such as 25:6",
                  tn_settings_where(ini, "distributed", key), key, text);
}

/* "auto" or a size. */
static tn_status links_read_bucket(tn_env *env, tn_ini *ini, const char *text, int64_t *bytes) {
  *bytes = TN_BUCKET_AUTO;
  if (text == NULL || tn_text_equal(text, "auto")) return TN_OK;
  if (tn_parse_size(env, text, bytes) == TN_OK && *bytes >= 4) return TN_OK;
  return tn_failf(env, TN_EINVAL,
                  "%s: [distributed] bucket = %s, expected auto, or a size from 4 bytes on such as 25MiB",
                  tn_settings_where(ini, "distributed", "bucket"), text);
}

/* "auto", "never" or a duration. */
static tn_status links_read_hang(tn_env *env, tn_ini *ini, const char *text, double *seconds) {
  *seconds = TN_HANG_AUTO;
  if (text == NULL || tn_text_equal(text, "auto")) return TN_OK;
  *seconds = TN_HANG_NEVER;
  if (tn_text_equal(text, "never")) return TN_OK;
  if (tn_parse_duration(env, text, seconds) == TN_OK && *seconds > 0) return TN_OK;
  return tn_failf(env, TN_EINVAL,
                  "%s: [distributed] hang = %s, expected auto, never, or a duration above 0 such as 60s",
                  tn_settings_where(ini, "distributed", "hang"), text);
}

tn_status tn_settings_read_links(tn_env *env, tn_ini *ini, tn_settings *s) {
  const tn_distributed_section *d = &s->distributed;
  TN_TRY(tn_ini_note(env, ini, links_read_one(env, ini, "link", d->link, &s->interconnect.inside)));
  TN_TRY(
      tn_ini_note(env, ini, links_read_one(env, ini, "host_link", d->host_link, &s->interconnect.between)));
  TN_TRY(tn_ini_note(env, ini, links_read_bucket(env, ini, d->bucket, &s->bucket)));
  return tn_ini_note(env, ini, links_read_hang(env, ini, d->hang, &s->hang));
}
