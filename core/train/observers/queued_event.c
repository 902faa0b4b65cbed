#include "core/train/observers/queued_event.h"

#include <string.h>

/* Memory that is taken piece by piece: arrays of structs first, which are aligned, then numbers, then bytes.
 */
typedef struct queued_memory {
  char *at;
} queued_memory;

static void *queued_copy(queued_memory *memory, const void *from, size_t bytes) {
  void *to = memory->at;
  if (bytes > 0) memcpy(to, from, bytes);
  memory->at += bytes;
  return to;
}

/* The bytes of the arrays of an event and of what their entries point to. */
static size_t queued_bytes(const tn_event *e) {
  size_t bytes = sizeof *e->watched * (size_t)e->n_watched + sizeof *e->histograms * (size_t)e->n_histograms +
                 sizeof *e->media * (size_t)e->n_media;
  for (int32_t i = 0; i < e->n_histograms; i++) bytes += sizeof(double) * (size_t)e->histograms[i].n_buckets;
  for (int32_t i = 0; i < e->n_media; i++) bytes += e->media[i].bytes;
  return bytes;
}

static void queued_attach(tn_queued_event *to, const tn_event *e) {
  queued_memory memory = {to->attached};
  to->event.watched = queued_copy(&memory, e->watched, sizeof *e->watched * (size_t)e->n_watched);
  tn_histogram *histograms =
      queued_copy(&memory, e->histograms, sizeof *histograms * (size_t)e->n_histograms);
  tn_media *media = queued_copy(&memory, e->media, sizeof *media * (size_t)e->n_media);
  for (int32_t i = 0; i < e->n_histograms; i++)
    histograms[i].counts =
        queued_copy(&memory, histograms[i].counts, sizeof(double) * (size_t)histograms[i].n_buckets);
  for (int32_t i = 0; i < e->n_media; i++)
    media[i].data = queued_copy(&memory, media[i].data, media[i].bytes);
  to->event.histograms = histograms;
  to->event.media = media;
}

static void queued_copy_arrays(const void *handle, tn_queued_event *to, const tn_event *event) {
  size_t bytes = queued_bytes(event);
  if (bytes == 0) return;
  to->attached = tn_alloc(handle, bytes);
  if (to->attached != NULL) {
    queued_attach(to, event);
    return;
  }
  to->event.n_watched = to->event.n_histograms = to->event.n_media = 0;
}

static int32_t queued_copy_metrics(tn_metric *to, const tn_metric *from, int32_t n) {
  if (n > TN_EVENT_METRICS) n = TN_EVENT_METRICS;
  if (n > 0) memcpy(to, from, sizeof *to * (size_t)n);
  return n;
}

void tn_queued_event_set(const void *handle, tn_queued_event *to, const tn_event *event) {
  to->event = *event;
  to->event.n_train = queued_copy_metrics(to->train, event->train, event->n_train);
  to->event.n_valid = queued_copy_metrics(to->valid, event->valid, event->n_valid);
  strncpy(to->text, event->text ? event->text : "", TN_EVENT_TEXT - 1);
  to->text[TN_EVENT_TEXT - 1] = '\0';
  to->event.train = to->train;
  to->event.valid = to->valid;
  to->event.text = to->text;
  queued_copy_arrays(handle, to, event);
}

void tn_queued_event_clear(const void *handle, tn_queued_event *event) {
  tn_release(handle, event->attached);
  event->attached = NULL;
}
