/* core/distributed/ranks/diagnosis.c: examines a failure: where all ranks were, which of them the others
 * waited for, and a file for each. Process 0 receives the summaries of all processes and sends its finding
 * back, so that all print the same. */
#include <string.h>

#include "core/base/file/file.h"
#include "core/base/system/system.h"
#include "core/base/text/text.h"
#include "core/distributed/ranks/late_rank.h"
#include "core/distributed/ranks/flight_file.h"
#include "core/distributed/ranks/rank_set.h"

/* How long process 0 waits for the other processes, and these for its answer. */
static const double REPORT_S = 2, ANSWER_S = 3.5;

/* The data of one examination. */
typedef struct diagnosis {
  tn_rank_set *ranks;
  tn_env env;
  tn_error_record record;
  tn_status status; /* of the failure */
  tn_rank_summary *summaries;
  bool *known;
  char *folder, *failure; /* failure: the message of the run */
  tn_text finding;
} diagnosis;

/* ---- what each rank says ---- */

static void diagnosis_read_own(diagnosis *p) {
  for (int32_t i = 0; i < p->ranks->n; i++) {
    const tn_rank_member *m = &p->ranks->members[i];
    tn_rank_summary *s = &p->summaries[m->rank];
    tn_flight_summarize(&m->flight, m->rank, s);
    if (m->has_position) {
      s->device = m->position.inside ? TN_DEVICE_INSIDE : TN_DEVICE_OUTSIDE;
      s->inside = m->position.inside ? m->position.number : 0;
      memcpy(s->inside_name, m->position.name, sizeof s->inside_name - 1);
    }
    p->known[m->rank] = true;
  }
}

/* The summaries of a process must be those of its ranks. */
static void diagnosis_take_report(diagnosis *p, int32_t process, const char *bytes, uint32_t n) {
  const tn_member *member = tn_link_member(p->ranks->link, process);
  for (int32_t i = 0; i < member->ranks && (size_t)n >= (size_t)(i + 1) * TN_SUMMARY_BYTES; i++) {
    tn_rank_summary s;
    int32_t rank = member->first_rank + i;
    bool good = tn_summary_read((const unsigned char *)bytes + (size_t)i * TN_SUMMARY_BYTES, &s);
    if (!good || s.rank != rank) continue;
    p->summaries[rank] = s;
    p->known[rank] = true;
  }
}

static void diagnosis_receive_others(diagnosis *p) {
  double until_s = tn_clock_s() + REPORT_S;
  for (int32_t i = 1; i < tn_link_processes(p->ranks->link); i++) {
    uint32_t n = 0;
    char *bytes = NULL;
    if (tn_link_receive_report(p->ranks->link, &p->env, i, until_s, &bytes, &n))
      diagnosis_take_report(p, i, bytes, n);
    tn_release(&p->env, bytes);
  }
}

static void diagnosis_report(diagnosis *p) {
  size_t most = TN_FRAME_MOST / TN_SUMMARY_BYTES, n = (size_t)p->ranks->n < most ? (size_t)p->ranks->n : most;
  unsigned char *bytes = tn_alloc(&p->env, n * TN_SUMMARY_BYTES);
  for (size_t i = 0; bytes != NULL && i < n; i++)
    tn_summary_write(&p->summaries[p->ranks->members[i].rank], bytes + i * TN_SUMMARY_BYTES);
  if (bytes != NULL) tn_link_report(p->ranks->link, bytes, (uint32_t)(n * TN_SUMMARY_BYTES));
  tn_release(&p->env, bytes);
}

/* ---- the finding ---- */

static void diagnosis_name(void *context, int32_t rank, tn_text *text) {
  tn_ranks_add_name(((const diagnosis *)context)->ranks, rank, text);
}

static void diagnosis_judge(diagnosis *p, bool asked) {
  const tn_rank_reports all = {.summaries = p->summaries,
                               .known = p->known,
                               .asked = asked,
                               .n = p->ranks->count,
                               .name = diagnosis_name,
                               .context = p};
  if (p->status == TN_ECOMM) tn_late_rank_find(&all, &p->finding);
}

/* Control characters would change a terminal. */
static bool diagnosis_receive_finding(diagnosis *p) {
  char *bytes = NULL;
  uint32_t n = 0;
  if (!tn_link_receive_report(p->ranks->link, &p->env, 0, tn_clock_s() + ANSWER_S, &bytes, &n)) return false;
  for (uint32_t i = 0; i < n; i++)
    if ((unsigned char)bytes[i] < 0x20 || bytes[i] == 0x7f) bytes[i] = '?';
  tn_text_addn(&p->finding, bytes, n);
  tn_release(&p->env, bytes);
  return true;
}

/* Process 0 answers at once where no rank waits for another. A process that gets no answer judges by what it
 * knows itself. */
static void diagnosis_agree(diagnosis *p) {
  tn_link *link = p->ranks->link;
  bool hub = link == NULL || tn_link_process(link) == 0;
  if (link != NULL && !hub) diagnosis_report(p);
  if (!hub && diagnosis_receive_finding(p)) return;
  if (link != NULL && hub && p->status == TN_ECOMM) diagnosis_receive_others(p);
  diagnosis_judge(p, hub);
  if (link != NULL && hub && !p->finding.failed)
    tn_link_report(link, p->finding.v != NULL ? p->finding.v : "", (uint32_t)p->finding.n);
}

/* ---- files ---- */

/* The folder of the run may be missing on another host than that of rank 0. */
static bool diagnosis_has_folder(diagnosis *p) {
  char *parent = p->folder != NULL ? tn_path_folder(&p->env, p->folder) : NULL;
  bool has = parent != NULL && tn_file_exists(parent);
  tn_release(&p->env, parent);
  return has;
}

static void diagnosis_write(diagnosis *p) {
  const tn_rank_set *ranks = p->ranks;
  int32_t process = ranks->link != NULL ? tn_link_process(ranks->link) : 0;
  const tn_flight_file about = {.folder = p->folder,
                                .failure = p->failure,
                                .host = ranks->link != NULL ? tn_link_member(ranks->link, process)->host : "",
                                .process = process,
                                .ranks = ranks->count};
  if (!diagnosis_has_folder(p)) return;
  for (int32_t i = 0; i < ranks->n; i++) {
    const tn_rank_member *m = &ranks->members[i];
    tn_status status = tn_flight_write(&p->env, &m->flight, &p->summaries[m->rank], &about);
    if (status == TN_OK) continue;
    tn_logf(&p->env, TN_LOG_WARN, "the collectives of rank %d were not written: %s", (int)m->rank,
            tn_error_text(&p->env));
    return;
  }
}

/* ---- the whole ---- */

static bool diagnosis_begin(diagnosis *p, tn_rank_set *ranks) {
  tn_error_record_init(&p->env, &p->record, &ranks->env);
  p->ranks = ranks;
  p->finding = tn_text_new(&p->env);
  pthread_mutex_lock(&ranks->lock);
  p->status = ranks->status;
  p->failure = tn_strdup(&p->env, tn_error_text(&ranks->env));
  p->folder = ranks->failures != NULL ? tn_strdup(&p->env, ranks->failures) : NULL;
  pthread_mutex_unlock(&ranks->lock);
  p->summaries = tn_alloc(&p->env, tn_size_mul((size_t)ranks->count, sizeof *p->summaries));
  p->known = tn_alloc(&p->env, (size_t)ranks->count);
  return p->summaries != NULL && p->known != NULL && p->failure != NULL;
}

static void diagnosis_publish(diagnosis *p) {
  tn_text findings = tn_text_new(&p->env);
  if (p->finding.n > 0) tn_text_addf(&findings, "; %s", p->finding.v);
  if (p->folder != NULL) tn_text_addf(&findings, "; the last collectives of each rank are in %s", p->folder);
  if (findings.n == 0 || findings.failed) {
    tn_text_free(&findings);
    return;
  }
  pthread_mutex_lock(&p->ranks->lock);
  p->ranks->findings = findings.v;
  pthread_mutex_unlock(&p->ranks->lock);
}

static void diagnosis_end(diagnosis *p) {
  tn_text_free(&p->finding);
  tn_release(&p->env, p->summaries);
  tn_release(&p->env, p->known);
  tn_release(&p->env, p->folder);
  tn_release(&p->env, p->failure);
}

void tn_ranks_examine(tn_rank_set *ranks) {
  diagnosis p = {.ranks = ranks};
  if (ranks->count == 1) return;
  if (diagnosis_begin(&p, ranks)) {
    diagnosis_read_own(&p);
    diagnosis_agree(&p);
    diagnosis_write(&p);
    diagnosis_publish(&p);
  }
  diagnosis_end(&p);
}
